#include "ir/random_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "braid/reference.h"
#include "ir/attention.h"
#include "ir/buckets.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "ir/moe.h"
#include "ir/mutation.h"
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

/// Indices of a write, each place at most once as far as there are so many; nothing for another
/// operand. `once` gives `count` such integers below an end.
std::optional<std::vector<std::int64_t>> places_to_write(const Graph& graph, const Node& node,
                                                         std::size_t operand,
                                                         const Bindings& bindings, std::size_t size,
                                                         const auto& once) {
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const auto extent = [&](std::size_t dim) { return shape[dim].evaluate(bindings); };
  if (node.op->mutates == Mutates::kFirstTwo && operand == 4) {
    std::int64_t slots = 1;
    for (std::size_t d = 0; d + graph.type(node.inputs[2]).shape.size() <= shape.size(); ++d) {
      slots *= extent(d);
    }
    return once(slots, size);
  }
  const OpClass c = node.op->op_class;
  if ((c != OpClass::kUpdate && c != OpClass::kMutation) || !takes_indices(node) || operand == 0) {
    return std::nullopt;
  }
  const std::size_t tensors = node.inputs.size() - 2;
  const UpdateForm form = update_form(node);
  if (operand > std::max<std::size_t>(1, tensors)) return std::nullopt;
  if (form == UpdateForm::kAlongDim || (form == UpdateForm::kFirstDims && tensors == 1)) {
    return once(extent(source_dim(graph, node)), size);
  }
  std::vector<std::int64_t> values(size);
  if (form == UpdateForm::kFirstDims) {
    // Rows and columns of all places in order.
    for (std::size_t i = 0; i < size; ++i) {
      const auto place = static_cast<std::int64_t>(i) % (extent(0) * extent(1));
      values[i] = operand == 1 ? place / extent(1) : place % extent(1);
    }
    return values;
  }
  const std::size_t dim = source_dim(graph, node);
  const Shape& part = graph.type(node.inputs[1]).shape;
  std::size_t inner = 1;
  for (std::size_t d = dim + 1; d < part.size(); ++d) {
    inner *= static_cast<std::size_t>(part[d].evaluate(bindings));
  }
  const auto length = static_cast<std::size_t>(part[dim].evaluate(bindings));
  const std::vector<std::int64_t> along = once(extent(dim), length);
  for (std::size_t i = 0; i < size; ++i) values[i] = along[i / inner % length];
  return values;
}

/// `size` integers that an op can use, for an input that says where rows are: ends of groups, the
/// indices of a write, the experts of tokens, or what a paged_attention has beside its cache; also
/// for a kernel whose body has such an op.
std::optional<std::vector<std::int64_t>> places(const Graph& graph, ValueId input,
                                                const Bindings& bindings, std::size_t size,
                                                Random& random) {
  for (const Node& node : graph.nodes()) {
    const auto read = std::ranges::find(node.inputs, input);
    const auto operand = static_cast<std::size_t>(read - node.inputs.begin());
    if (operand == node.inputs.size()) continue;
    if (const auto* body = node.attr<std::shared_ptr<const Graph>>("body")) {
      const ValueId inside = (*body)->input_values()[operand];
      if (auto found = places(**body, inside, bindings, size, random)) return found;
      continue;
    }
    const auto extent = [&](std::size_t of, std::size_t dim) {
      return graph.type(node.inputs[of]).shape[dim].evaluate(bindings);
    };
    const auto below = [&](std::int64_t end) {
      return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(end));
    };
    std::vector<std::int64_t> values(size);
    const auto once = [&](std::int64_t end, std::size_t count) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(std::max<std::int64_t>(1, end)));
      std::iota(all.begin(), all.end(), 0);
      for (std::size_t i = 0; i < count; ++i) {
        std::swap(all[i % all.size()], all[random.next() % all.size()]);
      }
      std::vector<std::int64_t> some(count);
      for (std::size_t i = 0; i < count; ++i) some[i] = all[i % all.size()];
      return some;
    };
    if (node.op->matmul == Matmul::kGrouped && operand == 2) {
      for (std::int64_t& value : values) value = below(extent(0, 0) + 1);
      std::ranges::sort(values);
      return values;
    }
    if (auto found = places_to_write(graph, node, operand, bindings, size, once)) return found;
    if (std::ranges::find(node.op->checked, operand) == node.op->checked.end()) continue;
    if (node.op->op_class != OpClass::kAttention) {  // the experts of tokens
      const auto* experts = node.attr<std::int64_t>("experts");
      for (std::int64_t& value : values) {
        value = below(experts != nullptr ? *experts : extent(kMoeGateUp, 0));
      }
      return values;
    }
    // Tokens of a paged_attention are dealt evenly, so that the lengths have room for them.
    const std::int64_t sequences = extent(kKvLengths, 0);
    const auto start = [&](std::int64_t sequence) {
      return extent(0, 0) * sequence / std::max<std::int64_t>(1, sequences);
    };
    const std::int64_t room = extent(kPageTable, 1) * extent(1, 1);
    for (std::int64_t i = 0; i < std::ssize(values); ++i) {
      std::int64_t& value = values[i];
      if (operand == kPageTable) value = below(extent(1, 0));
      if (operand == kQueryStarts) value = start(i);
      if (operand != kKvLengths) continue;
      const std::int64_t least = start(i + 1) - start(i);
      value = least + below(std::max<std::int64_t>(1, room - least + 1));
    }
    return values;
  }
  return std::nullopt;
}

