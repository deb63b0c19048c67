// Probes of the tile language's communication: kernels that no template builds yet, written in its
// text form, through all passes, NVRTC for three targets, and checked runs on the cpu device.

#include <gtest/gtest.h>

#include <cstring>

#include "codegen/tile/remote.h"
#include "run/tile_probe.h"

namespace braid {
namespace {

using testing::expect_compiles;
using testing::finished;
using testing::Floats;
using testing::ProbeWorld;

constexpr int kWorld = 2;

/// Each block waits for the shard of one peer, its own first, and multiplies it: the rank is known
/// at run time alone.
const std::string kGatherGemm = "kernel gather_gemm\nflag_slots 4\ngrid 2\n" +
                                testing::head_of_probe(kWorld) +
                                R"(param 6 offset 1 group "tp" divisor 256
param 7 input 0 divisor 256
param 8 output 0 divisor 256
{
  %block = program_id : i64
  %rank = param 1 : i64
  signal %block, _, _
  %turn = add %rank, %block : i64
  %world = constant 2 : i64
  %peer = rem %turn, %world : i64
  wait %block, %peer, _
  %at = param 6 : i64
  %x = peer %at, %peer : ptr
  %w = param 7 : ptr
  %row = range 0 : i32[64, 64]
  %col = range 1 : i32[64, 64]
  %zero = constant 0 : f32[64, 64]
  %low = constant 0 : i64
  %high = constant 128 : i64
  %step = constant 64 : i64
  %c64 = constant 64 : i32
  %c128 = constant 128 : i32
  %loop = for %k = %low to %high step %step carry %sum = %zero : f32[64, 64] {
    %k32 = to_i32 %k : i32
    %x0 = mul %row, %c128 : i32[64, 64]
    %x1 = add %k32, %col : i32[64, 64]
    %x2 = add %x0, %x1 : i32[64, 64]
    %a = load.bf16 %x, %x2 : f32[64, 64]
    %w0 = add %k32, %row : i32[64, 64]
    %w1 = mul %w0, %c64 : i32[64, 64]
    %w2 = add %w1, %col : i32[64, 64]
    %b = load.bf16 %w, %w2 : f32[64, 64]
    %s = dot.bf16 %a, %b, %sum : f32[64, 64]
    yield %s
  }
  %c = result 0, %loop : f32[64, 64]
  %out = param 8 : ptr
  %p32 = to_i32 %peer : i32
  %y0 = mul %p32, %c64 : i32
  %yrow = range 0 : i32[64, 64]
  %ycol = range 1 : i32[64, 64]
  %y1 = add %y0, %yrow : i32[64, 64]
  %y2 = mul %y1, %c64 : i32[64, 64]
  %y3 = add %y2, %ycol : i32[64, 64]
  store.f32 %out, %y3, %c
  %blocks = num_programs : i64
  %last = add %blocks, %block : i64
  signal %last, _, _
  wait %last, _, _
}
)";

/// Each block multiplies the rows of one owner and pushes the tile into its scratch, a slot for
/// each source; then every rank adds its slots in the order of the ranks.
const std::string kPushGemm = "kernel push_gemm\nflag_slots 3\nscratch 32768\ngrid 2\n" +
                              testing::head_of_probe(kWorld) +
                              R"(param 6 scratch 0 group "tp" divisor 256
param 7 input 0 divisor 256
param 8 input 1 divisor 256
param 9 output 0 divisor 256
{
  %block = program_id : i64
  %rank = param 1 : i64
  %world = constant 2 : i64
  %turn = add %rank, %block : i64
  %owner = rem %turn, %world : i64
  %x = param 7 : ptr
  %w = param 8 : ptr
  %row = range 0 : i32[64, 64]
  %col = range 1 : i32[64, 64]
  %zero = constant 0 : f32[64, 64]
  %low = constant 0 : i64
  %high = constant 64 : i64
  %one = constant 1 : i64
  %c64 = constant 64 : i32
  %o32 = to_i32 %owner : i32
  %x0 = mul %o32, %c64 : i32
  %loop = for %k = %low to %high step %high carry %sum = %zero : f32[64, 64] {
    %k32 = to_i32 %k : i32
    %x1 = add %x0, %row : i32[64, 64]
    %x2 = mul %x1, %c64 : i32[64, 64]
    %x3 = add %k32, %col : i32[64, 64]
    %x4 = add %x2, %x3 : i32[64, 64]
    %a = load.bf16 %x, %x4 : f32[64, 64]
    %w0 = add %k32, %row : i32[64, 64]
    %w1 = mul %w0, %c64 : i32[64, 64]
    %w2 = add %w1, %col : i32[64, 64]
    %b = load.bf16 %w, %w2 : f32[64, 64]
    %s = dot.bf16 %a, %b, %sum : f32[64, 64]
    yield %s
  }
  %c = result 0, %loop : f32[64, 64]
  %at = param 6 : i64
  %to = peer %at, %owner : ptr
  %r32 = to_i32 %rank : i32
  %t0 = mul %r32, %c64 : i32
  %trow = range 0 : i32[64, 64]
  %tcol = range 1 : i32[64, 64]
  %t1 = add %t0, %trow : i32[64, 64]
  %t2 = mul %t1, %c64 : i32[64, 64]
  %t3 = add %t2, %tcol : i32[64, 64]
  store.f32 %to, %t3, %c
  signal %low, %owner, _
  wait %low, _, _
  %own = peer %at, %rank : ptr
  %hrow = range 0 : i32[32, 64]
  %hcol = range 1 : i32[32, 64]
  %hzero = constant 0 : f32[32, 64]
  %c32 = constant 32 : i32
  %b32 = to_i32 %block : i32
  %h0 = mul %b32, %c32 : i32
  %h1 = add %h0, %hrow : i32[32, 64]
  %h2 = mul %h1, %c64 : i32[32, 64]
  %h3 = add %h2, %hcol : i32[32, 64]
  %c4096 = constant 4096 : i32
  %all = for %source = %low to %world step %one carry %part = %hzero : f32[32, 64] {
    %s32 = to_i32 %source : i32
    %s0 = mul %s32, %c4096 : i32
    %s1 = add %s0, %h3 : i32[32, 64]
    %v = load.f32 %own, %s1 : f32[32, 64]
    %next = add %part, %v : f32[32, 64]
    yield %next
  }
  %y = result 0, %all : f32[32, 64]
  %out = param 9 : ptr
  store.f32 %out, %h3, %y
  %last = add %one, %block : i64
  signal %last, _, _
  wait %last, _, _
}
)";

