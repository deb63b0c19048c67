#include "cli/count_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "cli/common.h"
#include "codegen/device_model.h"
#include "ir/fail.h"
#include "ir/text.h"
#include "lowering/plan/kernel_estimate.h"
#include "runtime/inspection_json.h"

namespace braid::cli {

namespace {

/// Lines of a kernel in the table.
constexpr std::size_t kLines = 5;

/// The load that a line puts on the memory system, and what it loses there.
std::uint64_t weight(const LineCounts& line) {
  const Counts& c = line.counts;
  return c.global_sectors + c.shared_wavefronts + c.atomics + c.divergent_branches + c.barriers;
}

std::vector<const LineCounts*> busiest(const KernelCounts& kernel) {
  std::vector<const LineCounts*> lines;
  for (const LineCounts& line : kernel.lines) {
    if (weight(line) != 0) lines.push_back(&line);
  }
  std::ranges::stable_sort(
      lines, [](const LineCounts* a, const LineCounts* b) { return weight(*a) > weight(*b); });
  lines.resize(std::min(lines.size(), kLines));
  return lines;
}

/// Blocks of a multiprocessor: "2 by registers".
std::string occupancy_text(const Occupancy& occupancy) {
  if (occupancy.limiter.empty()) return "";
  return fmt::format("{} by {}", occupancy.blocks, occupancy.limiter);
}

/// A line that says that the registers of some kernel are unknown; else empty.
std::string assumption_line(std::span<const KernelCounts> kernels) {
  const bool known = std::ranges::all_of(
      kernels, [](const KernelCounts& kernel) { return kernel.registers != 0; });
  if (known) return "";
  return fmt::format("  no ptxas tells their registers: {} of each thread are assumed\n",
                     kAssumedRegisters);
}

}  // namespace

const DeviceModel* count_device(const std::string& name) {
  if (name.empty()) return nullptr;
  const DeviceModel* device = find_device_model(name);
  if (device == nullptr) {
    throw_invalid("--count", "{} is unknown; expected one of {}", quote(name), device_names());
  }
  return device;
}

void check_sample(const CheckOptions& options, const std::vector<std::string>& others) {
  if (!options.sample) return;
  if (options.count.empty()) throw_invalid("--sample", "scales counts; expected --count as well");
  if (!others.empty()) {
    throw_invalid("--sample", "leaves no results; expected a run without {}", others.front());
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
       "by memory", "minimum", "to peers", "wavefronts", "conflicts", "atomics", "divergent",
       "barriers", "at once", "waves", fmt::format("us on {}", device.name), "limiter"}};
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
                    each(c.global_sectors * 32), fmt::format("{:.0f}", estimate.memory_bytes),
                    each(kernel.minimum_bytes), each(c.peer_bytes), each(c.shared_wavefronts),
                    each(c.bank_conflicts), each(c.atomics), each(c.divergent_branches),
                    each(c.barriers), occupancy_text(estimate.occupancy),
                    fmt::format("{:.2f}", estimate.waves), fmt::format("{:.1f}", estimate.ns / 1e3),
                    std::string(estimate.limiter)});
    for (const LineCounts* line : busiest(kernel)) {
      const Counts& l = line->counts;
      lines.push_back({kernel.kernel, std::to_string(line->ptx_line),
                       std::to_string(line->cuda_line), line->instruction,
                       each(l.global_requests + l.shared_requests), each(l.global_sectors),
                       each(l.shared_wavefronts), each(l.bank_conflicts), each(l.atomics),
                       each(l.divergent_branches), each(l.barriers)});
    }
  }
  return fmt::format("{}{}\n{}", format_table(rows), assumption_line(kernels), format_table(lines));
}

void note_registers(const std::vector<KernelReport>& kernels, std::vector<KernelCounts>& counts) {
  for (KernelCounts& counted : counts) {
    for (const KernelReport& kernel : kernels) {
      if (kernel.name != counted.kernel) continue;
      counted.registers = static_cast<std::uint32_t>(kernel.registers);
    }
  }
}

