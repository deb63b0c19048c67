#include "lowering/plan/lifetimes.h"

#include <algorithm>

namespace braid {
namespace {

const std::vector<int>& of_group(const Barriers& barriers, const std::string& group) {
  static const std::vector<int> kNone;
  const auto found = barriers.find(group);
  return found == barriers.end() ? kNone : found->second;
}

const std::string& group_of(const Program& program, int buffer) {
  const int arena = program.buffers[buffer].arena;
  return program.arenas[arena].group;
}

/// The first barrier that follows the step, or -1.
int barrier_after(const std::vector<int>& barriers, int step, const StepOrder& order) {
  const auto found = std::find_if(std::ranges::upper_bound(barriers, step), barriers.end(),
                                  [&](int b) { return order.before(step, b); });
  return found == barriers.end() ? -1 : *found;
}

/// The last barrier that the step follows, or -1.
int barrier_before(const std::vector<int>& barriers, int step, const StepOrder& order) {
  auto at = std::ranges::lower_bound(barriers, step);
  while (at != barriers.begin()) {
    if (order.before(*--at, step)) return *at;
  }
  return -1;
}

}  // namespace

Barriers barriers_of(const Program& program) {
  Barriers barriers;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (!meets(program, program.steps[s])) continue;
    barriers[comm_group(program, program.steps[s])].push_back(s);
  }
  return barriers;
}

std::vector<bool> outlive_runs(const Program& program, const StepOrder& order) {
  std::vector<bool> outlive(program.buffers.size(), false);
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    const ArenaKind arena = program.arenas[buffer.arena].kind;
    outlive[b] = arena == ArenaKind::kParameters || arena == ArenaKind::kIo ||
                 arena == ArenaKind::kState || buffer.kind != BufferKind::kTensor;
  }
  const Barriers barriers = barriers_of(program);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    for (const Access& access : accesses(program, program.steps[s])) {
      if (!access.remote || !access.write) continue;
      const std::size_t b = access.buffer;
      const std::vector<int>& of_its_group = of_group(barriers, group_of(program, access.buffer));
      if (barrier_before(of_its_group, s, order) < 0) outlive[b] = true;
    }
  }
  return outlive;
}

std::vector<StepRange> lifetimes(const Program& program, const StepOrder& order) {
  const StepRange all{0, std::max(0, static_cast<int>(program.steps.size()) - 1)};
  std::vector<std::vector<int>> uses(program.buffers.size());
  const std::vector<bool> always = outlive_runs(program, order);
  const Barriers barriers = barriers_of(program);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    const int now = s;
    for (const Access& access : accesses(program, step)) {
      const std::size_t b = access.buffer;
      uses[b].push_back(now);
      if (!access.remote) continue;
      const std::vector<int>& of_its_group = of_group(barriers, group_of(program, access.buffer));
      if (access.write) {
        const int barrier = barrier_before(of_its_group, now, order);
        if (barrier >= 0) uses[b].push_back(barrier);
      }
      if (!access.write || step.kind == Step::Kind::kCopy) {
        const int barrier = barrier_after(of_its_group, now, order);
        if (barrier >= 0) uses[b].push_back(barrier);
      }
    }
  }
  std::vector<StepRange> ranges(program.buffers.size(), all);
  for (std::size_t b = 0; b < ranges.size(); ++b) {
    if (always[b] || uses[b].empty()) continue;
    ranges[b] = {*std::ranges::min_element(uses[b]), order.end_of(uses[b])};
  }
  for (std::size_t b = 0; b < ranges.size(); ++b) {
    const std::optional<Slice>& slice = program.buffers[b].slice;
    if (slice) ranges[b] = ranges[slice->of];
  }
  return ranges;
}

}  // namespace braid
