#include "runtime/cpu/translate/mma_plan.h"

#include <algorithm>

#include "runtime/cpu/run/mma.h"

namespace braid::cpu {

std::uint32_t MmaPlanBuilder::add(Fragments& fragments, const Places& places) {
  const auto found = std::ranges::find(fragments, places);
  const auto number = static_cast<std::uint32_t>(found - fragments.begin());
  if (found == fragments.end()) fragments.push_back(places);
  return number;
}

void MmaPlanBuilder::add_product(const std::vector<std::uint32_t>& as,
                                 const std::vector<std::uint32_t>& bs, const Places& c,
                                 const Places& d) {
  const auto [open, is_new] = open_.try_emplace(as, tiles_.size());
  if (is_new) tiles_.push_back({as, {}});
  std::vector<Product>& products = tiles_[open->second].products;
  products.push_back({bs, c, d});
  if (products.size() == kMaxMmaWidth) open_.erase(open);
}

std::vector<std::uint32_t> MmaPlanBuilder::words() const {
  const auto size = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  std::vector<std::uint32_t> words{size(as_), size(bs_), size(tiles_)};
  for (const Places& a : as_) words.insert(words.end(), a.begin(), a.end());
  for (const Places& b : bs_) words.insert(words.end(), b.begin(), b.begin() + 2);
  for (const Tile& tile : tiles_) {
    words.push_back(size(tile.as));
    words.push_back(size(tile.products));
    for (std::size_t step = 0; step < tile.as.size(); ++step) {
      words.push_back(tile.as[step]);
      for (const Product& product : tile.products) words.push_back(product.bs[step]);
    }
    for (const Product& product : tile.products) {
      words.insert(words.end(), product.c.begin(), product.c.end());
      words.insert(words.end(), product.d.begin(), product.d.end());
    }
  }
  return words;
}

}  // namespace braid::cpu
