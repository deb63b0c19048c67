#include "braid/page_pool.h"

#include <limits>

#include "ir/fail.h"

namespace braid {

PagePool::PagePool(std::int64_t pages, std::int64_t page_size) : page_size_(page_size) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (pages < 1 || pages > kMost) {
    throw_invalid("pages", "found {}; expected 1 to {}", pages, kMost);
  }
  if (page_size < 1) throw_invalid("page_size", "found {}; expected 1 or more", page_size);
  pages_.resize(static_cast<std::size_t>(pages));
  for (std::int32_t page = 0; page < pages; ++page) free_.emplace(0, page);
}

std::int64_t PagePool::pages_for(std::int64_t tokens) const {
  return (tokens + page_size_ - 1) / page_size_;
}

PagePool::Known::key_type PagePool::key(const SequencePages& sequence,
                                        std::span<const std::int32_t> tokens) const {
  const auto page = tokens.subspan(sequence.kept * page_size_, page_size_);
  return {sequence.last, {page.begin(), page.end()}};
}

std::int64_t PagePool::reuse(SequencePages& sequence, std::span<const std::int32_t> tokens) {
  while ((sequence.kept + 1) * page_size_ < std::ssize(tokens)) {
    const auto found = known_.find(key(sequence, tokens));
    if (found == known_.end()) break;
    Page& page = pages_[found->second];
    if (page.users++ == 0) free_.erase({page.released, found->second});
    sequence.pages.push_back(found->second);
    sequence.last = page.name;
    ++sequence.kept;
  }
  return sequence.kept * page_size_;
}

bool PagePool::grow(SequencePages& sequence, std::int64_t tokens) {
  const std::int64_t lacking = pages_for(tokens) - std::ssize(sequence.pages);
  if (lacking > free_pages()) return false;
  for (std::int64_t i = 0; i < lacking; ++i) {
    const std::int32_t number = free_.begin()->second;
    free_.erase(free_.begin());
    Page& page = pages_[number];
    if (page.name != 0) known_.erase(page.known);
    page = {.users = 1};
    sequence.pages.push_back(number);
  }
  return true;
}

void PagePool::keep(SequencePages& sequence, std::span<const std::int32_t> tokens) {
  while ((sequence.kept + 1) * page_size_ <= std::ssize(tokens)) {
    const std::int32_t number = sequence.pages[sequence.kept];
    const auto [known, added] = known_.emplace(key(sequence, tokens), number);
    // Where another page holds the same, this one stays its sequence's own.
    Page& page = pages_[known->second];
    if (added) {
      page.name = ++names_;
      page.known = known;
    }
    sequence.last = page.name;
    ++sequence.kept;
  }
}

void PagePool::release(SequencePages& sequence) {
  // The last page first: pages behind one that is gone cannot be found.
  for (auto number = sequence.pages.rbegin(); number != sequence.pages.rend(); ++number) {
    Page& page = pages_[*number];
    if (--page.users > 0) continue;
    page.released = page.name == 0 ? 0 : ++releases_;
    free_.emplace(page.released, *number);
  }
  sequence = {};
}

void PagePool::forget() {
  known_.clear();
  free_.clear();
  for (std::int32_t number = 0; number < std::ssize(pages_); ++number) {
    Page& page = pages_[number];
    page.name = page.released = 0;
    if (page.users == 0) free_.emplace(0, number);
  }
}

}  // namespace braid
