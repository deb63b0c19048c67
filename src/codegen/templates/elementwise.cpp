// Everything that is computed element by element or row by row: a block takes a chunk of the
// flattened space, one row, or several short ones, with everything around the reductions in the
// same registers.

#include "codegen/templates/body.h"
#include "codegen/templates/template.h"

namespace braid {
namespace {

Config default_config_of(const Graph& body, const Target&) {
  return piece_config(body, analyze(body));
}

tile::Program build(const KernelSpec& spec, const Target&, int /*ranks_per_device*/) {
  tile::Program program;
  tile::Builder b(program);
  const BodyInfo info = analyze(*spec.body);
  const PieceWork work = piece_work(spec, info);
  program.grid = work.count;
  program.columns = work.together;
  emit_piece(b, spec, info, work, b.program_id());
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
