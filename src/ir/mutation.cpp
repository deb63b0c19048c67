#include "ir/mutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "ir/fail.h"
#include "ir/mapped.h"
#include "ir/text.h"
#include "ir/views.h"

namespace braid {
namespace {

/// State of one storage. A collective over several operands is done with each of them at the wait
/// of that operand's result.
struct Memory {
  NodeId written = -1;            ///< the last node that overwrote it
  std::vector<ValueId> in_place;  ///< results that collectives are writing into it, not yet waited
                                  ///< for
  std::vector<ValueId> in_use;    ///< results of collectives that are reading it
};

/// How a value is a part or permutation of its operand.
struct Step {
  const Node* node;
  int result;
};

bool same_part(const Step& a, const Step& b) {
  return a.result == b.result &&
         (a.node == b.node || (a.node->op == b.node->op && a.node->attrs == b.node->attrs));
}

/// The steps from the storage to the value.
std::vector<Step> steps_to(const Graph& graph, ValueId value) {
  std::vector<Step> steps;
  for (std::optional<ValueId> next = value; next;) {
    const Value& v = graph.value(*next);
    if (v.producer < 0) break;
    const Node& node = graph.node(v.producer);
    next = named_operand(node, v.result);
    const bool moves = node.op->view == View::kPermute;
    if (!next || node.op->op_class != OpClass::kView) continue;
    if (moves || v.type != graph.type(*next)) steps.push_back({&node, v.result});
  }
  std::ranges::reverse(steps);
  return steps;
}

std::optional<SliceRange> part_of(const Graph& graph, const Step& step) {
  const Node& node = *step.node;
  const Shape& shape = graph.type(node.inputs[0]).shape;
  if (node.op->view != View::kPart) return std::nullopt;
  return part_ranges(node.attrs, shape, graph.symbols())[step.result];
}

/// Whether two parts of one value are disjoint, as far as their bounds tell.
bool are_apart(const Graph& graph, const Step& a, const Step& b) {
  if (a.node == b.node) return a.result != b.result;  // results of one split
  const std::optional<SliceRange> first = part_of(graph, a);
  const std::optional<SliceRange> second = part_of(graph, b);
  if (!first || !second || first->axis != second->axis) return false;
  const auto before = [&](const SliceRange& x, const SliceRange& y) {
    return (y.start - (x.start + x.length * x.step)).min(graph.symbols()) >= 0;
  };
  return before(*first, *second) || before(*second, *first);
}

/// Whether two names of one storage may overlap. Only parts of one value are known to be disjoint.
bool may_overlap(const Graph& graph, ValueId a, ValueId b) {
  const std::vector<Step> to_a = steps_to(graph, a);
  const std::vector<Step> to_b = steps_to(graph, b);
  for (std::size_t i = 0; i < std::min(to_a.size(), to_b.size()); ++i) {
    if (!same_part(to_a[i], to_b[i])) return !are_apart(graph, to_a[i], to_b[i]);
  }
  return true;
}

/// The result whose wait tells that the collective is done with operand `i`.
ValueId result_of_operand(const Node& collective, std::size_t i) {
  return collective.outputs[std::min(i, collective.outputs.size() - 1)];
}

class Verifier {
 public:
  Verifier(const Graph& graph, const std::string& place)
      : graph_(graph), place_(place), storage_(storages(graph)), memory_(graph.values().size()) {}

  void run() {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) visit(id);
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      check_name(graph_.outputs()[i], fmt::format("{}/outputs/{}", place_, i));
    }
  }

