#include "lowering/plan/in_place.h"

#include <algorithm>
#include <map>
#include <set>

namespace braid {
namespace {

const ProgramKernel& kernel_of(const Program& program, const Step& step) {
  return program.kernels[step.kernel];
}

/// Calls visit(step, output, input) for all pairs that the kernels of the steps allow.
template <class Visit>
void each_pair(const Program& program, const Visit& visit) {
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    if (step.kind != Step::Kind::kLaunch) continue;
    for (const InPlace& pair : kernel_of(program, step).needs.in_place) {
      const int output = step.outputs[pair.output];
      const int input = step.inputs[pair.input];
      if (could_take_place(program, step, output, input)) visit(s, output, input);
    }
  }
}

/// Whether the input's lifetime ends and the output's begins at this step.
bool follow_each_other(const Program& program, int step, int output, int input) {
  const Buffer& to = program.buffers[output];
  const Buffer& from = program.buffers[input];
  return to.arena == from.arena && to.bytes == from.bytes && to.first_step == step &&
         from.last_step == step;
}

/// For each buffer the steps that use it, and whether it is a slice or has slices.
struct Uses {
  std::vector<std::vector<int>> steps;
  std::vector<bool> sliced;

  explicit Uses(const Program& program)
      : steps(program.buffers.size()), sliced(program.buffers.size(), false) {
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      if (!program.buffers[b].slice) continue;
      sliced[b] = true;
      sliced[program.buffers[b].slice->of] = true;
    }
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      for (const Access& access : accesses(program, program.steps[s])) {
        steps[access.buffer].push_back(s);
      }
    }
  }
};

}  // namespace

bool could_take_place(const Program& program, const Step& step, int output, int input) {
  const std::vector<InPlace>& pairs = kernel_of(program, step).needs.in_place;
  const auto to = std::ranges::find(step.outputs, output);
  if (to == step.outputs.end() || output == input) return false;
  bool is_operand = false;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i] != input) continue;
    const InPlace pair{static_cast<int>(to - step.outputs.begin()), static_cast<int>(i)};
    if (std::ranges::find(pairs, pair) == pairs.end()) return false;
    is_operand = true;
  }
  return is_operand;
}

std::vector<int> places_to_take(const Program& program, const StepOrder& order) {
  std::vector<int> taken(program.buffers.size(), -1);
  std::vector<bool> gone(program.buffers.size(), false);
  const Uses uses(program);
  each_pair(program, [&](int s, int output, int input) {
    const std::size_t arena = program.buffers[output].arena;
    if (program.arenas[arena].kind != ArenaKind::kWorkspace || taken[output] >= 0 || gone[input] ||
        uses.sliced[output] || uses.sliced[input] ||
        !follow_each_other(program, s, output, input)) {
      return;
    }
    const bool over = std::ranges::all_of(
        uses.steps[input], [&](int use) { return use == s || order.before(use, s); });
    if (!over) return;
    taken[output] = input;
    gone[input] = true;
  });
  return taken;
}

void allow_in_place(Program& program, std::span<const int> taken) {
  std::map<int, std::vector<std::size_t>> steps;  // for each kernel whose text does not allow it
  std::set<std::size_t> in_place;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    if (step.kind != Step::Kind::kLaunch) continue;
    const ProgramKernel& kernel = kernel_of(program, step);
    if (allows_in_place(kernel.spec, kernel.needs)) continue;
    steps[step.kernel].push_back(s);
    const bool takes = std::ranges::any_of(step.outputs, [&](int output) {
      const int input = taken[output];
      return std::ranges::find(step.inputs, input) != step.inputs.end();
    });
    if (takes) in_place.insert(s);
  }
  for (const auto& [kernel, all] : steps) {
    const auto takes = [&](std::size_t s) { return in_place.contains(s); };
    if (std::ranges::none_of(all, takes)) continue;
    int allowing = kernel;
    if (!std::ranges::all_of(all, takes)) {
      allowing = program.kernels.size();
      program.kernels.push_back(ProgramKernel(program.kernels[kernel]));
    }
    program.kernels[allowing].spec.config[kInPlaceSetting] = 1;
    for (const std::size_t s : all) {
      if (takes(s)) program.steps[s].kernel = allowing;
    }
  }
}

std::vector<int> places_taken(const Program& program) {
  std::vector<int> taken(program.buffers.size(), -1);
  each_pair(program, [&](int s, int output, int input) {
    const Buffer& to = program.buffers[output];
    const Buffer& from = program.buffers[input];
    if (to.offset == from.offset && follow_each_other(program, s, output, input)) {
      taken[output] = input;
    }
  });
  return taken;
}

}  // namespace braid
