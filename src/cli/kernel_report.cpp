#include "cli/kernel_report.h"

#include <fmt/format.h>

#include "cli/common.h"
#include "ir/mapped.h"

namespace braid::cli {

std::string kernel_table(const std::vector<KernelReport>& kernels) {
  std::vector<std::vector<std::string>> rows = {{"kernel", "template", "ops", "launches", "grid",
                                                 "threads", "registers", "shared", "spills",
                                                 "compile ms"}};
  for (const KernelReport& kernel : kernels) {
    rows.push_back(row(kernel.name, kernel.template_name, one_line(kernel.ops), kernel.launches,
                       kernel.grid, kernel.threads, kernel.registers, kernel.shared_bytes,
                       kernel.spill_bytes,
                       kernel.cache_hit ? "cached" : fmt::format("{:.0f}", kernel.compile_ms)));
  }
  return format_table(rows);
}

Json kernels_json(const std::vector<KernelReport>& kernels) {
  return mapped(kernels, [](const KernelReport& kernel) {
    return Json::object({{"name", kernel.name},
                         {"template", kernel.template_name},
                         {"ops", kernel.ops},
                         {"launches", kernel.launches},
                         {"grid", kernel.grid},
                         {"threads", kernel.threads},
                         {"registers", kernel.registers},
                         {"shared_bytes", kernel.shared_bytes},
                         {"spill_bytes", kernel.spill_bytes},
                         {"compile_ms", kernel.compile_ms},
                         {"cache_hit", kernel.cache_hit}});
  });
}

void print_findings(const std::vector<Finding>& findings, const std::vector<Finding>& notes) {
  for (const Finding& note : notes) fmt::print("  {}\n", note.text());
  for (const Finding& finding : findings) fmt::print("  {}\n", finding.text());
  const auto count = [](std::size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n == 0 ? "no" : std::to_string(n), what, n > 1 ? "s" : "");
  };
  fmt::print("  sanitizer: {}{}\n", count(findings.size(), "finding"),
             notes.empty() ? "" : ", " + count(notes.size(), "note"));
}

}  // namespace braid::cli
