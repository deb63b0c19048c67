#include "ir/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "braid/reference.h"
#include "ir/fail.h"
#include "ir/mutation.h"
#include "ir/ops.h"
#include "ir/poison.h"
#include "ir/scalar_functions.h"
#include "ir/text.h"

namespace braid {
namespace {

/// For each value the last node that reads it; the number of nodes when it is a graph output.
std::vector<std::size_t> last_uses(const Graph& graph) {
  std::vector<std::size_t> last(graph.values().size(), 0);
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    for (ValueId input : graph.nodes()[id].inputs) last[input] = id;
  }
  for (ValueId output : graph.outputs()) last[output] = graph.nodes().size();
  return last;
}

void check_input(const GraphInput& input, const HostTensor& tensor, const Bindings& bindings,
                 std::size_t rank) {
  std::vector<std::int64_t> expected;
  for (const Dim& dim : input.type.shape) expected.push_back(dim.evaluate(bindings));
  const bool whole =
      tensor.data.size() == static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype);
  if (tensor.dtype == input.type.dtype && tensor.shape == expected && whole) return;
  auto text = [](DType dtype, const std::vector<std::int64_t>& shape) {
    return TensorType{dtype, Shape(shape.begin(), shape.end())}.str();
  };
  throw_invalid("input " + quote(input.name), "rank {} has {} of {} bytes; expected {}", rank,
                text(tensor.dtype, tensor.shape), tensor.data.size(),
                text(input.type.dtype, expected));
}

/// Evaluates a node. Matmuls are slow: they run rank by rank, each after a call of `tell`.
template <class Tell>
EvalTensors evaluate_node(const EvalContext& context, EvalTensors operands, const Tell& tell) {
  const OpDef& op = *context.node.op;
  tell(0);
  if (op.op_class != OpClass::kMatmul) return op.evaluate(context, operands);
  EvalTensors results;
  for (std::size_t rank = 0; rank < operands.size(); ++rank) {
    tell(rank);
    EvalTensors of_rank;
    of_rank.push_back(std::move(operands[rank]));
    const EvalContext of_one{context.graph, context.node, context.bindings, rank};
    results.push_back(std::move(op.evaluate(of_one, of_rank)[0]));
  }
  return results;
}

/// Whether the node does arithmetic. Other nodes move elements, and keep all bits of NaNs.
bool computes(const Node& node) {
  switch (node.op->op_class) {
    case OpClass::kPointwise:
    case OpClass::kMatmul:
    case OpClass::kAttention:
    case OpClass::kReduction:
    case OpClass::kNorm:
    case OpClass::kScan:
      return true;
    default:
      return node.attrs.find("reduce_op") != node.attrs.end();
  }
}

/// Replaces NaNs by the one that a GPU produces: positive, with a mantissa of ones.
void make_nans_canonical(EvalTensor& tensor) {
  for (double& x : tensor.data) {
    if (std::isnan(x)) x = std::bit_cast<double>(0x7FFFFFFFFFFFFFFFULL);
  }
}

}  // namespace