std::string first_to_look_at(const std::vector<KernelCounts>& kernels, const DeviceModel& device) {
  const KernelCounts* first = nullptr;
  double most = 0, all = 0;
  for (const KernelCounts& kernel : kernels) {
    const double ns = estimate_kernel(kernel, device).ns * static_cast<double>(kernel.launches);
    all += ns;
    if (ns <= most) continue;
    most = ns;
    first = &kernel;
  }
  if (first == nullptr) return "";
  KernelEstimate estimate = estimate_kernel(*first, device);
  std::ranges::stable_sort(estimate.units,
                           [](const UnitTime& a, const UnitTime& b) { return a.ns > b.ns; });
  const std::string why = estimate.limiter == "launch" || estimate.units.size() < 2
                              ? "whose work takes less than a launch"
                              : fmt::format("held by {}: alone {:.1f} us, then {} with {:.1f}",
                                            estimate.limiter, estimate.units[0].ns / 1e3,
                                            estimate.units[1].unit, estimate.units[1].ns / 1e3);
  return fmt::format(
      "  look at {} first: {:.0f} % of the time of all on {}, {} of {:.1f} us, {}\n", first->kernel,
      100 * most / all, device.name,
      first->launches == 1 ? "1 launch" : fmt::format("{} launches", first->launches),
      estimate.ns / 1e3, why);
}

std::string comparison_table(const std::pair<std::string, KernelCounts>& a,
                             const std::pair<std::string, KernelCounts>& b,
                             const DeviceModel& device) {
  std::vector<std::vector<std::string>> rows = {{"per launch", a.first, b.first, "second / first"}};
  const auto add = [&](std::string_view name, double first, double second, std::string_view unit) {
    if (first == 0 && second == 0) return;
    const auto text = [&](double value) {
      return unit.empty() ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
    };
    rows.push_back({fmt::format("{}{}{}", name, unit.empty() ? "" : ", ", unit), text(first),
                    text(second), first == 0 ? "" : fmt::format("{:.2f}", second / first)});
  };
  const auto each = [](const KernelCounts& kernel, std::uint64_t count) {
    return static_cast<double>(count) /
           static_cast<double>(std::max<std::uint64_t>(kernel.launches, 1));
  };
  add("blocks", each(a.second, a.second.blocks), each(b.second, b.second.blocks), "");
  add("minimum_bytes", each(a.second, a.second.minimum_bytes),
      each(b.second, b.second.minimum_bytes), "");
  const Counts& first = a.second.total;
  const Counts& second = b.second.total;
  for (std::size_t i = 0; i < kInstructionClasses; ++i) {
    add(fmt::format("instructions, {}", instruction_class_name(static_cast<InstructionClass>(i))),
        each(a.second, first.instructions[i]), each(b.second, second.instructions[i]), "");
  }
  for (const NamedCount& count : named_counts()) {
    add(count.name, each(a.second, first.*count.field), each(b.second, second.*count.field), "");
  }
  const KernelEstimate first_time = estimate_kernel(a.second, device);
  const KernelEstimate second_time = estimate_kernel(b.second, device);
  for (std::size_t i = 0; i < first_time.units.size(); ++i) {
    add(first_time.units[i].unit, first_time.units[i].ns / 1e3, second_time.units[i].ns / 1e3,
        "us alone");
  }
  add("bytes by memory", first_time.memory_bytes, second_time.memory_bytes, "");
  add("blocks at once", first_time.occupancy.blocks, second_time.occupancy.blocks, "");
  add("waves", first_time.waves, second_time.waves, "of blocks");
  add(device.name, first_time.ns / 1e3, second_time.ns / 1e3, "us in all");
  rows.push_back(
      {"held by", std::string(first_time.limiter), std::string(second_time.limiter), ""});
  const KernelCounts both[] = {a.second, b.second};
  return format_table(rows) + assumption_line(both);
}

}  // namespace braid::cli
