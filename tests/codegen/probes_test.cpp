// Programs in the text form that no template builds yet, through all passes, NVRTC for each target
// and the cpu device with every check, against float64.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "codegen/cuda/print_cuda.h"
#include "codegen/kernel/joined.h"
#include "codegen/passes/lower.h"
#include "codegen/protocol.h"
#include "codegen/tile/text.h"
#include "codegen/tile/verify.h"
#include "cpu/cpu_harness.h"
#include "findings.h"
#include "runtime/compile/compiler.h"
#include "runtime/exec/launch_plan.h"
#include "runtime/tensor_map.h"

namespace braid::tile {
namespace {

std::string read_probe(const std::string& name) {
  const std::string path =
      std::string(BRAID_SOURCE_DIR) + "/tests/codegen/probes/" + name + ".tile";
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Program lowered(const std::string& text, int num_stages, std::string_view target = "sm_80") {
  Program program = parse_text(text);
  verify(program);
  lower(program, Target::parse(target), num_stages);
  const std::string after = print_text(program);
  const Program read = parse_text(after);
  verify(read);
  EXPECT_EQ(print_text(read), after);
  return program;
}

float widen(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float out = 0;
  std::memcpy(&out, &word, 4);
  return out;
}

/// Values of a few bits, so that bf16 holds them.
template <class T>
std::vector<T> random_values(std::size_t count, std::uint64_t seed) {
  cpu_test::Random random(seed);
  std::vector<T> out(count);
  for (T& value : out) {
    const float x = static_cast<float>(static_cast<int>(random.next() % 33) - 16) / 16.0F;
    if constexpr (sizeof(T) == 2) {
      std::uint32_t word = 0;
      std::memcpy(&word, &x, 4);
      value = static_cast<T>(word >> 16);
    } else {
      value = x;
    }
  }
  return out;
}
double number(std::uint16_t x) { return widen(x); }
double number(float x) { return x; }

/// Runs a probe on inputs of these sizes and compares what it writes.
template <class T>
void run_probe(
    const std::string& text, int num_stages, const std::vector<std::size_t>& sizes,
    std::size_t results, double tolerance,
    const std::function<double(const std::vector<std::vector<double>>&, std::size_t)>& reference) {
  const Program program = lowered(text, num_stages);
  const std::string cuda = print_cuda(program);
  SCOPED_TRACE(cuda);
  for (const unsigned checks : {0U, kCheckBounds | kCheckInit | kCheckRace | kCheckSync}) {
    cpu_test::Bench bench(cuda, {.threads = 2, .checks = checks});
    std::vector<std::vector<double>> inputs;
    std::vector<std::uint64_t> addresses;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto values = random_values<T>(sizes[i], i + 1);
      addresses.push_back(bench.upload(values));
      // A copy that the checks of uninitialized reads see.
      bench.stream().copy_from_host(addresses.back(), values.data(), values.size() * sizeof(T));
      std::vector<double> numbers;
      for (T x : values) numbers.push_back(number(x));
      inputs.push_back(std::move(numbers));
    }
    const std::uint64_t out = bench.upload(std::vector<T>(results));
    const auto grid = static_cast<unsigned>(program.grid.evaluate({}));
    const auto block = static_cast<unsigned>(program.num_warps * 32);
    const auto shared = static_cast<std::uint32_t>(program.shared_bytes);
    if (shared > 48U << 10) bench.function().set_max_dynamic_shared(shared);
    if (addresses.size() == 2) {
      bench.run({grid, 1, 1}, {block, 1, 1}, shared, addresses[0], addresses[1], out);
    } else {
      bench.run({grid, 1, 1}, {block, 1, 1}, shared, addresses[0], addresses[1], addresses[2], out);
    }
    for (const Finding& finding : found_by(bench.device())) ADD_FAILURE() << finding.text();
    const auto got = bench.download<T>(out, results);
    for (std::size_t i = 0; i < results; ++i) {
      const double expected = reference(inputs, i);
      ASSERT_NEAR(number(got[i]), expected, tolerance * (1 + std::abs(expected)))
          << "element " << i;
    }
  }
}

void compile_everywhere(const std::string& text) {
  const Program program = lowered(text, 3);
  for (const char* name : {"sm_80", "sm_90a", "sm_100a"}) {
    const CompiledKernel kernel =
        compile_kernel({program.entry, print_cuda(program)}, Target::parse(name), nullptr);
    EXPECT_EQ(kernel.resources.spill_store_bytes, 0) << name;
  }
}

TEST(Probes, CompileForEveryTarget) {
  for (const char* name : {"persistent_gemm", "attention", "small_f32_gemm", "tensor_gemm",
                           "bytes_by_value", "ragged_sum"}) {
    SCOPED_TRACE(name);
    compile_everywhere(read_probe(name));
  }
}

TEST(Probes, PersistentGemmPipelinesTheInnerLoop) {
  const std::string text = read_probe("persistent_gemm");
  const auto reference = [](const auto& in, std::size_t i) {
    double sum = 0;
    for (std::size_t k = 0; k < 96; ++k) sum += in[0][i / 128 * 96 + k] * in[1][k * 128 + i % 128];
    return sum;
  };
  for (const int stages : {2, 4}) {
    run_probe<std::uint16_t>(text, stages, {100 * 96, 96 * 128}, 100 * 128, 1.0 / 256, reference);
  }
}

/// The sizes of a kernel's asynchronous copies, in bytes.
std::vector<int> sizes_of_copies(const std::string& text) {
  const std::string cuda = print_cuda(lowered(text, 3));
  std::vector<int> sizes;
  for (const int bytes : {1, 2, 4, 8, 16}) {
    if (cuda.find(fmt::format("copy_async_{}(", bytes)) != std::string::npos) {
      sizes.push_back(bytes);
    }
  }
  return sizes;
}

// Rows of 80 and 88 elements begin at multiples of 16 bytes, and the ends do not cut these.
TEST(Probes, TilesOfTensorsAreCopiedWideAndCutAtTheEnds) {
  std::string text = read_probe("tensor_gemm");
  EXPECT_EQ(sizes_of_copies(text), std::vector<int>{16});
  const auto reference = [](const auto& in, std::size_t i) {
    double sum = 0;
    for (std::size_t k = 0; k < 80; ++k) sum += in[0][i / 72 * 80 + k] * in[1][k * 88 + i % 72];
    return sum;
  };
  for (const int stages : {2, 4}) {
    run_probe<std::uint16_t>(text, stages, {100 * 80, 79 * 88 + 72}, 100 * 72, 1.0 / 256,
                             reference);
  }
  text.replace(text.find("constant 88"), 11, "constant 84");
  EXPECT_EQ(sizes_of_copies(text), (std::vector<int>{8, 16}));
}

double attention(const std::vector<std::vector<double>>& in, std::size_t i) {
  const std::size_t row = i / 64;
  std::vector<double> scores(100);
  double highest = -1e30;
  for (std::size_t key = 0; key < 100; ++key) {
    for (std::size_t d = 0; d < 64; ++d)
      scores[key] += in[0][row * 64 + d] * in[1][key * 64 + d] / 8;
    highest = std::max(highest, scores[key]);
  }
  double sum = 0;
  double out = 0;
  for (std::size_t key = 0; key < 100; ++key) {
    const double weight = std::exp(scores[key] - highest);
    sum += weight;
    out += weight * in[2][key * 64 + i % 64];
  }
  return out / sum;
}

TEST(Probes, AttentionKeepsWeightsInRegisters) {
  const std::string text = read_probe("attention");
  EXPECT_EQ(print_text(lowered(text, 3)).find("convert_layout"), std::string::npos);
  run_probe<std::uint16_t>(text, 3, {6400, 6400, 6400}, 6400, 1.0 / 128, attention);
}

// With warps side by side the weights change their layout through shared memory.
TEST(Probes, AttentionChangesLayouts) {
  std::string text = read_probe("attention");
  text.replace(text.find("warps_m 4"), 9, "warps_m 2");
  EXPECT_NE(print_text(lowered(text, 3)).find("change shared"), std::string::npos);
  run_probe<std::uint16_t>(text, 2, {6400, 6400, 6400}, 6400, 1.0 / 128, attention);
}

TEST(Probes, AnF32TileMayBeNarrow) {
  const auto reference = [](const auto& in, std::size_t i) {
    double sum = 0;
    for (std::size_t k = 0; k < 40; ++k) sum += in[0][i / 16 * 40 + k] * in[1][i % 16 * 40 + k];
    return sum;
  };
  run_probe<float>(read_probe("small_f32_gemm"), 3, {800, 640}, 320, 1e-6, reference);
}

/// Each block adds so many rows as a number on the device says, and one that is out of range is
/// recorded.
TEST(Probes, ScalarsInMemoryBoundLoops) {
  const Program program = lowered(read_probe("ragged_sum"), 1);
  const std::string cuda = print_cuda(program);
  SCOPED_TRACE(cuda);
  const auto x = random_values<float>(std::size_t{3} * 4 * 32, 1);
  const std::vector<float> scales{2, 3, 4};
  for (const std::vector<std::int32_t>& lengths :
       {std::vector<std::int32_t>{2, 0, 4}, std::vector<std::int32_t>{1, 9, 3}}) {
    cpu_test::Bench bench(cuda, {.threads = 2, .checks = kCheckAll});
    const auto put = [&](const auto& values) {
      const std::uint64_t at = bench.upload(values);
      bench.stream().copy_from_host(at, values.data(), values.size() * 4);
      return at;
    };
    const std::uint64_t inputs[] = {put(lengths), put(scales), put(x)};
    const std::uint64_t out = bench.upload(std::vector<float>(96));
    const std::uint64_t record = put(std::vector<std::uint32_t>(12));
    bench.run({3, 1, 1}, {32, 1, 1}, 0, inputs[0], inputs[1], inputs[2], out, record, 5);
    for (const Finding& finding : found_by(bench.device())) ADD_FAILURE() << finding.text();
    const auto y = bench.download<float>(out, 96);
    for (std::size_t i = 0; i < 96; ++i) {
      const std::size_t block = i / 32;
      const bool is_good = lengths[block] < 5;
      double sum = 0;
      for (std::size_t row = 0; is_good && row < static_cast<std::size_t>(lengths[block]); ++row) {
        sum += x[(block * 4 + row) * 32 + i % 32];
      }
      EXPECT_EQ(y[i], sum * scales[block]) << i;
    }
    const protocol::Record said = bench.download<protocol::Record>(record, 1)[0];
    const bool is_bad = lengths[1] == 9;
    EXPECT_EQ(said.kind, is_bad ? protocol::Record::kBadIndex : protocol::Record::kNothing);
    EXPECT_EQ(said.step, is_bad ? 5U : 0U);
    EXPECT_EQ(said.node, is_bad ? 7U : 0U);
    EXPECT_EQ(said.index, is_bad ? 9 : 0);
    EXPECT_EQ(said.extent, is_bad ? 5 : 0);
  }
}

// A kernel of two phases: the second takes the tiles that the first has made from the other end.

constexpr std::int64_t kTiles = 12;
constexpr int kColumns = 512;  ///< of a tile: a thread of both warps has some

Id tile_at(const Piece& piece, Id number) {
  const Id begin = piece.b.map(Fn::kMul, {number, piece.b.integer(kColumns)});
  return piece.b.map(Fn::kAdd, {begin, piece.b.range(1, kColumns, 1)});
}
Id operand(const Piece& piece, KernelParam::Kind kind, int index) {
  return piece.b.param({.kind = kind, .index = index, .expr = 0, .group = {}});
}
std::optional<Pieces> twelve(const BodyFacts&, const Config&) { return Pieces{.count = kTiles}; }

const Work kDoubled{
    .pieces = twelve,
    .emit =
        [](const Piece& piece) {
          const Id at = tile_at(piece, piece.number);
          const Id x =
              piece.b.load(operand(piece, KernelParam::Kind::kInput, 0), at, kNone, DType::kF32);
          piece.b.store(operand(piece, KernelParam::Kind::kOutput, 0), at,
                        piece.b.map(Fn::kAdd, {x, x}), kNone, DType::kF32);
        },
};
const Work kTurned{
    .pieces = twelve,
    .emit =
        [](const Piece& piece) {
          const Id from = piece.b.map(Fn::kSub, {piece.b.integer(kTiles - 1), piece.number});
          const Id x = piece.b.load(operand(piece, KernelParam::Kind::kOutput, 0),
                                    tile_at(piece, from), kNone, DType::kF32);
          piece.b.store(operand(piece, KernelParam::Kind::kOutput, 1), tile_at(piece, piece.number),
                        x, kNone, DType::kF32);
        },
};

/// The numbers of the tiles with a flag, one after the other, behind how many they are.
const Work kListOfTiles{
    .pieces = [](const BodyFacts&, const Config&) -> std::optional<Pieces> { return Pieces{}; },
    .emit =
        [](const Piece& piece) {
          Builder& b = piece.b;
          const Id flags = operand(piece, KernelParam::Kind::kInput, 1);
          const Id list = operand(piece, KernelParam::Kind::kOutput, 0);
          const auto put = [&](Id at, Id value, Id mask) {
            const Id place = b.map(Fn::kAdd, {b.range(1, 1, 1), at});
            b.store(list, place, b.spread(value, 1, 1), mask, DType::kI32);
          };
          const Id loop =
              b.begin_for(b.integer(0), b.integer(kTiles), b.integer(1), {b.integer(0)});
          const Id flag = b.load_scalar(flags, b.induction(loop), kNone, DType::kI32);
          const Id after = b.map(Fn::kAdd, {b.carried(loop, 0), flag});
          put(after, b.induction(loop), b.map(Fn::kLt, {b.integer(0), flag}));
          put(b.integer(0), b.end_for(loop, {after})[0], kNone);
        },
};
const Work kDoubledThere{
    .pieces = twelve,
    .emit =
        [](const Piece& piece) {
          const Id at = tile_at(piece, piece.number);
          const Id x =
              piece.b.load(operand(piece, KernelParam::Kind::kInput, 0), at, kNone, DType::kF32);
          piece.b.store(operand(piece, KernelParam::Kind::kOutput, 1), at,
                        piece.b.map(Fn::kAdd, {x, x}), kNone, DType::kF32);
        },
};

/// Its runs, one after the other with one counter.
struct PhasesRun {
  std::vector<std::vector<float>> results;
  std::vector<std::string> findings;
  protocol::Record record;
};
PhasesRun run_phases(const Program& program, const std::string& cuda, std::uint32_t counter,
                     int runs, std::int64_t timeout, unsigned checks = kCheckAll,
                     const std::vector<std::int32_t>& flags = {0}) {
  PhasesRun run;
  cpu_test::Bench bench(cuda, {.threads = 2, .checks = checks});
  const auto x = random_values<float>(std::size_t{kTiles} * kColumns, 1);
  const auto put = [&](const auto& values) {
    const std::uint64_t at = bench.upload(values);
    bench.stream().copy_from_host(at, values.data(), values.size() * 4);
    return at;
  };
  const std::uint64_t in[] = {put(x), put(flags)};
  const std::uint64_t words = put(std::vector<std::uint32_t>{counter});
  const std::uint64_t record = put(std::vector<std::uint32_t>(12));
  const std::uint64_t out[] = {bench.upload(std::vector<float>(x.size())),
                               bench.upload(std::vector<float>(x.size()))};
  std::vector<std::uint64_t> values;
  for (const Param& param : program.params) {
    const KernelParam& what = param.what;
    switch (what.kind) {
      case KernelParam::Kind::kInput:
        values.push_back(in[what.index]);
        break;
      case KernelParam::Kind::kOutput:
        values.push_back(out[what.index]);
        break;
      case KernelParam::Kind::kCounter:
        values.push_back(words);
        break;
      case KernelParam::Kind::kRecord:
        values.push_back(record);
        break;
      case KernelParam::Kind::kTimeout:
        values.push_back(static_cast<std::uint64_t>(timeout));
        break;
      default:
        values.push_back(3);  // the step
    }
  }
  std::vector<const void*> pointers;
  for (const std::uint64_t& value : values) pointers.push_back(&value);
  const auto grid = static_cast<unsigned>(program.grid.evaluate({}));
  for (int i = 0; i < runs; ++i) {
    bench.stream().launch(bench.function(), {{grid, 1, 1}, {64, 1, 1}, 0},
                          {pointers.data(), pointers.size()});
    bench.stream().synchronize();
    run.results.push_back(bench.download<float>(out[1], x.size()));
  }
  for (const Finding& finding : found_by(bench.device())) run.findings.push_back(finding.text());
  run.record = bench.download<protocol::Record>(record, 1)[0];
  return run;
}

Program of_phases(std::vector<Phase> phases) {
  Graph body;
  const ValueId x = body.add_input({"x", {DType::kF32, {kTiles * kColumns}}});
  body.add_output(x);
  const Kernel kernel{.name = "k", .phases = std::move(phases)};
  const Config none;
  const Stage stage{kernel, BodyFacts{body}, none};
  Program program = build_phases({&stage, 1}, Target{}, /*room=*/5);
  program.num_warps = 2;
  program.entry = "k";
  verify(program);
  lower(program, Target{}, 1);
  return program;
}

Program two_phases() { return of_phases({{&kDoubled}, {&kTurned, Order::kStride, Meet::kHere}}); }

/// A list in front of which stands its length.
template <KernelParam::Kind kKind, int kIndex>
Phase::List list_in(Builder& b, const BodyFacts&) {
  const Id at = b.param({.kind = kKind, .index = kIndex, .expr = 0, .group = {}});
  return {b.ptr_add(at, b.integer(1), DType::kI32),
          b.load_scalar(at, b.integer(0), kNone, DType::kI32)};
}
Phase doubled_there(Meet meet, Phase::List (*list)(Builder& b, const BodyFacts& facts)) {
  return {.work = &kDoubledThere, .order = Order::kListed, .meet = meet, .list = list};
}

/// Those of the tiles with a mark are doubled, the others untouched.
void expect_doubled(const Program& program, const std::vector<std::int32_t>& input,
                    const std::vector<std::int32_t>& marks) {
  const std::string cuda = print_cuda(program);
  SCOPED_TRACE(cuda);
  const auto x = random_values<float>(std::size_t{kTiles} * kColumns, 1);
  const PhasesRun run = run_phases(program, cuda, 0, 1, 60'000'000'000, kCheckAll, input);
  EXPECT_THAT(run.findings, ::testing::IsEmpty());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(run.results[0][i], marks[i / kColumns] != 0 ? 2 * x[i] : 0) << i;
  }
}

TEST(Phases, TakeThePiecesOfAListThatOneHasMade) {
  const Program program = of_phases(
      {{&kListOfTiles}, doubled_there(Meet::kHere, list_in<KernelParam::Kind::kOutput, 0>)});
  for (const std::vector<std::int32_t>& flags :
       {std::vector<std::int32_t>{0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1},
        std::vector<std::int32_t>(kTiles, 0), std::vector<std::int32_t>(kTiles, 1)}) {
    expect_doubled(program, flags, flags);
  }
}

TEST(Phases, TakeThePiecesOfAListInMemory) {
  const Program program =
      of_phases({doubled_there(Meet::kNothing, list_in<KernelParam::Kind::kInput, 1>)});
  EXPECT_EQ(program.grid.evaluate({}), 5);
  expect_doubled(program, {3, 7, 0, 11}, {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1});
  // There are no more than all pieces, whatever it says.
  expect_doubled(program, {99, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
                 std::vector<std::int32_t>(kTiles, 1));
  expect_doubled(program, {-4, 1}, std::vector<std::int32_t>(kTiles, 0));
}

TEST(Phases, WaitForAllBlocksOfTheGrid) {
  const Program program = two_phases();
  EXPECT_EQ(program.grid.evaluate({}), 5);
  const std::string cuda = print_cuda(program);
  SCOPED_TRACE(cuda);
  EXPECT_EQ(cuda.find("__restrict__"), std::string::npos);
  const auto x = random_values<float>(std::size_t{kTiles} * kColumns, 1);
  // A counter has its top bit as the last meeting left it.
  for (const std::uint32_t counter : {0U, 0x80000000U}) {
    const PhasesRun run = run_phases(program, cuda, counter, 3, 60'000'000'000);
    EXPECT_THAT(run.findings, ::testing::IsEmpty());
    EXPECT_EQ(run.record.kind, protocol::Record::kNothing);
    for (const std::vector<float>& y : run.results) {
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i], 2 * x[(kTiles - 1 - i / kColumns) * kColumns + i % kColumns]) << i;
      }
    }
  }
}

TEST(Phases, ThatDoNotWaitAreFound) {
  const Program program = two_phases();
  const std::string whole = print_cuda(program);
  const std::string meeting = "if (!meet_blocks(counter, record, step, timeout)) return;";
  const std::string fence = "asm volatile(\"fence.acq_rel.gpu;\" ::: \"memory\");";
  for (const std::string& part : {meeting, fence, std::string("__syncthreads();")}) {
    std::string broken = whole;
    const std::size_t at = part == meeting ? broken.rfind(part) : broken.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    broken.erase(at, part.size());
    EXPECT_THAT(run_phases(program, broken, 0, 1, 60'000'000'000).findings,
                ::testing::Not(::testing::IsEmpty()))
        << part;
  }
}

// As if a block had not come.
TEST(Phases, LeaveWhenABlockDoesNotCome) {
  const Program program = two_phases();
  const PhasesRun run =
      run_phases(program, print_cuda(program), 0x7fffff00U, 1, 20'000'000, kCheckNothing);
  EXPECT_EQ(run.record.kind, protocol::Record::kLostWait);
  EXPECT_EQ(run.record.step, 3U);
  EXPECT_LT(run.record.block, 5U);
}

/// 48 floats between two pointers, of which the kernel adds the last 32: through a launch plan, as
/// a tensor map would come.
TEST(Probes, BytesByValueArriveAsTheyAre) {
  const tile::Program kernel = lowered(read_probe("bytes_by_value"), 1);
  EXPECT_NE(print_cuda(kernel).find("const __grid_constant__ Bytes192_64 p1"), std::string::npos);
  const auto x = random_values<float>(32, 1);
  const auto table = random_values<float>(48, 2);
  for (const unsigned checks : {0U, kCheckBounds | kCheckInit | kCheckRace | kCheckSync}) {
    cpu_test::Bench bench(print_cuda(kernel), {.threads = 2, .checks = checks});
    std::vector<std::size_t> sizes;
    for (const FunctionParameter& p : bench.function().parameters()) sizes.push_back(p.bytes);
    EXPECT_EQ(sizes, (std::vector<std::size_t>{8, 192, 8}));
    const std::uint64_t in = bench.upload(x);
    bench.stream().copy_from_host(in, x.data(), x.size() * sizeof(float));
    const std::uint64_t out = bench.upload(std::vector<float>(32));
    braid::Program program;
    program.arenas = {{ArenaKind::kIo, "", 512}};
    const TensorType type{DType::kF32, {32}};
    program.buffers = {{BufferKind::kTensor, "x", type, 0, 0, 128, 0, 0},
                       {BufferKind::kTensor, "y", type, 0, 256, 128, 0, 0}};
    program.kernels.resize(1);
    program.kernels[0].needs.threads = 32;
    for (const Param& param : kernel.params) {
      program.kernels[0].needs.params.push_back(param.what);
    }
    program.steps = {{.name = "add", .kernel = 0, .inputs = {0}, .outputs = {1}}};
    RankPlaces places{.functions = {&bench.function()}, .buffer_addresses = {in, out}};
    places.write_bytes = [&](const Step& step, const KernelParam& param, auto bytes) {
      EXPECT_EQ(step.name, "add");
      EXPECT_EQ(param.index, 0);
      ASSERT_EQ(bytes.size(), 192);
      std::memcpy(bytes.data(), table.data(), bytes.size());
    };
    const LaunchPlan plan(program, {}, {&places, 1}, 0);
    Stream* const stream = &bench.stream();
    plan.run({{&stream, 1}, {}});
    bench.stream().synchronize();
    for (const Finding& finding : found_by(bench.device())) ADD_FAILURE() << finding.text();
    const auto y = bench.download<float>(out, 32);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], x[i] + table[i + 16]) << i;
  }
}

