#include "braid/page_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "braid/error.h"

namespace braid {
namespace {

using Tokens = std::vector<std::int32_t>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A sequence whose tokens the cache has.
SequencePages computed(PagePool* pool, const Tokens& tokens) {
  SequencePages sequence;
  pool->reuse(sequence, tokens);
  EXPECT_TRUE(pool->grow(sequence, std::ssize(tokens)));
  pool->keep(sequence, tokens);
  return sequence;
}

std::int64_t reusable(PagePool* pool, const Tokens& tokens) {
  SequencePages sequence;
  const std::int64_t result = pool->reuse(sequence, tokens);
  pool->release(sequence);
  return result;
}

TEST(PagePool, HasPagesOfOneTokenAtLeast) {
  for (const auto& [pages, size] : {std::pair{0, 4}, {-1, 4}, {4, 0}, {4, -16}}) {
    EXPECT_THROW(PagePool(pages, size), Error) << pages << " " << size;
  }
}

TEST(PagePool, SharesFullPagesOfEqualBegins) {
  PagePool pool(10, 2);
  const SequencePages first = computed(&pool, {1, 2, 3, 4, 5});
  EXPECT_EQ(pool.free_pages(), 7);
  SequencePages second;
  EXPECT_EQ(pool.reuse(second, Tokens{1, 2, 3, 4, 6}), 4);
  EXPECT_THAT(second.pages, ElementsAre(first.pages[0], first.pages[1]));
  EXPECT_EQ(pool.free_pages(), 7);
  ASSERT_TRUE(pool.grow(second, 5));
  EXPECT_NE(second.pages[2], first.pages[2]);  // both write into these
  EXPECT_EQ(reusable(&pool, {1, 2, 9, 9, 9}), 2);
  EXPECT_EQ(reusable(&pool, {3, 4, 1, 2, 9}), 0);  // the same pages at other places
}

TEST(PagePool, LeavesATokenToCompute) {
  PagePool pool(10, 2);
  computed(&pool, {1, 2, 3, 4});
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4}), 2);
  EXPECT_EQ(reusable(&pool, {1, 2}), 0);
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4, 5}), 4);
}

TEST(PagePool, SharesNothingThatIsNotComputed) {
  PagePool pool(10, 2);
  SequencePages sequence;
  ASSERT_TRUE(pool.grow(sequence, 6));
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4, 5}), 0);
  pool.keep(sequence, Tokens{1, 2, 3});
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4, 5}), 2);
  pool.keep(sequence, Tokens{1, 2, 3, 4});
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4, 5}), 4);
}

TEST(PagePool, KeepsWhatSequencesLeaveUntilPagesAreNeeded) {
  PagePool pool(6, 2);
  SequencePages old = computed(&pool, {1, 2, 3, 4}), young = computed(&pool, {5, 6, 7, 8});
  pool.release(old);
  EXPECT_THAT(old.pages, IsEmpty());
  pool.release(young);
  EXPECT_EQ(pool.free_pages(), 6);
  SequencePages sequence;
  ASSERT_TRUE(pool.grow(sequence, 4));  // two pages never held anything
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4, 0}), 4);
  // That was a use, so the other ones go first, and of these the last page.
  ASSERT_TRUE(pool.grow(sequence, 6));
  EXPECT_EQ(reusable(&pool, {5, 6, 7, 8, 0}), 2);
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4, 0}), 4);
}

TEST(PagePool, GivesAllPagesOrNone) {
  PagePool pool(3, 2);
  SequencePages sequence;
  EXPECT_FALSE(pool.grow(sequence, 7));
  EXPECT_EQ(pool.free_pages(), 3);
  EXPECT_TRUE(pool.grow(sequence, 6));
  EXPECT_TRUE(pool.grow(sequence, 1));
  EXPECT_EQ(std::ssize(sequence.pages), 3);
}

TEST(PagePool, PagesThatTwoHaveComputedAreKnownOnce) {
  PagePool pool(10, 2);
  SequencePages first, second;
  ASSERT_TRUE(pool.grow(first, 5));
  ASSERT_TRUE(pool.grow(second, 7));
  pool.keep(first, Tokens{1, 2, 3, 4, 5});
  pool.keep(second, Tokens{1, 2, 3, 4, 5, 6, 7});
  SequencePages third;
  EXPECT_EQ(pool.reuse(third, Tokens{1, 2, 3, 4, 5, 6, 7}), 6);
  EXPECT_THAT(third.pages, ElementsAre(first.pages[0], first.pages[1], second.pages[2]));
  for (SequencePages* sequence : {&second, &third, &first}) pool.release(*sequence);
  EXPECT_EQ(pool.free_pages(), 10);
}

TEST(PagePool, ForgetsAfterAFailure) {
  PagePool pool(4, 2);
  SequencePages sequence = computed(&pool, {1, 2, 3, 4});
  pool.forget();
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4, 5}), 0);
  EXPECT_EQ(pool.free_pages(), 2);
  pool.release(sequence);
  EXPECT_EQ(pool.free_pages(), 4);
  sequence = computed(&pool, {1, 2, 3, 4});
  EXPECT_EQ(reusable(&pool, {1, 2, 3, 4, 5}), 4);
}

TEST(PagePool, ManySequencesNeverReadWhatTheyDidNotWrite) {
  constexpr std::int64_t kPages = 12, kSize = 3;
  struct Sequence {
    Tokens tokens;
    SequencePages pages;
    std::int64_t cached = 0;
  };
  PagePool pool(kPages, kSize);
  std::mt19937 random(1);
  std::vector<Tokens> cache(kPages * kSize);  // of each slot all tokens up to its own
  std::vector<Sequence> running;
  std::int64_t reused = 0;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 3 == 0 || running.empty()) {
      Sequence& made = running.emplace_back();
      for (std::size_t n = 1 + random() % 12; n > 0; --n) made.tokens.push_back(random() % 2);
      reused += made.cached = pool.reuse(made.pages, made.tokens);
    }
    const std::size_t chosen = random() % running.size();
    Sequence& one = running[chosen];
    const std::int64_t end =
        std::min<std::int64_t>(one.cached + 1 + random() % 5, one.tokens.size());
    if (random() % 8 == 0 || !pool.grow(one.pages, end)) {
      pool.release(one.pages);
      running.erase(running.begin() + chosen);
      continue;
    }
    const auto slot = [&](std::int64_t at) {
      return one.pages.pages[at / kSize] * kSize + at % kSize;
    };
    for (; one.cached < end; ++one.cached) {
      for (const Sequence& other : running) {
        if (&other == &one) continue;
        EXPECT_THAT(other.pages.pages,
                    ::testing::Not(::testing::Contains(one.pages.pages[one.cached / kSize])));
      }
      cache[slot(one.cached)] = {one.tokens.begin(), one.tokens.begin() + one.cached + 1};
    }
    for (std::int64_t at = 0; at < one.cached; ++at) {
      ASSERT_TRUE(std::ranges::equal(cache[slot(at)], std::span(one.tokens).first(at + 1)));
    }
    pool.keep(one.pages, std::span(one.tokens).first(one.cached));
    if (one.cached == std::ssize(one.tokens)) one.tokens.push_back(random() % 2);
    if (std::ssize(one.tokens) == kPages * kSize) {
      pool.release(one.pages);
      running.erase(running.begin() + chosen);
    }
  }
  EXPECT_GT(reused, 1000);
  for (Sequence& sequence : running) pool.release(sequence.pages);
  EXPECT_EQ(pool.free_pages(), kPages);
}

}  // namespace
}  // namespace braid