EvalTensors evaluate_nodes(const Graph& graph, EvalTensors inputs, const Bindings& bindings,
                           const PieceProgress& progress) {
  const std::size_t world = inputs.size();
  const std::vector<std::size_t> last = last_uses(graph);
  const std::vector<ValueId> storage = storages(graph);
  std::vector<std::vector<ValueId>> names(storage.size());  // of each storage, also after a write
  for (std::size_t value = 0; value < storage.size(); ++value) {
    const auto id = static_cast<ValueId>(value);
    if (names_storage(graph, id, storage[value])) names[storage[value]].push_back(id);
  }
  std::vector<std::vector<EvalTensor>> values(world);  // [rank][value]
  for (std::size_t rank = 0; rank < world; ++rank) {
    values[rank].resize(graph.values().size());
    for (std::size_t i = 0; i < inputs[rank].size(); ++i) {
      values[rank][graph.input_values()[i]] = std::move(inputs[rank][i]);
    }
  }
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    EvalTensors operands(world);
    for (std::size_t rank = 0; rank < world; ++rank) {
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const std::size_t value = node.inputs[k];
        const bool again = std::find(node.inputs.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                                     node.inputs.end(), node.inputs[k]) != node.inputs.end();
        // The last reader takes the data, so that a value does not outlive its use.
        if (last[value] == id && !again) {
          operands[rank].push_back(std::move(values[rank][value]));
        } else {
          operands[rank].push_back(values[rank][value]);
        }
      }
    }
    const auto tell = [&](std::size_t rank) {
      if (progress) progress(id * world + rank, graph.nodes().size() * world);
    };
    EvalTensors results = evaluate_node({graph, node, bindings}, std::move(operands), tell);
    for (std::size_t rank = 0; rank < world; ++rank) {
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        EvalTensor& result = results[rank][i];
        for (double& x : result.data) x = round_to(result.dtype, x);
        if (computes(node)) make_nans_canonical(result);
        for (std::int64_t& x : result.integers) x = wrap_to(result.dtype, x);
        values[rank][node.outputs[i]] = std::move(result);
      }
    }
    for (ValueId value : mutated_results(node)) {
      const auto elements = storage_elements(graph, value, bindings);
      for (const std::size_t name : names[storage[value]]) {
        if (last[name] <= id) continue;  // nobody looks
        for (std::vector<EvalTensor>& of_rank : values) {
          move_elements(of_rank[name], of_rank[value], [&](auto& to, const auto& from) {
            for (std::size_t e = 0; e < elements.size(); ++e) to[elements[e]] = from[e];
          });
        }
      }
    }
  }
  EvalTensors outputs(world);
  for (std::size_t rank = 0; rank < world; ++rank) {
    for (ValueId value : graph.outputs()) outputs[rank].push_back(values[rank][value]);
  }
  return outputs;
}

RankTensors evaluate(const Graph& graph, const RankTensors& inputs, const Bindings& bindings,
                     const PieceProgress& progress) {
  const Bindings bound = check_bindings(graph, bindings);
  const std::int64_t world = world_size(graph);
  if (static_cast<std::int64_t>(inputs.size()) != world) {
    throw_invalid("", "inputs for {} ranks; expected {}", inputs.size(), world);
  }
  EvalTensors operands(inputs.size());
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    if (inputs[rank].size() != graph.inputs().size()) {
      throw_invalid("", "rank {} has {} inputs; expected {}", rank, inputs[rank].size(),
                    graph.inputs().size());
    }
    for (std::size_t i = 0; i < inputs[rank].size(); ++i) {
      const HostTensor& tensor = inputs[rank][i];
      check_input(graph.inputs()[i], tensor, bound, rank);
      operands[rank].push_back(from_host(tensor));
    }
  }
  const EvalTensors results = evaluate_nodes(graph, std::move(operands), bound, progress);
  RankTensors outputs(results.size());
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    for (const EvalTensor& result : results[rank]) outputs[rank].push_back(to_host(result));
  }
  return outputs;
}

