#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/counts.h"
#include "braid/executable.h"
#include "cli/common.h"
#include "codegen/device_model.h"

namespace braid::cli {

/// The device that --count names; null for "", when nothing is counted. Throws kInvalidArgument
/// with the known ones.
[[nodiscard]] const DeviceModel* count_device(const std::string& name);

/// Refuses --sample without --count, or beside what looks at results: options by their names, of
/// those that were given.
void check_sample(const CheckOptions& options, const std::vector<std::string>& others);
/// A line about the part of the kernels that ran under --sample; empty without it.
[[nodiscard]] std::string sample_line(const std::vector<KernelCounts>& kernels, bool sample);

/// The report of `--count`: per kernel the averages of a launch, with an estimate of its time on
/// `device`, and its busiest lines.
[[nodiscard]] std::string count_tables(const std::vector<KernelCounts>& kernels,
                                       const DeviceModel& device);

/// Adds the registers that the compiler told of kernels to their counts.
void note_registers(const std::vector<KernelReport>& kernels, std::vector<KernelCounts>& counts);

/// A line on the kernel that takes most of the time of all, and what holds it; nothing where no
/// kernel ran.
[[nodiscard]] std::string first_to_look_at(const std::vector<KernelCounts>& kernels,
                                           const DeviceModel& device);

/// The averages of a launch of two kernels under their names, and how much the second has of what
/// the first has; then the same of the times that parts of the device need.
[[nodiscard]] std::string comparison_table(const std::pair<std::string, KernelCounts>& a,
                                           const std::pair<std::string, KernelCounts>& b,
                                           const DeviceModel& device);

}  // namespace braid::cli
