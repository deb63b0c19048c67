#pragma once

#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace braid {

/// The results of `make` for the items of a range, in order, as a vector: of `Result` if given.
template <class Result = void, std::ranges::range Range, class Make>
[[nodiscard]] auto mapped(Range&& range, Make make) {
  using Made = std::invoke_result_t<Make&, std::ranges::range_reference_t<Range>>;
  using Item = std::conditional_t<std::is_void_v<Result>, std::remove_cvref_t<Made>, Result>;
  std::vector<Item> items;
  if constexpr (std::ranges::sized_range<Range>) items.reserve(std::ranges::size(range));
  for (auto&& item : range) items.push_back(std::invoke(make, item));
  return items;
}

}  // namespace braid
