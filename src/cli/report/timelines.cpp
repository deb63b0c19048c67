#include "cli/report/timelines.h"

#include <algorithm>
#include <set>
#include <string>

#include "cli/trace.h"
#include "ir/op_registry.h"
#include "lowering/schedule/critical_path.h"
#include "runtime/compile/compile_program.h"

namespace braid::cli {
namespace {

// Kinds, for the page's colors.
constexpr const char* kCompute = "compute";
constexpr const char* kCommunication = "communication";
constexpr const char* kMixed = "mixed";  ///< a kernel that communicates while others wait for it
constexpr const char* kExposed = "exposed";  ///< a wait that takes time

const char* kind_of(const NodeEstimate& estimate) {
  return estimate.asynchronous ? kCommunication
         : estimate.wait       ? kExposed
         : estimate.collective ? kMixed
                               : kCompute;
}

std::string ops_of(const Node& node) {
  const auto* body = node.attr<std::shared_ptr<const Graph>>("body");
  return body == nullptr ? std::string(node.op_name()) : op_names({*body, {}});
}

bool communicates(const Program& program, const Step& step) {
  return step.kind == Step::Kind::kCollective || step.source_peer || step.destination_peer ||
         !comm_group(program, step).empty();
}

}  // namespace

Json estimated_timeline(std::string_view title, const Graph& graph, const Target& target) {
  const std::vector<NodeEstimate> estimates = estimate_nodes(graph, target);
  const OverlapTimeline timeline = overlap_timeline(graph, estimates);
  const std::vector<NodeId> path = critical_path(timeline, estimates);
  std::vector<StepTime> events;
  Json kinds = Json::array();
  Json critical = Json::array();
  double mixed_ns = 0;
  for (std::size_t id = 0; id < timeline.steps.size(); ++id) {
    const TimelineStep& step = timeline.steps[id];
    if (step.end_ns <= step.begin_ns) continue;
    const Node& node = graph.nodes()[id];
    const NodeEstimate& estimate = estimates[id];
    StepTime& event = events.emplace_back();
    event.stream = estimate.asynchronous ? 1 : 0;
    event.name = node.name;
    event.what = kind_of(estimate);
    event.ops = ops_of(node);
    event.begin_us = step.begin_ns / 1e3;
    event.end_us = step.end_ns / 1e3;
    kinds.push_back(event.what);
    critical.push_back(std::ranges::binary_search(path, id));
    if (event.what == kMixed) mixed_ns += step.end_ns - step.begin_ns;
  }
  return Json::object({{"title", title},
                       {"measured", false},
                       {"lanes", Json::array({kCompute, kCommunication})},
                       {"total_ns", timeline.total_ns},
                       {"comm_ns", timeline.comm_ns},
                       {"exposed_ns", timeline.exposed_ns},
                       {"mixed_ns", mixed_ns},
                       {"events", trace_events(events)},
                       {"kinds", kinds},
                       {"critical", critical}});
}

Json measured_timeline(std::string_view title, const Program& program,
                       const std::vector<StepTime>& steps) {
  std::set<std::string_view> communicating;
  for (const Step& step : program.steps) {
    if (communicates(program, step)) communicating.insert(step.name);
  }
  double end_us = 0;
  Json kinds = Json::array();
  Json critical = Json::array();
  for (const StepTime& step : steps) {
    end_us = std::max(end_us, step.end_us);
    kinds.push_back(communicating.contains(step.name) ? kMixed : kCompute);
    critical.push_back(false);
  }
  return Json::object({{"title", title},
                       {"measured", true},
                       {"total_ns", end_us * 1e3},
                       {"events", trace_events(steps)},
                       {"kinds", kinds},
                       {"critical", critical}});
}

}  // namespace braid::cli
