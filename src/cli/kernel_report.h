#pragma once

#include <string>
#include <vector>

#include "braid/executable.h"
#include "ir/json_value.h"

namespace braid::cli {

/// What `run` and `compile` say of kernels: a table for people, or JSON.
[[nodiscard]] std::string kernel_table(const std::vector<KernelReport>& kernels);
[[nodiscard]] Json kernels_json(const std::vector<KernelReport>& kernels);

/// What the sanitizer found, a line each, and their number.
/// Notes do not count as findings.
void print_findings(const std::vector<Finding>& findings, const std::vector<Finding>& notes);
[[nodiscard]] Json findings_json(const std::vector<Finding>& findings);

}  // namespace braid::cli