/// A row-major bf16 tensor in boxes of 64 columns.
std::array<std::byte, TensorMap::kBytes> tensor_map(std::uint64_t address, std::uint64_t rows,
                                                    std::uint64_t cols, std::uint32_t box_rows) {
  TensorMap map;
  map.type = TensorMap::Type::kBf16;
  map.swizzle = TensorMap::Swizzle::k128;
  map.rank = 2;
  map.address = address;
  map.dims = {cols, rows};
  map.strides = {2 * cols};
  map.box = {64, box_rows};
  EXPECT_EQ(map.problem(), std::nullopt);
  return map.encoded();
}

/// What a run of the probe whose warps have roles says: what the sanitizer found, and how many
/// elements of the result are wrong.
struct RolesRun {
  std::vector<std::string> findings;
  std::size_t wrong = 0;
};

RolesRun run_roles(const Program& program, const std::string& cuda, unsigned checks) {
  constexpr std::size_t kM = 128, kN = 512, kK = 320;
  const CompiledKernel kernel =
      compile_kernel({program.entry, cuda}, program.target, nullptr, /*line_info=*/true);
  EXPECT_EQ(kernel.resources.spill_store_bytes, 0);
  auto bench = cpu_test::Bench::from_ptx(kernel.image.ptx, {.threads = 2, .checks = checks});
  const auto a = random_values<std::uint16_t>(kM * kK, 1);
  const auto b = random_values<std::uint16_t>(kN * kK, 2);
  const std::uint64_t at_a = bench.upload(a);
  const std::uint64_t at_b = bench.upload(b);
  const std::uint64_t at_c = bench.upload(std::vector<std::uint16_t>(kM * kN));
  // Copies that the checks of uninitialized reads see.
  bench.stream().copy_from_host(at_a, a.data(), a.size() * 2);
  bench.stream().copy_from_host(at_b, b.data(), b.size() * 2);
  bench.function().set_max_dynamic_shared(static_cast<std::uint32_t>(program.shared_bytes));
  RolesRun run;
  try {
    bench.run({1, 1, 1}, {static_cast<unsigned>(block_threads(program)), 1, 1},
              static_cast<std::uint32_t>(program.shared_bytes), tensor_map(at_a, kM, kK, 128),
              tensor_map(at_b, kN, kK, 256), tensor_map(at_c, kM, kN, 128));
  } catch (const Error& error) {
    run.findings.emplace_back(error.what());
    return run;
  }
  for (const Finding& finding : found_by(bench.device())) run.findings.push_back(finding.text());
  const auto got = bench.download<std::uint16_t>(at_c, kM * kN);
  for (std::size_t i = 0; i < got.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < kK; ++k) {
      sum += number(a[i / kN * kK + k]) * number(b[i % kN * kK + k]);
    }
    run.wrong += std::abs(number(got[i]) - sum) <= (1 + std::abs(sum)) / 256 ? 0 : 1;
  }
  return run;
}

