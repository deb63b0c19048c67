#include "ir/buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/fail.h"

namespace braid {
namespace {

bool holds_any(const Symbol& part) {
  return part.max / part.multiple_of * part.multiple_of >= part.min;
}

std::string values_of(const Symbol& symbol) {
  return fmt::format(
      "{} from {} to {}",
      symbol.multiple_of == 1 ? "integer" : fmt::format("multiple of {}", symbol.multiple_of),
      symbol.min, symbol.max);
}

}  // namespace

std::vector<Symbol> parts_of(const Symbol& symbol) {
  std::vector<Symbol> parts;
  Symbol rest{.min = symbol.min, .max = symbol.max, .multiple_of = symbol.multiple_of};
  for (const Bucket& bucket : symbol.buckets) {
    parts.push_back({.min = rest.min,
                     .max = bucket.max,
                     .multiple_of = std::max(symbol.multiple_of, bucket.multiple_of)});
    if (parts.back().multiple_of == symbol.multiple_of) rest.min = bucket.max + 1;
  }
  if (holds_any(rest)) parts.push_back(rest);
  return parts;
}

bool holds(const Symbol& symbol, std::int64_t value) {
  return value >= symbol.min && value <= symbol.max && value % symbol.multiple_of == 0;
}

std::string describe_values(const Symbol& symbol) {
  return (symbol.multiple_of == 1 ? "an " : "a ") + values_of(symbol);
}

std::string ranges_text(const SymbolTable& symbols) {
  std::vector<std::string> texts;
  for (const auto& [name, symbol] : symbols) {
    texts.push_back(symbol.min == symbol.max
                        ? fmt::format("{} = {}", name, symbol.min)
                        : fmt::format("{} from {} to {}", name, symbol.min, symbol.max));
    if (symbol.multiple_of != 1 && symbol.min != symbol.max) {
      texts.back() += fmt::format(" by {}", symbol.multiple_of);
    }
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void check_buckets(const std::string& place, const Symbol& symbol) {
  const std::vector<Bucket>& buckets = symbol.buckets;
  if (buckets.size() > kMostBuckets) {
    throw_invalid(place + "/buckets", "{} buckets; expected at most {}", buckets.size(),
                  kMostBuckets);
  }
  const auto place_of = [&](std::size_t i) { return fmt::format("{}/buckets/{}", place, i); };
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto& [max, multiple_of] = buckets[i];
    if (max < 1 || max > symbol.max) {
      throw_invalid(place_of(i), "a bucket up to {}; expected 1 to {}, the symbol's max", max,
                    symbol.max);
    }
    if (multiple_of != 1 && (multiple_of < 1 || multiple_of % symbol.multiple_of != 0)) {
      throw_invalid(
          place_of(i), "multiples of {}; expected {}", multiple_of,
          symbol.multiple_of == 1
              ? "at least 1"
              : fmt::format("a multiple of {}, the symbol's multiple_of", symbol.multiple_of));
    }
    if (i == 0) continue;
    const Bucket& before = buckets[i - 1];
    if (max < before.max || (max == before.max && multiple_of >= before.multiple_of)) {
      throw_invalid(place_of(i),
                    "a bucket up to {} after one up to {}; expected them ascending, of equal ones "
                    "the larger multiple_of first",
                    max, before.max);
    }
  }
  const std::vector<Symbol> parts = parts_of(symbol);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (holds_any(parts[i])) continue;
    throw_invalid(place_of(i), "no {}; expected a bucket that holds a value of the symbol",
                  values_of(parts[i]));
  }
}

const SymbolTable::value_type* bucketed_symbol(const SymbolTable& symbols) {
  const auto found = std::ranges::find_if(
      symbols, [](const auto& entry) { return !entry.second.buckets.empty(); });
  return found == symbols.end() ? nullptr : &*found;
}

}  // namespace braid
