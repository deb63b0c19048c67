#include "codegen/kernel/joined.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ir/op_registry.h"

namespace braid {
namespace {

const Graph& body_of(const Node& kernel) {
  return **kernel.attr<std::shared_ptr<const Graph>>("body");
}
const Config& config_of(const Node& kernel) { return *kernel.attr<Config>("config"); }

std::optional<std::int64_t> setting_of(const Config& config, const char* name) {
  const auto found = config.find(name);
  return found == config.end() ? std::nullopt : std::optional(found->second);
}

/// Where each value of the joined body lies.
std::map<ValueId, tile::Operands::Operand> operands_of(const Graph& body) {
  std::map<ValueId, tile::Operands::Operand> all;
  for (std::size_t i = 0; i < body.inputs().size(); ++i) {
    all.emplace(body.input_values()[i], tile::Operands::Operand{false, static_cast<int>(i)});
  }
  for (std::size_t i = 0; i < body.outputs().size(); ++i) {
    all.emplace(body.outputs()[i], tile::Operands::Operand{true, static_cast<int>(i)});
  }
  return all;
}

std::string refuse_kernel(const Node& node) {
  if (node.op->op_class != OpClass::kKernel) {
    return fmt::format("'{}' is {}; expected a kernel", node.name, node.op_name());
  }
  const Graph& body = body_of(node);
  if (is_joined(body)) return fmt::format("'{}' is joined itself", node.name);
  if (std::string reason = cannot_fuse(body); !reason.empty()) return reason;
  const Kernel& kernel = find_kernel(body);
  const bool alone = kernel.phases.size() == 1 && kernel.phases[0].meet == Meet::kNothing;
  if (!alone || !body.groups().empty()) return "blocks of a joined kernel meet those of no peer";
  if (has_ring(config_of(node))) return "the warps of a joined kernel have no roles";
  return "";
}

}  // namespace

bool is_joined(const Graph& body) {
  return !body.nodes().empty() && body.node(0).op->op_class == OpClass::kKernel;
}

std::vector<Stage> stages_of(const KernelSpec& spec) {
  const Graph& body = *spec.body;
  if (!is_joined(body)) return {{find_kernel(body), analyze(body), spec.config}};
  const auto operands = operands_of(body);
  std::vector<Stage> stages;
  int nodes = 0;
  for (const Node& node : body.nodes()) {
    const Graph& own = body_of(node);
    Stage stage{find_kernel(own), analyze(own), config_of(node)};
    stage.facts.resident = true;
    stage.facts.nodes_before = nodes;
    for (const ValueId input : node.inputs) stage.operands.inputs.push_back(operands.at(input));
    for (const ValueId output : node.outputs) {
      stage.operands.outputs.push_back(operands.at(output));
    }
    nodes += static_cast<int>(own.nodes().size());
    stages.push_back(std::move(stage));
  }
  return stages;
}

Config joined_config(const Graph& body) {
  return {{"num_warps", config_of(body.node(0)).at("num_warps")}};
}

std::string refuse_joined(const Graph& body) {
  if (body.nodes().size() < 2) return "there is one kernel; expected several";
  const auto operands = operands_of(body);
  std::optional<std::int64_t> warps, stages;
  for (const Node& node : body.nodes()) {
    if (std::string reason = refuse_kernel(node); !reason.empty()) return reason;
    const Config& config = config_of(node);
    const auto agrees = [&](const char* name, std::optional<std::int64_t>& so_far) {
      const std::optional<std::int64_t> own = setting_of(config, name);
      if (!so_far) so_far = own;
      return !own || own == so_far;
    };
    if (!setting_of(config, "num_warps") || !agrees("num_warps", warps)) {
      return "joined kernels have the same number of warps";
    }
    if (!agrees("num_stages", stages)) return "the rings of joined kernels have as many stages";
    for (const ValueId output : node.outputs) {
      if (!operands.contains(output)) return "what a joined kernel computes is an output of all";
    }
  }
  return "";
}

}  // namespace braid