constexpr unsigned kAllChecks = kCheckBounds | kCheckInit | kCheckRace | kCheckSync;

TEST(Probes, WarpsHaveRoles) {
  for (const auto& [name, target] :
       {std::pair{"warp_specialised_gemm", "sm_90a"}, std::pair{"products_in_sums", "sm_100a"}}) {
    const Program program = lowered(read_probe(name), 2, target);
    const std::string cuda = print_cuda(program);
    SCOPED_TRACE(cuda);
    for (const unsigned checks : {0U, kAllChecks}) {
      const RolesRun run = run_roles(program, cuda, checks);
      EXPECT_EQ(run.findings, std::vector<std::string>());
      EXPECT_EQ(run.wrong, 0U);
    }
  }
}

/// A kernel's text with a part replaced, once or everywhere.
struct Mutant {
  std::string_view what, text, by;
  bool everywhere = false;
};

/// One mutant for each rule of the protocol; nobody may call it clean.
void expect_found(const char* probe, const char* target, std::span<const Mutant> mutants) {
  const Program program = lowered(read_probe(probe), 2, target);
  const std::string cuda = print_cuda(program);
  for (const Mutant& mutant : mutants) {
    SCOPED_TRACE(mutant.what);
    std::string text = cuda;
    std::size_t at = text.find(mutant.text);
    ASSERT_NE(at, std::string::npos);
    do {
      text.replace(at, mutant.text.size(), mutant.by);
      at = text.find(mutant.text, at + mutant.by.size());
    } while (mutant.everywhere && at != std::string::npos);
    const RolesRun run = run_roles(program, text, kAllChecks);
    EXPECT_TRUE(!run.findings.empty() || run.wrong > 0);
  }
}

