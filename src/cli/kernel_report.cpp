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

Json findings_json(const std::vector<Finding>& findings) {
  const auto place = [](Dim3 at) { return Json::array({at.x, at.y, at.z}); };
  return mapped(findings, [&](const Finding& f) {
    return Json::object({{"kind", f.kind},
                         {"message", f.message},
                         {"rank", f.rank},
                         {"kernel", f.kernel},
                         {"block", place(f.block)},
                         {"thread", place(f.thread)},
                         {"ptx_line", f.ptx_line},
                         {"cuda_line", f.cuda_line},
                         {"inlined", f.inlined},
                         {"cuda_file", f.cuda_file},
                         {"ptx_file", f.ptx_file},
                         {"buffer", f.buffer},
                         {"offset", f.offset},
                         {"other", f.other}});
  });
}

}  // namespace braid::cli
