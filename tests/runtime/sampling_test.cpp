// How a model's tokens are chosen, on the cpu device.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "run/seed.h"
#include "runtime/model/token_chooser.h"

namespace braid {
namespace {

constexpr std::int64_t kRows = 512;

/// Rows of logits in the memory of two ranks.
class Choices {
 public:
  explicit Choices(const std::vector<std::vector<float>>& rows)
      : world_(World::open({.device = DeviceKind::kCpu, .world = 2, .threads = 2})) {
    const auto width = static_cast<std::int64_t>(rows[0].size());
    std::vector<DeviceTensor> logits;
    for (const int rank : world_.ranks()) {
      streams_.push_back(world_.device().create_stream(rank));
      raw_.push_back(streams_.back().get());
      memory_.push_back(world_.device().allocate(rank, kRows * width * sizeof(float)));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t bytes = rows[i].size() * sizeof(float);
        raw_.back()->copy_from_host(memory_.back()->address() + i * bytes, rows[i].data(), bytes);
      }
      raw_.back()->synchronize();
      logits.push_back({memory_.back()->address(), DType::kF32, {kRows, width}});
    }
    chooser_.emplace(world_, logits);
  }
  /// Equal ones in all rows.
  explicit Choices(const std::vector<float>& logits)
      : Choices(std::vector<std::vector<float>>(kRows, logits)) {}

  std::vector<ChosenToken> operator()(const std::vector<Sampling>& sampling,
                                      std::int32_t first_position = 0) {
    std::vector<std::int32_t> positions(sampling.size());
    std::iota(positions.begin(), positions.end(), first_position);
    chooser_->enqueue(sampling, positions, raw_);
    for (Stream* stream : raw_) stream->synchronize();
    return chooser_->chosen();
  }
  /// How often each of the first tokens comes, of 20 * kRows.
  std::vector<double> shares(const Sampling& sampling) {
    std::vector<double> result(4);
    for (int i = 0; i < 20; ++i) {
      for (const ChosenToken& token : (*this)(std::vector(kRows, sampling), kRows * i)) {
        result.at(token.id) += 1.0 / (20 * kRows);
      }
    }
    return result;
  }

 private:
  World world_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> raw_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::optional<TokenChooser> chooser_;
};

// Probabilities 0.1, 0.4, 0.2, 0.3, times any factor.
const std::vector<float> kLogits{std::log(1.F), std::log(4.F), std::log(2.F), std::log(3.F)};

TEST(Sampling, TokensComeByTheirProbability) {
  Choices choices(kLogits);
  const std::vector<double> all = choices.shares({.seed = 5});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(all[i], std::exp(kLogits[i]) / 10, 0.02) << i;
  // At temperature 1/2 probabilities are squared: 1, 16, 4, 9 of 30.
  EXPECT_NEAR(choices.shares({.temperature = 0.5, .seed = 5})[1], 16.0 / 30, 0.02);
  EXPECT_NEAR(choices.shares({.temperature = 0})[1], 1, 1e-9);
}

TEST(Sampling, IsAmongTheLikeliest) {
  Choices choices(kLogits);
  // 0.4 is less than 0.6, 0.4 + 0.3 is not; 0.3 is three quarters of 0.4, 0.2 a half.
  for (const Sampling& two : {Sampling{.top_k = 2, .seed = 5}, Sampling{.top_p = 0.6, .seed = 5},
                              Sampling{.min_p = 0.7, .seed = 5}}) {
    const std::vector<double> kept = choices.shares(two);
    EXPECT_EQ(kept[0] + kept[2], 0);
    EXPECT_NEAR(kept[1], 4.0 / 7, 0.02);
  }
}

TEST(Sampling, TemperatureZeroTakesTheFirstOfTheLikeliest) {
  const std::uint64_t seed = testing::base_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<std::vector<float>> rows(kRows, std::vector<float>(99));
  for (std::vector<float>& row : rows) {
    for (float& logit : row) logit = -static_cast<float>(1 + random() % 9);
  }
  Choices choices(rows);
  std::vector<Sampling> sampling(kRows, {.temperature = 0});
  const std::vector<ChosenToken> alone = choices(sampling);
  for (std::int64_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(alone[i].id, std::ranges::max_element(rows[i]) - rows[i].begin()) << i;
  }
  // Beside one that is drawn, to the bit.
  sampling.back().temperature = 1;
  std::vector<ChosenToken> beside = choices(sampling);
  beside.back() = alone.back();
  EXPECT_EQ(beside, alone);
}

TEST(Sampling, SeedAndPositionDecide) {
  Choices choices(kLogits);
  std::vector<Sampling> sampling(kRows, {.seed = 1});
  const std::vector<ChosenToken> first = choices(sampling);
  EXPECT_EQ(choices(sampling), first);
  const auto equal_ones = [&](const std::vector<ChosenToken>& others) {
    double result = 0;  // of which there are a few by chance: the sum of squared probabilities
    for (std::int64_t i = 0; i < kRows; ++i) result += others[i] == first[i] ? 1.0 / kRows : 0;
    return result;
  };
  EXPECT_NEAR(equal_ones(choices(sampling, kRows)), 0.3, 0.1);
  for (Sampling& each : sampling) each.seed = 2;
  EXPECT_NEAR(equal_ones(choices(sampling)), 0.3, 0.1);
}

TEST(Sampling, LogProbabilitiesAreThoseOfTemperatureOne) {
  Choices choices(kLogits);
  for (const ChosenToken& token : choices(std::vector(kRows, Sampling{.temperature = 3}))) {
    EXPECT_NEAR(token.logprob, kLogits[token.id] - std::log(10.0), 1e-6);
  }
  Choices large(std::vector<float>{1000, 1000});
  EXPECT_NEAR(large({{.temperature = 0}})[0].logprob, std::log(0.5), 1e-6);
}

TEST(Sampling, RandomNumbersAreBelowOne) {
  float least = 1, most = 0, sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const float x = random_number(7, i);
    least = std::min(least, x), most = std::max(most, x), sum += x / 10000;
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 1);
  EXPECT_NEAR(sum, 0.5, 0.02);
}

}  // namespace
}  // namespace braid
