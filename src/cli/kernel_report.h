#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "braid/executable.h"

namespace braid::cli {

/// What `run` and `compile` say of kernels: a table for people, or JSON.
[[nodiscard]] std::string kernel_table(const std::vector<KernelReport>& kernels);
[[nodiscard]] nlohmann::ordered_json kernels_json(const std::vector<KernelReport>& kernels);

/// What the sanitizer found, a line each, and their number.
void print_findings(const std::vector<Finding>& findings);
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

}  // namespace braid::cli
