#include <array>
#include <chrono>

#include "runtime/cpu/run/block_runner.h"

// What generated code calls of the executor: barriers, yields, failures, and the reports to the
// sanitizer.

extern "C" {

/// `line`: what the warp polls by; 0 where it sleeps.
static void braid_cpu_yield(braid::cpu::WarpContext* context, std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  if (line != 0) warp->poll_line = line;
  if (warp->runner->sanitizer() != nullptr) warp->runner->note_registers(*warp);
  warp->yielded = true;
  warp->fiber.suspend();
}

static std::uint64_t braid_cpu_globaltimer(braid::cpu::WarpContext* context) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  if (auto* sanitizer = warp->runner->sanitizer()) return sanitizer->now_ns();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

static std::uint32_t braid_cpu_barrier(braid::cpu::WarpContext* context, std::uint32_t id,
                                       std::uint32_t threads, std::uint32_t here,
                                       std::uint32_t live, std::uint32_t votes, std::uint32_t kind,
                                       std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  return warp->runner->barrier(*warp, id, threads, here, live, votes,
                               static_cast<braid::cpu::BarrierKind>(kind), line);
}

static void braid_cpu_trap(braid::cpu::WarpContext* context, std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->fail(*warp, "", "trap", line);
}

static void braid_cpu_endless(braid::cpu::WarpContext* context, std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->fail(*warp, "deadlock", "an endless loop: no way leads out of it", line);
}

static void braid_cpu_wrap(braid::cpu::WarpContext* context, std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->fail(*warp, "",
                     "a 32-bit index wraps inside a warp before it is widened, which the cpu "
                     "device does not support",
                     line);
}

static void braid_cpu_check(braid::cpu::WarpContext* context, const std::uint64_t* addresses,
                            std::uint32_t mask, std::uint32_t code, std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->check_access(*warp, {&addresses, 1}, mask, code, line);
}

static void braid_cpu_check_store(braid::cpu::WarpContext* context, const std::uint64_t* addresses,
                                  std::uint32_t mask, std::uint32_t code, std::uint32_t line,
                                  const std::uint8_t* values, std::uint32_t bytes,
                                  std::uint32_t count) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  const braid::cpu::Sanitizer::Values stored{values, bytes, count};
  warp->runner->check_access(*warp, {&addresses, 1}, mask, code, line, &stored);
}

static void braid_cpu_check_members(braid::cpu::WarpContext* context, const std::uint32_t* members,
                                    std::uint32_t here, std::uint32_t live, std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->sanitizer()->members(warp->check, members, here, live, line);
}

static void braid_cpu_check_overlap(braid::cpu::WarpContext* context,
                                    const std::uint64_t* addresses, std::uint32_t mask,
                                    const std::uint8_t* values, std::uint32_t bytes,
                                    std::uint32_t count, std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->sanitizer()->stores(warp->check, addresses, mask, {values, bytes, count}, line);
}

static void braid_cpu_check_defined(braid::cpu::WarpContext* context, std::uint32_t lanes,
                                    const char* what, std::uint32_t reg, std::uint32_t line) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->sanitizer()->undefined(warp->check, lanes, what, reg, line);
}

static void braid_cpu_check_fence(braid::cpu::WarpContext* context, std::uint32_t scope) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->sanitizer()->fence(warp->check, static_cast<std::uint8_t>(scope));
}

static void braid_cpu_check_fence_inits(braid::cpu::WarpContext* context) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->sanitizer()->fence_inits(warp->check);
}

static void braid_cpu_check_commit(braid::cpu::WarpContext* context) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->sanitizer()->commit_group(warp->check);
}

static void braid_cpu_check_wait(braid::cpu::WarpContext* context, std::uint32_t pending) {
  auto* warp = static_cast<braid::cpu::BlockRunner::Warp*>(context);
  warp->runner->sanitizer()->wait_group(warp->check, pending);
}

}  // extern "C"

namespace braid::cpu {

std::span<const RuntimeHelper> control_helpers() {
  static const std::array kHelpers = {
      RuntimeHelper{"braid_cpu_yield", reinterpret_cast<void*>(&braid_cpu_yield)},
      RuntimeHelper{"braid_cpu_globaltimer", reinterpret_cast<void*>(&braid_cpu_globaltimer)},
      RuntimeHelper{"braid_cpu_barrier", reinterpret_cast<void*>(&braid_cpu_barrier)},
      RuntimeHelper{"braid_cpu_check", reinterpret_cast<void*>(&braid_cpu_check)},
      RuntimeHelper{"braid_cpu_check_store", reinterpret_cast<void*>(&braid_cpu_check_store)},
      RuntimeHelper{"braid_cpu_check_members", reinterpret_cast<void*>(&braid_cpu_check_members)},
      RuntimeHelper{"braid_cpu_check_overlap", reinterpret_cast<void*>(&braid_cpu_check_overlap)},
      RuntimeHelper{"braid_cpu_check_defined", reinterpret_cast<void*>(&braid_cpu_check_defined)},
      RuntimeHelper{"braid_cpu_check_fence", reinterpret_cast<void*>(&braid_cpu_check_fence)},
      RuntimeHelper{"braid_cpu_check_fence_inits",
                    reinterpret_cast<void*>(&braid_cpu_check_fence_inits)},
      RuntimeHelper{"braid_cpu_check_commit", reinterpret_cast<void*>(&braid_cpu_check_commit)},
      RuntimeHelper{"braid_cpu_check_wait", reinterpret_cast<void*>(&braid_cpu_check_wait)},
      RuntimeHelper{"braid_cpu_trap", reinterpret_cast<void*>(&braid_cpu_trap)},
      RuntimeHelper{"braid_cpu_endless", reinterpret_cast<void*>(&braid_cpu_endless)},
      RuntimeHelper{"braid_cpu_wrap", reinterpret_cast<void*>(&braid_cpu_wrap)},
  };
  return kHelpers;
}

}  // namespace braid::cpu
