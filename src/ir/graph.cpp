#include "braid/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/attributes.h"
#include "ir/buckets.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/op_registry.h"
#include "ir/ops.h"
#include "ir/place.h"
#include "ir/text.h"

namespace braid {
namespace {

constexpr std::size_t kMaxName = 10UL << 20U;
constexpr std::size_t kMaxNodes = 10'000'000;
constexpr std::size_t kMaxRank = 8;
constexpr std::int64_t kMaxNumel = std::int64_t{1} << 40;
void check_name(const std::string& name) {
  if (name.empty()) fail("/name", "empty; expected a name");
  if (name.size() > kMaxName) {
    fail("/name", "{} is {} bytes long; expected at most {}", quote(name), name.size(), kMaxName);
  }
  if (!is_utf8(name)) fail("/name", "{} is not UTF-8", quote(name));
}

/// `place` is the shape's place.
void check_shape(const SymbolTable& symbols, const TensorType& type, const std::string& place) {
  if (type.shape.size() > kMaxRank) {
    fail(place, "{} dims; expected at most {}", type.shape.size(), kMaxRank);
  }
  std::int64_t numel = 1;
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    const Dim& dim = type.shape[i];
    const auto dim_place = [&] { return fmt::format("{}/{}", place, i); };
    for (const Dim::Term& term : dim.terms()) {
      if (symbols.find(term.symbol) == symbols.end()) {
        fail(dim_place(), "unknown symbol {}; expected {}", quote(term.symbol),
             list_names(symbols));
      }
    }
    if (!dim.is_whole(symbols)) {
      fail(dim_place(),
           "{} is not whole for all values of its symbols; expected symbols whose multiple_of the "
           "divisors divide",
           dim.str());
    }
    // It may be 0 for some values of the symbols.
    if (dim.min(symbols) < 0 || dim.max(symbols) < 1) {
      fail(dim_place(), "the extent {} {} {}; expected at least {}", dim.str(),
           dim.min(symbols) < 0 ? "can be" : "is always", dim.min(symbols),
           dim.min(symbols) < 0 ? 0 : 1);
    }
    if (__builtin_mul_overflow(numel, dim.max(symbols), &numel) || numel >= kMaxNumel) {
      fail(place, "{} has 2^40 elements or more with its symbols at their maximum; expected fewer",
           type.str());
    }
  }
}

void check_operand_count(const OpDef& op, std::size_t count) {
  if (count >= static_cast<std::size_t>(op.min_inputs) &&
      count <= static_cast<std::size_t>(op.max_inputs)) {
    return;
  }
  fail("/inputs", "{} operands for {}; expected {}", count, op.name,
       op.min_inputs == op.max_inputs ? fmt::format("{}", op.min_inputs)
                                      : fmt::format("{} to {}", op.min_inputs, op.max_inputs));
}

}  // namespace

std::string TensorType::str() const {
  std::string text(dtype_name(dtype));
  text += '[';
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i].str();
  }
  return text + ']';
}

std::string_view Node::op_name() const { return op->name; }

void Graph::add_symbol(std::string name, Symbol symbol) {
  check_symbol(name, symbol);
  const std::string place = "/symbols" + pointer_step(name);
  const auto* bucketed = symbol.buckets.empty() ? nullptr : bucketed_symbol(symbols_);
  if (bucketed != nullptr && bucketed->first != name) {
    throw_invalid(place + "/buckets", "symbol {} has some, too; expected one with buckets",
                  quote(bucketed->first));
  }
  if (!symbols_.emplace(std::move(name), symbol).second) {
    throw_invalid(place, "the symbol is defined twice");
  }
}

void Graph::add_group(std::string name, Group group) {
  check_group(name, group);
  const std::string place = "/groups" + pointer_step(name);
  if (!groups_.emplace(std::move(name), std::move(group)).second) {
    throw_invalid(place, "the group is defined twice");
  }
}

std::optional<ValueId> Graph::find_name(std::string_view name) const {
  if (names_.empty()) return std::nullopt;
  const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
  const std::size_t mask = names_.size() - 1;
  for (std::size_t at = hash & mask; names_[at].id; at = (at + 1) & mask) {
    const ValueId id = *names_[at].id;
    if (names_[at].hash == hash && (id < 0 ? node(~id).name : value(id).name) == name) return id;
  }
  return std::nullopt;
}

