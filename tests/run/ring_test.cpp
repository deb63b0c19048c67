// Matmuls whose operands a thread brings by bulk copies, while groups of warps, or another thread,
// multiply beside it: equal to the reference and bit for bit to what mma.sync makes, without a
// finding.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/work/work.h"
#include "findings.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"
#include "runtime/tune/lone_kernel.h"

namespace braid {
namespace {

using testing::GraphBuilder;

const Dim kT = Dim::symbol("T");

/// Targets that multiply by a ring, and others with the same bits.
struct Units {
  const char *by_ring, *others;
};
constexpr Units kOf16Bits[] = {{"H100:wgmma,cp.async.bulk.tensor", "H100:mma.sync,cp.async"},
                               {"B200:tcgen05,cp.async.bulk.tensor", "B200:mma.sync,cp.async"}};
/// While there is wgmma all units add 8-bit floats in its order.
constexpr Units kOf8Bits[] = {{"H100", "H100:cp.async.bulk.tensor"},
                              {"B200:tcgen05,cp.async.bulk.tensor", "B200:mma.sync,cp.async"}};

struct Case {
  std::string name;
  DType dtype;
  std::int64_t k, n;
  bool left_transposed, right_transposed;
  std::int64_t most = 300, rows = 200;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

ValueId operand(GraphBuilder& b, DType dtype, const Dim& rows, const Dim& cols, bool transposed) {
  if (!transposed) return b.in(dtype, {rows, cols});
  const ValueId stored = b.in(dtype, {cols, rows});
  return b.op("transpose", {stored}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
}

Graph product(const Case& c) {
  GraphBuilder b(c.most);
  // Its rows lie apart by its extent, of which bulk copies want whole 16 bytes.
  const Dim rows = c.left_transposed ? Dim(c.rows) : kT;
  const ValueId x = operand(b, c.dtype, rows, c.k, c.left_transposed);
  return b.take({b.op("mm", {x, operand(b, c.dtype, c.k, c.n, c.right_transposed)})});
}

Executable compile(const Graph& graph, const World& world) {
  return Executable::compile(graph, world);
}
World open(const std::string& target, Checks checks, std::int64_t world = 1) {
  WorldOptions options = testing::world_options(world);
  if (options.device == DeviceKind::kCpu) options.sanitize = checks;
  options.target = target;
  return World::open(options);
}

/// The graph as one kernel in its quickest tiles with a ring, which for small products may not be
/// the quickest of all.
Graph by_ring(const Graph& graph, const Target& target) {
  auto body = std::make_shared<const Graph>(graph);
  for (Config& config : candidates(graph, target)) {
    if (has_ring(config)) return lone_kernel({body, std::move(config)});
  }
  ADD_FAILURE() << "no kernel by a ring";
  return graph;
}

/// As the reference, and with the bits of other units; by a kernel whose warps have roles.
void expect_right_on(const Units& units, const Graph& graph, const Bindings& bindings,
                     Checks checks) {
  SCOPED_TRACE(units.by_ring);
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  World world = open(units.by_ring, checks, world_size(graph));
  // What is reduced over ranks is large enough, and its product belongs to the kernel alone.
  const Graph alone = graph.groups().empty() ? by_ring(graph, Target::parse(units.by_ring)) : graph;
  Executable executable = compile(alone, world);
  const std::vector<KernelReport> kernels = executable.kernels();
  const KernelReport& kernel = kernels.back();
  EXPECT_EQ(kernels.size(), kernel.template_name == "gather_gemm" ? 2 : 1);
  // Those that compute, and the group of the one that copies.
  EXPECT_GE(kernel.threads, 256);
  EXPECT_GE(kernel.shared_bytes, 64 << 10);
  const RankTensors got = testing::run_once(executable, alone, bindings, inputs);
  for (const Finding& finding : found_by(world.device())) ADD_FAILURE() << finding.text();
  EXPECT_TRUE(testing::same_as_reference(graph, got, evaluate(graph, inputs, bindings)));
  World other_world = open(units.others, kCheckNothing, world_size(graph));
  Executable other = compile(graph, other_world);
  const RankTensors peers = testing::run_once(other, graph, bindings, inputs);
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    for (std::size_t i = 0; i < got[rank].size(); ++i) {
      EXPECT_EQ(got[rank][i].data, peers[rank][i].data) << "rank " << rank << ", output " << i;
    }
  }
}
void expect_right(const Graph& graph, const Bindings& bindings, Checks checks = kCheckAll,
                  std::span<const Units> all = kOf16Bits) {
  for (const Units& units : all) expect_right_on(units, graph, bindings, checks);
}

class Ring : public ::testing::TestWithParam<Case> {};

TEST_P(Ring, EqualsTheReferenceAndOtherUnits) {
  expect_right(product(GetParam()), {{"T", GetParam().rows}});
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Ring,
    ::testing::Values(Case{"rows_by_columns", DType::kBF16, 136, 328, false, false},
                      Case{"rows_by_rows", DType::kF16, 136, 328, false, true},
                      Case{"columns_by_columns", DType::kF16, 264, 136, true, false},
                      Case{"columns_by_rows", DType::kBF16, 200, 72, true, true},
                      Case{"cut_tiles", DType::kBF16, 264, 72, false, true},
                      Case{"results_of_odd_rows", DType::kF16, 264, 77, false, true}),
    [](const auto& info) { return info.param.name; });

// With one slot for sums or two, rows in one product or two, columns taken in one part or several.
TEST(RingRun, AllTilesOfABlackwellGiveTheSameBits) {
  const Graph graph = product({"", DType::kBF16, 200, 392, false, true, 600});
  const Bindings bindings{{"T", 389}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  World world = open(kOf16Bits[1].by_ring, kCheckAll);
  const auto body = std::make_shared<const Graph>(graph);
  const std::vector<std::byte> expected = [&] {
    World other = open(kOf16Bits[1].others, kCheckNothing);
    Executable executable = compile(graph, other);
    return testing::run_once(executable, graph, bindings, inputs)[0][0].data;
  }();
  for (const std::int64_t rows : {128, 256}) {
    for (const std::int64_t columns : {64, 128, 256}) {
      SCOPED_TRACE(fmt::format("{} x {}", rows, columns));
      const Graph alone = lone_kernel({body,
                                       {{"num_warps", 8},
                                        {"BLOCK_M", rows},
                                        {"BLOCK_N", columns},
                                        {"BLOCK_K", 64},
                                        {"GROUP_M", 8},
                                        {"num_stages", 3},
                                        {kRingSetting, 1}}});
      Executable executable = compile(alone, world);
      EXPECT_EQ(testing::run_once(executable, alone, bindings, inputs)[0][0].data, expected);
      for (const Finding& finding : found_by(world.device())) ADD_FAILURE() << finding.text();
    }
  }
}

// More tiles than multiprocessors: the ring runs on from tile to tile.
TEST(RingRun, BlocksHaveSeveralTiles) {
  expect_right(product({"", DType::kBF16, 192, 2056, false, false, 2100, 2090}), {{"T", 2090}},
               kCheckNothing);
}

TEST(RingRun, WhatFollowsIsPartOfIt) {
  GraphBuilder b(200);
  const ValueId x = b.in(DType::kBF16, {kT, 520});
  const ValueId gate = b.op("mm", {x, b.in(DType::kBF16, {520, 136})});
  const ValueId up = b.op("mm", {x, b.in(DType::kBF16, {520, 136})});
  const ValueId y = b.op("mul", {b.op("silu", {gate}), up});
  expect_right(b.take({y, b.op("to", {y}, {{"dtype", DType::kF32}})}), {{"T", 131}});
}

// Parts of a joined weight, [K, 2N] and [2N, K], of rows that are themselves a part: nothing is
// copied, and the neighbours' NaN does not reach a result.
TEST(RingRun, OperandsThatAreParts) {
  for (const bool transposed : {false, true}) {
    GraphBuilder b(200);
    const auto part = [&](ValueId of, std::int64_t dim, std::int64_t start, std::int64_t end) {
      return b.op("slice", {of}, {{"dim", dim}, {"start", start}, {"end", end}});
    };
    const ValueId x = part(b.in(DType::kBF16, {300, 520}), 0, 20, 151);
    const ValueId joined =
        transposed ? b.in(DType::kBF16, {336, 520}) : b.in(DType::kBF16, {520, 336});
    const auto weight = [&](std::int64_t start, std::int64_t end) {
      const ValueId own = part(joined, transposed ? 0 : 1, start, end);
      return transposed
                 ? b.op("transpose", {own}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}})
                 : own;
    };
    const ValueId gate = b.op("mm", {x, weight(0, 136)});
    const ValueId up = b.op("mm", {x, weight(139, 275)});
    expect_right(b.take({b.op("mul", {b.op("silu", {gate}), up})}), {{"T", 1}});
  }
}

// A part along K has neighbours where a ring expects zeros: a ring is not for it.
TEST(RingRun, APartAlongKKeepsItsNeighboursOut) {
  GraphBuilder b(200);
  const ValueId x =
      b.op("slice", {b.in(DType::kBF16, {300, 528})},
           {{"dim", std::int64_t{1}}, {"start", std::int64_t{8}}, {"end", std::int64_t{208}}});
  const Graph graph = b.take({b.op("mm", {x, b.in(DType::kBF16, {200, 136})})});
  RankTensors inputs = random_inputs(graph, {{"T", 1}}, 5);
  HostTensor& wide = inputs[0][0];
  std::vector<double> values = wide.to_doubles();
  for (std::size_t i = 208; i < values.size(); i += 528) {
    values[i] = std::numeric_limits<double>::quiet_NaN();
  }
  wide = HostTensor::from_doubles(wide.dtype, wide.shape, values);
  World world = open(kOf16Bits[0].by_ring, kCheckNothing);
  Executable executable = compile(graph, world);
  EXPECT_TRUE(testing::same_as_reference(graph,
                                         testing::run_once(executable, graph, {{"T", 1}}, inputs),
                                         evaluate(graph, inputs, {{"T", 1}})));
}

// Its elements are not where the product has them.
TEST(RingRun, AResultOfAnotherShape) {
  GraphBuilder b(200);
  const ValueId product =
      b.op("mm", {b.in(DType::kBF16, {kT, 528}), b.in(DType::kBF16, {528, 256})});
  const ValueId heads = b.op("view", {product}, {{"shape", Shape{kT * 2, 128}}});
  expect_right(b.take({b.op("add", {heads, b.in(DType::kBF16, {kT * 2, 128})}), product}),
               {{"T", 129}});
}

// Each batch is a matrix of the map; one is between the rows and columns of its matrices.
TEST(RingRun, BatchesAreOuterDims) {
  for (const bool by_heads : {false, true}) {
    GraphBuilder b(200);
    ValueId x = b.in(DType::kBF16, by_heads ? Shape{kT, 3, 136} : Shape{3, kT, 136});
    if (by_heads) {
      x = b.op("permute", {x}, {{"dims", std::vector<std::int64_t>{1, 0, 2}}});
    }
    ValueId w = b.in(DType::kBF16, by_heads ? Shape{3, 77, 136} : Shape{3, 136, 72});
    if (by_heads)
      w = b.op("transpose", {w}, {{"dim0", std::int64_t{1}}, {"dim1", std::int64_t{2}}});
    expect_right(b.take({b.op("bmm", {x, w})}), {{"T", 131}});
  }
}

TEST(RingRun, BatchesThatAreAPart) {
  GraphBuilder b(200);
  const ValueId x =
      b.op("slice", {b.in(DType::kF16, {5, kT, 264})},
           {{"dim", std::int64_t{0}}, {"start", std::int64_t{1}}, {"end", std::int64_t{4}}});
  expect_right(b.take({b.op("bmm", {x, b.in(DType::kF16, {3, 264, 136})})}), {{"T", 70}});
}

TEST(RingRun, BiasAndResidual) {
  GraphBuilder b(200);
  const ValueId product = b.op("addmm", {b.in(DType::kF16, {72}), b.in(DType::kF16, {kT, 520}),
                                         b.in(DType::kF16, {520, 72})});
  expect_right(b.take({b.op("add", {product, b.in(DType::kF16, {kT, 72})})}), {{"T", 65}});
}

// A product that is reduced over ranks, by those that have multiplied.

struct Reduced {
  std::string name;
  DType dtype;
  bool all, norms;  ///< an all-reduce; a norm follows
  std::int64_t world, n;
  bool narrow = false;  ///< of 8-bit floats
};
void PrintTo(const Reduced& c, std::ostream* out) { *out << c.name; }

Graph reduced(const Reduced& c) {
  GraphBuilder b(300, c.world);
  const Dim rows = c.all ? kT : kT * c.world;
  const ValueId product = c.narrow
                              ? b.op("scaled_mm",
                                     {b.in(DType::kF8E4M3, {rows, 144}),
                                      b.op("transpose", {b.in(DType::kF8E4M3, {c.n, 144})},
                                           {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}),
                                      b.in(DType::kF32, {rows, 1}), b.in(DType::kF32, {1, c.n})},
                                     {{"out_dtype", c.dtype}})
                              : b.op("mm", {b.in(c.dtype, {rows, 136}), b.in(c.dtype, {136, c.n})});
  b.graph().set_comm_group(product, "tp");
  const ValueId sum = b.op(c.all ? "all_reduce" : "reduce_scatter_tensor", {product},
                           {{"group", std::string("tp")},
                            {"reduce_op", std::string("sum")},
                            {"algorithm", std::string("in_kernel")}});
  const ValueId y = b.op("add", {sum, b.in(c.dtype, {kT, c.n})});
  if (!c.norms) return b.take({b.op("silu", {y}), y});
  return b.take({b.op("rms_norm", {y, b.in(c.dtype, {c.n})}, {{"eps", 1e-5}}), y});
}

class RingOfRanks : public ::testing::TestWithParam<Reduced> {};

TEST_P(RingOfRanks, EqualsTheReferenceAndOtherUnits) {
  expect_right(reduced(GetParam()), {{"T", 130}}, kCheckAll,
               GetParam().narrow ? std::span(kOf8Bits) : std::span(kOf16Bits));
}

// A norm of up to 1024 elements is added up by four warps, one of 2048 by eight.
INSTANTIATE_TEST_SUITE_P(
    Forms, RingOfRanks,
    ::testing::Values(Reduced{"scatter", DType::kBF16, false, false, 2, 264},
                      Reduced{"scatter_of_three", DType::kF16, false, false, 3, 200},
                      Reduced{"scatter_and_norm", DType::kBF16, false, true, 2, 776},
                      Reduced{"scatter_and_long_norm", DType::kF16, false, true, 2, 1160},
                      Reduced{"scatter_of_8_bits", DType::kBF16, false, false, 2, 392, true},
                      Reduced{"all", DType::kF16, true, false, 2, 520},
                      Reduced{"all_and_norm", DType::kBF16, true, true, 2, 520}),
    [](const auto& info) { return info.param.name; });

struct Gathered {
  std::string name;
  DType dtype;
  std::int64_t world, n;
  std::int64_t rows = 130;  ///< of a rank
  bool pair = false;        ///< of matmuls
  bool narrow = false;      ///< of 8-bit floats
};
void PrintTo(const Gathered& c, std::ostream* out) { *out << c.name; }

/// Rows that a kernel has written, as an input would be copied first.
Graph gathered(const Gathered& c) {
  constexpr std::int64_t kDepth = 144;
  GraphBuilder b(300, c.world);
  const ValueId made =
      c.narrow ? b.op("to", {b.in(DType::kBF16, {kT, kDepth})}, {{"dtype", DType::kF8E4M3}})
               : b.op("neg", {b.in(c.dtype, {kT, kDepth})});
  b.graph().set_comm_group(made, "tp");
  const ValueId x = b.op("all_gather_into_tensor", {made},
                         {{"group", std::string("tp")}, {"algorithm", std::string("in_kernel")}});
  b.graph().set_comm_group(x, "tp");
  const Dim rows = kT * c.world;
  if (c.narrow) {
    const ValueId w = operand(b, DType::kF8E4M3, kDepth, c.n, true);
    const ValueId y =
        b.op("scaled_mm", {x, w, b.in(DType::kF32, {rows, 1}), b.in(DType::kF32, {1, c.n})},
             {{"out_dtype", c.dtype}});
    return b.take({b.op("silu", {y})});
  }
  const ValueId y = b.op("silu", {b.op("mm", {x, operand(b, c.dtype, kDepth, c.n, false)})});
  if (!c.pair) return b.take({b.op("add", {y, b.in(c.dtype, {rows, c.n})})});
  return b.take({b.op("mul", {y, b.op("mm", {x, operand(b, c.dtype, kDepth, c.n, false)})})});
}

class RingOfGathered : public ::testing::TestWithParam<Gathered> {};

// Rows of a rank that end within a tile.
TEST_P(RingOfGathered, EqualsTheReferenceAndOtherUnits) {
  expect_right(gathered(GetParam()), {{"T", GetParam().rows}}, kCheckAll,
               GetParam().narrow ? std::span(kOf8Bits) : std::span(kOf16Bits));
}

INSTANTIATE_TEST_SUITE_P(Forms, RingOfGathered,
                         ::testing::Values(Gathered{"two", DType::kBF16, 2, 264},
                                           Gathered{"pair_of_three", DType::kF16, 3, 72, 3, true},
                                           Gathered{"of_8_bits", DType::kBF16, 2, 392, 130, false,
                                                    true}),
                         [](const auto& info) { return info.param.name; });

// The deadline is so short that no rank makes it: threads that bring what others wait for go on,
// and blocks that leave give back what they hold.
TEST(RingRun, OfALostRunComesToItsEnd) {
  const Bindings bindings{{"T", 130}};
  for (const Graph& graph :
       {gathered({"", DType::kBF16, 2, 264}), reduced({"", DType::kBF16, false, false, 2, 264})}) {
    for (const Units& units : kOf16Bits) {
      SCOPED_TRACE(units.by_ring);
      WorldOptions options = testing::world_options(2);
      options.target = units.by_ring;
      options.threads = 1;
      options.timeout_s = 1e-9;
      World world = World::open(options);
      Executable executable = compile(graph, world);
      try {
        (void)testing::run_once(executable, graph, bindings, random_inputs(graph, bindings, 5));
        ADD_FAILURE() << "every rank was there in a nanosecond";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
      }
    }
  }
}

// 8-bit floats: sums begin anew every 128 products, and are added up in f32.

struct Scaled {
  DType left, right;
  std::int64_t k, n;
};
void PrintTo(const Scaled& c, std::ostream* out) {
  *out << fmt::format("{}_{}_k{}_n{}", dtype_name(c.left), dtype_name(c.right), c.k, c.n);
}

/// With scales of rows and columns, a bias and, maybe, a residual.
Graph scaled(const Scaled& c, std::int64_t most, bool has_residual = true) {
  GraphBuilder b(most);
  const ValueId x = b.in(c.left, {kT, c.k}), w = operand(b, c.right, c.k, c.n, true);
  const ValueId y = b.op("scaled_mm", {x, w, b.in(DType::kF32, {kT, 1}),
                                       b.in(DType::kF32, {1, c.n}), b.in(DType::kBF16, {c.n})});
  return b.take({has_residual ? b.op("add", {y, b.in(DType::kBF16, {kT, c.n})}) : y});
}

class ScaledRing : public ::testing::TestWithParam<Scaled> {};

TEST_P(ScaledRing, EqualsTheReferenceAndOtherUnits) {
  expect_right(scaled(GetParam(), 300), {{"T", 200}}, kCheckAll, kOf8Bits);
}

// The columns of a tile of 256 are two parts, which share the rows.
TEST(ScaledRingRun, TilesInParts) {
  expect_right(scaled({DType::kF8E4M3, DType::kF8E4M3, 272, 8200}, 300, false), {{"T", 200}},
               kCheckNothing, kOf8Bits);
}

TEST(ScaledRingRun, APairSharesItsRows) {
  GraphBuilder b(300);
  const DType e4m3 = DType::kF8E4M3;
  const ValueId x = b.in(e4m3, {kT, 272}), scales = b.in(DType::kF32, {kT, 1});
  const auto product = [&] {
    const ValueId w = operand(b, e4m3, 272, 264, true);
    return b.op("scaled_mm", {x, w, scales, b.in(DType::kF32, {1, 264})});
  };
  const ValueId gate = product(), up = product();
  expect_right(b.take({b.op("mul", {b.op("silu", {gate}), up})}), {{"T", 131}}, kCheckAll,
               kOf8Bits);
}

/// Scales of 128 products along K: of A's rows; of B's columns, or of 128 of these.
struct InBlocks {
  std::int64_t k, n;
  bool of_columns = false;
};
void PrintTo(const InBlocks& c, std::ostream* out) {
  *out << fmt::format("k{}_n{}{}", c.k, c.n, c.of_columns ? "_of_columns" : "");
}

/// As the reference, by one kernel, without a finding.
void expect_reference_on(const char* target, const Graph& graph, const Bindings& bindings) {
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  World world = open(target, kCheckAll);
  Executable executable = compile(graph, world);
  EXPECT_EQ(executable.kernels().size(), 1);
  const RankTensors got = testing::run_once(executable, graph, bindings, inputs);
  EXPECT_TRUE(testing::same_as_reference(graph, got, evaluate(graph, inputs, bindings))) << target;
  for (const Finding& finding : found_by(world.device())) ADD_FAILURE() << finding.text();
}

class ScalesInBlocks : public ::testing::TestWithParam<InBlocks> {
 protected:
  static Graph graph(const InBlocks& c) {
    const auto blocks = [](std::int64_t n) { return (n + 127) / 128; };
    GraphBuilder b(300);
    const ValueId x = b.in(DType::kF8E4M3, {kT, c.k});
    const ValueId w = operand(b, DType::kF8E4M3, c.k, c.n, true);
    const ValueId rows = b.in(DType::kF32, {kT, blocks(c.k)});
    const ValueId columns = b.in(DType::kF32, {blocks(c.k), c.of_columns ? c.n : blocks(c.n)});
    return b.take({b.op("scaled_mm", {x, w, rows, columns, b.in(DType::kBF16, {c.n})})});
  }
};

TEST_P(ScalesInBlocks, EqualTheReferenceAndOtherUnits) {
  expect_right(graph(GetParam()), {{"T", 200}}, kCheckAll, kOf8Bits);
}

// Where no unit wants chains, K is in steps of 128 all the same.
TEST_P(ScalesInBlocks, EqualTheReferenceOnOtherTargets) {
  for (const char* target : {"sm_89", "B200"}) {
    expect_reference_on(target, graph(GetParam()), {{"T", 70}});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ScalesInBlocks,
                         ::testing::Values(InBlocks{400, 328}, InBlocks{128, 136},
                                           InBlocks{1040, 520, true}, InBlocks{2064, 64}),
                         ::testing::PrintToStringParamName());

// Gate and up: each has scales of its own; those of the rows are both's.
TEST(ScalesInBlocksRun, APairSharesItsRows) {
  GraphBuilder b(300);
  const DType e4m3 = DType::kF8E4M3;
  const ValueId x = b.in(e4m3, {kT, 272}), scales = b.in(DType::kF32, {kT, 3});
  const auto product = [&] {
    const ValueId w = operand(b, e4m3, 272, 264, true);
    return b.op("scaled_mm", {x, w, scales, b.in(DType::kF32, {3, 3})});
  };
  const ValueId gate = product(), up = product();
  expect_right(b.take({b.op("mul", {b.op("silu", {gate}), up})}), {{"T", 131}}, kCheckAll,
               kOf8Bits);
}

// A tile of 256 columns, by a ring and without.
TEST(ScalesInBlocksRun, TilesInParts) {
  GraphBuilder b(300);
  const DType e4m3 = DType::kF8E4M3;
  const ValueId x = b.in(e4m3, {kT, 272}), w = operand(b, e4m3, 272, 8200, true);
  const ValueId y =
      b.op("scaled_mm", {x, w, b.in(DType::kF32, {kT, 3}), b.in(DType::kF32, {3, 65})});
  expect_right(b.take({y}), {{"T", 200}}, kCheckNothing, kOf8Bits);
}

// Then the columns of a tile have several numbers.
TEST(ScalesInBlocksRun, ATileOf256ColumnsInOnePart) {
  GraphBuilder b(40);
  const DType e4m3 = DType::kF8E4M3;
  const ValueId x = b.in(e4m3, {kT, 272}), w = operand(b, e4m3, 272, 520, true);
  const ValueId y =
      b.op("scaled_mm", {x, w, b.in(DType::kF32, {kT, 3}), b.in(DType::kF32, {3, 5})});
  const Graph graph = lone_kernel({std::make_shared<const Graph>(b.take({y})),
                                   {{"num_warps", 8},
                                    {"BLOCK_M", 16},
                                    {"BLOCK_N", 256},
                                    {"BLOCK_K", 128},
                                    {"GROUP_M", 8},
                                    {"num_stages", 2}}});
  expect_reference_on("sm_89", graph, {{"T", 37}});
}

/// As an H100 adds: its sums of 8-bit floats have 14 bits.
WorldOptions as_an_h100() {
  WorldOptions options = testing::cpu_world_options(1);
  options.matrix_sums = MatrixSums::kHopper;
  options.target = "H100";
  return options;
}

// In one chain the error would be 2.4e-3.
TEST(ScaledRingRun, ChainsKeepAnH100sSumsWithinTheBoundOfBf16) {
  const Graph graph = scaled({DType::kF8E4M3, DType::kF8E4M3, 4096, 64}, 100);
  const Bindings bindings{{"T", 100}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  World world = World::open(as_an_h100());
  Executable executable = compile(graph, world);
  const RankTensors got = testing::run_once(executable, graph, bindings, inputs);
  EXPECT_LT(relative_error(got[0][0], evaluate(graph, inputs, bindings)[0][0]), 1e-3);
}

// All rows are multiplied by wgmma, however few they are: mma.sync has other sums.
TEST(ScaledRingRun, RowsHaveTheSameBitsInEveryBatch) {
  World world = World::open(as_an_h100());
  const auto run = [&](std::int64_t rows, std::int64_t most) {
    const Scaled form{DType::kF8E4M3, DType::kF8E4M3, 400, 72};
    const Graph graph = scaled(form, most);
    RankTensors inputs = random_inputs(scaled(form, 300), {{"T", 200}}, 5);
    for (HostTensor& input : inputs[0]) {
      if (input.shape[0] != 200) continue;
      input.data.resize(input.data.size() / 200 * static_cast<std::size_t>(rows));
      input.shape[0] = rows;
    }
    Executable executable = compile(graph, world);
    return testing::run_once(executable, graph, {{"T", rows}}, inputs)[0][0].data;
  };
  const std::vector<std::byte> all = run(200, 300), few = run(3, 4);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));
}

INSTANTIATE_TEST_SUITE_P(Types, ScaledRing,
                         ::testing::Values(Scaled{DType::kF8E4M3, DType::kF8E4M3, 400, 328},
                                           Scaled{DType::kF8E4M3, DType::kF8E5M2, 528, 600},
                                           Scaled{DType::kF8E5M2, DType::kF8E4M3, 1040, 136}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace braid
