#include "lowering/analysis/kinds.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <variant>

#include "ir/op_registry.h"

namespace braid {
namespace {

std::size_t hash_of(const Shape& shape) {
  std::size_t hash = shape.size();
  for (const Dim& dim : shape) {
    mix_hash(hash, dim.constant());
    for (const Dim::Term& term : dim.terms()) {
      mix_hash(hash, std::hash<std::string>()(term.symbol));
      mix_hash(hash, term.factor);
    }
  }
  return hash;
}

/// Hashes the attribute types that usually differ; equality compares the others.
std::size_t hash_of(const AttrValue& attribute) {
  return std::visit(
      [](const auto& value) -> std::size_t {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Shape>) {
          return hash_of(value);
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          std::size_t hash = value.size();
          for (std::int64_t x : value) mix_hash(hash, x);
          return hash;
        } else if constexpr (std::is_same_v<T, std::map<std::string, std::int64_t>>) {
          return value.size();
        } else if constexpr (std::is_same_v<T, DType>) {
          return static_cast<std::size_t>(value);
        } else {
          return std::hash<T>()(value);
        }
      },
      attribute);
}

/// Floats by their bits: 0 and -0 are equal, but not what is computed from them.
bool is_same(const AttrValue& a, const AttrValue& b) {
  const auto* const x = std::get_if<double>(&a);
  const auto* const y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return a == b;
  return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
}

bool are_same(const Attrs& a, const Attrs& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && is_same(x.second, y.second);
  });
}

}  // namespace

NodeKinds::NodeKinds(const Graph& graph) : graph_(graph), kinds_(graph.nodes().size(), -1) {}

bool NodeKinds::alike(const Node& a, const Node& b) const {
  if (a.op != b.op || a.inputs.size() != b.inputs.size() || !are_same(a.attrs, b.attrs))
    return false;
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    if (graph_.type(a.inputs[i]) != graph_.type(b.inputs[i])) return false;
  }
  return true;
}

NodeId NodeKinds::of(NodeId id) {
  NodeId& kind = kinds_[id];
  if (kind >= 0) return kind;
  const Node& node = graph_.node(id);
  std::size_t hash = std::hash<const void*>()(node.op);
  for (const auto& [name, value] : node.attrs) mix_hash(hash, hash_of(value));
  for (ValueId input : node.inputs) {
    mix_hash(hash, static_cast<std::size_t>(graph_.type(input).dtype));
    mix_hash(hash, hash_of(graph_.type(input).shape));
  }
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto other = first; other != last; ++other) {
    if (alike(node, graph_.node(other->second))) return kind = other->second;
  }
  by_hash_.emplace(hash, id);
  return kind = id;
}

}  // namespace braid
