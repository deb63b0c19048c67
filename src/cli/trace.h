#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/executable.h"

namespace braid::cli {

/// A run as JSON in the Trace Event Format, which Perfetto and chrome://tracing show: a process for
/// each rank, a thread for each of its streams, a complete event for each step.
[[nodiscard]] std::string chrome_trace(std::string_view graph, const std::vector<StepTime>& steps);

}  // namespace braid::cli
