#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/executable.h"
#include "ir/json_value.h"

namespace braid::cli {

/// Events of the Trace Event Format: a process for each rank, a thread for each of its streams, a
/// complete event for each step, in the order of the steps, each behind the names that it needs.
[[nodiscard]] Json trace_events(const std::vector<StepTime>& steps);

/// A run as JSON in that format, which Perfetto and chrome://tracing show.
[[nodiscard]] std::string chrome_trace(std::string_view graph, const std::vector<StepTime>& steps);

}  // namespace braid::cli
