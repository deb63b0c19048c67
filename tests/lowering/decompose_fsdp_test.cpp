#include <gmock/gmock.h>

#include <algorithm>

#include "lowering/fsdp_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kGroup = R"("group": "tp")";
const std::string kSizes = R"("split_sizes": [2, 4], "dim": -1)";

/// Inputs a f32[2, 2], b f32[2] and the buffer of a gather of both; and x, y f32[2, 6].
Graph graph_on(int world, const std::vector<std::string>& list,
               const std::vector<std::string>& outputs) {
  const std::string inputs = input("a", "2, 2") + "," + input("b", "2") + "," +
                             input("buf", std::to_string(6 * world)) + "," + input("x", "2, 6") +
                             "," + input("y", "2, 6");
  return graph_of(inputs, nodes(list), names(outputs), world);
}

/// Lines of what becomes of it, after it was seen to keep the values on 2 and 4 ranks.
std::vector<std::string> plain(const std::vector<std::string>& list,
                               const std::vector<std::string>& outputs) {
  std::vector<std::string> result;
  for (int world : {2, 4}) {
    const Graph graph = graph_on(world, list, outputs);
    verify(graph);
    PassContext context = sm80();
    const Graph once = decompose_fsdp(graph, context);
    verify(once);
    expect_same_values(graph, once);
    result = lines(once);
    PassContext again = sm80();
    EXPECT_EQ(lines(decompose_fsdp(once, again)), result);
    EXPECT_THAT(again.remarks, IsEmpty());
  }
  return result;
}

const std::string kCopyIn = call("in", "fsdp.all_gather_copy_in", {"a", "b", "buf"}, kGroup);
const std::string kGather = call("g", "all_gather_into_tensor_out", {"in:0", "in:1"}, kGroup) +
                            "," + call("w", "wait_tensor", {"g"});

TEST(DecomposeFsdp, CopyInIsACat) {
  EXPECT_THAT(
      plain({kCopyIn, kGather}, {"w", "buf"}),
      ElementsAre("in_flat = view(a)", "in_flat1 = view(b)", "in = cat(in_flat, in_flat1)",
                  "g = all_gather_into_tensor_out(in, buf)", "w = wait_tensor(g)", "-> w, buf"));
}

TEST(DecomposeFsdp, GetitemsOfThemGo) {
  EXPECT_THAT(plain({kCopyIn, call("i0", "getitem", {"in"}, R"("index": 0)"),
                     call("i1", "getitem", {"in"}, R"("index": 1)"),
                     call("g", "all_gather_into_tensor_out", {"i0", "i1"}, kGroup),
                     call("w", "wait_tensor", {"g"}),
                     call("s", "fsdp.split_with_sizes_copy", {"x"}, kSizes),
                     call("s1", "getitem", {"s"}, R"("index": 1)"), call("u", "neg", {"s1"})},
                    {"w", "u"}),
              ElementsAre("in_flat = view(a)", "in_flat1 = view(b)", "in = cat(in_flat, in_flat1)",
                          "g = all_gather_into_tensor_out(in, buf)", "w = wait_tensor(g)",
                          "s:0, s:1 = split(x)", "u = neg(s:1)", "-> w, u"));
}

// Two copies into one buffer that nobody looks at.
TEST(DecomposeFsdp, AnUnreadBufferIsForgotten) {
  EXPECT_THAT(plain({kCopyIn, call("in2", "fsdp.all_gather_copy_in", {"b", "a", "buf"}, kGroup),
                     call("u", "sub", {"in:0", "in2:0"})},
                    {"u"}),
              ElementsAre("in_flat = view(a)", "in_flat1 = view(b)", "in = cat(in_flat, in_flat1)",
                          "in2_flat = view(b)", "in2_flat1 = view(a)",
                          "in2 = cat(in2_flat, in2_flat1)", "u = sub(in, in2)", "-> u"));
}

