#pragma once

#include <string>
#include <utility>

#include "codegen/body/emitter.h"

namespace braid {

// A kernel is put together from phases: pieces of work, the order in which a block takes them, and
// meetings of the ranks between them. The work of a piece knows no grid and no other block.

/// The pieces that a block takes, by number: first, first + step, ... below `end`; scalars.
struct Order {
  tile::Id first, end, step;
};

/// Pieces b, b + grid, ... of block b.
[[nodiscard]] inline Order grid_stride(tile::Builder& b, tile::Id count) {
  return {b.program_id(), count, b.num_programs()};
}

/// Emits the work of each piece; `emit` gets its number.
template <class Emit>
void for_each_piece(tile::Builder& b, const Order& order, const Emit& emit) {
  const tile::Id loop = b.begin_for(order.first, order.end, order.step, {});
  emit(b.induction(loop));
  b.end_for(loop, {});
}

/// This rank's number in the group, a scalar.
[[nodiscard]] inline tile::Id own_rank(tile::Builder& b, const std::string& group) {
  return b.param({.kind = KernelParam::Kind::kRank, .index = 0, .expr = 0, .group = group});
}

/// Whether this is the group's last step of a run, so that a peer may write next what is read here.
[[nodiscard]] inline tile::Id is_closing(tile::Builder& b, const std::string& group) {
  return b.param({.kind = KernelParam::Kind::kClosing, .index = 0, .expr = 0, .group = group});
}

/// The blocks of all ranks that have this slot of flags meet, where the predicate holds.
inline void meet(tile::Builder& b, tile::Id slot, tile::Id predicate = tile::kNone) {
  b.signal(slot, tile::kNone, predicate);
  b.wait(slot, tile::kNone, predicate);
}

/// Pieces that are dealt rank by rank, so many for each: whose turn number `piece` is, 0 that of
/// the first rank, and which of that rank's it is; both 32 bits wide, for a 64-bit division is a
/// call.
[[nodiscard]] inline std::pair<tile::Id, tile::Id> turn_of(tile::Builder& b, tile::Id piece,
                                                           tile::Id pieces_of_rank) {
  const auto narrow = [&](tile::Id id) { return b.map(tile::Fn::kToI32, {id}); };
  const tile::Id number = narrow(piece);
  const tile::Id turn = b.map(tile::Fn::kDiv, {number, narrow(pieces_of_rank)});
  return {turn, b.map(tile::Fn::kRem, {number, narrow(pieces_of_rank)})};
}

}  // namespace braid
