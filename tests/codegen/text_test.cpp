// The text form: what it prints is read back to the same program, and what is wrong in a text is
// told with its line.

#include "codegen/tile/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "codegen/cuda/print_cuda.h"
#include "codegen/sample_specs.h"
#include "codegen/tile/verify.h"

namespace braid::tile {
namespace {

constexpr std::string_view kScale = R"(kernel scale
warps 4
grid ceil_div(N, 1024)
param 0 input 0 divisor 16
param 1 output 0 divisor 16
param 2 scalar 2*N+1 divisor 4
layout 0 [1, 1024] reg (0,1) (0,2) (0,4) lane (0,8) (0,16) (0,32) (0,64) (0,128) warp (0,256) (0,512)
{
  %0 = param 0 : ptr
  %2 = param 1 : ptr
  %3 = range 1 : i32[1, 1024] #0
  %7 = param 2 : i64
  %8 = lt %3, %7 : pred[1, 1024] #0
  %9 = constant -0.10000000000000001 : f32
  %10 = constant inf : f32[1, 1024] #0
  %12 = for %13 = %7 to %7 step %7 carry %14 = %10 : f32[1, 1024] #0 {
    %15 = load.bf16 %0, %3, %8 : f32[1, 1024] #0
    %16 = mul %15, %9 : f32[1, 1024] #0
    %17 = add %16, %14 : f32[1, 1024] #0
    yield %17
  }
  %18 = result 0, %12 : f32[1, 1024] #0
  %19 = round.bf16 %18 : f32[1, 1024] #0
  store.bf16 %2, %3, %19, %8
}
)";

TEST(TileText, PrintsWhatItReads) {
  const Program program = parse_text(kScale);
  verify(program);
  EXPECT_EQ(print_text(program), kScale);
}

TEST(TileText, LaunchAttributesStandInTheHeader) {
  std::string text(kScale);
  text.insert(text.find("param 0"), "cluster 2\nprogrammatic\n");
  const Program program = parse_text(text);
  EXPECT_EQ(program.attributes, (LaunchAttributes{.cluster = {2}, .programmatic = true}));
  EXPECT_EQ(print_text(program), text);
}

TEST(TileText, ColumnsOfAThreadStandInTheHeader) {
  std::string text(kScale);
  text.insert(text.find("grid"), "columns 4\n");
  const Program program = parse_text(text);
  EXPECT_EQ(program.columns, 4);
  verify(program);
  EXPECT_EQ(print_text(program), text);
  text.replace(text.find("columns 4"), 9, "columns 3");
  EXPECT_THROW(verify(parse_text(text)), Error);
}

TEST(TileText, BytesByValueHaveASizeAndAnAlignment) {
  const auto with_bytes = [](int size, int alignment) {
    std::string text(kScale);
    const std::string line = fmt::format("param 3 bytes 0 size {} align {}\n", size, alignment);
    return text.insert(text.find("layout 0"), line);
  };
  const Program program = parse_text(with_bytes(192, 64));
  EXPECT_NO_THROW(verify(program));
  EXPECT_EQ(print_text(program), with_bytes(192, 64));
  EXPECT_NO_THROW(verify(parse_text(with_bytes(4096, 128))));
  const std::pair<int, int> bad[] = {{4224, 128}, {0, 64},   {128, 48},
                                     {256, 256},  {100, 64}, {8, 0}};
  for (const auto& [size, alignment] : bad) {
    try {
      verify(parse_text(with_bytes(size, alignment)));
      ADD_FAILURE() << size << " aligned to " << alignment;
    } catch (const Error& error) {
      EXPECT_EQ(
          std::string(error.what()),
          fmt::format("param 3: found {} bytes by value, aligned to {}; expected 1 to 4096, a "
                      "multiple of the alignment, which is a power of two up to 128",
                      size, alignment));
    }
  }
}

