// An all-gather and the matmuls that read it as their left operand (PyTorch's
// fused_all_gather_matmul; "inter-SM overlap" of ParallelKittens, 2025), as two works: one copies
// panels of BLOCK_M rows of a rank into the gathered operand, which is an output of the kernel; the
// other makes tiles of the result, those of this rank's own rows from where they lie, the others
// once their panel has come. K is added up as in the plain kernel.

#include <algorithm>
#include <array>

#include "codegen/work/from_peers.h"
#include "codegen/work/gemm_tile.h"

namespace braid {

using protocol::Mark;
using tile::Fn;
using tile::Id;

namespace {

const std::string kCopyBlocks(kCopyBlocksSetting);

/// What both know of the rows.
struct Gathered {
  Gathered(const BodyFacts& facts, const Config& config)
      : world(facts.world()),
        rows(*facts.space[0].divide_exactly(world, facts.body.symbols())),
        width(facts.body.type(left(facts.body)).shape[1]),
        block_m(config.at("BLOCK_M")),
        panels(std::max<std::int64_t>(1, (rows.max(facts.body.symbols()) + block_m - 1) / block_m)),
        dtype(facts.body.type(facts.apart).dtype),
        input(facts.body.value(facts.collective->inputs[0]).result) {}

  static ValueId left(const Graph& body) {
    const Node& matmul = *matmuls_of(body)[0];
    return matmul.inputs[first_matrix(matmul)];
  }

  std::int64_t world;
  Dim rows;   ///< of one rank
  Dim width;  ///< of a row: K
  std::int64_t block_m;
  std::int64_t panels;  ///< of one rank, at most
  DType dtype;
  int input;  ///< the operand