 private:
  Memory& memory(ValueId value) { return memory_[storage_[value]]; }
  std::string quoted(ValueId value) const { return quote(graph_.value(value).name); }
  std::string named(NodeId id) const {
    return fmt::format("{} {}", graph_.node(id).op_name(), quote(graph_.node(id).name));
  }

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    const std::string here = fmt::format("{}/nodes/{}", place_, id);
    if (node.op->op_class == OpClass::kWait) end_use(node.inputs[0]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string operand = fmt::format("{}/inputs/{}", here, i);
      check_name(node.inputs[i], operand);
      for (ValueId result : memory(node.inputs[i]).in_place) {
        if (!may_overlap(graph_, node.inputs[i], result)) continue;
        throw_invalid(operand,
                      "{} is used while {} overwrites it; expected a wait_tensor between them",
                      quoted(node.inputs[i]), producer(result));
      }
    }
    check_apart(node, here);
    const std::span<const ValueId> mutated = mutated_operands(node);
    for (ValueId value : mutated) check_views(node, value, here);
    for (ValueId value : mutated) {
      Memory& m = memory(value);
      if (!m.in_use.empty()) {
        throw_invalid(here,
                      "{} overwrites {} while {} reads it; expected a wait_tensor between them",
                      named(id), quoted(value), producer(m.in_use.front()));
      }
      m.written = id;
    }
    if (!is_asynchronous(node)) return;
    for (ValueId result : mutated_results(node)) memory(result).in_place.push_back(result);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (std::ranges::find(mutated, node.inputs[i]) == mutated.end()) {
        memory(node.inputs[i]).in_use.push_back(result_of_operand(node, i));
      }
    }
  }

  std::string producer(ValueId result) const { return named(graph_.value(result).producer); }

  /// Ends the use by a collective whose result was waited for.
  void end_use(ValueId result) {
    const NodeId producer = graph_.value(result).producer;
    if (producer < 0 || !is_asynchronous(graph_.node(producer))) return;
    std::erase(memory(result).in_place, result);
    const Node& collective = graph_.node(producer);
    for (std::size_t i = 0; i < collective.inputs.size(); ++i) {
      if (result_of_operand(collective, i) != result) continue;
      std::erase(memory(collective.inputs[i]).in_use, result);
    }
  }

  /// Refuses writes through a view_dtype, where the storage would mix values of two dtypes, and
  /// through an expand, whose elements share memory.
  void check_views(const Node& node, ValueId value, const std::string& here) const {
    for (const Step& step : steps_to(graph_, value)) {
      if (step.node->op->view == View::kExpand) {
        throw_invalid(here,
                      "{} overwrites {} through {}, whose elements share memory; expected the "
                      "tensor itself",
                      node.op_name(), quoted(step.node->inputs[0]), quoted(step.node->outputs[0]));
      }
      if (step.node->op->view != View::kBytes) continue;
      throw_invalid(here,
                    "{} overwrites {} through {}, which reads it as {}; expected the tensor itself",
                    node.op_name(), quoted(step.node->inputs[0]), quoted(value),
                    graph_.type(step.node->outputs[0]).str());
    }
  }

  /// Refuses nodes that could overwrite an element twice.
  void check_apart(const Node& node, const std::string& here) {
    const std::span<const ValueId> mutated = mutated_operands(node);
    std::map<ValueId, std::vector<ValueId>> seen;  // by storage
    for (std::size_t i = 0; i < mutated.size() && mutated.size() > 1; ++i) {
      auto& others = seen[storage_[mutated[i]]];
      for (ValueId other : others) {
        if (!may_overlap(graph_, mutated[i], other)) continue;
        throw_invalid(
            fmt::format("{}/inputs/{}", here, i),
            "{} overwrites {} and {}, which may share elements; expected operands that lie apart",
            node.op_name(), quoted(other), quoted(mutated[i]));
      }
      others.push_back(mutated[i]);
    }
  }

  /// Refuses a name, other than the storage's own, that is older than the last write.
  void check_name(ValueId value, const std::string& where) {
    const NodeId written = memory(value).written;
    if (names_storage(graph_, value, storage_[value])) return;
    if (graph_.value(value).producer >= written) return;
    throw_invalid(where,
                  "{} names memory that {} overwrote; expected the result of that, or a view of it",
                  quoted(value), named(written));
  }

  const Graph& graph_;
  const std::string& place_;
  std::vector<ValueId> storage_;
  std::vector<Memory> memory_;  ///< for each storage
};

}  // namespace

bool names_storage(const Graph& graph, ValueId value, ValueId storage) {
  const NodeId producer = graph.value(value).producer;
  return value == storage ||
         (producer >= 0 && graph.node(producer).op->op_class == OpClass::kWait &&
          graph.node(producer).inputs[0] == storage);
}

