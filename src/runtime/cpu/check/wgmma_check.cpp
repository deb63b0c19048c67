// The sanitizer's rules for wgmma. Its reads of shared memory belong to the async proxy.

#include "runtime/cpu/check/wgmma_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "braid/checks.h"
#include "runtime/cpu/check/sanitizer.h"

namespace braid::cpu {

void Sanitizer::wgmma_fence(WarpCheck& warp) {
  warp.wgmma.fenced = true;
  for (WgmmaCheck::Register& reg : warp.wgmma.registers) reg.written = 0;
}

void Sanitizer::wgmma_issue(WarpCheck& warp, std::span<const std::uint32_t> sums,
                            std::span<const std::uint32_t> inputs, std::uint64_t what,
                            std::uint32_t line) {
  WgmmaCheck& wgmma = warp.wgmma;
  wgmma.ran(what ^ line);
  wgmma.issued = start_async(warp, kMatrix, 0, line);
  const auto visit = [&](std::uint32_t number, bool sum) {
    WgmmaCheck::Register& reg = wgmma.at(number);
    if (wgmma.in_flight(reg) && (reg.sum != sum)) {
      wgmma_finding(warp, reg.line, line,
                    sum ? "wgmma adds to a register of A of one that is not waited for"
                        : "wgmma reads A from an accumulator of one that is not waited for");
    }
    if (reg.written != 0) {
      wgmma_finding(warp, reg.written, line,
                    sum ? "wgmma of an accumulator that was written since the last wgmma.fence"
                        : "wgmma of a register of A that was written since the last wgmma.fence");
    }
    reg = {wgmma.committed() + 1, line, sum, 0};
  };
  for (const std::uint32_t number : sums) visit(number, true);
  for (const std::uint32_t number : inputs) visit(number, false);
  if (!std::exchange(wgmma.fenced, true)) {
    wgmma_finding(warp, 0, line, "the first wgmma has no wgmma.fence before it");
  }
}

void Sanitizer::wgmma_move(WarpCheck& warp, std::uint32_t to, std::uint32_t from) {
  const WgmmaCheck::Register moved = warp.wgmma.at(from);
  warp.wgmma.at(to) = moved;
}

void Sanitizer::wgmma_touch(WarpCheck& warp, std::span<const std::uint32_t> reads,
                            std::span<const std::uint32_t> writes, bool sets, std::uint32_t line) {
  WgmmaCheck& wgmma = warp.wgmma;
  const auto judge = [&](const WgmmaCheck::Register& reg, std::string_view does) {
    if (!wgmma.in_flight(reg)) return;
    wgmma_finding(warp, reg.line, line,
                  fmt::format("{} of {} of a wgmma that is not waited for", does,
                              reg.sum ? "an accumulator" : "a register of A"));
  };
  for (const std::uint32_t number : reads) judge(wgmma.at(number), "read");
  for (const std::uint32_t number : writes) {
    WgmmaCheck::Register& reg = wgmma.at(number);
    judge(reg, "write");
    // Compilers zero the sums right before the product, behind the fence.
    reg = {.written = sets ? 0 : line};
  }
}

void Sanitizer::wgmma_commit(WarpCheck& warp) { warp.wgmma.ends.push_back(warp.wgmma.issued); }

/// All but the youngest groups of these warps are complete, and each of them knows it.
void Sanitizer::wgmma_waited(std::span<WarpCheck* const> group, std::uint32_t pending,
                             std::uint32_t line) {
  const std::uint64_t sequence = group.front()->wgmma.sequence;
  for (WarpCheck* warp : group) {
    if (std::exchange(warp->wgmma.sequence, 0) == sequence) continue;
    wgmma_finding(*warp, 0, line, "the warps of a group did not run the same wgmma instructions");
  }
  const std::lock_guard lock(mutex_);
  for (WarpCheck* warp : group) {
    WgmmaCheck& wgmma = warp->wgmma;
    const std::uint32_t over = wgmma.committed() - std::min(wgmma.committed(), pending);
    if (over == 0) continue;
    wgmma.waited = std::max(wgmma.waited, over);
    const Epoch end{copies_of(*warp, kMatrix), wgmma.ends[over - 1]};
    for (WarpCheck* other : group) other->seen.add(end);
  }
}

void Sanitizer::wgmma_finding(WarpCheck& warp, std::uint32_t other, std::uint32_t line,
                              std::string_view message) {
  if ((checks_ & kCheckRace) == 0) return;
  const std::lock_guard lock(mutex_);
  const Access access{
      .when = {warp.agent, warp.time}, .line = other, .kernel = warp.launch->kernel_index};
  add({warp, 0, line, {}}, "race", std::string(message), nullptr,
      other == 0 ? "" : "the other side: " + place(access), other == 0 ? 0 : known_side(access));
}

}  // namespace braid::cpu
