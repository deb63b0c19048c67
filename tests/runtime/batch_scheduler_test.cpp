#include "braid/batch_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "run/seed.h"
#include "runtime/error_of.h"

namespace braid {
namespace {

using Tokens = std::vector<std::int32_t>;
using ::testing::ElementsAre;

ModelLimits limits(std::int64_t pages) {
  return {.max_tokens = 8,
          .max_sequences = 3,
          .context = 64,
          .page_size = 4,
          .pages = pages,
          .table_width = 16,
          .vocabulary = 100};
}

std::vector<std::uint64_t> sequences_of(const ScheduledStep& step) {
  std::vector<std::uint64_t> result;
  for (const auto& row : step.rows) result.push_back(row.sequence);
  return result;
}

TEST(BatchScheduler, DecodesFirstAndFillsUpWithPrompts) {
  BatchScheduler scheduler(limits(100));
  scheduler.add(1, {1});
  EXPECT_THAT(sequences_of(scheduler.next(8)), ElementsAre(1));
  scheduler.done();
  scheduler.append(1, 2);
  scheduler.add(2, Tokens(10, 3));
  scheduler.add(3, {4, 5});
  ScheduledStep step = scheduler.next(8);
  EXPECT_THAT(step.batch.tokens, ElementsAre(2, 3, 3, 3, 3, 3, 3, 3));
  EXPECT_FALSE(step.rows[1].whole);
  scheduler.done();
  scheduler.append(1, 6);
  step = scheduler.next(5);
  EXPECT_THAT(step.batch.tokens, ElementsAre(6, 3, 3, 3, 4));
  EXPECT_TRUE(step.rows[1].whole);
  scheduler.done();
  scheduler.remove(1);
  scheduler.append(2, 7);
  EXPECT_THAT(scheduler.next(100).batch.tokens, ElementsAre(7, 5));
}

TEST(BatchScheduler, RefusesWhatCouldNeverRun) {
  BatchScheduler scheduler(limits(3));
  EXPECT_EQ(error_of([&] { scheduler.add(1, Tokens(13, 3)); }).second,
            "tokens: found 13 tokens and 0 more; expected at most 12 together");
  EXPECT_EQ(error_of([&] {
              scheduler.add(1, {3, 100});
            }).second,
            "tokens: found the token 100; expected one from 0 to 99");
  scheduler.add(1, Tokens(8, 3));
  EXPECT_EQ(error_of([&] { scheduler.add(1, {3}); }).second, "sequence: 1 is there already");
  EXPECT_THAT(sequences_of(scheduler.next(8)), ElementsAre(1));
  scheduler.done();
  EXPECT_EQ(error_of([&] { scheduler.append(1, -1); }).second,
            "token: found the token -1; expected one from 0 to 99");
  for (int i = 0; i < 4; ++i) scheduler.append(1, i);
  EXPECT_EQ(error_of([&] { scheduler.append(1, 4); }).second,
            "token: found 1 tokens and 12 more; expected at most 12 together");
}

TEST(ModelBatch, RefusesTokensAndPagesThatAreNotThere) {
  const Tokens sequence(10, 3);
  ModelBatch batch;
  EXPECT_EQ(error_of([&] { batch.append(limits(9), sequence, 1, 10, Tokens(3)); }).second,
            "sequence: found 10 tokens behind 1; expected one or more of its 10");
  EXPECT_EQ(error_of([&] { batch.append(limits(9), sequence, 4, 0, Tokens(3)); }).second,
            "sequence: found 0 tokens behind 4; expected one or more of its 10");
  EXPECT_EQ(error_of([&] { batch.append(limits(9), sequence, 4, 6, Tokens(2)); }).second,
            "pages: found 2; expected 3 or more");
  EXPECT_TRUE(batch.tokens.empty());
}

/// A cache that notes which token of which sequence each slot holds, and a caller that comes and
/// goes at random.
class Play {
 public:
  explicit Play(std::int64_t pages) : limits_(limits(pages)), scheduler_(limits_) {}

  void run(std::mt19937_64* random) {
    const auto draw = [&](std::int64_t count) {
      return static_cast<std::int64_t>((*random)() % static_cast<std::uint64_t>(count));
    };
    for (int round = 0; round < 400; ++round) {
      if (texts_.size() < 6 && draw(3) == 0) {
        Tokens prompt(static_cast<std::size_t>(1 + draw(25)), 1);  // many begin alike
        prompt.back() = static_cast<std::int32_t>(draw(3));
        texts_[++last_] = prompt;
        scheduler_.add(last_, prompt);
      }
      if (!texts_.empty() && draw(20) == 0) remove(texts_.begin()->first);
      step(draw(30) == 0);
    }
    while (!texts_.empty()) step(false);
    EXPECT_EQ(scheduler_.free_pages(), limits_.pages);
    EXPECT_EQ(scheduler_.running() + scheduler_.waiting(), 0);
  }
  [[nodiscard]] const BatchScheduler& scheduler() const { return scheduler_; }

 private:
  void remove(std::uint64_t sequence) {
    texts_.erase(sequence);
    scheduler_.remove(sequence);
  }

  void step(bool fails) {
    const ScheduledStep step = scheduler_.next(limits_.max_tokens);
    const ModelBatch& batch = step.batch;
    EXPECT_EQ(step.rows.empty(), texts_.empty());
    EXPECT_LE(std::ssize(batch.tokens), limits_.max_tokens);
    EXPECT_LE(std::ssize(step.rows), limits_.max_sequences);
    for (std::size_t t = 0; t < batch.tokens.size(); ++t) {
      cache_[batch.slots[t]] = {batch.tokens[t], batch.positions[t]};
    }
    if (fails) {
      cache_.clear();
      for (const std::uint64_t sequence : scheduler_.failed()) texts_.erase(sequence);
      return;
    }
    scheduler_.done();
    for (std::size_t row = 0; row < step.rows.size(); ++row) {
      const auto [sequence, whole, reused] = step.rows[row];
      Tokens& text = texts_.at(sequence);
      EXPECT_EQ(whole, batch.lengths[row] == std::ssize(text));
      for (std::int32_t p = 0; p < batch.lengths[row]; ++p) {  // all that attention reads
        const std::int32_t page =
            batch.page_table[row * limits_.table_width + p / limits_.page_size];
        const auto slot = static_cast<std::int32_t>(page * limits_.page_size) + p % 4;
        EXPECT_EQ(cache_.at(slot), std::pair(text[p], p)) << "sequence " << sequence;
      }
      if (!whole) continue;
      text.push_back(static_cast<std::int32_t>(sequence % 100));
      if (text.size() == 40) {
        remove(sequence);
      } else {
        scheduler_.append(sequence, text.back());
      }
    }
  }

  ModelLimits limits_;
  BatchScheduler scheduler_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Tokens> texts_;
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>>
      cache_;  ///< token, position; by slot
};

TEST(BatchScheduler, TheCacheHasWhatEachRunReads) {
  const std::uint64_t seed = testing::base_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const std::int64_t pages : {10, 13, 40}) {
    Play play(pages);
    play.run(&random);
    EXPECT_GT(play.scheduler().reused(), 0);
    EXPECT_EQ(play.scheduler().preempted() > 0, pages < 40);
  }
}

}  // namespace
}  // namespace braid
