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
  return std::ranges::any_of(body.nodes(), reduces_in_kernel) && has_matmul(body);
}

bool matches_scatter(const Graph& body) {
  return matches(body) && std::ranges::any_of(body.nodes(), [&](const Node& node) {
           return reduces_in_kernel(node) &&
                  collective_of(body, node, body.type(node.inputs[0])).scatter_dim.has_value();
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
  const std::int64_t warps = row_config(facts).at("num_warps");
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
          .warps = reduces ? row_config(facts).at("num_warps") : 0,
          .changes_layout = true,
          .waits = true};
}

GemmPlace place_of(tile::Builder& b, const Raster& raster, Id number) {
  const Raster::Tile tile = raster.tile(b, number);
  return {.batch = {b.integer(0), {}}, .row = raster.row(b, tile), .col = raster.col(b, tile)};
}

/// Of the rows of one rank.
Raster raster_of(const BodyFacts& facts, const Config& config) {
  return {facts, config, *rows_of_rank(facts), product_type(facts.body).shape[1]};
}

std::optional<Pieces> own_tiles(const BodyFacts& facts, const Config& config) {
  const Raster raster = raster_of(facts, config);
  const auto open = [&facts, &config, raster](tile::Builder& b) -> Emit {
    const Id product = output_pointer(b, facts.output_apart());
    return [&facts, &config, &b, raster, product](const Piece& piece) {
      GemmPlace place = place_of(b, raster, b.map(Fn::kToI32, {piece.number}));
      place.product = product;
      emit_gemm_tile(b, facts, config, place);
    };
  };
  return tile_pieces(facts, config, raster.down * raster.across, open);
}

std::optional<Pieces> pushed_tiles(const BodyFacts& facts, const Config& config) {
  const Raster raster = raster_of(facts, config);
  const auto open = [&facts, &config, raster](tile::Builder& b) -> Emit {
    const Id rank = own_rank(b, facts.group());
    const Id offset = operand_offset(b, facts);
    return [&facts, &config, &b, raster, rank, offset](const Piece& piece) {
      const TensorType& product = product_type(facts.body);
      const Dim rows_of_owner = *rows_of_rank(facts);
      const auto scalar = [&](const Dim& dim) {
        return scalar_of(b, Expr(dim), facts.body.symbols());
      };
      const Id owner = piece.rank();
      const Id rows = scalar(rows_of_owner);
      const Id chunk = b.map(Fn::kMul, {rows, scalar(product.shape[1])});
      GemmPlace place = place_of(b, raster, piece.number);
      place.chunk =
          GemmPlace::Chunk{.rows = rows_of_owner, .first_row = b.map(Fn::kMul, {owner, rows})};
      place.product =
          b.ptr_add(b.peer(offset, owner), b.map(Fn::kMul, {rank, chunk}), product.dtype);
      emit_gemm_tile(b, facts, config, place);
    };
  };
  return tile_pieces(facts, config, raster.down * raster.across, open);
}

/// Where the ranks have put their parts of this rank's chunk one after the other into its own
/// operand.
Id from_parts(BodyEmitter& emitter, const Coords& at, const Mask& mask) {
  tile::Builder& b = emitter.builder();
  const BodyFacts& facts = emitter.facts();
  const TensorType& chunk = facts.body.type(facts.collective->outputs[0]);
  const Id operand = output_pointer(b, facts.output_apart());
  const Id elements = scalar_of(b, numel(chunk.shape), facts.body.symbols());
  return sum_of(b, form_of(facts), chunk.dtype, [&](Id rank) {
    const Id part = b.ptr_add(operand, b.map(Fn::kMul, {rank, elements}), chunk.dtype);
    return emitter.load(part, at, chunk.dtype, mask);
  });
}

}  // namespace

/// Into this rank's own arena.
extern const Work kOwnTile;
const Work kOwnTile{
    .settings = kWaitingGemmSettings,
    .matches = matches,
    .refuse = refuse,
    .tuning = GemmTuning<use_of>::kTuning,
    .pieces = own_tiles,
};

/// To the owner of its rows.
extern const Work kPushedTile;
const Work kPushedTile{
    .settings = kWaitingGemmSettings,
    .matches = matches_scatter,
    .refuse = refuse,
    .tuning = GemmTuning<use_of>::kTuning,
    .pieces = pushed_tiles,
};

/// The rest of the body, with the sum of what was pushed here.
extern const Work kRowsOfParts;
const Work kRowsOfParts{
    .settings = kRowSettings,
    .refuse = refuse_rows_of_collective,
    .tuning = kCollectiveRowTuning,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      return rows_that_read(facts, config, from_parts);
    },
};

}  // namespace braid
