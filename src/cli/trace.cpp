#include "cli/trace.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

namespace braid::cli {
namespace {

/// Blocks have threads of their own, after those of the streams.
constexpr int kMostStreams = 1024;

/// Names a process or, where `thread` is one, a thread.
Json name_of(std::string_view what, int rank, int thread, const std::string& name) {
  Json event = Json::object({{"ph", "M"}, {"name", what}, {"pid", rank}});
  if (thread >= 0) event.set("tid", thread);
  event.set("args", Json::object({{"name", name}}));
  return event;
}

/// Clocks tell no more than nanoseconds.
double to_ns(double us) { return std::round(us * 1e3) / 1e3; }

}  // namespace

Json trace_events(const std::vector<StepTime>& steps) {
  Json events = Json::array();
  std::set<int> ranks;
  std::set<std::pair<int, int>> threads;
  for (const StepTime& step : steps) {
    if (ranks.insert(step.rank).second) {
      events.push_back(name_of("process_name", step.rank, -1, fmt::format("rank {}", step.rank)));
    }
    const bool whole = step.block < 0;
    const int thread = step.stream + kMostStreams * (step.block + 1);
    if (threads.emplace(step.rank, thread).second) {
      std::string name = fmt::format("stream {}", step.stream);
      if (!whole) name += fmt::format(", block {}", step.block);
      events.push_back(name_of("thread_name", step.rank, thread, name));
    }
    Json arguments = Json::object({{"what", step.what}});
    if (whole && !step.ops.empty()) arguments.set("ops", step.ops);
    if (!whole) {
      arguments.set("step", step.name);
      arguments.set("rank", step.of_rank);
      arguments.set("panel", step.panel);
    }
    events.push_back(Json::object({{"ph", "X"},
                                   {"name", whole ? step.name : step.what},
                                   {"cat", step.what},
                                   {"pid", step.rank},
                                   {"tid", thread},
                                   {"ts", to_ns(step.begin_us)},
                                   {"dur", to_ns(step.end_us - step.begin_us)},
                                   {"args", std::move(arguments)}}));
  }
  return events;
}

std::string chrome_trace(std::string_view graph, const std::vector<StepTime>& steps) {
  const Json document = Json::object({{"traceEvents", trace_events(steps)},
                                      {"displayTimeUnit", "ns"},
                                      {"otherData", Json::object({{"graph", graph}})}});
  return document.indented() + "\n";
}

}  // namespace braid::cli
