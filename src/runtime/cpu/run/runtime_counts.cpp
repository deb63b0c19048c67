#include <array>

#include "runtime/cpu/run/block_runner.h"

// What generated code calls to count the accesses that it cannot count by itself. `place`: of the
// line, in CountSites.

extern "C" {

static void braid_cpu_count_access(braid::cpu::WarpContext* context, const std::uint64_t* addresses,
                                   std::uint32_t mask, std::uint32_t code, std::uint32_t place) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->count_access(*warp, addresses, mask, code, place);
}

static void braid_cpu_count_global(braid::cpu::WarpContext* context, const std::uint64_t* addresses,
                                   std::uint32_t mask, std::uint32_t code, std::uint32_t place) {
  using namespace braid::cpu;
  auto* warp = static_cast<BlockRunner::Warp*>(context);
  warp->runner->counter().global_access(warp->warp, addresses, mask, AccessCode::unpack(code),
                                        place);
  warp->runner->leave_where_seen(*warp);
}

static void braid_cpu_count_shared(braid::cpu::WarpContext* context, const std::uint64_t* addresses,
                                   std::uint32_t mask, std::uint32_t code, std::uint32_t place) {
  using namespace braid::cpu;
  auto* warp = static_cast<BlockRunner::Warp*>(context);
  warp->runner->counter().shared_access(addresses, mask, AccessCode::unpack(code), place);
}

/// Of global memory, where lane l is at base + l * step.
static void braid_cpu_count_row(braid::cpu::WarpContext* context, std::uint64_t base,
                                std::uint32_t step, std::uint32_t mask, std::uint32_t code,
                                std::uint32_t place) {
  using namespace braid::cpu;
  auto* warp = static_cast<BlockRunner::Warp*>(context);
  warp->runner->counter().global_row(warp->warp, base, step, mask, AccessCode::unpack(code), place);
  warp->runner->leave_where_seen(*warp);
}

}  // extern "C"

namespace braid::cpu {

std::span<const RuntimeHelper> count_helpers() {
  static const std::array kHelpers = {
      RuntimeHelper{"braid_cpu_count_access", reinterpret_cast<void*>(&braid_cpu_count_access)},
      RuntimeHelper{"braid_cpu_count_global", reinterpret_cast<void*>(&braid_cpu_count_global)},
      RuntimeHelper{"braid_cpu_count_shared", reinterpret_cast<void*>(&braid_cpu_count_shared)},
      RuntimeHelper{"braid_cpu_count_row", reinterpret_cast<void*>(&braid_cpu_count_row)},
  };
  return kHelpers;
}

}  // namespace braid::cpu