// The position in the buffer depends on the rank.
TEST(DecomposeFsdp, ABufferThatIsReadIsJoined) {
  const std::vector<std::string> in{"in_flat = view(a)",
                                    "in_flat1 = view(b)",
                                    "in = cat(in_flat, in_flat1)",
                                    "in_other = chunk_by_rank(buf)",
                                    "in_other1 = chunk_by_rank(buf)",
                                    "in_other2 = chunk_by_rank(buf)",
                                    "in_whole = join_by_rank(in, in_other, in_other1, in_other2)",
                                    "in_buffer = copy_(buf, in_whole)"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = in;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_EQ(plain({kCopyIn, call("u", "neg", {"in:1"})}, {"u"}),
            with({"u = neg(in_buffer)", "-> u"}));
  EXPECT_EQ(plain({kCopyIn, call("u", "neg", {"buf"}), kGather}, {"u", "w"}),
            with({"u = neg(buf)", "g = all_gather_into_tensor_out(in, in_buffer)",
                  "w = wait_tensor(g)", "-> u, w"}));
  EXPECT_EQ(plain({kCopyIn}, {"buf"}), with({"-> buf"}));
  // An earlier copy is read with the rest of the buffer.
  const std::vector<std::string> twice =
      plain({kCopyIn, call("in2", "fsdp.all_gather_copy_in", {"b", "a", "buf"}, kGroup)}, {"buf"});
  EXPECT_EQ(std::count_if(twice.begin(), twice.end(),
                          [](const std::string& line) {
                            return line.find("join_by_rank") != std::string::npos;
                          }),
            2);
}

TEST(DecomposeFsdp, SplitWithSizesCopyIsASplit) {
  EXPECT_THAT(plain({call("s", "fsdp.split_with_sizes_copy", {"x"}, kSizes),
                     call("one", "fsdp.split_with_sizes_copy", {"s:1"}, R"("split_sizes": [2])")},
                    {"s:0", "one"}),
              ElementsAre("s:0, s:1 = split(x)", "one = split(s:1)", "-> s:0, one"));
}

TEST(DecomposeFsdp, PartsOfWhatIsOverwrittenAreCopied) {
  EXPECT_THAT(plain({call("s", "fsdp.split_with_sizes_copy", {"x"}, kSizes),
                     call("k", "copy_", {"x", "y"})},
                    {"s:0", "s:1"}),
              ElementsAre("s:0, s:1 = split(x)", "s_copy = copy(s:0)", "s_copy1 = copy(s:1)",
                          "k = copy_(x, y)", "-> s_copy, s_copy1"));
  EXPECT_THAT(plain({call("s", "fsdp.split_with_sizes_copy", {"x"}, kSizes),
                     call("n", "neg", {"s:0"}), call("k", "copy_", {"s:0", "n"})},
                    {"s:0", "x"}),
              ElementsAre("s:0, s:1 = split(x)", "s_copy = copy(s:0)", "n = neg(s_copy)",
                          "k = copy_(s_copy, n)", "-> s_copy, x"));
}

TEST(DecomposeFsdp, ChunkCatIsACat) {
  EXPECT_THAT(plain({call("c", "fsdp.chunk_cat", {"a", "x"}, R"("num_chunks": 2)"),
                     call("d", "fsdp.chunk_cat", {"a", "x"}, R"("num_chunks": 2, "dim": -1)")},
                    {"c", "d"}),
              ElementsAre("c_chunks = view(a)", "c_chunks1 = view(x)",
                          "c = cat(c_chunks, c_chunks1)", "d_chunks = view(a)",
                          "d_chunks1 = view(x)", "d = cat(d_chunks, d_chunks1)", "-> c, d"));
}

TEST(DecomposeFsdp, LeavesMutationsToFunctionalize) {
  const std::vector<std::string> list{resize("f", "x", 48), call("k", "fsdp.copy_", {"x", "y"}),
                                      call("u", "neg", {"x"})};
  EXPECT_EQ(plain(list, {"u"}), lines(graph_on(4, list, {"u"})));
}

}  // namespace
}  // namespace braid::testing