TEST(Probes, RolesThatBreakARuleAreFound) {
  constexpr Mutant kMutants[] = {
      {"threads' stores are not fenced from the copies", "fence_async();\n", "\n"},
      {"the shared tile is written while copies read it", "await_pushes_read();\n", ";\n"},
      {"a slot is released while products read it", "wgmma_wait_1();\n", ";\n"},
      {"one group's release counts for both", "8 * i, 2);", "8 * i, 1);"},
      {"the first phase of an empty slot is waited for", " / 4 & 1 ^ 1);", " / 4 & 1);"},
      {"fewer bytes are expected than come", "49152);", "32768);"},
      {"a slot is read before it is full", "& 1);\n", "& 1 ^ 1);\n"},
  };
  expect_found("warp_specialised_gemm", "sm_90a", kMutants);
}

TEST(Probes, ProductsInSumsThatBreakARuleAreFound) {
  constexpr Mutant kMutants[] = {
      {"sums are taken before their loads have ended", "await_sums();\n", ";\n", true},
      {"one warp's release counts for all", "8 * i, 8);", "8 * i, 1);"},
      {"a slot is released before products have read it", "commit_products(shared + 2294",
       "arrive(shared + 2294"},
      {"sums are there before their products have ended", "commit_products(shared + 2295",
       "arrive(shared + 2295"},
      {"the first product adds to what was there", "= 0 < ", "= 0 <= "},
      {"what was allocated is kept", "free_sums(v", ";(void)(v"},
  };
  expect_found("products_in_sums", "sm_100a", kMutants);
}

}  // namespace
}  // namespace braid::tile
