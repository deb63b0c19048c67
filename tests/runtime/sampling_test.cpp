#include "braid/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "run/seed.h"

namespace braid {
namespace {

// Probabilities 0.1, 0.4, 0.2, 0.3, times any factor.
const std::array<double, 4> kLogits{std::log(1.0), std::log(4.0), std::log(2.0), std::log(3.0)};

std::array<int, 4> counts(const Sampling& sampling, int draws = 20000) {
  std::array<int, 4> result{};
  for (int i = 0; i < draws; ++i) ++result[choose_token(kLogits, sampling, i)];
  return result;
}

TEST(Sampling, TokensComeByTheirProbability) {
  const auto all = counts({.seed = 5});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(all[i] / 20000.0, std::exp(kLogits[i]) / 10, 0.02) << i;
  }
  // At temperature 1/2 probabilities are squared: 1, 16, 4, 9 of 30.
  EXPECT_NEAR(counts({.temperature = 0.5, .seed = 5})[1] / 20000.0, 16.0 / 30, 0.02);
}

TEST(Sampling, TemperatureZeroTakesTheLikeliest) {
  EXPECT_EQ(counts({.temperature = 0})[1], 20000);
}

TEST(Sampling, TemperatureZeroTakesTheFirstOfEquals) {
  const std::uint64_t seed = testing::base_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (std::size_t count = 1; count < 200; ++count) {
    std::vector<double> logits(count);
    for (double& logit : logits) logit = -static_cast<double>(1 + random() % 9);
    const auto first = std::ranges::max_element(logits) - logits.begin();
    EXPECT_EQ(choose_token(logits, {.temperature = 0}, 0), first) << count;
  }
  EXPECT_EQ(choose_token(std::vector<double>(9, NAN), {.temperature = 0}, 0), 0);
}

TEST(Sampling, TopPKeepsTheFewestThatHaveIt) {
  // 0.4 is less than 0.6, 0.4 + 0.3 is not.
  const auto kept = counts({.top_p = 0.6, .seed = 5});
  EXPECT_EQ(kept[0] + kept[2], 0);
  EXPECT_NEAR(kept[1] / 20000.0, 4.0 / 7, 0.02);
  EXPECT_EQ(counts({.top_p = 1e-9})[1], 20000);
}

TEST(Sampling, SeedAndPositionDecide) {
  int same = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(choose_token(kLogits, {.seed = 1}, i), choose_token(kLogits, {.seed = 1}, i));
    same += choose_token(kLogits, {.seed = 1}, i) == choose_token(kLogits, {.seed = 2}, i);
  }
  EXPECT_NEAR(same / 1000.0, 0.3, 0.1);  // by chance: the sum of squared probabilities
}

TEST(Sampling, LogProbabilitiesAreThoseOfTemperatureOne) {
  EXPECT_NEAR(log_probability(kLogits, 3), std::log(0.3), 1e-15);
  const std::array<double, 2> large{1000, 1000};
  EXPECT_NEAR(log_probability(large, 0), std::log(0.5), 1e-15);
}

}  // namespace
}  // namespace braid
