#include "runtime/cpu/run/warp_helpers.h"

// Functions that count accesses which generated code cannot count itself. `place` is the line's
// index in CountSites.

namespace braid::cpu {
namespace {

void count_global(Warp& warp, const std::uint64_t* addresses, std::uint32_t mask, AccessCode code,
                  std::uint32_t place) {
  warp.runner->counter().global_access(warp, addresses, mask, code, place);
  warp.runner->leave_where_seen(warp);
}

/// Of global memory, where each lane has its own size.
void count_copy(Warp& warp, const std::uint64_t* addresses, const std::uint32_t* sizes,
                std::uint32_t mask, AccessCode code, std::uint32_t place) {
  warp.runner->counter().global_copy(warp, addresses, sizes, mask, code, place);
  warp.runner->leave_where_seen(warp);
}

/// Of global memory, where lane l is at base + l * step.
void count_row(Warp& warp, std::uint64_t base, std::uint32_t step, std::uint32_t mask,
               AccessCode code, std::uint32_t place) {
  warp.runner->counter().global_row(warp, base, step, mask, code, place);
  warp.runner->leave_where_seen(warp);
}

}  // namespace

std::vector<RuntimeHelper> count_helpers() {
  return {{"count_access", kEntry<&BlockRunner::count_access>},
          {"count_global", count_global},
          {"count_copy", count_copy},
          {"count_shared", kEntry<&BlockCounter::shared_access>},
          {"count_row", count_row}};
}

}  // namespace braid::cpu