void Graph::add_name(std::string_view name, ValueId id) {
  const auto place = [&](NameSlot slot) {
    const std::size_t mask = names_.size() - 1;
    std::size_t at = slot.hash & mask;
    while (names_[at].id) at = (at + 1) & mask;
    names_[at] = slot;
  };
  if (++name_count_ * 2 > names_.size()) {
    constexpr std::size_t kLeast = 16;
    std::vector<NameSlot> larger(std::max(kLeast, names_.size() * 2));
    names_.swap(larger);
    for (const NameSlot& slot : larger) {
      if (slot.id) place(slot);
    }
  }
  place({static_cast<std::uint32_t>(std::hash<std::string_view>()(name)), id});
}

void Graph::check_free(const std::string& name) const {
  if (find_name(name)) fail("/name", "{} is defined twice", quote(name));
}

ValueId Graph::add_value(Value value) {
  const ValueId id = values_.size();
  add_name(value.name, id);
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::add_input(GraphInput input) {
  try {
    check_name(input.name);
    check_free(input.name);
    check_shape(symbols_, input.type, "/shape");
  } catch (const Error& error) {
    throw Error(error.code(), printable(input.name) + error.where(),
                std::string(message_of(error)));
  }
  const ValueId id = add_value({.name = input.name,
                                .type = input.type,
                                .producer = -1,
                                .result = static_cast<int>(inputs_.size()),
                                .comm_group = {}});
  inputs_.push_back(std::move(input));
  input_values_.push_back(id);
  return id;
}

std::string Graph::fresh_name() {
  std::string name;
  do {
    name = fmt::format("v{}", next_fresh_++);
  } while (find_name(name));
  return name;
}

NodeId Graph::add_node(std::string name, std::string_view op, std::vector<ValueId> inputs,
                       Attrs attrs) {
  if (name.empty()) name = fresh_name();
  op = overload_of(op, attrs.find("dtype") != attrs.end());
  Node node;
  std::vector<TensorType> results;
  try {
    check_name(name);
    check_free(name);
    if (nodes_.size() >= kMaxNodes) fail("", "more than {} nodes", kMaxNodes);
    node.op = find_op(op);
    if (node.op == nullptr) {
      std::vector<std::string_view> known;
      for (const OpDef* def : all_ops()) known.push_back(def->name);
      const std::size_t count = known.size();
      constexpr std::size_t kShown = 5;
      fail("/op", "unknown op {}; expected one of {} ops, such as {}", quote(op), count,
           fmt::join(nearest(op, std::move(known), kShown), ", "));
    }
    check_operand_count(*node.op, inputs.size());
    std::vector<TensorType> types;
    types.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] < 0 || static_cast<std::size_t>(inputs[i]) >= values_.size()) {
        fail(fmt::format("/inputs/{}", i), "there is no value {}", inputs[i]);
      }
      types.push_back(type(inputs[i]));
    }
    node.attrs = complete_attributes(*this, *node.op, std::move(attrs));
    results = node.op->infer({*this, types, node.attrs});
    for (const TensorType& result : results) {
      check_shape(symbols_, result, node.attr<Shape>("shape") != nullptr ? "/attrs/shape" : "");
    }
    check_result_names(name, results.size());
  } catch (const Error& error) {
    throw Error(error.code(), printable(name) + error.where(), std::string(message_of(error)));
  }
  node.name = std::move(name);
  node.inputs = std::move(inputs);
  return append(std::move(node), std::move(results));
}

NodeId Graph::add_copy(const Graph& from, const Node& node, std::string name,
                       std::vector<ValueId> inputs) {
  check_free(name);
  std::vector<TensorType> types;
  types.reserve(node.outputs.size());
  for (const ValueId output : node.outputs) types.push_back(from.type(output));
  check_result_names(name, types.size());
  return append({.name = std::move(name),
                 .op = node.op,
                 .inputs = std::move(inputs),
                 .attrs = node.attrs,
                 .hints = {},
                 .outputs = {}},
                std::move(types));
}

