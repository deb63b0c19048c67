// The sanitizer's rules for tcgen05. Loads and stores of a warp, and what each of its lanes issues
// to the tensor core, are agents of their own, which know what the warp knew when it issued them.
// Each does its work in the order of issue; others learn of it by tcgen05.wait, or by a
// tcgen05.commit and its mbarrier.
//
// The PTX manual asks for a tcgen05.fence on both sides of every synchronization of threads. Triton
// has none beside barriers and acquiring waits, which order such work here, too.

#include <utility>

#include "runtime/cpu/check/sanitizer.h"

namespace braid::cpu {

void Sanitizer::start_tensor(WarpCheck& warp, std::uint64_t channel, std::uint32_t lane,
                             std::uint32_t line) {
  const std::uint32_t time = start_async(warp, channel, lane, line);
  warp.copy->seen.add({warp.copy->agent, time - 1});
}

void Sanitizer::tensor_waited(WarpCheck& warp, std::uint64_t channel) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t agent = copies_of(warp, channel);
  warp.seen.add({agent, agents_[agent].issued});
}

void Sanitizer::tensor_fence_after(WarpCheck& warp) {
  const std::lock_guard lock(mutex_);
  warp.seen.join(std::exchange(warp.unfenced, {}));
}

}  // namespace braid::cpu
