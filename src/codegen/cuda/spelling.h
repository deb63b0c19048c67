#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// How small things are spelled in CUDA C++.

/// The type of a computed value: "float", "int", ...
std::string_view c_type(Kind kind);
/// The type of an element in memory: "bf16", "float", ...
std::string_view memory_type(DType dtype);
/// A float literal that reads back to the same f32.
std::string float_text(double value);
/// An integer literal, `LL` where int does not hold it.
std::string integer_text(std::int64_t value);

/// How a function of up to three operands is written, for fmt; not of kRound, which has a dtype.
std::string_view function_format(Fn fn);

/// The image of `index` under a linear map, as a sum of shifted fields; "0" when there are none.
std::string field_text(std::string_view index, const std::vector<int>& images);
std::vector<int> rows_of(const std::vector<Coord>& basis);
std::vector<int> cols_of(const std::vector<Coord>& basis);
/// Images that keep only the bits with a non-zero mark and number them from 0.
std::vector<int> compress(const std::vector<int>& marks);
/// The mask of the basis bits that pass the test.
int bits_where(const std::vector<Coord>& basis, bool (*test)(Coord));

}  // namespace braid::tile
