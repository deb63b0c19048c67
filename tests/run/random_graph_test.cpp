#include "run/random_graph.h"

#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "run/run_graph.h"
#include "run/seed.h"

namespace braid {
namespace {

/// Small all-reduces would all go as packets. Kernels of every fourth graph are joined.
PassConfig passes_of(std::uint64_t seed) {
  constexpr const char* kAlgorithms[] = {"", "one_shot", "two_shot"};
  PassConfig config{.all_reduce = kAlgorithms[seed % 3]};
  if (seed % 4 == 0) config.enable = {"join_kernels"};
  return config;
}

// Sharded so that ctest runs them side by side. A failure prints the seed; BRAID_SEED=<base>
// replays it.
class RandomGraph : public ::testing::TestWithParam<int> {};

TEST_P(RandomGraph, EqualsTheReference) {
  const std::uint64_t base = testing::base_seed();
  RecordProperty("seed", std::to_string(base));
  for (std::uint64_t i = 0; i < 8; ++i) {
    const std::uint64_t seed = base + static_cast<std::uint64_t>(GetParam()) * 1000003 + i;
    const Graph graph = testing::random_graph(seed);
    std::mt19937_64 random(seed);
    const std::int64_t sizes[] = {1, 2, 7, 16, 33};
    const Bindings bindings{{"T", sizes[random() % 5]}};
    // Compiled a second time, so every other graph only.
    const PassConfig config = passes_of(seed);
    const auto matches = [&](std::uint64_t inputs, bool but_for_ties) {
      return i % 2 == 0 ? testing::matches_reference_and_unfused(graph, bindings, inputs, config,
                                                                 but_for_ties)
                        : testing::matches_reference(graph, bindings, inputs, config, but_for_ties);
    };
    auto good = matches(seed, false);
    // Once in some thousand small graphs a 16-bit operand lies so near to a tie that the order of
    // an f32 sum decides how it rounds, or a sum in f32 so near to zero that its rounding is all
    // that an output shows. Other inputs tell that from an error of the program, which most of them
    // would show.
    if (!good && matches(seed, true)) {
      std::cout << "graph seed " << seed << ": " << good.message() << "; tried with other inputs\n";
      good = ::testing::AssertionSuccess();
      int ties = 0;
      for (std::uint64_t other = 1; good && other <= 4; ++other) {
        good = matches(seed + other, false);
        if (!good && ++ties <= 2) good = matches(seed + other, true);
      }
    }
    ASSERT_TRUE(good) << "BRAID_SEED=" << base << ", graph seed " << seed << "\n" << to_text(graph);
  }
}

TEST_P(RandomGraph, RunsCleanUnderTheSanitizer) {
  const std::uint64_t seed =
      testing::base_seed() + 7'000'000 + static_cast<std::uint64_t>(GetParam());
  const Graph graph = testing::random_graph(seed);
  ASSERT_TRUE(testing::runs_clean(graph, {{"T", 7}}, seed, passes_of(seed))) << to_text(graph);
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomGraph, ::testing::Range(0, 5));

}  // namespace
}  // namespace braid
