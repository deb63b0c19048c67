#include "runtime/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/common.h"
#include "ir/json_value.h"
#include "ir/mapped.h"

namespace braid::cli {

namespace {

// Enough to compile a graph and run it somewhere.
bool can_run(const std::vector<Checkup>& findings) {
  auto found = [&](std::string_view component, bool good) {
    return std::ranges::any_of(findings, [&](const Checkup& finding) {
      return finding.component == component && finding.found &&
             (!good || finding.how_to_get.empty());
    });
  };
  // The cpu device runs what any NVRTC makes, a GPU what its driver loads.
  return (found("NVRTC", false) && found("cpu device", true)) ||
         (found("NVRTC", true) && found("GPU", true));
}

}  // namespace

int doctor(const DoctorOptions& options) {
  const auto findings = diagnose(cache_directory(options.cache_dir));
  const bool good = can_run(findings);
  if (options.json) {
    const Json list = mapped(findings, [](const Checkup& finding) {
      return Json::object({{"component", finding.component},
                           {"found", finding.found},
                           {"version", finding.version},
                           {"path", finding.path},
                           {"how_to_get", finding.how_to_get}});
    });
    const Json document = Json::object({{"can_run", good}, {"findings", list}});
    fmt::print("{}\n", document.indented());
  } else {
    std::vector<std::vector<std::string>> rows = {{"component", "", "version", "where"}};
    for (const Checkup& finding : findings) {
      const char* state = !finding.found ? "missing" : finding.how_to_get.empty() ? "ok" : "unfit";
      rows.push_back({finding.component, state, one_line(finding.version), one_line(finding.path)});
    }
    fmt::print("{}", format_table(rows));
    for (const Checkup& finding : findings) {
      if (!finding.how_to_get.empty()) {
        fmt::print("\n  {}: {}\n", finding.component, one_line(finding.how_to_get));
      }
    }
    fmt::print("\n  {}\n", good ? "braid can compile and run here"
                                : "braid cannot compile and run here: it needs NVRTC and a device");
  }
  return good ? kGood : kEnvironmentMissing;
}

}  // namespace braid::cli
