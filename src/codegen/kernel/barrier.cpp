// A barrier of all ranks of a group: work before it on each rank's stream is visible to work behind
// it on the others. The body has only the group, so no graph node has one. Plans launch it between
// copies that access peers, which cannot wait for them.
//
//     signal, wait        one block, one slot: every peer has entered this step

#include <fmt/format.h>

#include "codegen/kernel/kernel.h"
#include "codegen/kernel/phases.h"

namespace braid {
namespace {

// One thread per peer, or several peers per thread.
Config default_config_of(const Graph&, const Target&) { return {{"num_warps", 1}}; }

constexpr Setting kSettings[] = {kWarpsSetting};

tile::Program build(const KernelSpec& spec, const Target&, int /*ranks_per_device*/) {
  tile::Program program;
  tile::Builder b(program);
  const auto& [group, members] = *spec.body->groups().begin();
  b.communicate(group, static_cast<int>(members.size));
  program.flag_slots = 1;
  meet(b, b.integer(0));
  return program;
}

}  // namespace

extern const Template kBarrierTemplate;
const Template kBarrierTemplate = {
    .name = "barrier",
    .settings = kSettings,
    .matches =
        [](const Graph& body) {
          return body.nodes().empty() && body.inputs().empty() && body.outputs().empty();
        },
    .refuse = [](const Graph& body) -> std::string {
      if (body.groups().size() == 1) return "";
      return fmt::format("an empty body is a barrier of one group, found {}", body.groups().size());
    },
    .default_config = default_config_of,
    .candidates = [](const Graph& body, const Target& target) -> std::vector<Config> {
      return {default_config_of(body, target)};
    },
    .build = build,
};

}  // namespace braid
