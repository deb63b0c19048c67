#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "braid/counts.h"
#include "braid/finding.h"
#include "codegen/device_model.h"
#include "ir/json_value.h"

// What an Inspector has seen, as JSON.

namespace braid {

/// The counts of braid/counts.h but for instructions, by the names that JSON has for them.
struct NamedCount {
  std::string_view name;
  std::uint64_t Counts::*field;
};
[[nodiscard]] std::span<const NamedCount> named_counts();

[[nodiscard]] Json findings_json(const std::vector<Finding>& findings);
/// The sums over all launches of each kernel, an estimate of a launch's time on `device`, and all
/// lines.
[[nodiscard]] Json counts_json(const std::vector<KernelCounts>& kernels, const DeviceModel& device);
/// The counts of one kernel, without its lines.
[[nodiscard]] Json counts_json(const KernelCounts& kernel, const DeviceModel& device);

}  // namespace braid
