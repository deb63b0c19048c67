#include "support.h"

namespace braid {
namespace {

Attrs of_rank(std::int64_t shift) { return {{"group", std::string("tp")}, {"shift", shift}}; }
const Attrs kGroup = {{"group", std::string("tp")}};

TEST(Chunks, InferTheChunkAndTheWhole) {
  EXPECT_EQ(inferred({{kF32, {sym("T") * 2, 4}}}, "chunk_by_rank", of_rank(1)), "f32[T, 4]");
  EXPECT_EQ(inferred({{kF32, {sym("T"), 4}}, {kF32, {sym("T"), 4}}}, "join_by_rank", kGroup),
            "f32[2*T, 4]");
  EXPECT_EQ(inferred({{kF32, {sym("T"), 4}}}, "copy_from_peer", of_rank(1)), "f32[T, 4]");
  EXPECT_EQ(inferred({{kF32, {sym("T") * 2, 4}}}, "copy_chunk_from_peer", of_rank(1)), "f32[T, 4]");
}

TEST(Chunks, AreThoseOfTheRankAfterThisOne) {
  const TensorType whole{kF32, {2, 2}};
  const auto own = computed({whole}, "chunk_by_rank", of_rank(0), {{{1, 2, 3, 4}}, {{5, 6, 7, 8}}});
  EXPECT_EQ(own[0][0], Values({1, 2}));
  EXPECT_EQ(own[1][0], Values({7, 8}));
  const auto next =
      computed({whole}, "chunk_by_rank", of_rank(1), {{{1, 2, 3, 4}}, {{5, 6, 7, 8}}});
  EXPECT_EQ(next[0][0], Values({3, 4}));
  EXPECT_EQ(next[1][0], Values({5, 6}));
}

TEST(Chunks, AreJoinedInRankOrder) {
  const TensorType chunk{kF32, {1, 2}};
  const auto joined =
      computed({chunk, chunk}, "join_by_rank", kGroup, {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}});
  EXPECT_EQ(joined[0][0], Values({1, 2, 3, 4}));
  EXPECT_EQ(joined[1][0], Values({7, 8, 5, 6}));
}

TEST(Chunks, AreCopiedFromThatPeer) {
  const TensorType chunk{kF32, {2}};
  const auto copied = computed({chunk}, "copy_from_peer", of_rank(1), {{{1, 2}}, {{3, 4}}});
  EXPECT_EQ(copied[0][0], Values({3, 4}));
  EXPECT_EQ(copied[1][0], Values({1, 2}));
  const auto chunks = computed({chunk}, "copy_chunk_from_peer", of_rank(1), {{{1, 2}}, {{3, 4}}});
  EXPECT_EQ(chunks[0][0], Values({3}));
  EXPECT_EQ(chunks[1][0], Values({2}));
}

TEST(Chunks, RefuseAtTheOperandOrAttribute) {
  const TensorType odd{kF32, {3, 4}}, even{kF32, {2, 4}};
  EXPECT_TRUE(is_error(refused({odd}, "chunk_by_rank", of_rank(0)), "n/inputs/0", "2 ranks"));
  EXPECT_TRUE(is_error(refused({{kF32, {}}}, "chunk_by_rank", of_rank(0)), "n/inputs/0", "scalar"));
  EXPECT_TRUE(is_error(refused({even}, "chunk_by_rank", of_rank(2)), "n/attrs/shift", "0 to 1"));
  EXPECT_TRUE(is_error(refused({even}, "copy_from_peer", of_rank(-1)), "n/attrs/shift", "0 to 1"));
  EXPECT_TRUE(
      is_error(refused({odd}, "copy_chunk_from_peer", of_rank(0)), "n/inputs/0", "2 ranks"));
  EXPECT_TRUE(is_error(refused({even}, "join_by_rank", kGroup), "n/inputs", "one for each"));
  EXPECT_TRUE(
      is_error(refused({even, odd}, "join_by_rank", kGroup), "n/inputs/1", "as the first one"));
}

}  // namespace
}  // namespace braid
