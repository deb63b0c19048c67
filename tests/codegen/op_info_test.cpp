// The table of tile operations: what its traits say together makes sense, and each entry is found
// by its enumerator and by its name.

#include "codegen/tile/op_info.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace braid::tile {
namespace {

TEST(TileOps, AreFoundByEnumeratorAndByName) {
  for (const OpInfo& info : op_infos()) {
    EXPECT_EQ(op_info(info.op).name, info.name);
    EXPECT_EQ(op_named(info.name), info.op) << info.name;
  }
}

TEST(TileOps, HaveTraitsThatFitTogether) {
  for (const OpInfo& info : op_infos()) {
    SCOPED_TRACE(info.name);
    const bool memory = info.reads || info.writes;
    const bool peers = info.signals || info.waits || info.packets || info.multimem;
    EXPECT_TRUE(info.max_args == -1 || info.min_args <= info.max_args);
    if (info.pure) {
      EXPECT_TRUE(info.has_result);
      EXPECT_FALSE(info.repeatable || memory || info.fills_shared || peers);
      EXPECT_FALSE(info.needs_all_warps || has_effect(info.op));
    }
    if (info.repeatable) {
      EXPECT_FALSE(info.writes || info.fills_shared || peers || info.needs_all_warps);
    }
    if (info.writes || info.fills_shared || info.signals) {
      EXPECT_FALSE(info.has_result);
      EXPECT_TRUE(has_effect(info.op));
    }
    EXPECT_TRUE(info.has_dtype || !memory);
    // The blocks of one grid are no peers.
    EXPECT_TRUE(info.communicates || !peers || info.op == Op::kMeetBlocks);
    EXPECT_TRUE(info.reads != info.writes || !(info.packets || info.multimem));
    EXPECT_TRUE(info.pure || !info.leads_to_arena);
    EXPECT_TRUE(info.has_result || !info.stays);
    EXPECT_EQ(info.pointer >= 0, memory);
    // A cast reads a tile in shared memory, no registers.
    const bool stores = info.writes || (info.fills_shared && info.op != Op::kCastShared);
    EXPECT_EQ(info.value >= 0, !info.has_result && stores && !info.reads);
    for (const int operand : {info.condition, info.pointer, info.elements, info.value}) {
      EXPECT_LT(operand, std::max(info.min_args, info.max_args));
    }
  }
}

}  // namespace
}  // namespace braid::tile
