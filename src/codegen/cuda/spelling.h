#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// How small things are spelled in CUDA C++.

/// The type of a computed value: "float", "int", ...
std::string_view c_type(Kind kind);
/// The type of an element in memory: "unsigned short" of a bf16, "float", ...
std::string_view memory_type(DType dtype);
/// The type of its computed value.
inline std::string_view value_type(DType dtype) { return is_float(dtype) ? "float" : "long long"; }
/// A float literal that reads back to the same f32.
std::string float_text(double value);
/// An integer literal, `LL` where int does not hold it.
std::string integer_text(std::int64_t value);

/// How a function of up to three operands is written, for fmt; not of those that are helpers.
std::string_view function_format(Fn fn);

/// An index variable and how it moves a position; the position is the XOR of all.
struct Term {
  std::string_view index;  ///< "0": nothing
  LinearMap map;
};
/// The sum of shifted fields, with XOR of those that reach the same bit; "0" when there are none.
/// `base` (may be empty) is a variable that reaches the bits of `base_bits`.
std::string position_text(std::string_view base, std::uint32_t base_bits,
                          const std::vector<Term>& terms);
inline std::string position_text(const std::vector<Term>& terms) {
  return position_text("", 0, terms);
}
LinearMap rows_of(const std::vector<Coord>& basis);
LinearMap cols_of(const std::vector<Coord>& basis);
/// All bits that a map reaches.
std::uint32_t reached(const LinearMap& map);

}  // namespace braid::tile
