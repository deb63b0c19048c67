#include "runtime/cpu/check/touched_bytes.h"

#include <bit>
#include <utility>

namespace braid::cpu {

void RankMemory::add(int rank, std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  pieces_[address] = {address, address + bytes, rank};
}

void RankMemory::remove(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  pieces_.erase(address);
}

RankMemory::Piece RankMemory::find(std::uint64_t begin, std::uint64_t end, int rank) const {
  if (!range_.holds(begin)) return {begin, end, rank};
  const std::lock_guard lock(mutex_);
  auto piece = pieces_.lower_bound(end);
  if (piece == pieces_.begin()) return {};
  --piece;
  return piece->second.end > begin ? piece->second : Piece{};
}

TouchedBytes::Amount TouchedBytes::Page::count(const Bits& bits) {
  constexpr std::uint64_t kSector = 0xffff'ffff;
  Amount amount;
  for (const auto& word : bits) {
    const std::uint64_t here = word.load(std::memory_order_relaxed);
    if (here == 0) continue;
    amount.bytes +=
        here == ~std::uint64_t{0} ? 64 : static_cast<std::uint64_t>(std::popcount(here));
    amount.sectors += ((here & kSector) != 0 ? 1 : 0) + (here > kSector ? 1 : 0);
  }
  return amount;
}

void TouchedBytes::Page::reset(std::uint64_t number, RankMemory::Piece piece) {
  number_ = number;
  piece_ = piece;
  for (auto* bits : {&read_, &written_}) {
    for (auto& word : *bits) word.store(0, std::memory_order_relaxed);
  }
}

std::unique_ptr<TouchedBytes::Page> TouchedBytes::Pool::take() {
  const std::lock_guard lock(mutex_);
  if (pages_.empty()) return std::make_unique<Page>();
  std::unique_ptr<Page> page = std::move(pages_.back());
  pages_.pop_back();
  return page;
}

void TouchedBytes::Pool::give(std::unique_ptr<Page> page) {
  const std::lock_guard lock(mutex_);
  pages_.push_back(std::move(page));
}

TouchedBytes::~TouchedBytes() {
  for (auto& [number, page] : pages_) pool_.give(std::move(page));
}

TouchedBytes::Page& TouchedBytes::page(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) {
    const std::uint64_t begin = number * kPageBytes;
    page = pool_.take();
    page->reset(number, memory_.find(begin, begin + kPageBytes, rank_));
  }
  return *page;
}

void TouchedBytes::for_each(const std::function<void(const Page&)>& body) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, page] : pages_) body(*page);
}

}  // namespace braid::cpu
