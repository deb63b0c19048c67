#include "ir/op_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "ir/attributes.h"
#include "ir/collective.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "ir/ops.h"
#include "ir/text.h"

namespace braid {
namespace {

/// All ops, sorted by name; built once.
struct Registry {
  std::vector<OpDef> ops;
  std::vector<const OpDef*> sorted;
  std::unordered_map<std::string_view, const OpDef*> by_name;

  Registry() {
    add_attention_ops(ops);
    add_chunk_ops(ops);
    add_collective_ops(ops);
    add_constant_ops(ops);
    add_count_ops(ops);
    add_fsdp_ops(ops);
    add_fused_ops(ops);
    add_kernel_ops(ops);
    add_gather_ops(ops);
    add_matmul_ops(ops);
    add_moe_ops(ops);
    add_opaque_ops(ops);
    add_paged_attention_ops(ops);
    add_pointwise_ops(ops);
    add_row_ops(ops);
    add_scan_ops(ops);
    add_update_ops(ops);
    add_view_ops(ops);
    for (const OpDef& op : ops) {
      sorted.push_back(&op);
      by_name.emplace(op.name, &op);
    }
    std::ranges::sort(sorted, [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  }
};

const Registry& registry() {
  static const Registry kInstance;
  return kInstance;
}

}  // namespace

std::string_view overload_of(std::string_view op, bool has_dtype) {
  return op == "view" && has_dtype ? "view_dtype" : op;
}

const OpDef* find_op(std::string_view name) {
  const auto& by_name = registry().by_name;
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

std::vector<Dim> dims_of_attributes(const Node& node) {
  std::vector<Dim> dims;
  for (const auto& [key, value] : node.attrs) {
    if (const auto* shape = std::get_if<Shape>(&value)) {
      dims.insert(dims.end(), shape->begin(), shape->end());
    } else if (find_attribute(*node.op, key).type == AttrType::kExtent) {
      dims.push_back(bound_of(value));
    }
  }
  return dims;
}

std::span<const OpDef* const> all_ops() { return registry().sorted; }

namespace {

std::vector<TensorType> types_of(const Graph& graph, const std::vector<ValueId>& values) {
  return mapped(values, [&](ValueId value) { return graph.type(value); });
}

}  // namespace

double node_flops(const Graph& graph, const Node& node, const Bindings& bindings) {
  if (const auto* body = node.attr<std::shared_ptr<const Graph>>("body")) {
    double sum = 0;
    for (const Node& inner : (*body)->nodes()) sum += node_flops(**body, inner, bindings);
    return sum;
  }
  if (const auto* declared = node.attr<double>("flops")) return *declared;
  return node.op->flops(types_of(graph, node.inputs), types_of(graph, node.outputs), bindings);
}

bool is_asynchronous(const Node& node) {
  if (node.op->op_class == OpClass::kPeerCopy) return true;
  if (node.op->op_class != OpClass::kCollective || node.op->synchronous) return false;
  const Algorithm algorithm = algorithm_of(node);
  return algorithm == Algorithm::kNone || algorithm == Algorithm::kByCommunicator;
}

bool takes_indices(const Node& node) { return node.op->takes_indices; }

bool checks_values(const Node& node) {
  return takes_indices(node) || node.op->matmul == Matmul::kGrouped || !node.op->checked.empty();
}

void fail(std::string place, const std::string& message) {
  throw_invalid(std::move(place), message);
}

namespace {

template <class Table>
std::string list_keys(const Table& table) {
  constexpr std::size_t kShown = 10;
  std::vector<std::string> names;
  for (const auto& [name, entry] : table) {
    if (names.size() == kShown) {
      names.emplace_back("...");
      break;
    }
    names.push_back(quote(name));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string list_names(const SymbolTable& symbols) { return list_keys(symbols); }
std::string list_names(const GroupTable& groups) { return list_keys(groups); }

std::string describe(std::span<const TensorType> types) {
  return fmt::format("{}", fmt::join(mapped(types, &TensorType::str), ", "));
}

void expect_same_dtype(std::string_view op, std::span<const TensorType> inputs, std::size_t first) {
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].dtype == inputs[0].dtype) continue;
    fail(fmt::format("/inputs/{}", first + i),
         "operands of {} are {}; expected one dtype: insert `to`", op, describe(inputs));
  }
}

void expect_float(std::string_view op, std::span<const TensorType> inputs) {
  if (is_float(inputs[0].dtype) && !is_float8(inputs[0].dtype)) return;
  fail("/inputs/0", "the operand of {} is {}; expected f32, f16 or bf16: insert `to`", op,
       inputs[0].str());
}

void expect_scale(std::string_view op, const InferContext& context, std::size_t operand) {
  const TensorType& scale = context.inputs[operand];
  const bool is_one = std::ranges::all_of(scale.shape, [](const Dim& d) { return d == Dim(1); });
  if (scale.dtype == DType::kF32 && is_one) return;
  fail(fmt::format("/inputs/{}", operand), "the scale of {} is {}; expected f32[]", op,
       scale.str());
}

std::size_t normalize_axis(std::int64_t axis, std::size_t rank, const std::string& place) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    if (rank == 0) fail(place, "dim {} of a scalar, which has none", axis);
    fail(place, "dim {} is out of range; expected an integer from {} to {}", axis, -signed_rank,
         signed_rank - 1);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

double numel_at(const TensorType& type, const Bindings& bindings) {
  double product = 1;
  for (const Dim& dim : type.shape) product *= static_cast<double>(dim.evaluate(bindings));
  return product;
}

EvalTensor from_host(const HostTensor& tensor) {
  EvalTensor result{.dtype = tensor.dtype, .shape = tensor.shape};
  if (is_float(tensor.dtype)) {
    result.data = tensor.to_doubles();
  } else {
    result.integers = tensor.to_integers();
  }
  return result;
}

HostTensor to_host(const EvalTensor& tensor) {
  return is_float(tensor.dtype)
             ? HostTensor::from_doubles(tensor.dtype, tensor.shape, tensor.data)
             : HostTensor::from_integers(tensor.dtype, tensor.shape, tensor.integers);
}

EvalTensor make_result(const EvalContext& context, std::size_t index) {
  const TensorType& type = context.graph.type(context.node.outputs[index]);
  EvalTensor result{type.dtype, {}, {}};
  std::size_t size = 1;
  for (const Dim& dim : type.shape) {
    result.shape.push_back(dim.evaluate(context.bindings));
    size *= static_cast<std::size_t>(result.shape.back());
  }
  is_float(type.dtype) ? result.data.resize(size) : result.integers.resize(size);
  return result;
}

}  // namespace braid