void Graph::check_result_names(const std::string& name, std::size_t results) const {
  for (std::size_t i = 0; results > 1 && i < results; ++i)
    check_free(fmt::format("{}:{}", name, i));
}

NodeId Graph::append(Node node, std::vector<TensorType> types) {
  const NodeId id = nodes_.size();
  const bool several = types.size() > 1;
  node.outputs.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    node.outputs.push_back(
        add_value({.name = several ? fmt::format("{}:{}", node.name, i) : node.name,
                   .type = std::move(types[i]),
                   .producer = id,
                   .result = static_cast<int>(i),
                   .comm_group = {}}));
  }
  if (several) add_name(node.name, ~id);
  nodes_.push_back(std::move(node));
  return id;
}

void Graph::set_hint(NodeId node, std::string key, double value) {
  Node& target = nodes_.at(node);
  if (!is_utf8(key) || !std::isfinite(value)) {
    throw_invalid(printable(target.name) + "/hints" + pointer_step(key),
                  "{}; expected a UTF-8 key and a finite number", value);
  }
  if (key == "runtime_ns" && value < 0) {
    throw_invalid(printable(target.name) + "/hints/runtime_ns",
                  "found {}; expected nanoseconds, 0 or more", value);
  }
  target.hints.insert_or_assign(std::move(key), value);
}

void Graph::set_comm_group(ValueId value, std::string group) {
  Value& target = values_.at(value);
  if (!group.empty() && groups_.find(group) == groups_.end()) {
    throw_invalid(printable(target.name) + "/comm_group", "unknown group {}; expected {}",
                  quote(group), list_names(groups_));
  }
  target.comm_group = std::move(group);
}

void Graph::drop_unused_tables() {
  SymbolTable symbols;
  GroupTable groups;
  const auto use_shape = [&](const Shape& shape) {
    for (const Dim& dim : shape) {
      for (const Dim::Term& term : dim.terms()) symbols[term.symbol] = symbols_.at(term.symbol);
    }
  };
  for (const Value& value : values_) {
    use_shape(value.type.shape);
    if (!value.comm_group.empty()) groups[value.comm_group] = groups_.at(value.comm_group);
  }
  for (const Node& node : nodes_) {
    use_shape(dims_of_attributes(node));
    if (const auto* group = node.attr<std::string>("group")) groups[*group] = groups_.at(*group);
  }
  symbols_ = std::move(symbols);
  groups_ = std::move(groups);
}

void Graph::add_output(ValueId value) {
  if (value < 0 || static_cast<std::size_t>(value) >= values_.size()) {
    throw_invalid(fmt::format("/outputs/{}", outputs_.size()), "there is no value {}", value);
  }
  outputs_.push_back(value);
}

std::optional<ValueId> Graph::find(std::string_view name) const {
  std::optional<ValueId> id = find_name(name);
  if (id && *id >= 0) return id;
  // "name:0" is also accepted for the only result of "name".
  constexpr std::string_view kFirst = ":0";
  if (id || !name.ends_with(kFirst)) return std::nullopt;
  name.remove_suffix(kFirst.size());
  id = find_name(name);
  if (!id || *id < 0) return std::nullopt;
  // A value that is itself named "node:i" has no results of its own.
  const Value& found = value(*id);
  const bool own_name = found.producer < 0 || node(found.producer).outputs.size() == 1;
  return own_name ? id : std::nullopt;
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> result(values_.size());
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    for (ValueId input : nodes_[id].inputs) {
      auto& users = result[input];
      if (users.empty() || users.back() != static_cast<NodeId>(id)) users.push_back(id);
    }
  }
  return result;
}

std::vector<bool> Graph::output_flags() const {
  std::vector<bool> result(values_.size(), false);
  for (ValueId output : outputs_) result[output] = true;
  return result;
}

Graph Graph::clone_interface() const {
  Graph graph(name_);
  graph.symbols_ = symbols_;
  graph.groups_ = groups_;
  graph.inputs_ = inputs_;
  for (ValueId input : input_values_) graph.input_values_.push_back(graph.add_value(value(input)));
  return graph;
}

}  // namespace braid
