#pragma once

// Helpers shared by the files of op families (ops_*.cpp).

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/tensor.h"
#include "ir/op_registry.h"
#include "ir/scalar.h"

namespace braid {

// Each function adds the ops of its family.
void add_attention_ops(std::vector<OpDef>& ops);
void add_chunk_ops(std::vector<OpDef>& ops);
void add_collective_ops(std::vector<OpDef>& ops);
void add_constant_ops(std::vector<OpDef>& ops);
void add_count_ops(std::vector<OpDef>& ops);
void add_fsdp_ops(std::vector<OpDef>& ops);
void add_fused_ops(std::vector<OpDef>& ops);
void add_kernel_ops(std::vector<OpDef>& ops);
void add_gather_ops(std::vector<OpDef>& ops);
void add_matmul_ops(std::vector<OpDef>& ops);
void add_moe_ops(std::vector<OpDef>& ops);
void add_opaque_ops(std::vector<OpDef>& ops);
void add_paged_attention_ops(std::vector<OpDef>& ops);
void add_pointwise_ops(std::vector<OpDef>& ops);
void add_row_ops(std::vector<OpDef>& ops);
void add_update_ops(std::vector<OpDef>& ops);
void add_scan_ops(std::vector<OpDef>& ops);
void add_view_ops(std::vector<OpDef>& ops);

/// Throws kInvalidArgument. `place` is relative to the node: "", "/inputs/1", "/attrs/dim".
[[noreturn]] void fail(std::string place, const std::string& message);
template <class First, class... Rest>
[[noreturn]] void fail(std::string place, fmt::format_string<First, Rest...> message, First&& first,
                       Rest&&... rest) {
  fail(std::move(place),
       fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}

/// Lists names for an error message: `"tp", "dp"`, or "none" (at most ten).
[[nodiscard]] std::string list_names(const SymbolTable& symbols);
[[nodiscard]] std::string list_names(const GroupTable& groups);

/// Lists operand types: "bf16[T, 2048], bf16[2048]".
[[nodiscard]] std::string describe(std::span<const TensorType> types);
/// Throws at the first operand whose dtype differs from that of inputs[0], which is operand `first`
/// of the node.
void expect_same_dtype(std::string_view op, std::span<const TensorType> inputs,
                       std::size_t first = 0);
/// Throws when operand 0 is not f32, f16 or bf16.
void expect_float(std::string_view op, std::span<const TensorType> inputs);
/// Throws when operand `operand` is not one number of f32.
void expect_scale(std::string_view op, const InferContext& context, std::size_t operand);
/// Throws when operand `operand` is not i32 or i64.
void expect_indices(std::string_view op, const InferContext& context, std::size_t operand);
/// An index of a rank into a dim of `extent` elements. As in PyTorch's ops of these names, negative
/// ones are out of range. Throws kInvalidArgument.
[[nodiscard]] std::size_t checked_index(const EvalContext& context, std::ptrdiff_t rank,
                                        std::int64_t index, std::int64_t extent);
/// Throws at "/attrs/key" when the dtype cannot represent that number: an integer outside of its
/// range, or a float that would become infinite. Any number is a truth value.
void expect_held(DType dtype, const Attrs& attrs, const std::string& key);
/// `axis` counted from the front, in [0, rank). Throws at `place` when it is out of range.
[[nodiscard]] std::size_t normalize_axis(std::int64_t axis, std::size_t rank,
                                         const std::string& place);

template <class T>
const T& get_attr(const Attrs& attrs, std::string_view key) {
  return std::get<T>(attrs.find(key)->second);
}

[[nodiscard]] double numel_at(const TensorType& type, const Bindings& bindings);

/// A flops function of `count` operations per element of the first result.
inline auto flops_per_element(double count) {
  return [count](std::span<const TensorType>, std::span<const TensorType> outputs,
                 const Bindings& bindings) { return count * numel_at(outputs[0], bindings); };
}

/// Result `index` of the node, filled with zeros: its dtype, and its shape at the bindings.
[[nodiscard]] EvalTensor make_result(const EvalContext& context, std::size_t index);

/// Converts between host tensors and the evaluator's; to_host rounds or wraps each element.
[[nodiscard]] EvalTensor from_host(const HostTensor& tensor);
[[nodiscard]] HostTensor to_host(const EvalTensor& tensor);

/// Stores an element, not yet rounded.
inline void set_element(EvalTensor& result, std::size_t i, double value) {
  if (is_float(result.dtype)) {
    result.data[i] = value;
  } else {
    result.integers[i] = to_integer(result.dtype, value);
  }
}
/// Integers convert to narrow floats via f32.
inline void set_element(EvalTensor& result, std::size_t i, Int value) {
  if (is_float(result.dtype)) {
    result.data[i] = static_cast<float>(value.value);
  } else {
    result.integers[i] = value.value;
  }
}

/// Runs `one_rank(operands) -> results` for each rank by itself.
template <class OneRank>
EvalTensors evaluate_each_rank(const EvalTensors& inputs, OneRank one_rank) {
  EvalTensors outputs;
  outputs.reserve(inputs.size());
  for (const std::vector<EvalTensor>& operands : inputs) outputs.push_back(one_rank(operands));
  return outputs;
}

}  // namespace braid
