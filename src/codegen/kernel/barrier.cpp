// All ranks of a group meet: what each did before, on its stream, the others see after. The body is
// empty but for the group, so no node of a graph has one: plans launch it between copies that read
// or write peers, which cannot wait for them.
//
//     signal, wait        one block, one slot: every peer has entered this step

#include <fmt/format.h>

#include "codegen/kernel/kernel.h"
#include "codegen/kernel/phases.h"

namespace braid {
namespace {

// A thread waits for a peer, and for several where there are more peers than threads.
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
