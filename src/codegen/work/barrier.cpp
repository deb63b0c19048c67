// Nothing, for a kernel in which all ranks of a group meet: what each did before, on its stream,
// the others see after. The body is empty but for the group, so no node of a graph has one: plans
// launch it between copies that read or write peers, which cannot wait for them.

#include <fmt/format.h>

#include "codegen/work/rows.h"

namespace braid {

extern const Work kNothing{
    .settings = kRowSettings,
    .matches =
        [](const Graph& body) {
          return body.nodes().empty() && body.inputs().empty() && body.outputs().empty();
        },
    .refuse = [](const BodyFacts& facts) -> std::string {
      const std::size_t groups = facts.body.groups().size();
      if (groups == 1) return "";
      return fmt::format("an empty body is a barrier of one group, found {}", groups);
    },
    // A thread waits for a peer, and for several where there are more peers than threads.
    .configs = [](const BodyFacts&, const Target&) -> std::vector<Config> {
      return {{{"num_warps", 1}}};
    },
    .pieces = [](const BodyFacts&, const Config&) -> std::optional<Pieces> { return {}; },
};

}  // namespace braid
