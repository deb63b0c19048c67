// The kernels, in the order in which a body asks. A line is a phase.

#include <algorithm>
#include <limits>

#include "braid/error.h"
#include "codegen/device_model.h"
#include "codegen/kernel/kernel.h"

namespace braid {

extern const Work kNothing, kRows, kOperand, kRowsFromPeers, kSumAtOwner, kRowsFromOwner, kSumAtAll,
    kRowsFromHere, kSendPackets, kRowsFromPackets, kGemmTile, kGroupedTile, kCopiedPanel,
    kGatheredTile, kOwnTile, kPushedTile, kRowsOfParts, kAttentionTile, kPagedAttention,
    kJoinedParts, kRouting, kTopK;

namespace {

/// Held rows that are more than the device has blocks of, whose threads have the registers for the
/// next row, too, are dealt to so many: a block loads its next row before it reduces this one
/// (passes/prefetch.cpp).
std::int64_t resident_blocks(const BodyFacts& facts, const Config& config, const Target& target,
                             int /*ranks_per_device*/) {
  if (facts.rows != Rows::kHeld) return std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kThreads = 1024;  // of a multiprocessor, of 64 registers each
  const std::int64_t threads = 32 * config.at("num_warps");
  return device_model(target).sms * std::max<std::int64_t>(1, kThreads / threads);
}

/// One for each multiprocessor where warps have roles: while a block's sums are stored, its ring
/// fills again.
std::int64_t of_ring(const BodyFacts&, const Config& config, const Target& target,
                     int /*ranks_per_device*/) {
  return has_ring(config) ? device_model(target).sms : std::numeric_limits<std::int64_t>::max();
}

std::int64_t few_blocks(const BodyFacts&, const Config&, const Target&, int ranks_per_device) {
  return kMaxCollectiveBlocks / ranks_per_device;
}

/// One for each multiprocessor, less those that the kernel leaves to others.
std::int64_t multiprocessors(const BodyFacts&, const Config& config, const Target& target,
                             int ranks_per_device) {
  const auto leaves = config.find(std::string(kLeavesSetting));
  return device_model(target).sms / ranks_per_device -
         (leaves == config.end() ? 0 : leaves->second);
}

using Who = Role::Who;
constexpr Role kCopying{Who::kSome, kCopyBlocksSetting};

/// A collective with everything that follows it, and what is computed in front of it: a block b
/// reads what the blocks b of all ranks wrote, so meetings are of these.
Kernel of_collective(std::vector<Phase> phases, bool closes) {
  return {.name = "collective", .phases = std::move(phases), .closes = closes, .room = few_blocks};
}

}  // namespace

std::span<const Kernel> kernels() {
  static const Kernel kKernels[] = {
      {.name = "barrier",
       .phases = {{.work = &kNothing, .meet = Meet::kAlike, .role = {Who::kOne}}},
       .room = few_blocks},

      // The blocks that copy come first, so that those which wait for them are not alone on the
      // device. All flags are raised in each run, whatever the symbols.
      {.name = "gather_gemm",
       .phases = {{&kCopiedPanel, Order::kStride, Meet::kAlike, kCopying},
                  {&kGatheredTile, Order::kOwnFirst, Meet::kPieces, {Who::kOthers}}},
       .closes = true,
       .room = multiprocessors},

      // A flag for each tile would let the sums begin no sooner, for each needs this rank's own
      // tiles, which come last; and a signal is a fence, which waits for the stores in front of it.
      // No block waits before it has sent all its tiles, so any number of tiles comes to an end.
      {.name = "gemm_reduce",  // of a reduce-scatter
       .phases = {{&kPushedTile, Order::kOwnLast}, {&kRowsOfParts, Order::kStride, Meet::kAll}},
       .closes = true,
       .room = multiprocessors},
      {.name = "gemm_reduce",  // of an all-reduce: for few rows, where a launch and a barrier count
       .phases = {{&kOwnTile, Order::kStride}, {&kRowsFromPeers, Order::kStride, Meet::kAll}},
       .closes = true,
       .room = multiprocessors},

      // Two shots: each piece has an owner, who alone reads it from all ranks and puts the sum in
      // the place of its own operand, which nobody else reads there. So the link carries each
      // element twice, however many ranks there are, and the operand is gone.
      of_collective({{&kOperand},
                     {&kSumAtOwner, Order::kOwned, Meet::kAlike},
                     {&kRowsFromOwner, Order::kOfOwners, Meet::kAlike}},
                    /*closes=*/true),
      // The same by multimem. The kernel ends with its work: nobody is read, or written to, after
      // the second meeting.
      of_collective({{&kOperand},
                     {&kSumAtAll, Order::kOwned, Meet::kAlike},
                     {&kRowsFromHere, Order::kStride, Meet::kAlike}},
                    /*closes=*/false),
      // Packets: twice the bytes, and no meeting. The operand is not in the arena. Nobody reads a
      // peer's memory, so no run has to end with a meeting either.
      of_collective({{&kSendPackets}, {&kRowsFromPackets}}, /*closes=*/false),
      // One shot: every rank reads what it needs of the operand of every rank.
      of_collective({{&kOperand}, {&kRowsFromPeers, Order::kStride, Meet::kAlike}},
                    /*closes=*/true),

      {.name = "grouped_gemm", .phases = {{&kGroupedTile}}, .room = of_ring},
      {.name = "join_attention", .phases = {{&kJoinedParts}}},
      {.name = "paged_attention", .phases = {{&kPagedAttention}}},
      {.name = "attention", .phases = {{&kAttentionTile}}},
      {.name = "moe_routing", .phases = {{&kRouting}}},
      {.name = "topk", .phases = {{&kTopK}}},
      {.name = "gemm", .phases = {{&kGemmTile}}, .room = of_ring},
      {.name = "elementwise", .phases = {{&kRows}}, .room = resident_blocks},
  };
  return kKernels;
}

const Kernel& find_kernel(const Graph& body, std::span<const Kernel> among) {
  for (const Kernel& kernel : among) {
    const bool is_its = std::ranges::all_of(kernel.phases, [&](const Phase& phase) {
      return phase.work->matches == nullptr || phase.work->matches(body);
    });
    if (is_its) return kernel;
  }
  throw_internal(body.name(), "no kernel matches the body");
}

}  // namespace braid