// The programs of all sample kernels, before and after the passes.
TEST(TileText, EveryKernelReadsBackAsItself) {
  for (const auto& sample : testing::sample_specs(Target::parse("sm_90a"))) {
    const Program built = tile_program(sample.spec, Target::parse("sm_90a"), 1);
    const std::string text = print_text(built);
    const Program read = parse_text(text);
    ASSERT_NO_THROW(verify(read)) << sample.name << "\n" << text;
    EXPECT_EQ(print_text(read), text) << sample.name;
    EXPECT_EQ(print_cuda(read), print_cuda(built)) << sample.name;
  }
}

TEST(TileText, NamesMayStandForNumbers) {
  const Program program = parse_text(
      "kernel k\nwarps 1\ngrid 1\nparam 0 input 0\n{\n"
      "  %base = param 0 : ptr   // the input\n\n  %5 = constant 3 : i64\n"
      "  %there = ptr_add %base, %5 : ptr\n}\n");
  EXPECT_EQ(print_text(program),
            "kernel k\nwarps 1\ngrid 1\nparam 0 input 0\n{\n  %0 = param 0 : ptr\n"
            "  %5 = constant 3 : i64\n  %1 = ptr_add %0, %5 : ptr\n}\n");
}

/// A kernel with what packets need, and scratch on this rank as %here.
std::string with_packets(std::string_view line) {
  return "kernel k\nwarps 1\nworld 2\nscratch 4096\ngrid 1\nparam 0 peers 0 group \"tp\"\n"
         "param 1 rank 0 group \"tp\"\nparam 2 flags 0 group \"tp\"\nparam 3 timeout 0 group "
         "\"tp\"\nparam 4 record 0\nparam 5 step 0\nparam 6 scratch 0 group \"tp\" divisor "
         "256\nparam 7 offset 0 group \"tp\"\n{\n  %0 = param 1 : i64\n  %1 = param 6 : i64\n"
         "  %2 = peer %1, %0 : ptr\n  %3 = range 1 : i32[1, 64]\n  " +
         std::string(line) + "\n}\n";
}

TEST(TileText, PrintsPacketsAsItReadsThem) {
  const std::string text = with_packets(
      "%4 = epoch : i64\n  %5 = constant 8 : i32\n  %6 = lt %3, %5 : pred[1, 64]\n  %7 = "
      "ll_load.f32 %2, %3, %0 : f32[1, 64]\n  %8 = ll_load.bf16 %2, %3, %0, %6 : f32[1, 64]\n  "
      "ll_store.f16 %2, %3, %7\n  ll_store.f32 %2, %3, %8, %6 {barrier}");
  const Program program = parse_text(text);
  verify(program);
  EXPECT_TRUE(program.communicates);
  EXPECT_EQ(print_text(program), text);
}

/// A kernel that knows the addresses of all ranks, with one of all as %2 and one of this rank as
/// %3; `line` between two meetings.
std::string with_multicast(std::string_view line, bool meets = true) {
  const std::string_view wait = meets ? "  wait %4, _, _\n" : "  wait %4, _, %4\n";
  return fmt::format(
      "kernel k\nwarps 1\nworld 2\ngrid 1\nparam 0 peers 0 group \"tp\"\n"
      "param 1 multicast 0 group \"tp\"\nparam 2 offset 0 group \"tp\" divisor 256\n{{\n"
      "  %1 = param 2 : i64\n  %2 = multicast %1 : ptr\n  %4 = constant 0 : i64\n"
      "  %3 = peer %1, %4 : ptr\n  %5 = range 1 : i32[1, 64]\n{0}  {1}\n{0}}}\n",
      wait, line);
}

TEST(TileText, PrintsAccessesOfAllRanksAsItReadsThem) {
  const std::string text = with_multicast(
      "%6 = constant 8 : i32\n  %7 = lt %5, %6 : pred[1, 64]\n"
      "  %8 = multimem_reduce.bf16 %2, %5, %7 : f32[1, 64]\n  multimem_store.f16 %2, %5, %8\n"
      "  multimem_store.f32 %2, %5, %8, %7");
  const Program program = parse_text(text);
  verify(program);
  const std::string printed = print_text(program);
  EXPECT_EQ(print_text(parse_text(printed)), printed);
  for (const char* part : {"multicast %", "= multimem_reduce.bf16 %", "multimem_store.f16 %"}) {
    EXPECT_NE(printed.find(part), std::string::npos) << part;
  }
}

