// Matmul with a pointwise prologue and epilogue: one block per BLOCK_M x BLOCK_N tile of the result
// and batch index (gemm_tile.h).

#include <algorithm>

#include "codegen/kernel/kernel.h"
#include "codegen/work/gemm_tile.h"
#include "ir/numel.h"

namespace braid {

using tile::Fn;
using tile::Id;

namespace {

std::string refuse(const Graph& body) {
  const BodyInfo info = analyze(body);
  const std::string reason = refuse_matmuls(body, info);
  return reason.empty() ? info.refusal : reason;
}

GemmUse use_of(const BodyInfo& info) { return {.rows = info.space[info.space.size() - 2]}; }

Config default_config_of(const Graph& body, const Target& target) {
  const BodyInfo info = analyze(body);
  return gemm_config(body, info, target, use_of(info));
}

/// The tile of this block; also sets the grid.
GemmPlace place_block(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info) {
  const std::size_t rank = info.space.size();
  const std::int64_t block_m = spec.config.at("BLOCK_M");
  const std::int64_t block_n = spec.config.at("BLOCK_N");
  const Expr tiles_m = ceil_div(Expr(info.space[rank - 2]), Expr(block_m));
  const Expr tiles_n = ceil_div(Expr(info.space[rank - 1]), Expr(block_n));
  const Shape batch(info.space.begin(), info.space.end() - 2);
  b.program().grid = tiles_m * tiles_n * numel(batch);
  Id block = b.map(Fn::kToI32, {b.program_id()});
  GemmPlace place{.batch = {b.integer(0), batch}, .row = 0, .col = 0};
  if (!(numel(batch) == Expr(1))) {
    const Id tiles = b.map(Fn::kToI32, {b.scalar(tiles_m * tiles_n)});
    place.batch.index = b.map(Fn::kToI64, {b.map(Fn::kDiv, {block, tiles})});
    block = b.map(Fn::kRem, {block, tiles});
  }
  const TileNumber tile = tile_number(b, spec, block, tiles_m, tiles_n);
  place.row = b.map(Fn::kMul, {tile.down, b.integer(block_m)});
  place.col = b.map(Fn::kMul, {tile.across, b.integer(block_n)});
  return place;
}

tile::Program build(const KernelSpec& spec, const Target&, int /*ranks_per_device*/) {
  tile::Program program;
  tile::Builder b(program);
  const BodyInfo info = analyze(*spec.body);
  program.warps_m = gemm_warps_m(spec.config);
  emit_gemm_tile(b, spec, info, place_block(b, spec, info));
  return program;
}

}  // namespace

extern const Template kGemmTemplate;
const Template kGemmTemplate = {
    .name = "gemm",
    .settings = kGemmSettings,
    .matches =
        [](const Graph& body) {
          return std::any_of(body.nodes().begin(), body.nodes().end(), is_matmul);
        },
    .refuse = refuse,
    .default_config = default_config_of,
    .candidates = [](const Graph& body, const Target& target) -> std::vector<Config> {
      const BodyInfo info = analyze(body);
      return gemm_candidates(body, info, target, use_of(info), default_config_of(body, target));
    },
    .rough_ns =
        [](const KernelSpec& spec, const Bindings& bindings, const Target& target) {
          const BodyInfo info = analyze(*spec.body);
          return gemm_ns(spec, info, bindings, target, use_of(info));
        },
    .build = build,
};

}  // namespace braid
