#pragma once

#include <cstdint>
#include <vector>

#include "codegen/body/emitter.h"

namespace braid {

/// What a template's kernel demands of the tiles of its matmuls.
struct GemmUse {
  Dim rows;                     ///< rows of the left operand
  std::int64_t chunks = 1;      ///< the rows are repeated this often, each time with tiles of their
                                ///< own
  std::int64_t warps = 0;       ///< required by the rest of the kernel; 0: any
  bool changes_layout = false;  ///< a tile goes through shared memory, beside the ring
  bool waits = false;           ///< it waits for peers: one block per multiprocessor
  std::int64_t copying = 0;     ///< multiprocessors that do something else
};

/// The fastest tiles by an estimate from the device's data sheet (gemm_config.cpp).
[[nodiscard]] Config gemm_config(const Graph& body, const BodyInfo& info, const Target& target,
                                 const GemmUse& use);
/// The configurations that a tuner may choose from: `base` first, then tiles in its place, fastest
/// first by that estimate. In all of them each element of the result sums its products in the same
/// order, one after the other along K.
[[nodiscard]] std::vector<Config> gemm_candidates(const Graph& body, const BodyInfo& info,
                                                  const Target& target, const GemmUse& use,
                                                  const Config& base);
/// The time by that estimate.
[[nodiscard]] double gemm_ns(const KernelSpec& spec, const BodyInfo& info, const Bindings& bindings,
                             const Target& target, const GemmUse& use);

/// The number of warps along M for such tiles: the arrangement is as square as possible.
[[nodiscard]] int gemm_warps_m(const Config& config);

inline constexpr Setting kGemmSettings[] = {
    kWarpsSetting,
    {"BLOCK_M", 16, 256, true},
    {"BLOCK_N", 16, 256, true},
    {"BLOCK_K", 16, 256, true},
    {"GROUP_M", 1, 64, false},
    {"num_stages", 2, 8, false},
};

}  // namespace braid
