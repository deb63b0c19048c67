#pragma once

#include <cstdint>
#include <vector>

#include "codegen/body/emitter.h"

namespace braid {

/// What a template's kernel asks of the tiles of its matmuls.
struct GemmUse {
  Dim rows;                     ///< of the left operand
  std::int64_t chunks = 1;      ///< so many times these rows, each with tiles of its own
  std::int64_t warps = 0;       ///< as many as the rest of the kernel needs; 0: any
  bool changes_layout = false;  ///< a tile goes through shared memory, beside the ring
  bool waits = false;           ///< for peers: a multiprocessor has one block, not several
  std::int64_t copying = 0;     ///< multiprocessors that do something else
};

/// The tiles that take the least by a reckoning from the device's data sheet (gemm_config.cpp).
[[nodiscard]] Config gemm_config(const Graph& body, const BodyInfo& info, const Target& target,
                                 const GemmUse& use);
/// Those that a tuner may choose from, the quickest by that reckoning first, beside what else
/// stands in `base`, which is the first of all. Each element of the result adds its products in the
/// same order, along K and one after the other.
[[nodiscard]] std::vector<Config> gemm_candidates(const Graph& body, const BodyInfo& info,
                                                  const Target& target, const GemmUse& use,
                                                  const Config& base);
/// By that reckoning.
[[nodiscard]] double gemm_ns(const KernelSpec& spec, const BodyInfo& info, const Bindings& bindings,
                             const Target& target, const GemmUse& use);

/// How a kernel of such tiles arranges its warps: as nearly square as can be.
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
