#include "ir/promotion.h"

#include <algorithm>
#include <array>
#include <vector>

namespace braid {
namespace {

enum class Category : std::uint8_t { kTruth, kInteger, kFloat };

Category category_of(DType dtype) {
  if (dtype == DType::kBool) return Category::kTruth;
  return is_float(dtype) ? Category::kFloat : Category::kInteger;
}

/// The dtype of all operands that are promoted together; nothing where they stay as they are.
std::optional<DType> common_dtype(const OpDef& op, const Attrs& attrs,
                                  std::vector<PromotedOperand> all) {
  if (op.promotes == Promotes::kToFirst) return all[0].dtype;
  if (op.promotes == Promotes::kTruths) {
    const bool differ = std::ranges::any_of(all, [&](const PromotedOperand& operand) {
      return operand.dtype != all[0].dtype || operand.kind == PromotedOperand::Kind::kNumber;
    });
    return differ ? std::optional(DType::kBool) : std::nullopt;
  }
  for (const AttrDef& def : op.attrs) {
    const auto value = attrs.find(def.name);
    if (def.type != AttrType::kNumber || value == attrs.end()) continue;
    const bool is_integer = std::holds_alternative<std::int64_t>(value->second);
    all.push_back({is_integer ? DType::kI64 : DType::kF32, PromotedOperand::Kind::kNumber});
  }
  const std::optional<DType> common = result_type(all);
  const bool quotient = op.promotes == Promotes::kFloats && !attrs.contains("rounding_mode");
  return common && quotient && !is_float(*common) ? DType::kF32 : common;
}

}  // namespace

std::optional<DType> promoted(DType a, DType b) {
  if (a == b) return a;
  if (is_float8(a) || is_float8(b)) return std::nullopt;
  if (category_of(a) != category_of(b)) return category_of(a) < category_of(b) ? b : a;
  if (is_float(a)) return DType::kF32;                      // f16 with bf16, or either with f32
  if (dtype_size(a) == dtype_size(b)) return std::nullopt;  // PyTorch's i16 of i8 and u8
  return dtype_size(a) < dtype_size(b) ? b : a;
}

std::optional<DType> result_type(std::span<const PromotedOperand> operands) {
  std::optional<DType> result;
  using Kind = PromotedOperand::Kind;
  for (const Kind kind : {Kind::kTensor, Kind::kScalarTensor, Kind::kNumber}) {
    std::optional<DType> own;
    for (const PromotedOperand& operand : operands) {
      if (operand.kind != kind) continue;
      own = own ? promoted(*own, operand.dtype) : operand.dtype;
      if (!own) return std::nullopt;
    }
    // A later operand counts only if its category is higher.
    if (own && (!result || category_of(*result) < category_of(*own))) result = own;
  }
  return result;
}

std::vector<std::optional<DType>> wanted_dtypes(const OpDef& op, const Attrs& attrs,
                                                std::span<const PromotedOperand> operands) {
  std::vector<std::optional<DType>> wanted(operands.size());
  if (op.promotes == Promotes::kNothing || operands.empty()) return wanted;
  if (op.promotes == Promotes::kMasked) {
    if (operands.size() > 2) wanted[2] = operands[0].dtype;
    return wanted;
  }
  const std::size_t first = op.promotes == Promotes::kBranches ? 1 : 0;
  std::fill(wanted.begin() + first, wanted.end(),
            common_dtype(op, attrs, {operands.begin() + first, operands.end()}));
  return wanted;
}

bool takes_numbers(const OpDef& op) {
  return op.op_class == OpClass::kPointwise && op.promotes != Promotes::kNothing &&
         op.max_inputs > 1;
}

std::size_t first_number(const OpDef& op) {
  if (op.promotes == Promotes::kMasked) return 2;
  return op.promotes == Promotes::kBranches ? 1 : 0;
}

bool keeps_numbers(const OpDef& op) {
  constexpr std::array<std::string_view, 4> kArithmetic = {"add", "sub", "mul", "div"};
  return std::ranges::find(kArithmetic, op.name) != kArithmetic.end();
}

}  // namespace braid
