
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "braid/reference.h"
#include "ir/buckets.h"
#include "ir/fail.h"
#include "ir/op_registry.h"
#include "ir/text.h"
#include "ir/views.h"

namespace braid {
namespace {

/// splitmix64: a 64-bit state, and the same numbers on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ z >> 30U) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27U) * 0x94D049BB133111EBU;
    return z ^ z >> 31U;
  }

  /// N(0, 1) by the Box-Muller transform, two at a time.
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    constexpr double kTwoPi = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(unit()));
    const double angle = kTwoPi * unit();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  /// Uniform in (0, 1].
  double unit() { return (static_cast<double>(next() >> 11U) + 1) * 0x1p-53; }

  std::uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

/// The rows among which a grouped matmul's offsets are, for an input that has such.
std::optional<Dim> rows_of_offsets(const Graph& graph, ValueId input) {
  for (const Node& node : graph.nodes()) {
    if (node.op->matmul == Matmul::kGrouped && node.inputs[2] == input) {
      return graph.type(node.inputs[0]).shape[0];
    }
  }
  return std::nullopt;
}

/// How many places there are for what a write's indices name, for an input that has such.
std::optional<std::int64_t> places_to_write(const Graph& graph, ValueId input,
                                            const Bindings& bindings) {
  const auto extent = [&](ValueId value, std::size_t first, std::size_t end) {
    std::int64_t n = 1;
    for (std::size_t d = first; d < end; ++d) {
      n *= graph.type(value).shape[d].evaluate(bindings);
    }
    return n;
  };
  for (const Node& node : graph.nodes()) {
    const bool appends = node.op->mutates == Mutates::kFirstTwo;
    const bool copies = takes_indices(node) && node.op->op_class != OpClass::kGather;
    if ((!appends && !copies) || node.inputs[appends ? 4 : 1] != input) continue;
    const std::size_t rank = graph.type(node.inputs[0]).shape.size();
    if (appends) {
      return extent(node.inputs[0], 0, rank + 1 - graph.type(node.inputs[2]).shape.size());
    }
    const std::size_t axis = axis_of(node.attrs, "dim", rank);
    return extent(node.inputs[0], axis, axis + 1);
  }
  return std::nullopt;
}

HostTensor random_tensor(const Graph& graph, std::size_t index, const Bindings& bindings,
                         Random random) {
  const GraphInput& input = graph.inputs()[index];
  std::vector<std::int64_t> shape;
  std::size_t size = 1;
  for (const Dim& dim : input.type.shape) {
    shape.push_back(dim.evaluate(bindings));
    size *= static_cast<std::size_t>(shape.back());
  }
  double mean = 0;
  double deviation = 1;
  if (input.kind == InputKind::kParameter && shape.size() >= 2) {
    deviation = 1 / std::sqrt(static_cast<double>(shape[0]));
  } else if (input.kind == InputKind::kParameter) {
    mean = 1;
    deviation = 0.1;
  }
  if (!is_float(input.type.dtype)) {
    const std::optional<Dim> rows = rows_of_offsets(graph, graph.input_values()[index]);
    const std::uint64_t end =
        rows ? static_cast<std::uint64_t>(rows->evaluate(bindings)) + 1 : std::uint64_t{8};
    std::vector<std::int64_t> values(size);
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(random.next() % end);
    if (rows) std::ranges::sort(values);
    if (const auto places = places_to_write(graph, graph.input_values()[index], bindings)) {
      // Each once, as far as there are so many.
      std::vector<std::int64_t> all(static_cast<std::size_t>(std::max<std::int64_t>(1, *places)));
      std::iota(all.begin(), all.end(), 0);
      for (std::size_t i = 0; i < size; ++i) {
        std::swap(all[i % all.size()], all[random.next() % all.size()]);
      }
      for (std::size_t i = 0; i < size; ++i) values[i] = all[i % all.size()];
    }
    return HostTensor::from_integers(input.type.dtype, std::move(shape), values);
  }
  std::vector<double> values(size);
  for (double& value : values) value = mean + deviation * random.normal();
  return HostTensor::from_doubles(input.type.dtype, std::move(shape), values);
}

}  // namespace

RankTensors random_inputs(const Graph& graph, const Bindings& bindings, std::uint64_t seed,
                          const PieceProgress& progress) {
  const Bindings bound = check_bindings(graph, bindings);
  const std::size_t world = world_size(graph);
  RankTensors inputs(world);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    for (std::size_t rank = 0; rank < world; ++rank) {
      if (progress) progress(i * world + rank, graph.inputs().size() * world);
      if (rank > 0 && !input.per_rank) {
        inputs[rank].push_back(inputs[0].back());
        continue;
      }
      // Each tensor has its own stream, so that it does not depend on the sizes of others.
      const std::uint64_t stream = Random(seed).next() + (i << 20U) + rank;
      inputs[rank].push_back(random_tensor(graph, i, bound, Random(Random(stream).next())));
    }
  }
  return inputs;
}

Bindings check_bindings(const Graph& graph, const Bindings& bindings) {
  for (const auto& [name, value] : bindings) {
    if (graph.symbols().find(name) == graph.symbols().end()) {
      throw_invalid("", "the graph has no symbol {}", quote(name));
    }
  }
  Bindings bound = bindings;
  for (const auto& [name, symbol] : graph.symbols()) {
    auto it = bound.find(name);
    if (it == bound.end()) {
      if (symbol.min != symbol.max) {
        throw_invalid("", "symbol {} has no value; expected {}", quote(name),
                      describe_values(symbol));
      }
      it = bound.emplace(name, symbol.min).first;
    }
    if (!holds(symbol, it->second)) {
      throw_invalid("", "symbol {} is {}; expected {}", quote(name), it->second,
                    describe_values(symbol));
    }
  }
  return bound;
}

}  // namespace braid
