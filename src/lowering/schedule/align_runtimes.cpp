#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "braid/error.h"
#include "ir/json_read.h"
#include "ir/text.h"
#include "ir/text_file.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/rewrite.h"
#include "lowering/schedule/order.h"

// align_runtimes: sets the nodes' `runtime_ns`, which every estimate prefers, to measured times.
// Each node takes the lower median over the ranks' measurements, so all ranks schedule alike,
// whatever they measured. Other nodes keep the cost model's time, which depends only on the program
// and the target, so it is equal on all ranks too.
//
// A file names nodes of the graph as it is when the pass runs, each with one time or one per rank.
// Any other name or number of times is refused, since it belongs to another program.
namespace braid {
namespace {

constexpr std::string_view kPass = "align_runtimes";

constexpr ReasonCode kMeasured{
    "align_runtimes.measured",
    "takes {ns:.0f} ns, the lower median of {ranks} ranks; {estimate:.0f} ns by the cost model"};

struct AlignOptions {
  std::string file;  ///< its path; "": none
};

using json_read::json;

/// Times in nanoseconds: one for all ranks, or one for each.
std::vector<double> read_times(const json& value, const Place& place, std::int64_t world) {
  std::vector<double> times;
  const auto add = [&](const json& number, const Place& where) {
    times.push_back(json_read::read_number(number, where));
    if (times.back() >= 0) return;
    json_read::fail_at(where, "found {}; expected nanoseconds, 0 or more", times.back());
  };
  if (!value.is_array()) {
    add(value, place);
    return times;
  }
  for (std::size_t i = 0; i < value.size(); ++i) add(value[i], place / i);
  if (static_cast<std::int64_t>(times.size()) != world) {
    json_read::fail_at(place, "found {} times; expected one for each of {} ranks", times.size(),
                       world);
  }
  return times;
}

[[noreturn]] void refuse_name(const Graph& graph, const std::string& name, const Place& place) {
  std::vector<std::string_view> names;
  for (const Node& node : graph.nodes()) names.push_back(node.name);
  constexpr std::size_t kNamed = 3;
  const std::vector<std::string_view> near = nearest(name, names, kNamed, 1 + name.size() / 3);
  std::string text = "the graph has no such node; expected the name of one";
  if (!near.empty()) text += fmt::format("; the nearest: {}", fmt::join(near, ", "));
  json_read::fail_at(place, text);
}

/// The times of each measured node.
std::map<NodeId, std::vector<double>> read_file(const std::string& path, const Graph& graph) {
  json_read::Document document;
  const Place place(path);
  json_read::parse(read_text(path, kMaxGraphBytes), place, document);
  const std::int64_t world = world_size(graph);
  std::map<std::string_view, NodeId> nodes;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    nodes.emplace(graph.nodes()[id].name, static_cast<NodeId>(id));
  }
  std::map<NodeId, std::vector<double>> times;
  for (const auto& [name, value] : json_read::read_object(document.root, place)) {
    const auto node = nodes.find(name);
    if (node == nodes.end()) refuse_name(graph, name, place / name);
    times.emplace(node->second, read_times(value, place / name, world));
  }
  return times;
}

double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + (values.size() - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::optional<Graph> run(const Graph& graph, PassContext& context) {
  const std::string file = read_options<AlignOptions>(align_runtimes, context.config).file;
  if (file.empty()) return std::nullopt;
  const DeviceModel& device = device_model(context.target);
  const Bindings bindings = max_bindings(graph.symbols());
  Graph result = in_order(graph, given_order(graph));
  bool changed = false;
  for (const auto& [id, times] : read_file(file, graph)) {
    const double ns = lower_median(times);
    const Node& node = graph.node(id);
    const auto hint = node.hints.find("runtime_ns");
    if (hint != node.hints.end() && hint->second == ns) continue;
    context.applied(kPass, node.name,
                    Reason(kMeasured, ns, times.size(), node_ns(graph, node, bindings, device)));
    result.set_hint(id, "runtime_ns", ns);
    changed = true;
  }
  if (!changed) return std::nullopt;
  return result;
}

constexpr PassOption kOptions[] = {
    {.name = "runtime-estimations",
     .variable = kVariable<&AlignOptions::file>,
     .meaning = "a file of measured times: {\"NODE\": ns, \"NODE\": [ns on each rank]}",
     .off = "none"}};

}  // namespace

constinit const Pass align_runtimes{
    .name = kPass,
    .summary = "measured times of all ranks, by their median, take the place of estimates",
    .run = run,
    .by_default = false,
    .options = kOptions};

}  // namespace braid
