#include "lowering/schedule/overlap_timeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "ir/mapped.h"
#include "ir/op_registry.h"
#include "ir/text.h"

namespace braid {
namespace {

/// Joins names, which may contain any characters, on one line.
std::string names_of(const Graph& graph, const std::vector<ValueId>& values) {
  const auto names =
      mapped(values, [&](ValueId value) { return printable(graph.value(value).name); });
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<NodeId> waited_collectives(const Graph& graph) {
  std::vector<NodeId> waited(graph.nodes().size(), -1);
  for (std::size_t id = 0; id < waited.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (node.op->op_class != OpClass::kWait) continue;
    const NodeId producer = graph.value(node.inputs[0]).producer;
    if (producer >= 0 && is_asynchronous(graph.node(producer))) waited[id] = producer;
  }
  return waited;
}

TimelineStep OverlapClock::run(NodeId id) {
  const NodeEstimate& node = estimates_[id];
  TimelineStep step;
  if (node.asynchronous) {
    step.begin_ns = std::max(now_, links_free_);
    links_free_ = ends_[id] = step.end_ns = step.begin_ns + node.ns;
    step.in_flight = true;
    return step;
  }
  step.begin_ns = now_;
  step.in_flight = links_free_ > now_;
  if (waited_[id] >= 0) {
    now_ = std::max(now_, end_ns(waited_[id]));
    exposed_ += now_ - step.begin_ns;
  }
  now_ += node.ns;
  step.end_ns = now_;
  return step;
}

OverlapTimeline overlap_timeline(const Graph& graph, const std::vector<NodeEstimate>& estimates) {
  const std::vector<NodeId> waited = waited_collectives(graph);
  OverlapClock clock(estimates, waited);
  OverlapTimeline timeline;
  timeline.steps.reserve(estimates.size());
  for (std::size_t id = 0; id < estimates.size(); ++id) {
    timeline.steps.push_back(clock.run(id));
    if (estimates[id].asynchronous) timeline.comm_ns += estimates[id].ns;
  }
  timeline.total_ns = clock.total_ns();
  timeline.exposed_ns = clock.exposed_ns();
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
