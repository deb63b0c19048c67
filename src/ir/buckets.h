#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/dim.h"

namespace braid {

inline constexpr std::size_t kMostBuckets = 64;

/// Splits a symbol's range: one part per bucket, then the rest, if any; the whole range without
/// buckets. A value belongs to the first part that contains it: a bucket of multiples leaves the
/// values between these to later parts.
[[nodiscard]] std::vector<Symbol> parts_of(const Symbol& symbol);
[[nodiscard]] bool holds(const Symbol& symbol, std::int64_t value);

/// Describes the symbol's values in error messages: "an integer from 1 to 256", "a multiple of 8
/// from 16 to 64".
[[nodiscard]] std::string describe_values(const Symbol& symbol);
/// A text such as "S = 1, T from 17 to 128 by 8".
[[nodiscard]] std::string ranges_text(const SymbolTable& symbols);

/// Throws kInvalidArgument at "`place`/buckets/..." where buckets do not ascend, are empty, or lie
/// above the symbol's range. Other fields of the symbol must be valid.
void check_buckets(const std::string& place, const Symbol& symbol);

[[nodiscard]] const SymbolTable::value_type* bucketed_symbol(const SymbolTable& symbols);

}  // namespace braid
