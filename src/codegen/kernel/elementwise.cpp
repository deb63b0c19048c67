// Elementwise and row-wise bodies: a block takes a chunk of the flattened space, one row, or
// several short rows, with everything around the reductions in the same registers. If there are
// more rows than resident blocks, they are dealt to as many blocks as the device holds.

#include <algorithm>

#include "codegen/device_model.h"
#include "codegen/kernel/kernel.h"
#include "codegen/kernel/phases.h"

namespace braid {
namespace {

Config default_config_of(const Graph& body, const Target&) {
  return piece_config(body, analyze(body));
}

/// Resident blocks of a device, for rows whose threads also have registers for the next ones.
std::int64_t resident_blocks(const KernelSpec& spec, const Target& target) {
  constexpr std::int64_t kThreads = 1024;  // threads per multiprocessor, with 64 registers each
  const std::int64_t threads = 32 * spec.config.at("num_warps");
  return device_model(target).sms * std::max<std::int64_t>(1, kThreads / threads);
}

tile::Program build(const KernelSpec& spec, const Target& target, int /*ranks_per_device*/) {
  tile::Program program;
  tile::Builder b(program);
  const BodyInfo info = analyze(*spec.body);
  const PieceWork work = piece_work(spec, info);
  program.columns = work.together;
  const std::int64_t resident = resident_blocks(spec, target);
  if (info.rows != Rows::kHeld || work.count.max(spec.body->symbols()) <= resident) {
    program.grid = work.count;
    emit_piece(b, spec, info, work, b.program_id());
    return program;
  }
  // A block loads its next row before it reduces this one (passes/prefetch.cpp).
  program.grid = min(work.count, Expr(resident));
  for_each_piece(b, grid_stride(b, b.scalar(work.count)),
                 [&](tile::Id piece) { emit_piece(b, spec, info, work, piece); });
  return program;
}

}  // namespace

extern const Template kElementwiseTemplate;
const Template kElementwiseTemplate = {
    .name = "elementwise",
    .settings = kPieceSettings,
    .matches = [](const Graph&) { return true; },
    .refuse = [](const Graph& body) { return analyze(body).refusal; },
    .default_config = default_config_of,
    .candidates = [](const Graph& body, const Target&) -> std::vector<Config> {
      return piece_candidates(body, analyze(body));
    },
    .build = build,
};

}  // namespace braid
