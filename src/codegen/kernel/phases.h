#pragma once

#include <string>
#include <utility>

#include "codegen/body/emitter.h"

namespace braid {

// Phases, from which kernels are put together: pieces of work, the order in which a block takes
// them, and barriers of the ranks between them. The work of a piece knows neither the grid nor
// other blocks.

/// The pieces that a block takes: first, first + step, ... below `end`; all scalars.
struct Order {
  tile::Id first, end, step;
};

/// Block b takes the pieces b, b + grid, ...
[[nodiscard]] inline Order grid_stride(tile::Builder& b, tile::Id count) {
  return {b.program_id(), count, b.num_programs()};
}

/// Emits the work of each piece by calling `emit` with its number.
template <class Emit>
void for_each_piece(tile::Builder& b, const Order& order, const Emit& emit) {
  const tile::Id loop = b.begin_for(order.first, order.end, order.step, {});
  emit(b.induction(loop));
  b.end_for(loop, {});
}

/// This rank's index in the group, a scalar.
[[nodiscard]] inline tile::Id own_rank(tile::Builder& b, const std::string& group) {
  return b.param({.kind = KernelParam::Kind::kRank, .index = 0, .expr = 0, .group = group});
}

/// Whether this is the group's last step of a run, after which a peer may overwrite what is read
/// here.
[[nodiscard]] inline tile::Id is_closing(tile::Builder& b, const std::string& group) {
  return b.param({.kind = KernelParam::Kind::kClosing, .index = 0, .expr = 0, .group = group});
}

/// A barrier of the blocks on all ranks that use this slot, where the predicate holds.
inline void meet(tile::Builder& b, tile::Id slot, tile::Id predicate = tile::kNone) {
  b.signal(slot, tile::kNone, predicate);
  b.wait(slot, tile::kNone, predicate);
}

/// For pieces dealt rank by rank, equally many each: the turn of piece `piece` (0 for the first
/// rank) and its number among that rank's pieces. Both are 32 bits wide, since a 64-bit division is
/// a function call.
[[nodiscard]] inline std::pair<tile::Id, tile::Id> turn_of(tile::Builder& b, tile::Id piece,
                                                           tile::Id pieces_of_rank) {
  const auto narrow = [&](tile::Id id) { return b.map(tile::Fn::kToI32, {id}); };
  const tile::Id number = narrow(piece);
  const tile::Id turn = b.map(tile::Fn::kDiv, {number, narrow(pieces_of_rank)});
  return {turn, b.map(tile::Fn::kRem, {number, narrow(pieces_of_rank)})};
}

}  // namespace braid
