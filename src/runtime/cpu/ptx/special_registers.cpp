#include <charconv>

#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu::ptx {
namespace {

struct Name {
  std::string_view name;
  Special special;
  int axes = 0;   ///< x, y and z follow each other from `special` on
  int count = 0;  ///< if not 0, the names are numbered from 0
};

constexpr Name kNames[] = {
    {"%tid", Special::kTid, 3},
    {"%ntid", Special::kNtid, 3},
    {"%ctaid", Special::kCtaid, 3},
    {"%nctaid", Special::kNctaid, 3},
    {"%laneid", Special::kLaneId},
    {"%warpid", Special::kWarpId},
    {"%nwarpid", Special::kNwarpId},
    {"%smid", Special::kSmId},
    {"%nsmid", Special::kNsmId},
    {"%gridid", Special::kGridId},
    {"%lanemask_eq", Special::kLaneMaskEq},
    {"%lanemask_le", Special::kLaneMaskLe},
    {"%lanemask_lt", Special::kLaneMaskLt},
    {"%lanemask_ge", Special::kLaneMaskGe},
    {"%lanemask_gt", Special::kLaneMaskGt},
    {"%clock", Special::kClock},
    {"%clock_hi", Special::kClockHi},
    {"%clock64", Special::kClock64},
    {"%globaltimer", Special::kGlobalTimer},
    {"%globaltimer_lo", Special::kGlobalTimerLo},
    {"%globaltimer_hi", Special::kGlobalTimerHi},
    {"%dynamic_smem_size", Special::kDynamicSharedSize},
    {"%total_smem_size", Special::kTotalSharedSize},
    {"%aggr_smem_size", Special::kTotalSharedSize},
    {"%reserved_smem_offset_begin", Special::kReservedBegin},
    {"%reserved_smem_offset_end", Special::kReservedEnd},
    {"%reserved_smem_offset_cap", Special::kReservedSize},
    {"%reserved_smem_offset_0", Special::kReservedBegin},
    {"%reserved_smem_offset_1", Special::kReservedMiddle},
    {"%clusterid", Special::kClusterId, 3},
    {"%nclusterid", Special::kNclusterId, 3},
    {"%cluster_ctaid", Special::kClusterCtaid, 3},
    {"%cluster_nctaid", Special::kClusterNctaid, 3},
    {"%cluster_ctarank", Special::kClusterRank},
    {"%cluster_nctarank", Special::kClusterSize},
    {"%is_explicit_cluster", Special::kExplicitCluster},
    // The workspace in which the blocks of a grid synchronize, as in CUDA's headers.
    {"%envreg1", Special::kGridWorkspaceHigh},
    {"%envreg2", Special::kGridWorkspaceLow},
    {"%envreg", Special::kZero, 0, 32},
    {"%current_graph_exec", Special::kZero},
    {"%pm", Special::kZero, 0, 8},
};

/// Whether `rest` is a number below `count`.
bool is_number(std::string_view rest, int count) {
  int value = -1;
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return status == std::errc() && end == rest.data() + rest.size() && value >= 0 && value < count;
}

/// The x, y, z or w component of a register; w is always zero.
std::optional<Special> axis(Special first, std::string_view rest) {
  const std::size_t at = rest.size() == 2 && rest[0] == '.' ? std::string_view("xyzw").find(rest[1])
                                                            : std::string_view::npos;
  if (at == std::string_view::npos) return std::nullopt;
  return at == 3 ? Special::kZero : static_cast<Special>(static_cast<std::size_t>(first) + at);
}

}  // namespace

std::optional<Special> parse_special(std::string_view name) {
  if (name.starts_with("%pm") && name.ends_with("_64")) name.remove_suffix(3);
  for (const Name& known : kNames) {
    if (!name.starts_with(known.name)) continue;
    const std::string_view rest = name.substr(known.name.size());
    if (known.axes != 0) {
      if (const auto special = axis(known.special, rest)) return special;
    } else if (known.count != 0 ? is_number(rest, known.count) : rest.empty()) {
      return known.special;
    }
  }
  return std::nullopt;
}

std::vector<std::string> special_names() {
  std::vector<std::string> names;
  for (const Name& known : kNames) {
    names.emplace_back(known.name);
    if (known.count != 0) names.back() += "<" + std::to_string(known.count) + ">";
  }
  return names;
}

}  // namespace braid::cpu::ptx
