#pragma once

#include <cstdint>

namespace braid::cpu {

struct BlockTally;
struct LineTally;

/// The state of a warp that generated code reads by field offset.
struct WarpContext {
  const std::uint8_t* params = nullptr;
  std::uint8_t* shared = nullptr;  ///< host address of the block's shared window
  std::uint8_t* local = nullptr;   ///< 32 x local_bytes
  std::uint32_t tid_base[3] = {};  ///< thread index of lane 0
  std::uint32_t ctaid[3] = {};
  std::uint32_t ntid[3] = {};
  std::uint32_t nctaid[3] = {};
  std::uint32_t warp = 0;
  std::uint32_t warps = 0;
  std::uint32_t live = 0xffffffffU;  ///< lanes that exist
  std::uint32_t dynamic_shared = 0;
  std::uint32_t total_shared = 0;
  std::uint32_t grid_id = 0;
  std::uint32_t clusterid[3] = {};
  std::uint32_t nclusterid[3] = {};
  std::uint32_t cluster_ctaid[3] = {};
  std::uint32_t cluster_nctaid[3] = {1, 1, 1};
  std::uint32_t cluster_rank = 0;
  std::uint32_t cluster_size = 1;
  std::uint32_t explicit_cluster = 0;
  std::uint8_t* const* cluster_windows = nullptr;  ///< by rank, like `shared`
  std::uint8_t* grid_workspace = nullptr;  ///< zeroed at the start of a launch, shared by its
                                           ///< blocks
  BlockTally* block_tally = nullptr;       ///< by basic block, if counted
  LineTally* line_tally = nullptr;         ///< by index in CountSites, likewise
  /// The registers of the first warp that continued from this barrier; null for none.
  const std::uint8_t* leader = nullptr;
  std::uint32_t resume = 0;                   ///< where generated code continues; 0: at the start
  std::uint32_t acted = 0;                    ///< it did more than read memory: see stands()
  std::uint32_t unwritten_reads = 0;          ///< as WarpCheck's
  alignas(64) std::uint32_t tid[3][32] = {};  ///< per lane; only if warps are not full rows
  alignas(64) std::uint8_t dump[64] = {};     ///< readable memory for masked-off lanes
};

inline constexpr std::uint32_t kMaxParameterBytes = 32764;

/// What the launcher must know of generated code, stored in the object beside it. The register file
/// of a kernel that is checked begins with a word for each basic block:
/// WarpContext::unwritten_reads when the warp last entered it.
struct KernelInfo {
  std::uint32_t register_bytes = 0;  ///< size of the register file, scratch included
  std::uint32_t local_bytes = 0;     ///< local memory of one lane
  std::uint32_t shared_bytes = 0;    ///< size of static shared memory; dynamic memory follows
  std::uint32_t waits = 0;           ///< a Waits of control_flow.h
};

/// What generated code reports while it runs.
struct Instrumentation {
  bool checks = false;  ///< each access, to a Sanitizer before it is done
  bool counts = false;  ///< each block, branch and access, to the tallies of its warp
};

/// Instructions that only some hosts have.
struct HostCode {
  bool rounds_to_bfloat = false;  ///< AVX512_BF16
  bool scales = false;            ///< AVX512F and AVX512DQ: scalef, range
};

/// How a run of a warp ends. If it did not end the warp, it is called again when a barrier releases
/// it: the one at which it waits, or barrier 0 for the whole block, where it has yet to arrive.
inline constexpr std::uint32_t kEnds = 0;
inline constexpr std::uint32_t kWaits = 1;
inline constexpr std::uint32_t kArrives = 2;

using WarpFunction = std::uint32_t (*)(WarpContext* context, std::uint8_t* registers);

}  // namespace braid::cpu
