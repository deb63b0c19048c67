#pragma once

#include <string_view>
#include <vector>

#include "braid/executable.h"
#include "codegen/target.h"
#include "ir/json_value.h"
#include "lowering/plan/program.h"

namespace braid::cli {

/// A run of the graph by estimates, as an object of the page: "events" of the Trace Event Format,
/// for each that has a length its kind and whether it is on the critical path, and sums.
[[nodiscard]] Json estimated_timeline(std::string_view title, const Graph& graph,
                                      const Target& target);

/// The same for a timed run.
[[nodiscard]] Json measured_timeline(std::string_view title, const Program& program,
                                     const std::vector<StepTime>& steps);

}  // namespace braid::cli
