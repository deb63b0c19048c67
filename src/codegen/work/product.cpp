// Tiles of a matmul whose result a kernel reduces over ranks. For a reduce-scatter (PyTorch's
// fused_matmul_reduce_scatter; FLUX's and ParallelKittens' "GEMM + RS") a tile goes where it is
// needed as soon as it is made, to the owner of its rows: pushed, not pulled, for stores to peers
// need no answer, and are under way while the block goes on multiplying; what is read of peers
// comes after the last tile, when nothing is left to hide it. The matmul's result is rounded to its
// dtype on the way, as in memory.
//
// The parts lie in the buffer of the matmul's result, which has room for just that: world chunks,
// that of rank r at the r-th place. It is no value afterwards (tile/remote.h). Why no peer writes
// there too early: the plan gives what peers write a lifetime from the group's last barrier before
// this step on (docs/architecture.md, Program), so none of those bytes is in use when the first
// rank enters it; and of two runs, the step that closes the group's part of a run, maybe this one,
// lies between what is read here and the next run's stores.
//
// For an all-reduce the tiles stay in this rank's arena, and every rank reads what it needs of all.

#include <fmt/format.h>

#include <algorithm>

#include "codegen/work/from_peers.h"
#include "codegen/work/gemm_tile.h"
#include "ir/numel.h"
#include "ir/op_registry.h"

