#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/dim.h"

namespace braid {

inline constexpr std::size_t kMostBuckets = 64;

/// The parts of a symbol's range: what each of its buckets holds, and last what they leave, if
/// anything. Without buckets the whole range. A value is of the first part that holds it: a bucket
/// of multiples leaves the values between these to later ones.
[[nodiscard]] std::vector<Symbol> parts_of(const Symbol& symbol);
[[nodiscard]] bool holds(const Symbol& symbol, std::int64_t value);

/// What a value of the symbol is, for error messages: "an integer from 1 to 256", "a multiple of 8
/// from 16 to 64".
[[nodiscard]] std::string describe_values(const Symbol& symbol);
/// "S = 1, T from 17 to 128 by 8".
[[nodiscard]] std::string ranges_text(const SymbolTable& symbols);

/// Throws kInvalidArgument at "`place`/buckets/..." where buckets do not ascend, hold no value or
/// lie above the symbol's range. All else of the symbol must be good.
void check_buckets(const std::string& place, const Symbol& symbol);

/// The symbol with buckets, or null.
[[nodiscard]] const SymbolTable::value_type* bucketed_symbol(const SymbolTable& symbols);

}  // namespace braid
