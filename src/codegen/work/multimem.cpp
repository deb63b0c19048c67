// An all-reduce by instructions that access all ranks at once, so that the links reduce and
// multiply. An element is summed up by one rank, in the hardware's order: all ranks have the same
// bits, others than those of the other algorithms.

#include <algorithm>

#include "codegen/work/from_peers.h"

namespace braid {

using tile::Id;

namespace {

BodyEmitter::Elements operand(const RowPlace& place, const Coords& at) {
  const BodyFacts& facts = place.facts;
  const Id pointer = place.b.multicast(operand_offset(place.b, facts), facts.group());
  return place.emitter.elements(pointer, at, facts.operand().dtype);
}

Id from_all(const RowPlace& place) {
  tile::Builder& b = place.b;
  const Collective form = form_of(place.facts);
  const auto from = operand(place, place.at);
  const Id sum =
      b.multimem_reduce(from.pointer, from.offset, place.emitter.masked(place.mask, from),
                        place.facts.operand().dtype);
  if (*form.reduce == ReduceOp::kSum) return sum;
  return b.map(tile::Fn::kDiv,
               {sum, b.constant(tile::Kind::kF32, static_cast<double>(form.ranks))});
}

void store_to_all(const RowPlace& place) {
  BodyEmitter& emitter = place.emitter;
  const TensorType& type = place.facts.operand();
  const Coords own = emitter.coords().reshape(place.at, type.shape);
  Id sum = emitter.value(place.facts.collective->outputs[0], own, place.mask);
  auto to = operand(place, own);
  emitter.match(to, sum);
  place.b.multimem_store(to.pointer, to.offset, sum, emitter.masked(place.mask, to), type.dtype);
}

}  // namespace

/// The sum over ranks, to its place on all of them.
extern const Work kSumAtAll{
    .matches = [](const Graph& body) { return runs_as(Algorithm::kMultimem, body); },
    .refuse = [](const BodyFacts& facts) -> std::string {
      return cannot_multimem(*form_of(facts).reduce, facts.operand().dtype);
    },
    .pieces = each_row,
    .emit = [](const Piece& piece) { for_row_places(piece, store_to_all, from_all); },
};

/// The rest of the body, with the sum in this rank's own arena.
extern const Work kRowsFromHere = rows_of_collective([](const Piece& piece) {
  emit_rows(piece, [](const RowPlace& place) {
    return from_rank(place, own_rank(place.b, place.facts.group()));
  });
});

}  // namespace braid
