#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/op_registry.h"

namespace braid {

// ATen's type promotion, for the reader. In a graph the operands of a node have one dtype.

/// An operand, or a number in its place, whose dtype is bool, i64, or f32 for any float.
struct PromotedOperand {
  enum class Kind : std::uint8_t { kTensor, kScalarTensor, kNumber };
  DType dtype;
  Kind kind;
};

/// The common dtype of two: the wider one; f32 for f16 with bf16. Nothing for an 8-bit float with
/// another dtype.
[[nodiscard]] std::optional<DType> promoted(DType a, DType b);
/// torch.result_type: within a category (bool, integers, floats) tensors with dims take precedence
/// over those without, and these over numbers. Nothing where two have no common dtype.
[[nodiscard]] std::optional<DType> result_type(std::span<const PromotedOperand> operands);

/// For each operand the dtype that the op expects; nothing where it is not promoted. Numbers among
/// the attributes, such as clamp's bounds, count.
[[nodiscard]] std::vector<std::optional<DType>> wanted_dtypes(
    const OpDef& op, const Attrs& attrs, std::span<const PromotedOperand> operands);

/// Whether numbers may be operands, as ATen's Scalars.
[[nodiscard]] bool takes_numbers(const OpDef& op);
/// The first operand that may be one.
[[nodiscard]] std::size_t first_number(const OpDef& op);
/// Whether a number that 16-bit floats cannot hold counts as f32: the op is then computed in f32,
/// and its result rounded.
[[nodiscard]] bool keeps_numbers(const OpDef& op);

}  // namespace braid
