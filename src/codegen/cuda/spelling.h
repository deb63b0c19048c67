#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// The CUDA C++ spelling of types, literals and index maps.

/// The C type of a computed value: "float", "int", ...
std::string_view c_type(Kind kind);
/// The C type of an element in memory: "unsigned short" for bf16, "float", ...
std::string_view memory_type(DType dtype);
/// The C type of a computed value of that dtype.
inline std::string_view value_type(DType dtype) { return is_float(dtype) ? "float" : "long long"; }
/// Its name in PTX: "e4m3", "bf16", ...
std::string_view ptx_name(DType dtype);
/// A float literal that parses back to the same f32.
std::string float_text(double value);
/// An integer literal, with `LL` where int is too small.
std::string integer_text(std::int64_t value);

/// The fmt format of a function of up to three operands, unless it is a helper.
std::string_view function_format(Fn fn);

/// An index variable and its map to positions; the position is the XOR over all terms.
struct Term {
  std::string_view index;  ///< "0": none
  LinearMap map;
};
/// The expression for a position: shifted fields, combined by + where bits are disjoint and by XOR
/// otherwise; "0" for none. `base` (may be empty) is a variable that covers `base_bits`.
std::string position_text(std::string_view base, std::uint32_t base_bits,
                          const std::vector<Term>& terms);
inline std::string position_text(const std::vector<Term>& terms) {
  return position_text("", 0, terms);
}
LinearMap rows_of(const std::vector<Coord>& basis);
LinearMap cols_of(const std::vector<Coord>& basis);
/// All bits that a map can set.
std::uint32_t reached(const LinearMap& map);

}  // namespace braid::tile
