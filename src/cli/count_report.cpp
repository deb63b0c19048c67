#include "cli/count_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "braid/error.h"
#include "cli/common.h"
#include "codegen/device_model.h"
#include "ir/text.h"
#include "lowering/plan/kernel_estimate.h"

namespace braid::cli {

namespace {

/// Lines of a kernel in the table.
constexpr std::size_t kLines = 5;

Json counts_object(const Counts& counts) {
  Json instructions = Json::object();
  for (std::size_t i = 0; i < kInstructionClasses; ++i) {
    instructions.set(std::string(instruction_class_name(static_cast<InstructionClass>(i))),
                     counts.instructions[i]);
  }
  return Json::object({{"instructions", instructions},
                       {"lanes", counts.lanes},
                       {"global_requests", counts.global_requests},
                       {"global_sectors", counts.global_sectors},
                       {"global_bytes", counts.global_bytes},
                       {"peer_bytes", counts.peer_bytes},
                       {"global_wavefronts", counts.global_wavefronts},
                       {"shared_requests", counts.shared_requests},
                       {"shared_wavefronts", counts.shared_wavefronts},
                       {"bank_conflicts", counts.bank_conflicts},
                       {"issued_shared_requests", counts.issued_shared_requests},
                       {"issued_shared_wavefronts", counts.issued_shared_wavefronts},
                       {"atomics", counts.atomics},
                       {"branches", counts.branches},
                       {"divergent_branches", counts.divergent_branches},
                       {"barriers", counts.barriers},
                       {"mma_flops", counts.mma_flops}});
}

/// What a line asks of the memory system, and what it loses.
std::uint64_t weight(const LineCounts& line) {
  const Counts& c = line.counts;
  return c.global_sectors + c.shared_wavefronts + c.atomics + c.divergent_branches + c.barriers;
}

std::vector<const LineCounts*> busiest(const KernelCounts& kernel) {
  std::vector<const LineCounts*> lines;
  for (const LineCounts& line : kernel.lines) {
    if (weight(line) != 0) lines.push_back(&line);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const LineCounts* a, const LineCounts* b) {
    return weight(*a) > weight(*b);
  });
  lines.resize(std::min(lines.size(), kLines));
  return lines;
}

}  // namespace

const DeviceModel* count_device(const std::string& name) {
  if (name.empty()) return nullptr;
  const DeviceModel* device = find_device_model(name);
  if (device == nullptr) {
    throw_invalid("--count",
                  fmt::format("{} is unknown; expected one of {}", quote(name), device_names()));
  }
  return device;
}

void check_sample(const CheckOptions& options, const std::vector<std::string>& others) {
  if (!options.sample) return;
  if (options.count.empty()) {
    throw_invalid("--sample", "scales counts; expected --count as well");
  }
  if (!others.empty()) {
    throw_invalid("--sample",
                  fmt::format("leaves no results; expected a run without {}", others.front()));
  }
}

std::string sample_line(const std::vector<KernelCounts>& kernels, bool sample) {
  if (!sample) return "";
  std::uint64_t blocks = 0, run = 0;
  for (const KernelCounts& kernel : kernels) {
    blocks += kernel.blocks;
    run += kernel.blocks_run;
  }
  return fmt::format("  sampled: {} of {} blocks ran, and counts are scaled to all; no results\n",
                     run, blocks);
}

std::string count_tables(const std::vector<KernelCounts>& kernels, const DeviceModel& device) {
  std::vector<std::vector<std::string>> rows = {
      {"kernel, per launch", "launches", "instructions", "lanes", "sectors", "bytes moved",
       "minimum", "to peers", "wavefronts", "conflicts", "atomics", "divergent", "barriers",
       fmt::format("us on {}", device.name), "limiter"}};
  std::vector<std::vector<std::string>> lines = {{"kernel", "PTX line", "CUDA line", "instruction",
                                                  "requests", "sectors", "wavefronts", "conflicts",
                                                  "atomics", "divergent", "barriers"}};
  for (const KernelCounts& kernel : kernels) {
    const Counts& c = kernel.total;
    const std::uint64_t launches = std::max<std::uint64_t>(kernel.launches, 1);
    const auto each = [&](std::uint64_t count) { return std::to_string(count / launches); };
    const KernelEstimate estimate = estimate_kernel(kernel, device);
    const double lanes = static_cast<double>(c.lanes) /
                         static_cast<double>(std::max<std::uint64_t>(c.total_instructions(), 1));
    rows.push_back({kernel.kernel, std::to_string(kernel.launches), each(c.total_instructions()),
                    fmt::format("{:.1f}", lanes), each(c.global_sectors),
                    each(c.global_sectors * 32), each(kernel.minimum_bytes), each(c.peer_bytes),
                    each(c.shared_wavefronts), each(c.bank_conflicts), each(c.atomics),
                    each(c.divergent_branches), each(c.barriers),
                    fmt::format("{:.1f}", estimate.ns / 1e3), std::string(estimate.limiter)});
    for (const LineCounts* line : busiest(kernel)) {
      const Counts& l = line->counts;
      lines.push_back({kernel.kernel, std::to_string(line->ptx_line),
                       std::to_string(line->cuda_line), line->instruction,
                       each(l.global_requests + l.shared_requests), each(l.global_sectors),
                       each(l.shared_wavefronts), each(l.bank_conflicts), each(l.atomics),
                       each(l.divergent_branches), each(l.barriers)});
    }
  }
  return fmt::format("{}\n{}", format_table(rows), format_table(lines));
}

Json counts_json(const KernelCounts& kernel, const DeviceModel& device) {
  const KernelEstimate estimate = estimate_kernel(kernel, device);
  return Json::object({{"kernel", kernel.kernel},
                       {"launches", kernel.launches},
                       {"blocks", kernel.blocks},
                       {"blocks_run", kernel.blocks_run},
                       {"counts", counts_object(kernel.total)},
                       {"minimum_bytes", kernel.minimum_bytes},
                       {"estimate", Json::object({{"device", device.name},
                                                  {"ns", estimate.ns},
                                                  {"limiter", estimate.limiter}})}});
}

Json counts_json(const std::vector<KernelCounts>& kernels, const DeviceModel& device) {
  Json list = Json::array();
  for (const KernelCounts& kernel : kernels) {
    Json lines = Json::array();
    for (const LineCounts& line : kernel.lines) {
      lines.push_back(Json::object({{"ptx_line", line.ptx_line},
                                    {"cuda_line", line.cuda_line},
                                    {"instruction", line.instruction},
                                    {"counts", counts_object(line.counts)}}));
    }
    Json entry = counts_json(kernel, device);
    entry.set("lines", std::move(lines));
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace braid::cli
