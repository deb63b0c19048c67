#pragma once

#include <string>
#include <vector>

#include "braid/counts.h"
#include "cli/common.h"
#include "ir/json_value.h"
#include "lowering/plan/cost.h"

namespace braid::cli {

/// The device that --count names; null for "", when nothing is counted. Throws kInvalidArgument
/// with the known ones.
[[nodiscard]] const DeviceModel* count_device(const std::string& name);

/// Refuses --sample without --count, or beside what looks at results: options by their names, of
/// those that were given.
void check_sample(const CheckOptions& options, const std::vector<std::string>& others);
/// What of the kernels ran under --sample, as a line; nothing without it.
[[nodiscard]] std::string sample_line(const std::vector<KernelCounts>& kernels, bool sample);

/// What `--count` says of kernels: averages of a launch with an estimate of its time on `device`,
/// and their busiest lines; JSON has the sums over all launches, and all lines.
[[nodiscard]] std::string count_tables(const std::vector<KernelCounts>& kernels,
                                       const DeviceModel& device);
[[nodiscard]] Json counts_json(const std::vector<KernelCounts>& kernels, const DeviceModel& device);
/// Of one kernel, without its lines.
[[nodiscard]] Json counts_json(const KernelCounts& kernel, const DeviceModel& device);

}  // namespace braid::cli
