#include "lowering/plan/residency.h"

#include <fmt/format.h>

#include "codegen/device_model.h"
#include "ir/fail.h"

namespace braid {
namespace {

struct Waiting {
  int step, stream;
  std::int64_t blocks;
  std::int64_t multiprocessors;  ///< that have room for them, if they are alone
};

std::vector<Waiting> waiting_steps(const Program& program, const DeviceModel& device) {
  std::vector<Waiting> all;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    // Where ranks share a GPU, a communicator's waits take no block.
    if (step.kind == Step::Kind::kCollective && program.ranks_per_device == 1) {
      all.push_back({static_cast<int>(s), step.stream, kCommunicatorBlocks, kCommunicatorBlocks});
    }
    if (comm_group(program, step).empty() && step.flags < 0) continue;
    const Requirements& needs = program.kernels[step.kernel].needs;
    const Expr& grid = needs.grid;
    if (!grid.is_constant()) {
      throw_internal("program",
                     "step {} waits with {} blocks; expected a number that no symbol changes", s,
                     grid.str());
    }
    const std::int64_t blocks = grid.evaluate({});
    // Those that wait for peers have a multiprocessor each.
    const std::int64_t of_each =
        needs.comm_group.empty() ? sure_blocks(device, needs.threads, needs.shared_bytes) : 1;
    all.push_back({static_cast<int>(s), step.stream, blocks, (blocks + of_each - 1) / of_each});
  }
  return all;
}

/// A step, and from each other stream the largest one that no event orders with it.
std::vector<Waiting> beside(const Waiting& one, const std::vector<Waiting>& all,
                            const StepOrder& order) {
  std::vector<Waiting> largest(order.streams(), {-1, 0, 0, 0});
  for (const Waiting& other : all) {
    if (order.before(one.step, other.step) || order.before(other.step, one.step)) continue;
    Waiting& most = largest[other.stream];
    if (other.blocks > most.blocks) most = other;
  }
  std::erase_if(largest, [](const Waiting& none) { return none.step < 0; });
  return largest;
}

}  // namespace

void check_residency(const Program& program, const StepOrder& order) {
  const DeviceModel& device = device_model(program.target);
  const std::vector<Waiting> all = waiting_steps(program, device);
  for (const Waiting& one : all) {
    const std::vector<Waiting> together =
        order.streams() == 1 ? std::vector{one} : beside(one, all, order);
    std::int64_t blocks = 0;
    // Where those of several kernels mix, one may take the room that two of another need.
    for (const Waiting& each : together) {
      blocks += together.size() == 1 ? each.multiprocessors : each.blocks;
    }
    if (blocks * program.ranks_per_device <= device.sms) continue;
    std::string steps;
    for (const Waiting& each : together) {
      steps += fmt::format("{}{} '{}'", steps.empty() ? "" : ", ", each.step,
                           program.steps[each.step].name);
    }
    throw_invalid("program",
                  "step {} may wait for peers at one time with {} blocks on each of {} ranks of a "
                  "device; expected no more than the {} multiprocessors of {}",
                  steps, blocks, program.ranks_per_device, device.sms, device.name);
  }
}

}  // namespace braid
