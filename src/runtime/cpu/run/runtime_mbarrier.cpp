// mbarrier objects, and where the shared memory of a cluster's blocks is.

#include <array>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/mbarrier.h"
#include "runtime/cpu/run/warp_helpers.h"

namespace braid::cpu {
namespace {

/// One lane's operation. `count`: of arrivals or bytes, or the parity; `state`: in and out.
const char* operate(MbarrierCode code, Mbarrier& barrier, std::uint32_t count,
                    std::uint64_t& state) {
  if (code.what == MbarrierCode::kInit) return barrier.init(count);
  if (!barrier.valid) return "there is no mbarrier object";
  const Mbarrier before = barrier;
  switch (code.what) {
    case MbarrierCode::kInval:
      barrier = {};
      return nullptr;
    case MbarrierCode::kExpect:
      return barrier.expect(count);
    case MbarrierCode::kComplete:
      return barrier.complete(count);
    case MbarrierCode::kTest: {
      const bool of = code.parity ? (count & 1U) != 0 : Mbarrier::unpack(state).parity;
      state = barrier.parity != of ? 1 : 0;
      return nullptr;
    }
    default:
      break;
  }
  state = before.pack();
  if (code.expects) {
    if (const char* wrong = barrier.expect(count)) return wrong;
    count = 1;
  }
  return code.what == MbarrierCode::kDrop ? barrier.drop(count, code.keeps_phase)
                                          : barrier.arrive(count, code.keeps_phase);
}

/// The shared memory of a block of the cluster, or null.
std::uint8_t* window_of(const WarpContext& context, std::uint32_t rank) {
  return rank < context.cluster_size ? context.cluster_windows[rank] : nullptr;
}

/// Reports a lane's operation to the sanitizer; `done`: it completed the phase, or found it
/// complete.
void tell(Warp& warp, MbarrierCode what, std::uint64_t address, bool done, bool of_copy) {
  Sanitizer* const s = warp.runner->sanitizer();
  if (s == nullptr) return;
  if (what.what == MbarrierCode::kInit) {
    s->initialize(warp.check, address);
  } else if (what.what == MbarrierCode::kInval) {
    s->reset_phases(address);
  } else if (of_copy) {
    s->copied_to(warp.check, address, done);
  } else if (what.what == MbarrierCode::kTest) {
    if (done) s->wait_for(warp.check, address, what.wide, what.orders);
  } else {
    s->arrive_at(warp.check, address, what.wide, done, what.orders);
  }
}

/// What lanes do to their objects. Returns those whose test found the phase complete. `of_copy`:
/// bulk copies are over.
std::uint32_t operate(Warp& warp, const std::uint64_t* addresses, const std::uint32_t* counts,
                      std::uint64_t* states, std::uint32_t mask, MbarrierCode what,
                      std::uint32_t line, bool of_copy = false) {
  std::uint32_t complete = 0;
  const char* wrong = nullptr;
  for_each_lane(mask, [&](int l) {
    if (wrong != nullptr) return;
    const std::atomic_ref<std::uint64_t> word(*at<std::uint64_t>(addresses[l]));
    const Mbarrier before = Mbarrier::unpack(word.load());
    Mbarrier barrier = before;
    wrong = operate(what, barrier, counts[l], states[l]);
    if (what.what == MbarrierCode::kTest) {
      complete |= static_cast<std::uint32_t>(states[l]) << l;
    } else if (wrong == nullptr) {
      word.store(barrier.pack());
    }
    const bool done =
        what.what == MbarrierCode::kTest ? states[l] != 0 : barrier.parity != before.parity;
    if (wrong == nullptr) tell(warp, what, addresses[l], done, of_copy);
  });
  if (wrong != nullptr) warp.runner->fail(warp, "barrier", wrong, line);
  return complete;
}

}  // namespace

namespace {

/// The same by what a lane has issued, which is over.
void operate_later(Warp& warp, int lane, std::uint64_t address, MbarrierCode what,
                   std::uint32_t count, std::uint32_t line) {
  std::array<std::uint64_t, 32> addresses{};
  std::array<std::uint32_t, 32> counts{};
  std::array<std::uint64_t, 32> states{};
  addresses[lane] = address;
  counts[lane] = count;
  if (warp.runner->sanitizer() != nullptr) {
    const std::uint64_t* const places = addresses.data();
    const AccessCode code{
        .kind = AccessCode::kAtomic, .order = AccessCode::kRelaxed, .scope = 2, .bytes = 8};
    warp.runner->check_access(warp, {&places, 1}, 1U << lane, code, line);
  }
  operate(warp, addresses.data(), counts.data(), states.data(), 1U << lane, what, line, true);
}

}  // namespace

void complete_bytes(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes,
                    std::uint32_t line) {
  operate_later(warp, lane, address, {.what = MbarrierCode::kComplete}, bytes, line);
}

void arrive_later(Warp& warp, int lane, std::uint64_t address, std::uint32_t line) {
  operate_later(warp, lane, address, {.what = MbarrierCode::kArrive}, 1, line);
}

namespace {

std::uint32_t mbarrier(Warp& warp, const std::uint64_t* addresses, const std::uint32_t* counts,
                       std::uint64_t* states, std::uint32_t mask, MbarrierCode code,
                       std::uint32_t line) {
  return operate(warp, addresses, counts, states, mask, code, line);
}

/// A 32-bit address of the cluster's shared memory: of block `rank` it has rank + 1 in the upper 8
/// bits, of one's own it may have 0.
std::uint64_t cluster_address(Warp& warp, std::uint32_t address) {
  const std::uint32_t block = address >> 24U;
  const std::uint32_t offset = address & 0xffffffU;
  std::uint8_t* window = window_of(warp, block);
  return window == nullptr ? offset : reinterpret_cast<std::uint64_t>(window) + offset;
}

void cluster_addresses(Warp& warp, std::uint64_t* out, const std::uint32_t* addresses) {
  for (std::size_t l = 0; l < 32; ++l) out[l] = cluster_address(warp, addresses[l]);
}

/// The blocks of a cluster to which generic addresses belong; of none, all ones.
void cluster_ranks(Warp& warp, std::uint32_t* out, const std::uint64_t* addresses) {
  for (std::size_t l = 0; l < 32; ++l) {
    out[l] = ~0U;
    for (std::uint32_t rank = 0; rank < warp.cluster_size; ++rank) {
      const auto start = reinterpret_cast<std::uint64_t>(warp.cluster_windows[rank]);
      if (addresses[l] - start < warp.total_shared) out[l] = rank;
    }
  }
}

/// Generic addresses as those of shared memory, which say the block.
void to_cluster(Warp& warp, std::uint32_t* out, const std::uint64_t* addresses) {
  std::array<std::uint32_t, 32> ranks{};
  cluster_ranks(warp, ranks.data(), addresses);
  for (std::size_t l = 0; l < 32; ++l) {
    const std::uint32_t rank = ranks[l] == ~0U ? warp.cluster_rank : ranks[l];
    const std::uint8_t* window = warp.cluster_windows[rank];
    const auto offset =
        static_cast<std::uint32_t>(addresses[l] - reinterpret_cast<std::uint64_t>(window));
    out[l] = offset + (rank << 24U);
  }
}

/// mapa of generic addresses: the same place in another block's shared memory.
void map_address(Warp& warp, std::uint64_t* out, const std::uint64_t* addresses,
                 const std::uint32_t* ranks) {
  std::array<std::uint32_t, 32> own{};
  cluster_ranks(warp, own.data(), addresses);
  for (std::size_t l = 0; l < 32; ++l) {
    const std::uint8_t* from = own[l] == ~0U ? nullptr : warp.cluster_windows[own[l]];
    const std::uint8_t* to = window_of(warp, ranks[l]);
    out[l] = from == nullptr || to == nullptr
                 ? 0
                 : addresses[l] - reinterpret_cast<std::uint64_t>(from) +
                       reinterpret_cast<std::uint64_t>(to);
  }
}

}  // namespace

std::vector<RuntimeHelper> mbarrier_helpers() {
  return {{"mbarrier", mbarrier},
          {"cluster_address", cluster_address},
          {"cluster_addresses", cluster_addresses},
          {"cluster_ranks", cluster_ranks},
          {"to_cluster", to_cluster},
          {"map_address", map_address},
          {"cluster_barrier", kEntry<&BlockRunner::cluster_barrier>}};
}

}  // namespace braid::cpu
