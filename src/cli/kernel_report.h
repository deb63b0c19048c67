#pragma once

#include <string>
#include <vector>

#include "braid/executable.h"
#include "ir/json_value.h"

namespace braid::cli {

/// The report of `run` and `compile` about kernels: a table for people, or JSON.
[[nodiscard]] std::string kernel_table(const std::vector<KernelReport>& kernels);
[[nodiscard]] Json kernels_json(const std::vector<KernelReport>& kernels);

/// Prints the sanitizer's findings, one per line, and their number. Notes are not counted.
void print_findings(const std::vector<Finding>& findings, const std::vector<Finding>& notes);

}  // namespace braid::cli