/// Each tensor has its own stream, so that it does not depend on the sizes of others.
Random random_of(std::uint64_t seed, std::size_t input, std::size_t rank) {
  const std::uint64_t stream = Random(seed).next() + (input << 20U) + rank;
  return Random(Random(stream).next());
}

std::vector<std::int64_t> extents_of(const Shape& shape, const Bindings& bindings) {
  return mapped(shape, [&](const Dim& dim) { return dim.evaluate(bindings); });
}

std::size_t count_of(std::span<const std::int64_t> extents) {
  std::size_t count = 1;
  for (const std::int64_t extent : extents) count *= static_cast<std::size_t>(extent);
  return count;
}

HostTensor random_tensor(const Graph& graph, std::size_t index, const Bindings& bindings,
                         Random random) {
  const GraphInput& input = graph.inputs()[index];
  std::vector<std::int64_t> shape = extents_of(input.type.shape, bindings);
  const std::size_t size = count_of(shape);
  double mean = 0;
  double deviation = 1;
  if (input.kind == InputKind::kParameter && shape.size() >= 2) {
    deviation = 1 / std::sqrt(static_cast<double>(shape[0]));
  } else if (input.kind == InputKind::kParameter) {
    mean = 1;
    deviation = 0.1;
  }
  if (!is_float(input.type.dtype)) {
    auto values = places(graph, graph.input_values()[index], bindings, size, random);
    if (!values) {
      values.emplace(size);
      for (std::int64_t& value : *values) value = static_cast<std::int64_t>(random.next() % 8);
    }
    return HostTensor::from_integers(input.type.dtype, std::move(shape), *values);
  }
  std::vector<double> values(size);
  for (double& value : values) value = mean + deviation * random.normal();
  return HostTensor::from_doubles(input.type.dtype, std::move(shape), values);
}

}  // namespace

std::optional<HostTensor> random_places(const Graph& graph, std::size_t input,
                                        const Bindings& bindings, std::uint64_t seed) {
  const TensorType& type = graph.inputs()[input].type;
  if (is_float(type.dtype)) return std::nullopt;
  Random random = random_of(seed, input, 0);
  std::vector<std::int64_t> shape = extents_of(type.shape, bindings);
  const auto values = places(graph, graph.input_values()[input], bindings, count_of(shape), random);
  if (!values) return std::nullopt;
  return HostTensor::from_integers(type.dtype, std::move(shape), *values);
}

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
      inputs[rank].push_back(random_tensor(graph, i, bound, random_of(seed, i, rank)));
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