  /// Where the rows of a rank are put.
  [[nodiscard]] Id target(tile::Builder& b, const BodyFacts& facts, Id rank) const {
    const auto scalar = [&](const Dim& dim) {
      return scalar_of(b, Expr(dim), facts.body.symbols());
    };
    const Id row = scalar(width);
    const Id chunk = b.map(Fn::kMul, {scalar(rows), row});
    const Id offset = b.map(Fn::kMul, {rank, chunk});
    return b.ptr_add(output_pointer(b, facts.output_apart()), offset, dtype);
  }
};

/// The elements [begin, end).
void copy(tile::Builder& b, const Config& config, DType dtype, Id source, Id target, Id begin,
          Id end) {
  constexpr int kBytesOfThread = 64;  // in flight at one time
  const int piece = static_cast<int>(config.at("num_warps")) * 32 * kBytesOfThread /
                    static_cast<int>(dtype_size(dtype));
  const Id loop = b.begin_for(begin, end, b.integer(piece), {});
  const Id start = b.induction(loop);
  const Id column = b.range(1, piece, 1);
  const Id inside = b.map(Fn::kLt, {column, b.map(Fn::kSub, {end, start})});
  const Id value = b.load(b.ptr_add(source, start, dtype), column, inside, dtype);
  b.store(b.ptr_add(target, start, dtype), column, value, inside, dtype);
  b.end_for(loop, {});
}

/// Panels rank by rank, from the next rank's on; nobody waits for this one's own, which are last.
std::optional<Pieces> panels_of(const BodyFacts& facts, const Config& config) {
  const Gathered all(facts, config);
  const auto open = [&facts, &config, all](tile::Builder& b) -> Emit {
    const Id offset = b.param(
        {.kind = KernelParam::Kind::kOffset, .index = all.input, .group = facts.group()}, 256);
    return [&facts, &config, &b, all, offset](const Piece& piece) {
      const auto times = [&](Id x, Id y) { return b.map(Fn::kMul, {x, y}); };
      const auto plus = [&](Id x, Id y) { return b.map(Fn::kAdd, {x, y}); };
      const auto scalar = [&](const Dim& dim) {
        return scalar_of(b, Expr(dim), facts.body.symbols());
      };
      const Id panels = b.integer(all.panels);
      const Id turn = plus(b.map(Fn::kDiv, {piece.number, panels}), b.integer(1));
      const Id from =
          b.map(Fn::kRem, {plus(own_rank(b, facts.group()), turn), b.integer(all.world)});
      const Id source = b.peer(offset, from);
      const Id target = all.target(b, facts, from);
      const Id panel = b.map(Fn::kRem, {piece.number, panels});
      if (config.at(kMarksSetting) != 0) b.mark(Mark::kCopy, from, panel);
      const Id row = times(panel, b.integer(all.block_m));
      const Id width = scalar(all.width);
      const Id end =
          times(b.map(Fn::kMin, {plus(row, b.integer(all.block_m)), scalar(all.rows)}), width);
      copy(b, config, all.dtype, source, target, times(row, width), end);
    };
  };
  return Pieces{
      .count = all.world * all.panels, .open = open, .flags = (all.world - 1) * all.panels};
}

constexpr Setting kCopySettings[] = {{kCopyBlocksSetting, 1, 64, false},
                                     {kMarksSetting, 0, 1, false}};

std::string refuse(const BodyFacts& facts) {
  const Graph& body = facts.body;
  const ValueId gathered = facts.collective->outputs[0];
  if (facts.apart != gathered) return "it gathers nothing that it multiplies";
  if (std::string reason = refuse_matmuls(body); !reason.empty()) return reason;
  if (!facts.refusal.empty()) return facts.refusal;
  if (body.value(facts.collective->inputs[0]).producer >= 0) {
    return "the operand of a gather within a kernel must be in memory";
  }
  const ValueId left = Gathered::left(body);
  if (!is_reshaped(body, left, gathered) || body.type(left).shape.size() != 2) {
    return "only the rows of a matmul's left operand are gathered within its kernel";
  }
  if (facts.output_apart() == body.outputs().size()) {
    return "what a kernel gathers must be in memory";
  }
  const Collective form = form_of(facts);
  if (form.gather_dim != 0) return "only dim 0 is gathered within a kernel";
  if (!facts.space[0].divide_exactly(form.ranks, body.symbols())) {
    return "the rows of a rank are no expression of the symbols";
  }
  return "";
}

GemmUse use_of(const BodyFacts& facts, const Config& config) {
  const auto copying = config.find(kCopyBlocks);
  return {.rows = *facts.space[0].divide_exactly(facts.world(), facts.body.symbols()),
          .chunks = facts.world(),
          .gathers = true,
          .waits = true,
          .copying = copying == config.end() ? kGatherGemmCopyBlocks : copying->second};
}

std::optional<Pieces> tiles_of(const BodyFacts& facts, const Config& config) {
  const Gathered all(facts, config);
  const Raster raster(facts, config, all.rows, facts.space[1]);
  const auto emit = [&facts, &config, all, raster](tile::Builder& b, const Piece& piece) {
    const Raster::Tile tile = raster.tile(b, piece.number);
    const Id from = piece.rank();
    piece.await(from, tile.down);
    const Id own =
        b.param({.kind = KernelParam::Kind::kInput, .index = all.input, .group = {}}, 16);
    const Id copied = all.target(b, facts, from);
    const Id rows = scalar_of(b, Expr(all.rows), facts.body.symbols());
    const Id remote = b.map(Fn::kLt, {b.integer(0), piece.turn});
    const GemmPlace place{
        .batch = {b.integer(0), {}},
        .row = raster.row(b, tile),
        .col = raster.col(b, tile),
        .chunk = GemmPlace::Chunk{.rows = all.rows, .first_row = b.map(Fn::kMul, {from, rows})},
        .gathered = b.map(Fn::kSelect, {remote, copied, own})};
    emit_gemm_tile(b, facts, config, place);
  };
  return tile_pieces(facts, config, raster.down * raster.across, each(emit));
}

}  // namespace

extern const Work kCopiedPanel;
const Work kCopiedPanel{
    .settings = kCopySettings,
    .matches =
        [](const Graph& body) { return std::ranges::any_of(body.nodes(), gathers_in_kernel); },
    .tuning = {.default_config =
                   [](const BodyFacts&, const Target&) {
                     return Config{{kCopyBlocks, kGatherGemmCopyBlocks}, {kMarksSetting, 0}};
                   }},
    .pieces = panels_of,
};

extern const Work kGatheredTile;
const Work kGatheredTile{
    .settings = kWaitingGemmSettings,
    .matches = has_matmul,
    .refuse = refuse,
    .tuning = GemmTuning<use_of>::kTuning,
    .pieces = tiles_of,
};

}  // namespace braid
