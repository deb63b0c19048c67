#include "runtime/exec/run_record.h"

#include <fmt/format.h>

#include <string>

#include "runtime/exec/symmetric_heap.h"

namespace braid {
namespace {

using protocol::Record;

/// The step, or null if the program has none with that index.
const Step* step_at(const Program& program, std::uint32_t index) {
  return index < program.steps.size() ? &program.steps[index] : nullptr;
}
const ProgramKernel* kernel_of(const Program& program, const Step* step) {
  if (step == nullptr || step->kernel < 0) return nullptr;
  const auto kernel = static_cast<std::size_t>(step->kernel);
  return kernel < program.kernels.size() ? &program.kernels[kernel] : nullptr;
}

std::string lost_wait(const Program& program, int rank, const Record& r) {
  const Step* step = step_at(program, r.step);
  const ProgramKernel* kernel = kernel_of(program, step);
  std::int64_t peer = r.peer;
  std::string where = fmt::format("step {}", r.step);
  if (kernel != nullptr) {
    where += fmt::format(" '{}' ({} kernel)", step->name, kernel->needs.template_name);
    if (kernel->needs.comm_group.empty()) {
      return fmt::format("rank {}, {}, block {}: waited for the other blocks of its grid", rank,
                         where, r.block);
    }
    // Kernels use indices in the group.
    const auto members = group_members(program, kernel->needs.comm_group, rank);
    if (r.peer < members.size()) peer = members[r.peer];
  }
  return fmt::format(
      "rank {}, {}, block {}, slot {}: waited for rank {} to reach epoch {}, last saw {}", rank,
      where, r.block, r.slot, peer, r.expected, r.seen);
}

/// The node's name in the graph before it was fused into a kernel.
std::string node_name(const Program& program, const Record& r) {
  const Step* step = step_at(program, r.step);
  if (step == nullptr) return fmt::format("step {}", r.step);
  for (const auto& [name, node] : step->indexed) {
    if (node == r.node) return name;
  }
  return step->name;
}

}  // namespace

std::optional<Error> run_error(const Program& program, std::span<const RankRecord> records,
                               std::uint64_t timeout_ns) {
  std::string lost;
  const RankRecord* bad = nullptr;
  for (const RankRecord& of_rank : records) {
    const auto& [rank, r] = of_rank;
    if (r.kind == Record::kLostWait) {
      lost += (lost.empty() ? "" : "; ") + lost_wait(program, rank, r);
    } else if (r.kind == Record::kBadIndex && (bad == nullptr || r.step < bad->record.step)) {
      bad = &of_rank;
    }
  }
  if (!lost.empty()) {
    return Error(ErrorCode::kTimeout, program.name,
                 fmt::format("a wait for a peer took longer than {:g} s: {}",
                             static_cast<double>(timeout_ns) * 1e-9, lost));
  }
  if (bad == nullptr) return std::nullopt;
  return Error(ErrorCode::kInvalidArgument, node_name(program, bad->record),
               fmt::format("rank {}: index {} is out of range; expected an integer from 0 to {}",
                           bad->rank, bad->record.index, bad->record.extent - 1));
}

}  // namespace braid
