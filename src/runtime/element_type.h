#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "runtime/tensor_map.h"

namespace braid {

/// An element type of PTX and of safetensors: those of graphs (parse_dtype knows them) and others.
struct ElementType {
  enum class Kind : std::uint8_t { kFloat, kSigned, kUnsigned, kBool };
  std::string_view name, file_name;
  std::size_t bytes;
  Kind kind;
  std::optional<TensorMap::Type> in_map;  ///< what a tensor map calls it
};
inline constexpr ElementType kElementTypes[] = {
    {"f32", "F32", 4, ElementType::Kind::kFloat, TensorMap::Type::kF32},
    {"f16", "F16", 2, ElementType::Kind::kFloat, TensorMap::Type::kF16},
    {"bf16", "BF16", 2, ElementType::Kind::kFloat, TensorMap::Type::kBf16},
    {"f64", "F64", 8, ElementType::Kind::kFloat, TensorMap::Type::kF64},
    {"f8e4m3", "F8_E4M3", 1, ElementType::Kind::kFloat, TensorMap::Type::kU8},
    {"f8e5m2", "F8_E5M2", 1, ElementType::Kind::kFloat, TensorMap::Type::kU8},
    {"i8", "I8", 1, ElementType::Kind::kSigned, TensorMap::Type::kU8},
    {"i16", "I16", 2, ElementType::Kind::kSigned, TensorMap::Type::kU16},
    {"i32", "I32", 4, ElementType::Kind::kSigned, TensorMap::Type::kS32},
    {"i64", "I64", 8, ElementType::Kind::kSigned, TensorMap::Type::kS64},
    {"u8", "U8", 1, ElementType::Kind::kUnsigned, TensorMap::Type::kU8},
    {"u16", "U16", 2, ElementType::Kind::kUnsigned, TensorMap::Type::kU16},
    {"u32", "U32", 4, ElementType::Kind::kUnsigned, TensorMap::Type::kU32},
    {"u64", "U64", 8, ElementType::Kind::kUnsigned, TensorMap::Type::kU64},
    {"bool", "BOOL", 1, ElementType::Kind::kBool, {}}};

/// By a member that names it, or null.
inline const ElementType* find_type(std::string_view ElementType::*by, std::string_view name) {
  const auto* type = std::ranges::find(kElementTypes, name, by);
  return type == std::end(kElementTypes) ? nullptr : type;
}

}  // namespace braid
