#include "runtime/wait_record.h"

#include <fmt/format.h>

#include "runtime/launch_plan.h"

namespace braid {
namespace {

std::string step_text(const Program& program, std::uint32_t index) {
  if (index >= program.steps.size()) return fmt::format("step {}", index);
  const Step& step = program.steps[index];
  const auto kernel = static_cast<std::size_t>(step.kernel);
  const bool known = step.kernel >= 0 && kernel < program.kernels.size();
  return fmt::format("step {} '{}' ({})", index, step.name,
                     known ? program.kernels[kernel].spec.template_name + " kernel" : "no kernel");
}

}  // namespace

std::string describe_timeouts(const Program& program, std::string_view group,
                              std::span<const WaitHead> heads) {
  std::string text;
  bool aborted = false;
  for (std::size_t rank = 0; rank < heads.size(); ++rank) {
    aborted |= heads[rank].abort != 0;
    const protocol::Record& r = heads[rank].record;
    if (r.claimed == 0) continue;
    // Kernels know ranks by their index in the group.
    const auto members = group_members(program, group, static_cast<std::int64_t>(rank));
    const std::int64_t peer = r.peer < members.size() ? members[r.peer] : r.peer;
    if (!text.empty()) text += "; ";
    text += fmt::format(
        "rank {}, {}, block {}, channel {}: waited for rank {} to reach epoch {}, last saw {}",
        rank, step_text(program, r.step), r.block, r.channel, peer, r.expected, r.seen);
  }
  if (text.empty() && aborted) text = "a wait was aborted, but no rank recorded which";
  return text;
}

}  // namespace braid
