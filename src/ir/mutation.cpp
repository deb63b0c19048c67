#include "ir/mutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "braid/error.h"
#include "ir/text.h"

namespace braid {
namespace {

/// What has happened to one storage.
struct Memory {
  NodeId written = -1;         ///< the last node that overwrote it
  NodeId in_place = -1;        ///< the collective that is overwriting it: no wait yet
  std::vector<NodeId> in_use;  ///< collectives that are reading it
};

class Verifier {
 public:
  Verifier(const Graph& graph, const std::string& place)
      : graph_(graph), place_(place), storage_(storages(graph)), memory_(graph.values().size()) {}

  void run() {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) visit(static_cast<NodeId>(id));
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      check_name(graph_.outputs()[i], fmt::format("{}/outputs/{}", place_, i));
    }
  }

 private:
  Memory& memory(ValueId value) {
    return memory_[static_cast<std::size_t>(storage_[static_cast<std::size_t>(value)])];
  }
  std::string quoted(ValueId value) const { return quote(graph_.value(value).name); }
  std::string named(NodeId id) const {
    return fmt::format("{} {}", graph_.node(id).op_name(), quote(graph_.node(id).name));
  }

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    const std::string here = fmt::format("{}/nodes/{}", place_, id);
    if (node.op->op_class == OpClass::kWait) {
      const NodeId waited = graph_.value(node.inputs[0]).producer;
      Memory& m = memory(node.inputs[0]);
      if (m.in_place == waited) m.in_place = -1;
      if (waited >= 0) end_use(graph_.node(waited), waited);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string operand = fmt::format("{}/inputs/{}", here, i);
      check_name(node.inputs[i], operand);
      if (const NodeId writer = memory(node.inputs[i]).in_place; writer >= 0) {
        throw_invalid(operand, fmt::format("{} is used while {} overwrites it; expected a "
                                           "wait_tensor between them",
                                           quoted(node.inputs[i]), named(writer)));
      }
    }
    const std::span<const ValueId> mutated = mutated_operands(node);
    for (ValueId value : mutated) {
      Memory& m = memory(value);
      if (!m.in_use.empty()) {
        throw_invalid(here, fmt::format("{} overwrites {} while {} reads it; expected a "
                                        "wait_tensor between them",
                                        named(id), quoted(value), named(m.in_use.front())));
      }
      m.written = id;
      if (is_asynchronous(node)) m.in_place = id;
    }
    if (!is_asynchronous(node)) return;
    for (ValueId value : node.inputs) {
      if (std::find(mutated.begin(), mutated.end(), value) == mutated.end()) {
        memory(value).in_use.push_back(id);
      }
    }
  }

  void end_use(const Node& collective, NodeId id) {
    for (ValueId value : collective.inputs) {
      std::erase(memory(value).in_use, id);
    }
  }

  /// A name other than the storage's own must be younger than what was written there.
  void check_name(ValueId value, const std::string& where) {
    const NodeId written = memory(value).written;
    if (storage_[static_cast<std::size_t>(value)] == value) return;
    if (graph_.value(value).producer >= written) return;
    throw_invalid(where, fmt::format("{} names memory that {} overwrote; expected the result of "
                                     "that, or a view of it",
                                     quoted(value), named(written)));
  }

  const Graph& graph_;
  const std::string& place_;
  std::vector<ValueId> storage_;
  std::vector<Memory> memory_;  ///< of each storage
};

}  // namespace

std::span<const ValueId> mutated_operands(const Node& node) {
  const std::span<const ValueId> operands = node.inputs;
  switch (node.op->mutates) {
    case Mutates::kNothing:
      return {};
    case Mutates::kFirst:
      return operands.first(1);
    case Mutates::kLast:
      return operands.last(1);
    case Mutates::kAll:
      return operands;
  }
  throw_internal(node.name, "unknown kind of mutation");
}

std::span<const ValueId> mutated_results(const Node& node) {
  return std::span<const ValueId>(node.outputs).last(mutated_operands(node).size());
}

std::optional<ValueId> named_operand(const Node& node, int result) {
  const std::span<const ValueId> mutated = mutated_operands(node);
  const std::size_t of_its_own = node.outputs.size() - mutated.size();
  if (static_cast<std::size_t>(result) >= of_its_own) {
    return mutated[static_cast<std::size_t>(result) - of_its_own];
  }
  const OpClass c = node.op->op_class;
  const bool computes = node.op_name() == "cat" || node.op_name() == "shard";
  if (c == OpClass::kWait || (c == OpClass::kView && !computes)) return node.inputs[0];
  return std::nullopt;
}

std::vector<ValueId> storages(const Graph& graph) {
  std::vector<ValueId> storage(graph.values().size());
  std::iota(storage.begin(), storage.end(), 0);
  for (const Node& node : graph.nodes()) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (const auto operand = named_operand(node, static_cast<int>(i))) {
        storage[static_cast<std::size_t>(node.outputs[i])] =
            storage[static_cast<std::size_t>(*operand)];
      }
    }
  }
  return storage;
}

std::vector<bool> overwritten_values(const Graph& graph) {
  const std::vector<ValueId> storage = storages(graph);
  std::vector<bool> written(storage.size(), false);
  for (const Node& node : graph.nodes()) {
    for (ValueId operand : mutated_operands(node)) {
      written[static_cast<std::size_t>(storage[static_cast<std::size_t>(operand)])] = true;
    }
  }
  std::vector<bool> result;
  result.reserve(storage.size());
  for (ValueId of : storage) result.push_back(written[static_cast<std::size_t>(of)]);
  return result;
}

std::vector<std::size_t> storage_elements(const Graph& graph, ValueId value,
                                          const Bindings& bindings) {
  std::vector<ValueId> path;  // from the value to its storage
  for (std::optional<ValueId> next = value; next;) {
    path.push_back(*next);
    const Value& v = graph.value(*next);
    next = v.producer < 0 ? std::nullopt : named_operand(graph.node(v.producer), v.result);
  }
  EvalTensor elements;
  for (const Dim& dim : graph.type(path.back()).shape) {
    elements.shape.push_back(dim.evaluate(bindings));
  }
  const std::int64_t count = std::accumulate(elements.shape.begin(), elements.shape.end(),
                                             std::int64_t{1}, std::multiplies<>());
  elements.data.resize(static_cast<std::size_t>(count));
  std::iota(elements.data.begin(), elements.data.end(), 0.0);
  // The views move the numbers as they would move the elements.
  for (std::size_t i = path.size() - 1; i-- > 0;) {
    const Value& v = graph.value(path[i]);
    const Node& node = graph.node(v.producer);
    if (node.op->op_class != OpClass::kView) continue;
    EvalTensors results = node.op->evaluate({graph, node, bindings}, {{std::move(elements)}});
    elements = std::move(results[0][static_cast<std::size_t>(v.result)]);
  }
  return {elements.data.begin(), elements.data.end()};
}

void verify_mutations(const Graph& graph, const std::string& place) {
  const bool none = std::none_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.op->mutates != Mutates::kNothing;
  });
  if (!none) Verifier(graph, place).run();
}

}  // namespace braid
