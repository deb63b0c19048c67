#include "cli/trace.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

#include "ir/json_value.h"

namespace braid::cli {
namespace {

/// Names a process or, where `stream` is one, a thread.
Json name_of(std::string_view what, int rank, int stream, const std::string& name) {
  Json event = Json::object({{"ph", "M"}, {"name", what}, {"pid", rank}});
  if (stream >= 0) event.set("tid", stream);
  event.set("args", Json::object({{"name", name}}));
  return event;
}

/// Clocks tell no more than nanoseconds.
double to_ns(double us) { return std::round(us * 1e3) / 1e3; }

}  // namespace

std::string chrome_trace(std::string_view graph, const std::vector<StepTime>& steps) {
  Json events = Json::array();
  std::set<int> ranks;
  std::set<std::pair<int, int>> streams;
  for (const StepTime& step : steps) {
    if (ranks.insert(step.rank).second) {
      events.push_back(name_of("process_name", step.rank, -1, fmt::format("rank {}", step.rank)));
    }
    if (streams.emplace(step.rank, step.stream).second) {
      events.push_back(
          name_of("thread_name", step.rank, step.stream, fmt::format("stream {}", step.stream)));
    }
    Json arguments = Json::object({{"what", step.what}});
    if (!step.ops.empty()) arguments.set("ops", step.ops);
    events.push_back(Json::object({{"ph", "X"},
                                   {"name", step.name},
                                   {"cat", step.what},
                                   {"pid", step.rank},
                                   {"tid", step.stream},
                                   {"ts", to_ns(step.begin_us)},
                                   {"dur", to_ns(step.end_us - step.begin_us)},
                                   {"args", std::move(arguments)}}));
  }
  const Json document = Json::object({{"traceEvents", std::move(events)},
                                      {"displayTimeUnit", "ns"},
                                      {"otherData", Json::object({{"graph", graph}})}});
  return document.indented() + "\n";
}

}  // namespace braid::cli
