#pragma once

#include <optional>
#include <span>

#include "ir/op_registry.h"

namespace braid {

// Type promotion as ATen does it, for the reader: nodes of a graph have operands of one dtype.

/// An operand, or a number in the place of one, whose dtype is bool, i64, or f32 for any float.
struct PromotedOperand {
  enum class Kind : std::uint8_t { kTensor, kScalarTensor, kNumber };
  DType dtype;
  Kind kind;
};

/// The dtype of what is computed from both: the wider one; f32 for f16 with bf16. Nothing for an
/// 8-bit float with anything else.
[[nodiscard]] std::optional<DType> promoted(DType a, DType b);
/// torch.result_type: within bool, integers and floats tensors go before tensors without dims, and
/// these before numbers. Nothing where two have no common dtype.
[[nodiscard]] std::optional<DType> result_type(std::span<const PromotedOperand> operands);

/// The dtype that the op wants operand `index` to have; nothing where it stays as it is. Numbers
/// among the attributes, such as clamp's bounds, count.
[[nodiscard]] std::optional<DType> wanted_dtype(const OpDef& op, const Attrs& attrs,
                                                std::span<const PromotedOperand> operands,
                                                std::size_t index);

/// Whether numbers may stand for its operands: what ATen takes as a Scalar.
[[nodiscard]] bool takes_numbers(const OpDef& op);
/// Whether a number that 16 bits do not hold counts as f32 all the same: the op is computed in f32
/// then, and its result rounded.
[[nodiscard]] bool keeps_numbers(const OpDef& op);

}  // namespace braid
