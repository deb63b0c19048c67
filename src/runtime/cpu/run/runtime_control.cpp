#include <bit>
#include <chrono>
#include <utility>

#include "runtime/cpu/run/warp_helpers.h"

// Functions with which generated code calls the executor: barriers, yields, failures, and reports
// to the sanitizer.

namespace braid::cpu {
namespace {

/// `line`: what the warp polls by; 0 where it sleeps.
void yield(Warp& warp, std::uint32_t line) {
  if (line != 0) warp.poll_line = line;
  if (warp.runner->sanitizer() != nullptr) warp.runner->note_registers(warp);
  warp.yielded = true;
  warp.fiber.suspend();
}

/// setmaxnreg: who wants more registers waits until other warps of the block have given them back.
void set_registers(Warp& warp, std::uint32_t count, std::uint32_t line) {
  std::uint32_t& free = warp.home->free_registers;
  while (warp.thread_registers + free < count) yield(warp, line);
  free += warp.thread_registers - count;
  warp.thread_registers = count;
}

void stop(Warp& warp, Stop why, std::uint32_t line) {
  constexpr const char* kReasons[][2] = {
      {"", "trap"},
      {"deadlock", "an endless loop: no way leads out of it"},
      {"",
       "a 32-bit index wraps inside a warp before it is widened, which the cpu device does not "
       "support"}};
  const auto& [kind, message] = kReasons[static_cast<std::size_t>(why)];
  warp.runner->fail(warp, kind, message, line);
}

std::uint64_t globaltimer(Warp& warp) {
  if (auto* sanitizer = warp.runner->sanitizer()) return sanitizer->now_ns();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// `values`: null, or what is stored, `count` elements of `bytes` to a lane.
void check(Warp& warp, const std::uint64_t* addresses, std::uint32_t mask, AccessCode code,
           std::uint32_t line, const std::uint8_t* values, std::uint32_t bytes,
           std::uint32_t count) {
  const Sanitizer::Values stored{values, bytes, count, mask};
  warp.runner->check_access(warp, {&addresses, 1}, mask, code, line,
                            values == nullptr ? nullptr : &stored);
}

/// Of lanes whose copies arrive at mbarriers.
void check_copies(Warp& warp, const std::uint64_t* barriers, std::uint32_t mask) {
  std::uint64_t last = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t barrier = barriers[std::countr_zero(rest)];
    if (std::exchange(last, barrier) != barrier) {
      warp.runner->sanitizer()->copies_arrive(warp.check, barrier);
    }
  }
}

void check_overlap(Warp& warp, const std::uint64_t* addresses, std::uint32_t mask,
                   const std::uint8_t* values, std::uint32_t bytes, std::uint32_t count,
                   std::uint32_t line) {
  warp.runner->sanitizer()->stores(warp.check, addresses, mask, {values, bytes, count, mask}, line);
}

void check_stored(Warp& warp, const std::uint64_t* addresses, std::uint32_t mask,
                  std::uint32_t offset, std::uint32_t bytes, const char* what, std::uint32_t reg,
                  std::uint32_t line) {
  warp.runner->sanitizer()->stored_undefined(warp.check, addresses, mask, {offset, bytes}, what,
                                             reg, line);
}

}  // namespace

std::vector<RuntimeHelper> control_helpers() {
  return {{"yield", yield},
          {"set_registers", set_registers},
          {"globaltimer", globaltimer},
          {"barrier", kEntry<&BlockRunner::barrier>},
          {"stop", stop},
          {"check", check},
          {"check_overlap", check_overlap},
          {"check_stored", check_stored},
          {"check_copies", check_copies},
          {"check_members", kEntry<&Sanitizer::members>},
          {"check_defined", kEntry<&Sanitizer::undefined>},
          {"check_choice", kEntry<&Sanitizer::chose>},
          {"check_fence", kEntry<&Sanitizer::fence>},
          {"check_fence_inits", kEntry<&Sanitizer::fence_inits>},
          {"check_fence_async", kEntry<&Sanitizer::fence_async>},
          {"check_commit", kEntry<&Sanitizer::commit_group>},
          {"check_wait", kEntry<&Sanitizer::wait_group>},
          {"check_bulk_commit", kEntry<&Sanitizer::bulk_commit>},
          {"check_bulk_wait", kEntry<&Sanitizer::bulk_wait>}};
}

}  // namespace braid::cpu
