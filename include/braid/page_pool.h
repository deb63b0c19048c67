#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "braid/export.h"

namespace braid {

/// The pages of one sequence in the order of its tokens: its row of the page table. Only a PagePool
/// changes it.
struct SequencePages {
  std::vector<std::int32_t> pages;
  std::int64_t kept = 0;   ///< pages at the front that PagePool::keep has seen
  std::uint64_t last = 0;  ///< PagePool's name for the tokens up to the last of them
};

/// Which sequences have which pages of a paged cache (`paged_attention`, docs/graph.md). Sequences
/// that begin with the same tokens share the full pages of these, and pages keep what they hold
/// when their sequences end, for those that come later, until they are needed: the page that nobody
/// has used for the longest time goes first. Tokens are compared one by one, so that no page is
/// ever taken for another. A sequence writes only into pages that it alone has: a page is shared
/// once it is full. It knows numbers of pages and no memory.
class BRAID_API PagePool {
 public:
  /// `pages` pages of `page_size` tokens each; both are at least 1, else it throws
  /// kInvalidArgument.
  PagePool(std::int64_t pages, std::int64_t page_size);
  PagePool(PagePool&&) = default;
  PagePool& operator=(PagePool&&) = default;

  [[nodiscard]] std::int64_t pages_for(std::int64_t tokens) const;
  /// Pages that no sequence has, whether or not they hold tokens.
  [[nodiscard]] std::int64_t free_pages() const { return std::ssize(free_); }

  /// Gives a sequence that has no pages those that hold its first tokens already, and returns how
  /// many tokens these are. At least one token is left over: a run computes something.
  std::int64_t reuse(SequencePages& sequence, std::span<const std::int32_t> tokens);
  /// Gives a sequence the pages that it lacks for so many tokens; false, and none, where fewer are
  /// free.
  bool grow(SequencePages& sequence, std::int64_t tokens);
  /// Notes that a sequence's pages hold its first tokens, which are `tokens`, as soon as the run
  /// that computes these is over: other sequences may have the full pages from now on. `tokens`
  /// begins with those of earlier calls.
  void keep(SequencePages& sequence, std::span<const std::int32_t> tokens);
  /// Takes a sequence's pages back.
  void release(SequencePages& sequence);
  /// Forgets what all pages hold, where a failed run may have spoilt them. Sequences that had pages
  /// then must give them back.
  void forget();

 private:
  /// Full pages by the name of the tokens in front of them, 0 for none, and by their own tokens.
  using Known = std::map<std::pair<std::uint64_t, std::vector<std::int32_t>>, std::int32_t>;
  struct Page {
    std::int64_t users = 0;
    std::uint64_t released = 0;  ///< when, counted in pages; 0: it holds nothing
    std::uint64_t name = 0;      ///< of the tokens up to its last one; 0: not known
    Known::iterator known;       ///< where it has a name
  };

  /// Of the first page that keep() has not seen.
  [[nodiscard]] Known::key_type key(const SequencePages& sequence,
                                    std::span<const std::int32_t> tokens) const;

  std::int64_t page_size_;
  std::vector<Page> pages_;
  std::set<std::pair<std::uint64_t, std::int32_t>> free_;  ///< (Page::released, page)
  Known known_;
  std::uint64_t names_ = 0, releases_ = 0;
};

}  // namespace braid
