#include "lowering/schedule/overlap_timeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "ir/op_registry.h"
#include "ir/text.h"

namespace braid {
namespace {

constexpr double kNsPerUs = 1e3;

/// Names of any characters, on one line.
std::string names_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (ValueId value : values) names.push_back(printable(graph.value(value).name));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

OverlapTimeline overlap_timeline(const Graph& graph, const std::vector<NodeEstimate>& estimates) {
  OverlapTimeline timeline;
  timeline.steps.resize(graph.nodes().size());
  double now = 0;
  double links_free = 0;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const NodeEstimate& node = estimates[id];
    TimelineStep& step = timeline.steps[id];
    if (node.asynchronous) {
      step.begin_ns = std::max(now, links_free);
      links_free = step.end_ns = step.begin_ns + node.ns;
      step.in_flight = true;
      timeline.comm_ns += node.ns;
      continue;
    }
    step.begin_ns = now;
    step.in_flight = links_free > now;
    if (node.wait) {
      const NodeId waited = graph.value(graph.nodes()[id].inputs[0]).producer;
      if (waited >= 0 && estimates[static_cast<std::size_t>(waited)].asynchronous) {
        now = std::max(now, timeline.steps[static_cast<std::size_t>(waited)].end_ns);
      }
      timeline.exposed_ns += now - step.begin_ns;
    }
    now += node.ns;
    step.end_ns = now;
  }
  timeline.total_ns = std::max(now, links_free);
  return timeline;
}

std::string node_summary(const Graph& graph, const Node& node, double ns) {
  std::string op(node.op_name());
  if (node.op->op_class == OpClass::kKernel) {
    std::vector<std::string_view> inner;
    const auto& body = *node.attr<std::shared_ptr<const Graph>>("body");
    for (const Node& child : body->nodes()) inner.push_back(child.op_name());
    op += fmt::format("{{{}}}", fmt::join(inner, "+"));
  }
  std::vector<std::string> types;
  for (ValueId output : node.outputs) types.push_back(graph.type(output).str());
  return fmt::format("{} {}({}): {} ({:.3f} us)", op, printable(node.name),
                     names_of(graph, node.inputs), fmt::join(types, ", "), ns / kNsPerUs);
}

std::string visualize_overlap(const Graph& graph, const Target& target) {
  const std::vector<NodeEstimate> estimates = estimate_nodes(graph, target);
  const OverlapTimeline timeline = overlap_timeline(graph, estimates);
  std::string text = fmt::format("{:>5} {:>12} {:>12}\n", "step", "begin us", "end us");
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const TimelineStep& step = timeline.steps[id];
    text += fmt::format("{:>5} {:>12.3f} {:>12.3f} {} {}\n", id, step.begin_ns / kNsPerUs,
                        step.end_ns / kNsPerUs,
                        estimates[id].asynchronous ? '>'
                        : step.in_flight           ? '|'
                                                   : ' ',
                        node_summary(graph, graph.nodes()[id], estimates[id].ns));
  }
  return text + fmt::format("total {:.3f} us; collectives {:.3f} us, exposed {:.3f} us\n",
                            timeline.total_ns / kNsPerUs, timeline.comm_ns / kNsPerUs,
                            timeline.exposed_ns / kNsPerUs);
}

}  // namespace braid
