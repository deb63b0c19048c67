// An all-reduce by instructions that access all ranks at once, so that the links reduce and
// multiply. An element is summed up by one rank, in the hardware's order: all ranks have the same
// bits, others than those of the other algorithms.

#include <algorithm>

#include "codegen/work/from_peers.h"

namespace braid {

using tile::Id;

namespace {

Id multicast_operand(BodyEmitter& emitter) {
  const BodyFacts& facts = emitter.facts();
  tile::Builder& b = emitter.builder();
  return b.multicast(operand_offset(b, facts), facts.group());
}

Id from_all(BodyEmitter& emitter, const Coords& at, const Mask& mask) {
  tile::Builder& b = emitter.builder();
  const Collective form = form_of(emitter.facts());
  const DType dtype = emitter.facts().operand().dtype;
  const auto from = emitter.elements(multicast_operand(emitter), at, dtype);
  const Id sum = b.multimem_reduce(from.pointer, from.offset, emitter.masked(mask, from), dtype);
  if (*form.reduce == ReduceOp::kSum) return sum;
  return b.map(tile::Fn::kDiv,
               {sum, b.constant(tile::Kind::kF32, static_cast<double>(form.ranks))});
}

void store_to_all(BodyEmitter& emitter, const Coords& at, const Mask& mask) {
  const BodyFacts& facts = emitter.facts();
  const TensorType& type = facts.operand();
  const Coords own = emitter.coords().reshape(at, type.shape);
  Id sum = emitter.value(facts.collective->outputs[0], own, mask);
  auto to = emitter.elements(multicast_operand(emitter), own, type.dtype);
  emitter.match(to, sum);
  emitter.builder().multimem_store(to.pointer, to.offset, sum, emitter.masked(mask, to),
                                   type.dtype);
}

}  // namespace

/// The sum over ranks, to its place on all of them.
extern const Work kSumAtAll;
const Work kSumAtAll{
    .matches =
        [](const Graph& body) {
          return std::ranges::any_of(body.nodes(), [](const Node& node) {
            return node.op->op_class == OpClass::kCollective && algorithm_of(node) == kMultimem;
          });
        },
    .refuse = [](const BodyFacts& facts) -> std::string {
      return cannot_multimem(*form_of(facts).reduce, facts.operand().dtype);
    },
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      return for_row_pieces(facts, config, [](RowPiece& rows, const Piece&) {
        rows.read(from_all);
        rows.for_all(store_to_all);
      });
    },
};

/// The rest of the body, with the sum in this rank's own arena.
extern const Work kRowsFromHere;
const Work kRowsFromHere{
    .settings = kRowSettings,
    .refuse = refuse_rows_of_collective,
    .tuning = kCollectiveRowTuning,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      return rows_that_read(facts, config,
                            [](BodyEmitter& emitter, const Coords& at, const Mask& mask) {
                              const Id rank = own_rank(emitter.builder(), emitter.facts().group());
                              return from_rank(emitter, rank, at, mask);
                            });
    },
};

}  // namespace braid