namespace braid {

using tile::Fn;
using tile::Id;

namespace {

/// A row is added up by as many warps as in a kernel of its own, and a matmul has no use for more.
constexpr std::int64_t kMostWarps = 8;

const TensorType& product_type(const Graph& body) {
  return body.type(matmuls_of(body)[0]->outputs[0]);
}

/// The rows of the product that are one rank's in the end; nothing where they do not lie together.
std::optional<Dim> rows_of_rank(const BodyFacts& facts) {
  const Dim& rows = product_type(facts.body).shape[0];
  const Collective form = form_of(facts);
  if (!form.scatter_dim) return rows;
  if (!lies_in_front(facts.operand().shape, *form.scatter_dim)) return std::nullopt;
  return rows.divide_exactly(form.ranks, facts.body.symbols());
}

bool matches(const Graph& body) {
  return has_matmul(body) && std::ranges::any_of(body.nodes(), reduces_in_kernel);
}

bool matches_scatter(const Graph& body) {
  return matches(body) && std::ranges::any_of(body.nodes(), [](const Node& node) {
           return node.op->collective == CollectiveKind::kReduceScatter;
         });
}

std::string refuse(const BodyFacts& facts) {
  const Graph& body = facts.body;
  const std::vector<const Node*> matmuls = matmuls_of(body);
  const Node& collective = *facts.collective;
  if (!reduces_in_kernel(collective) || facts.apart < 0) {
    return "it reduces nothing that it multiplies";
  }
  if (matmuls.size() != 1) return "a kernel reduces the result of one matmul";
  if (is_grouped(body)) return "the result of a grouped matmul is not reduced within its kernel";
  if (!is_reshaped(body, facts.apart, matmuls[0]->outputs[0]) ||
      product_type(body).shape.size() != 2) {
    return "only the rows of a matmul's result are reduced within its kernel";
  }
  if (facts.output_apart() == body.outputs().size()) {
    return "what a kernel reduces must be in memory";
  }
  if (!rows_of_rank(facts)) return "the rows of a rank are not one part of the matmul's result";
  if (std::string reason = refuse_recomputed(body, collective); !reason.empty()) return reason;
  if (!facts.refusal.empty()) return facts.refusal;
  if (facts.rows == Rows::kStrided) return refuse_rows_of_collective(facts);
  const std::int64_t warps = row_warps(facts);
  if (warps > kMostWarps) {
    return fmt::format("rows of {} elements need {} warps; a kernel that multiplies has {}",
                       max_numel(facts.reduced_dims(), body.symbols()), warps, kMostWarps);
  }
  return "";
}

GemmUse use_of(const BodyFacts& facts, const Config&) {
  const Collective form = form_of(facts);
  // Other numbers of warps add a row in another order.
  const bool reduces = facts.rows != Rows::kNone;
  return {.rows = rows_of_rank(facts).value_or(product_type(facts.body).shape[0]),
          .chunks = form.scatter_dim ? form.ranks : 1,
          .warps = reduces ? row_warps(facts) : 0,
          .rows_follow = true,
          .waits = true,
          .rings = can_use_ring(facts)};
}

/// Of the rows of one rank.
Raster raster_of(const BodyFacts& facts, const Config& config) {
  return {config, *rows_of_rank(facts), product_type(facts.body).shape[1]};
}

std::optional<Pieces> pieces_of(const BodyFacts& facts, const Config& config) {
  return raster_of(facts, config).pieces(facts, config);
}

Id product_pointer(tile::Builder& b, const BodyFacts& facts) {
  return output_pointer(b, facts.output_apart());
}

GemmPlace own_place(const Piece& piece, bool stores) {
  tile::Builder& b = piece.b;
  const Raster raster = raster_of(piece.facts, piece.config);
  const Id number = b.map(Fn::kToI32, {piece.number});
  GemmPlace place = raster.place(b, raster.tile(piece, number));
  if (stores) place.product = product_pointer(b, piece.facts);
  return place;
}

GemmPlace pushed_place(const Piece& piece, bool stores) {
  tile::Builder& b = piece.b;
  const BodyFacts& facts = piece.facts;
  const Raster raster = raster_of(facts, piece.config);
  const TensorType& product = product_type(facts.body);
  const Id owner = piece.rank();
  const Id rows = piece.scalar(*rows_of_rank(facts));
  const Id chunk = b.map(Fn::kMul, {rows, piece.scalar(product.shape[1])});
  GemmPlace place = raster.place(b, raster.tile(piece, piece.number));
  place.chunk = {*rows_of_rank(facts), b.map(Fn::kMul, {owner, rows})};
  if (!stores) return place;
  const Id before = b.map(Fn::kMul, {own_rank(b, facts.group()), chunk});
  const Id all = b.peer(operand_offset(b, facts), owner);
  place.product = b.ptr_add(all, before, product.dtype);
  return place;
}

/// Where the ranks have put their parts of this rank's chunk one after the other into its own
/// operand.
Id from_parts(const RowPlace& place) {
  tile::Builder& b = place.b;
  const BodyFacts& facts = place.facts;
  const TensorType& chunk = facts.body.type(facts.collective->outputs[0]);
  const Id operand = product_pointer(b, facts);
  const Id elements = scalar_of(b, numel(chunk.shape), facts.body.symbols());
  return sum_of(b, form_of(facts), chunk.dtype, [&](Id rank) {
    const Id part = b.ptr_add(operand, b.map(Fn::kMul, {rank, elements}), chunk.dtype);
    return place.emitter.load(part, place.at, chunk.dtype, place.mask);
  });
}

template <GemmPlace (*kPlace)(const Piece& piece, bool stores)>
Work tile_work(bool (*matches)(const Graph& body),
               Id (*prepare)(tile::Builder& b, const BodyFacts& facts)) {
  return {.settings = kWaitingRingSettings,
          .matches = matches,
          .refuse = refuse,
          .configs = gemm_configs<use_of>,
          .rough_ns = gemm_rough_ns<use_of>,
          .pieces = pieces_of,
          .prepare = prepare,
          .emit = [](const Piece& piece) { emit_gemm_tile(piece, kPlace(piece, true)); },
          .by_ring = &kGemmByRing<kPlace>};
}

}  // namespace

/// Into this rank's own arena.
extern const Work kOwnTile = tile_work<own_place>(matches, product_pointer);
/// To the owner of its rows.
extern const Work kPushedTile = tile_work<pushed_place>(matches_scatter, operand_offset);

/// The rest of the body, with the sum of what was pushed here.
extern const Work kRowsOfParts =
    rows_of_collective([](const Piece& piece) { emit_rows(piece, from_parts); });

}  // namespace braid