std::span<const ValueId> mutated_operands(const Node& node) {
  const std::span<const ValueId> operands = node.inputs;
  switch (node.op->mutates) {
    case Mutates::kNothing:
      return {};
    case Mutates::kFirst:
      return operands.first(1);
    case Mutates::kFirstTwo:
      return operands.first(2);
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

std::vector<Update> updates_of(const Node& node) {
  if (node.op->op_class == OpClass::kUpdate) return {{0, 0}};
  if (node.op->op_class != OpClass::kKernel) return {};
  return updates_of(**node.attr<std::shared_ptr<const Graph>>("body"));
}

std::vector<Update> updates_of(const Graph& body) {
  std::vector<Update> updates;
  for (std::size_t i = 0; i < body.outputs().size(); ++i) {
    if (const auto input = updated_input(body, body.outputs()[i])) updates.push_back({i, *input});
  }
  return updates;
}

const Node* update_of(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  if (producer < 0 || graph.node(producer).op->op_class != OpClass::kUpdate) return nullptr;
  return &graph.node(producer);
}

std::optional<std::size_t> updated_input(const Graph& body, ValueId output) {
  const Value& result = body.value(output);
  if (result.producer < 0) return std::nullopt;
  const Node& node = body.node(result.producer);
  const std::vector<Update> updates = updates_of(node);
  const auto update =
      std::ranges::find(updates, static_cast<std::size_t>(result.result), &Update::result);
  if (update == updates.end()) return std::nullopt;
  ValueId value = node.inputs[update->operand];
  while (body.value(value).producer >= 0) {
    const Node& view = body.node(body.value(value).producer);
    if (view.op->view != View::kFlat) return std::nullopt;
    value = view.inputs[0];
  }
  return static_cast<std::size_t>(body.value(value).result);
}

UpdateForm update_form(const Node& update) {
  if (!takes_indices(update)) return UpdateForm::kRange;
  if (!update.attrs.contains("dim")) return UpdateForm::kFirstDims;
  return update.op_name().starts_with("scatter") ? UpdateForm::kEach : UpdateForm::kAlongDim;
}

bool adds_up(const Node& update) {
  const bool* accumulate = update.attr<bool>("accumulate");
  const std::string_view op = update.op_name();
  return accumulate != nullptr ? *accumulate : op.ends_with("_add") || op.ends_with("_add_");
}

std::size_t source_dim(const Graph& graph, const Node& update) {
  if (update_form(update) == UpdateForm::kFirstDims) return 0;
  return axis_of(update.attrs, "dim", graph.type(update.inputs[0]).shape.size());
}

std::optional<ValueId> named_operand(const Node& node, int result) {
  const std::span<const ValueId> mutated = mutated_operands(node);
  const std::size_t of_its_own = node.outputs.size() - mutated.size();
  if (static_cast<std::size_t>(result) >= of_its_own) {
    return mutated[static_cast<std::size_t>(result) - of_its_own];
  }
  const OpClass c = node.op->op_class;
  const bool computes = node.op->view == View::kCat || node.op->view == View::kShard;
  if (c == OpClass::kWait || (c == OpClass::kView && !computes)) return node.inputs[0];
  return std::nullopt;
}

std::vector<ValueId> storages(const Graph& graph) {
  std::vector<ValueId> storage(graph.values().size());
  std::iota(storage.begin(), storage.end(), 0);
  for (const Node& node : graph.nodes()) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (const auto operand = named_operand(node, i)) storage[node.outputs[i]] = storage[*operand];
    }
  }
  return storage;
}

std::vector<bool> overwritten_values(const Graph& graph) {
  const std::vector<ValueId> storage = storages(graph);
  std::vector<bool> written(storage.size(), false);
  for (const Node& node : graph.nodes()) {
    for (ValueId operand : mutated_operands(node)) written[storage[operand]] = true;
  }
  return mapped<bool>(storage, [&](ValueId of) { return written[of]; });
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
  elements.dtype = graph.type(path.back()).dtype;
  for (const Dim& dim : graph.type(path.back()).shape) {
    elements.shape.push_back(dim.evaluate(bindings));
  }
  const std::int64_t count = std::accumulate(elements.shape.begin(), elements.shape.end(),
                                             std::int64_t{1}, std::multiplies<>());
  visit_elements(elements, [&](auto& numbers) {
    numbers.resize(count);
    std::iota(numbers.begin(), numbers.end(), 0);
  });
  // The views move indices as they would move elements.
  for (std::size_t i = path.size() - 1; i-- > 0;) {
    const Value& v = graph.value(path[i]);
    const Node& node = graph.node(v.producer);
    if (node.op->op_class != OpClass::kView) continue;
    EvalTensors results = node.op->evaluate({graph, node, bindings}, {{std::move(elements)}});
    elements = std::move(results[0][v.result]);
  }
  std::vector<std::size_t> result;
  visit_elements(elements,
                 [&](const auto& numbers) { result.assign(numbers.begin(), numbers.end()); });
  return result;
}

void verify_mutations(const Graph& graph, const std::string& place) {
  const bool none = std::ranges::none_of(
      graph.nodes(), [](const Node& node) { return node.op->mutates != Mutates::kNothing; });
  if (!none) Verifier(graph, place).run();
}

}  // namespace braid
