#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "codegen/body/coords.h"
#include "codegen/body/sources.h"
#include "codegen/tile/fragments.h"
#include "codegen/work/rows.h"
#include "codegen/work/work.h"

namespace braid {

/// What a kernel asks of the tiles of its matmuls.
struct GemmUse {
  Dim rows;                  ///< of the left operand
  std::int64_t chunks = 1;   ///< so many times these rows, each with tiles of its own
  Dim groups = 1;            ///< these rows are cut into so many parts, each with a weight
  std::int64_t warps = 0;    ///< as many as the rest of the kernel needs; 0: any
  bool gathers = false;      ///< the left operand is gathered, and loaded as an input is
  bool rows_follow = false;  ///< rows that are reduced over ranks: tiles go through shared memory
  bool waits = false;        ///< it waits for peers: one block per multiprocessor
  bool resident = false;     ///< all its blocks stay, as many as are sure to be resident at once
  std::int64_t copying = 0;  ///< multiprocessors that do something else
  bool rings = false;        ///< bulk copies can bring its operands (work.h)
};

/// The tiles that a tuner may choose from, the quickest by a reckoning from the device's data sheet
/// (gemm_config.cpp) first. Each element of the result adds its products in the same order, along K
/// and one after the other.
[[nodiscard]] std::vector<Config> gemm_configs(const BodyFacts& facts, const Target& target,
                                               const GemmUse& use);
/// By that reckoning.
[[nodiscard]] double gemm_ns(const BodyFacts& facts, const Config& config, const Bindings& bindings,
                             const Target& target, const GemmUse& use);

/// Of a work whose use of tiles `kUse` tells, by what else stands in a config.
template <GemmUse (*kUse)(const BodyFacts& facts, const Config& config)>
std::vector<Config> gemm_configs(const BodyFacts& facts, const Target& target) {
  return gemm_configs(facts, target, kUse(facts, Config()));
}
template <GemmUse (*kUse)(const BodyFacts& facts, const Config& config)>
double gemm_rough_ns(const BodyFacts& facts, const Config& config, const Bindings& bindings,
                     const Target& target) {
  return gemm_ns(facts, config, bindings, target, kUse(facts, config));
}

/// How a kernel of such tiles arranges its warps: as nearly square as can be.
[[nodiscard]] int gemm_warps_m(const Config& config);

inline constexpr Setting kWaitingGemmSettings[] = {
    kWarpsSetting,
    {"BLOCK_M", 16, 256, true},
    {"BLOCK_N", 16, 256, true},
    {"BLOCK_K", 16, 256, true},
    {"GROUP_M", 1, 64, false},
    {"num_stages", 2, 8, false},
    {kLeavesSetting, 0, 256, false},
};
inline constexpr std::span kGemmSettings =
    std::span<const Setting>(kWaitingGemmSettings).first(std::size(kWaitingGemmSettings) - 1);
template <std::size_t kCount>
constexpr std::array<Setting, kCount + 1> with_ring(std::span<const Setting, kCount> settings) {
  std::array<Setting, kCount + 1> all{};
  std::ranges::copy(settings, all.begin());
  all.back() = {kRingSetting, 0, 1, false};
  return all;
}
inline constexpr auto kRingGemmSettings =
    with_ring(std::span(kWaitingGemmSettings).first<std::size(kWaitingGemmSettings) - 1>());
inline constexpr auto kWaitingRingSettings = with_ring(std::span(kWaitingGemmSettings));

/// So many products along K are one sum of their own, of the body's matmuls: those of a chain
/// (units.h), or of a block that has a scale; else 0.
[[nodiscard]] std::int64_t chain_of(const Graph& body, const Target& target);

/// The parts of a tile's columns that a kernel with a ring multiplies one after the other: one,
/// unless K is in chains and it has one matmul. Then there are registers for the sums of all parts,
/// and for the products of one.
inline std::int64_t parts_of_tile(std::int64_t chain, std::int64_t columns, std::int64_t matmuls) {
  constexpr std::int64_t kMost = 128;
  return chain != 0 && matmuls == 1 ? std::max<std::int64_t>(1, columns / kMost) : 1;
}

/// Products with no more rows than this are bound by reading their weights.
inline constexpr std::int64_t kFewRows = 64;

/// What the kernel of a matmul copies of an operand that it computes itself, by elementwise nodes
/// and views that `is_inside` names. Nothing where the operand is better made by another kernel:
/// where the matmul has many rows, and bulk copies bring a quicker unit its operands as they are in
/// memory; and where more than casts and scales would be done in several blocks.
[[nodiscard]] std::optional<std::vector<Source>> made_of(
    const Graph& graph, const Node& matmul, std::size_t input, const Target& target,
    const std::function<bool(NodeId)>& is_inside);

/// Slots for the sums of a tile: two where tensor memory has room, and while the sums of one tile
/// are taken, those of the next one are made; 0 where they do not fit at all.
inline int slots_of_sums(std::int64_t rows, std::int64_t columns, std::int64_t matmuls) {
  constexpr std::int64_t kMost = 2;
  const std::int64_t of_tile = rows / tile::kRowsOfSums * columns * matmuls;
  return static_cast<int>(std::min(kMost, std::int64_t{tile::kColumnsOfSums} / of_tile));
}
/// So many columns of a tile are taken at a time: a thread has few of each matmul's sums, and what
/// meets them.
inline std::int64_t columns_taken(std::int64_t rows, std::int64_t columns, std::int64_t warps,
                                  std::int64_t matmuls) {
  constexpr std::int64_t kSumsOfThread = 64;
  const std::int64_t taken = std::min(columns, kSumsOfThread * 32 * warps / rows / matmuls);
  const std::int64_t least =
      tile::kColumnsOfLoad *
      tile::group_grid(static_cast<int>(rows), static_cast<int>(warps), tile::kRowsOfSums)
          .along_cols;
  return std::max(taken, least);
}

/// Columns of results that a kernel with a ring sends through shared memory at a time.
inline constexpr std::int64_t kStagedColumns = 128;

}  // namespace braid