double tolerance(const Graph& graph, ValueId output, const std::vector<std::int64_t>& shape,
                 bool cut) {
  if (!is_float(graph.type(output).dtype)) return 0;
  const std::vector<ValueId> storage = storages(graph);
  std::vector<bool> needed(graph.values().size(), false);
  std::vector<bool> lies_there(graph.values().size(), false);  // for each storage: a needed value
  const auto need = [&](ValueId value) { needed[value] = lies_there[storage[value]] = true; };
  need(output);
  int depth = 0;
  bool softmax = false;
  bool attention = false;  // a softmax that depends on a matmul
  for (std::size_t id = graph.nodes().size(); id-- > 0;) {
    const Node& node = graph.nodes()[id];
    for (ValueId written : mutated_results(node)) {
      if (lies_there[storage[written]]) need(written);
    }
    if (std::ranges::none_of(node.outputs, [&](ValueId v) { return needed[v]; })) continue;
    const OpClass c = node.op->op_class;
    if (c == OpClass::kMatmul || c == OpClass::kAttention || c == OpClass::kNorm ||
        c == OpClass::kReduction || c == OpClass::kCollective || c == OpClass::kFusedMatmul) {
      ++depth;
    }
    attention = attention || c == OpClass::kAttention || (softmax && c == OpClass::kMatmul);
    softmax = softmax || node.op_name() == "softmax";
    for (ValueId input : node.inputs) need(input);
  }
  constexpr int kOneBlock = 8;
  constexpr int kSeveralLayers = 64;
  const bool one_block = depth <= kOneBlock && !attention;
  double rows = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= static_cast<double>(shape[d]);
  const auto sixteen_bits = [&](double block, double layers, double epsilon) {
    if (depth > kSeveralLayers) return epsilon * std::sqrt(depth / 2.0);
    return one_block ? (cut ? 2 : 1) * block : layers;
  };
  const double few_rows = 2 * 0x1p-11 / std::sqrt(std::max(1.0, rows));
  double allowed = 0;
  for (std::size_t v = 0; v < needed.size(); ++v) {
    if (!needed[v] || graph.values()[v].producer < 0) continue;
    switch (graph.values()[v].type.dtype) {
      case DType::kF32:
        allowed = std::max(allowed, 1e-5);
        break;
      case DType::kBF16:
        allowed = std::max(allowed, sixteen_bits(1e-3, 8e-3, 0x1p-8));
        break;
      case DType::kF16:
        allowed = std::max({allowed, few_rows, sixteen_bits(2e-4, 2e-3, 0x1p-11)});
        break;
      case DType::kF8E4M3:
        allowed = std::max(allowed, 2e-2);
        break;
      case DType::kF8E5M2:
        allowed = std::max(allowed, 4e-2);
        break;
      default:
        break;
    }
  }
  return allowed;
}

namespace {

/// The bits of element `i`.
std::uint64_t element_bits(const HostTensor& tensor, std::size_t i) {
  const std::size_t size = dtype_size(tensor.dtype);
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.data.data() + i * size, size);
  return bits;
}

double relative_error_of_integers(const HostTensor& out, const HostTensor& ref) {
  const std::vector<std::int64_t> a = out.to_integers();
  const std::vector<std::int64_t> b = ref.to_integers();
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    // A bool other than 0 and 1 is wrong too.
    if (out.dtype == DType::kBool && element_bits(out, i) > 1) return kInfinity;
    const std::uint64_t apart =
        a[i] < b[i] ? static_cast<std::uint64_t>(b[i]) - static_cast<std::uint64_t>(a[i])
                    : static_cast<std::uint64_t>(a[i]) - static_cast<std::uint64_t>(b[i]);
    difference += static_cast<double>(apart) * static_cast<double>(apart);
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  if (difference == 0) return 0;
  return norm == 0 ? kInfinity : std::sqrt(difference / norm);
}

}  // namespace

double relative_error(const HostTensor& out, const HostTensor& ref) {
  if (out.shape != ref.shape || out.dtype != ref.dtype) return kInfinity;
  if (!is_float(out.dtype)) return relative_error_of_integers(out, ref);
  const std::vector<double> a = out.to_doubles();
  const std::vector<double> b = ref.to_doubles();
  const std::uint64_t poison = poison_bits(out.dtype);
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) {
      const bool written = element_bits(out, i) != poison || element_bits(ref, i) == poison;
      if (!std::isnan(a[i]) || !std::isnan(b[i]) || !written) return kInfinity;
      continue;
    }
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      if (a[i] != b[i]) return kInfinity;
      continue;
    }
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  if (difference == 0) return 0;
  return norm == 0 ? kInfinity : std::sqrt(difference / norm);
}

}  // namespace braid