std::string with(std::string_view line) {
  return "kernel k\nwarps 1\ngrid 1\nparam 0 input 0\n{\n  %0 = param 0 : ptr\n  %1 = range 1 : "
         "i32[1, 64]\n  %2 = constant 1 : i64\n  " +
         std::string(line) + "\n}\n";
}

TEST(TileText, PrintsTilesOfTensorsAsItReadsThem) {
  const std::string text = with(
      "%3 = constant 8 : i32\n  %4 = load_tile.f16 %0, %2, %3, %3, %2, %3 : f32[1, 64]\n  "
      "store_tile.bf16 %0, %3, %2, %2, %3, %3, %4");
  const Program program = parse_text(text);
  verify(program);
  EXPECT_EQ(print_text(program), text);
}

std::string error_of_text(const std::string& text) {
  try {
    verify(parse_text(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(TileText, SaysWhereATextIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "line 1: found the end, expected 'kernel'"},
      {"kernel k\nthreads 4\n", "line 2: found 'threads', expected kernel, target, warps"},
      {with("%0 = constant 1 : i64"),
       "line 9: found '%0', expected a value that has no definition"},
      {with("%9 = add %2, %7 : i64"), "line 9: %7 is defined nowhere"},
      {with("%9 = frobnicate %2 : i64"), "line 9: found 'frobnicate', expected an operation"},
      {with("%9 = load %0, %1 : f32[1, 64]"), "line 9: found 'load', expected a dtype behind it"},
      {with("%9 = load.f7 %0, %1 : f32[1, 64]"), "line 9: found 'load.f7', expected a dtype"},
      {with("%9 = range 1 : i32[1, 48]"), "line 9: found '48', expected a power of two"},
      {with("%9 = range 1 : i32[1, 64] #0"), "line 9: found '0', expected a number from 0 to -1"},
      {with("%9 = constant 1.5 : i64"), "line 9: found '1.5', expected a 64-bit integer"},
      {with("constant 1 : i64"), "line 9: found 'constant', expected a name for its result"},
      {with("%9 = neg %2"), "line 9: found the end of the line, expected ':'"},
      {with("yield %2"), "line 9: found 'yield', expected an instruction"},
      {with("%9 = for %8 = %2 to %2 step %2 {\n"), "line 12: found the end, expected `}`"},
      {with("store.bf16 %0, \"\x01"), "line 9: found '\"', expected a string"},
      {with("%99999999 = constant 1 : i64"), "expected a number below 1048576"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(error_of_text(text).find(expected), std::string::npos)
        << "found: " << error_of_text(text) << "\nexpected: " << expected;
  }
}

TEST(TileVerify, RefusesWhatIsNoProgram) {
  const std::pair<std::string, std::string> cases[] = {
      {with("%9 = add %2 : i64"), "%9 (add): found 1 operands, expected 2"},
      {with("%9 = add %8, %2 : i64\n  %8 = neg %2 : i64"),
       "found operand %8, expected a value that is"},
      {with("%9 = load.bf16 %2, %1 : f32[1, 64]"), "found the pointer %2 : i64, expected ptr"},
      {with("%9 = load.bf16 %0, %2 : f32[1, 64]"), "the offsets %2 : i64, expected a tile"},
      {with("%9 = load.bf16 %0, %1 : i64[1, 64]"), "found i64[1, 64] as bf16, expected f32 values"},
      {with("%9 = load.bf16 %0, %1, %1 : f32[1, 64]"), "the mask %1 : i32[1, 64], expected pred"},
      {with("%9 = load_scalar.i32 %2, %2 : i64"), "found the pointer %2 : i64, expected ptr"},
      {with("%9 = load_scalar.i32 %0, %1 : i64"),
       "found the index %1 : i32[1, 64], expected an int"},
      {with("%9 = load_scalar.i32 %0, %2 : i64[1, 64]"), "found i64[1, 64], expected a scalar"},
      {with("%9 = load_scalar.i32 %0, %2 : f32"), "found f32 as i32, expected integers"},
      {with("%9 = load_scalar.i32 %0, %2, %0 : i64"), "the condition %0 : ptr, expected a scalar"},
      {with("check_index 0, %2, %0"), "found the index %0 : ptr, expected integers"},
      {with("%9 = lt %1, %2 : pred[1, 64]\n  check_index 0, %2, %2, %9"),
       "the mask %9 : pred[1, 64]"},
      {with("%9 = add %2, %0 : i64"), "operand %0 : ptr, expected numbers"},
      {with("%9 = lt %1, %2 : i64[1, 64]"), "expected a result of the function's kind"},
      {with("%9 = add %1, %2 : i64[2, 64]"), "expected a result of the shape [1, 64]"},
      {with("%9 = reduce.sub %1 : i32[1, 1]"), "found sub, expected add, mul"},
      {with("%9 = reduce.add %1 : i32[1, 64]"), "found i32[1, 64], expected i32[1, 1]"},
      {with("%9 = for %8 = %2 to %2 step %2 {\n  %7 = neg %8 : i64\n  }\n  %6 = neg %7 : i64"),
       "found operand %7"},
      {with("%9 = for %8 = %2 to %2 step %2 carry %7 = %2 : i64 {\n  }"),
       "found 0 yields, expected 1"},
      {with("%9 = for %8 = %2 to %2 step %2 carry %7 = %2 : i64 {\n  yield %1\n  }"),
       "the yield %1 : i32[1, 64], expected i64"},
      {with("%9 = for %8 = %2 to %2 step %2 {\n  }\n  %6 = result 0, %9 : i64"), "found result 0"},
      {with("%9 = result 0, %2 : i64"), "expected a loop"},
      {with("%9 = param 3 : i64"), "found parameter 3, expected one below 1"},
      {with("%9 = for %8 = %2 to %2 step %2 {\n  meet_blocks\n  }"),
       "(meet_blocks): found it in a loop or a role"},
      {"kernel k\nwarps 1\nworld 2\ngrid 1\nflag_slots 1\n{\n  %0 = constant 0 : i64\n  "
       "signal %0, _, _\n  meet_blocks\n}\n",
       "(meet_blocks): found a group, expected a kernel without one"},
      {"kernel k\nwarps 3\ngrid 1\n{\n}\n", "found 3 warps"},
      {"kernel k\nwarps 1\ngrid 1\nlayout 0 [1, 64] reg lane warp\n{\n  %0 = range 1 : i32[1, 64] "
       "#0\n}\n",
       "found a layout of [1, 64], expected one that spreads it"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(error_of_text(text).find(expected), std::string::npos)
        << "found: " << error_of_text(text) << "\nexpected: " << expected;
  }
}

TEST(TileVerify, RefusesTilesOfNoTensor) {
  const std::pair<std::string, std::string> cases[] = {
      {with("%9 = load_tile.f32 %0, %2, %2, %2, %2 : f32[1, 64]"),
       "%9 (load_tile): found 5 operands, expected 6"},
      {with("%9 = load_tile.f32 %2, %2, %2, %2, %2, %2 : f32[1, 64]"),
       "found the pointer %2 : i64, expected ptr"},
      {with("%9 = load_tile.f32 %0, %0, %2, %2, %2, %2 : f32[1, 64]"),
       "found the rows %0 : ptr, expected an integer scalar"},
      {with("%9 = load_tile.f32 %0, %2, _, %2, %2, %2 : f32[1, 64]"), "found operand none"},
      {with("%9 = load_tile.f32 %0, %2, %2, %1, %2, %2 : f32[1, 64]"),
       "found the row stride %1 : i32[1, 64], expected an integer scalar"},
      {with("%8 = constant -1 : i32\n  %9 = load_tile.f32 %0, %2, %2, %2, %2, %8 : f32[1, 64]"),
       "%9 (load_tile): found the column -1, expected at least 0"},
      {with("%9 = load_tile.f32 %0, %2, %2, %2, %2, %2 : f32"), "found f32, expected a tile"},
      {with("%9 = load_tile.i32 %0, %2, %2, %2, %2, %2 : f32[1, 64]"),
       "found f32[1, 64] as i32, expected integers"},
      {with("store_tile.i32 %0, %2, %2, %2, %2, %2, %2"),
       "(store_tile): found i64, expected a tile"},
      {with("store_tile.f16 %0, %2, %2, %2, %2, %2, %1"),
       "(store_tile): found i32[1, 64] as f16, expected f32 values"},
      {with("wait %2, %2, _, %2"),
       "(wait): found a rank and a number of slots, expected the slots of every rank"},
      {with("wait %2, _, _, %1"), "the number of slots"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(error_of_text(text).find(expected), std::string::npos)
        << "found: " << error_of_text(text) << "\nexpected: " << expected;
  }
}

TEST(TileVerify, RefusesPacketsThatAreNone) {
  const std::pair<std::string, std::string> cases[] = {
      {with("%9 = epoch : i64"),
       "%9 (epoch): found no parameter 'peers', expected the parameters of a kernel that"},
      {with_packets("%9 = epoch : i32"), "%9 (epoch): found i32, expected i64"},
      {with_packets("%9 = ll_load.f32 %1, %3, %0 : f32[1, 64]"),
       "found the pointer %1 : i64, expected ptr"},
      {with_packets("%9 = ll_load.f32 %2, %3, %3 : f32[1, 64]"),
       "found the rank %3 : i32[1, 64], expected an integer scalar"},
      {with_packets("%9 = ll_load.f32 %2, %3, %0 : f32[1, 32]"),
       "found the offsets %3 : i32[1, 64], expected the shape [1, 32]"},
      {with_packets("%9 = ll_load.f32 %2, %3, %0, %3 : f32[1, 64]"),
       "the mask %3 : i32[1, 64], expected pred"},
      {with_packets("%9 = ll_load.f32 %2, %3 : f32[1, 64]"), "found 2 operands, expected 3 to 4"},
      {with_packets("%9 = ll_load.i64 %2, %3, %0 : i64[1, 64]"),
       "(ll_load): found i64, expected a dtype of at most 4 bytes"},
      {with_packets("ll_store.f32 %2, %3, %3"), "found i32[1, 64] as f32, expected f32 values"},
      {with_packets("%9 = constant 8 : i64\n  %8 = peer %9, %0 : ptr\n  ll_store.i32 %8, %3, %3"),
       "(ll_store): found a pointer to no buffer of the group, expected one to the scratch"},
      {with_packets("%9 = param 7 : i64\n  %8 = peer %9, %0 : ptr\n  ll_store.i32 %8, %3, %3"),
       "(ll_store): found a pointer to 'offset', expected one to the scratch of a rank"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(error_of_text(text).find(expected), std::string::npos)
        << "found: " << error_of_text(text) << "\nexpected: " << expected;
  }
}

TEST(TileVerify, RefusesAccessesOfAllRanksThatAreNone) {
  const std::string reduce = "%9 = multimem_reduce.f32 %2, %5 : f32[1, 64]";
  const std::pair<std::string, std::string> cases[] = {
      {with("%9 = multicast %2 : ptr"),
       "%9 (multicast): found no parameter 'multicast', expected the parameters of a kernel"},
      {with_multicast("%9 = multimem_reduce.f32 %3, %5 : f32[1, 64]"),
       "(multimem_reduce): found a pointer to one rank, expected one to all: multicast"},
      {with_multicast("multimem_store.i32 %2, %5, %5"),
       "(multimem_store): found i32, expected f32, f16 or bf16"},
      {with_multicast("%9 = load.f32 %2, %5 : f32[1, 64]"),
       "(load): found a pointer to all ranks, expected multimem_reduce or multimem_store of it"},
      {with_multicast("store.i32 %2, %5, %5"), "(store): found a pointer to all ranks"},
      {with_multicast(reduce, /*meets=*/false),
       "(multimem_reduce): found an access of all ranks, expected a wait for all of them"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(error_of_text(text).find(expected), std::string::npos)
        << "found: " << error_of_text(text) << "\nexpected: " << expected;
  }
  EXPECT_EQ(error_of_text(with_multicast(reduce)), "no error");
}

}  // namespace
}  // namespace braid::tile
