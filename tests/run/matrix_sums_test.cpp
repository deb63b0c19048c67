// What an H100 gave, to the bit.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <ios>
#include <string>
#include <vector>

#include "run/run_graph.h"
#include "source_directory.h"

namespace braid {
namespace {

// product_h100.txt has eight rows of y, from row 203 on, as an H100 gave them for the inputs of
// seed 1 on 27 November 2026. Some elements are others where sums are rounded.
TEST(MatrixSums, AProductHasTheBitsOfAnH100) {
  constexpr std::size_t kFirst = 203, kRows = 8, kColumns = 256;
  const Graph graph = parse_graph(R"({"braid": 1, "name": "product",
    "inputs": [{"name": "x", "dtype": "bf16", "shape": [256, 512]},
               {"name": "w", "dtype": "bf16", "shape": [512, 256]}],
    "nodes": [{"name": "y", "op": "mm", "inputs": ["x", "w"]}], "outputs": ["y"]})");
  WorldOptions options = testing::cpu_world_options(1);
  options.target = "H100";
  std::ifstream elements(testing::source_directory() + "/tests/run/product_h100.txt");
  std::vector<std::uint16_t> expected;
  for (unsigned bits = 0; elements >> std::hex >> bits;) {
    expected.push_back(static_cast<std::uint16_t>(bits));
  }
  ASSERT_EQ(expected.size(), kRows * kColumns);
  for (const MatrixSums sums : {MatrixSums::kHopper, MatrixSums::kRounded}) {
    options.matrix_sums = sums;
    const World world = World::open(options);
    Executable executable = Executable::compile(graph, world);
    const RankTensors got = testing::run_once(executable, graph, {}, random_inputs(graph, {}, 1));
    const std::byte* const rows = got[0][0].data.data() + 2 * kFirst * kColumns;
    EXPECT_EQ(std::memcmp(rows, expected.data(), 2 * expected.size()) == 0,
              sums == MatrixSums::kHopper);
  }
}

}  // namespace
}  // namespace braid