/// Small integers: bf16 holds them, and f32 their sums of products, exactly.
Floats numbers(std::size_t count, std::uint64_t seed) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 2654435761U + seed * 40503U) / 7 % 9) - 4;
  }
  return values;
}

std::vector<std::uint16_t> bf16_of(const Floats& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) {
    std::uint32_t word;
    std::memcpy(&word, &value, 4);
    bits.push_back(static_cast<std::uint16_t>(word >> 16U));
  }
  return bits;
}

/// rows x inner times inner x 64.
Floats product(const Floats& a, const Floats& b, std::size_t inner) {
  const std::size_t rows = a.size() / inner;
  Floats c(rows * 64, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < inner; ++k) {
      for (std::size_t j = 0; j < 64; ++j) c[i * 64 + j] += a[i * inner + k] * b[k * 64 + j];
    }
  }
  return c;
}

/// A rank's data: inputs as bf16, and its arena's content for the peers.
struct RankData {
  std::vector<Floats> inputs;
  Floats shared;
  std::size_t outputs = 0;  ///< elements, f32
};

/// Three checked runs of a probe on all ranks; the results of the last.
std::vector<Floats> run(const tile::Program& program, const std::vector<RankData>& data) {
  const CompiledKernel kernel = testing::compiled(program);
  ProbeWorld world(program, kernel);
  for (int r = 0; r < kWorld; ++r) {
    const RankData& mine = data[static_cast<std::size_t>(r)];
    for (const Floats& input : mine.inputs) world.add_input(r, bf16_of(input));
    if (!mine.shared.empty()) world.write_arena(r, testing::kOperandAt, bf16_of(mine.shared));
    world.add_output(r, mine.outputs);
  }
  for (int i = 0; i < 3; ++i) world.launch();
  EXPECT_TRUE(world.synchronize());
  for (const Finding& finding : world.findings()) ADD_FAILURE() << finding.text();
  std::vector<Floats> results;
  for (int r = 0; r < kWorld; ++r) {
    results.push_back(world.output(r, 0, data[static_cast<std::size_t>(r)].outputs));
  }
  return results;
}

TEST(Probes, AllGatherAndGemmOfAPeerKnownAtRunTime) {
  const tile::Program program = finished(kGatherGemm);
  EXPECT_EQ(tile::remote_accesses(program),
            (std::vector<RemoteAccess>{{.output = false, .index = 1, .write = false}}));
  expect_compiles(program);
  std::vector<RankData> data(kWorld);
  Floats gathered;
  for (std::size_t r = 0; r < kWorld; ++r) {
    const Floats shard = numbers(64 * 128, r);
    gathered.insert(gathered.end(), shard.begin(), shard.end());
    data[r] = {.inputs = {numbers(128 * 64, 10 + r)}, .shared = shard, .outputs = kWorld * 64 * 64};
  }
  const std::vector<Floats> results = run(program, data);
  for (std::size_t r = 0; r < kWorld; ++r) {
    EXPECT_EQ(results[r], product(gathered, data[r].inputs[0], 128)) << r;
  }
}

TEST(Probes, GemmThatPushesTilesToTheirOwners) {
  const tile::Program program = finished(kPushGemm);
  EXPECT_TRUE(tile::remote_accesses(program).empty());  // scratch is the step's own
  expect_compiles(program);
  std::vector<RankData> data(kWorld);
  Floats sum(kWorld * 64 * 64, 0);
  for (std::size_t r = 0; r < kWorld; ++r) {
    data[r] = {.inputs = {numbers(kWorld * 64 * 64, r), numbers(64 * 64, 20 + r)},
               .shared = {},
               .outputs = 64 * 64};
    const Floats part = product(data[r].inputs[0], data[r].inputs[1], 64);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  const std::vector<Floats> results = run(program, data);
  for (std::size_t r = 0; r < kWorld; ++r) {
    EXPECT_EQ(results[r], Floats(sum.begin() + static_cast<std::ptrdiff_t>(r * 64 * 64),
                                 sum.begin() + static_cast<std::ptrdiff_t>((r + 1) * 64 * 64)))
        << r;
  }
}

}  // namespace
}  // namespace braid
