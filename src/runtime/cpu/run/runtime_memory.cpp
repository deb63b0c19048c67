#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/matrix8.h"
#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/cpu/run/warp_context.h"

namespace braid::cpu {
namespace {

constexpr int kLanes = 32;

template <class T>
void atomic_lanes(T* out, const std::uint64_t* addresses, const T* a, const T* b,
                  std::uint32_t mask, AtomicOp op, AtomicKind kind) {
  for_each_lane(mask, [&](int l) {
    if (op == AtomicOp::kAdd && kind <= AtomicKind::kSigned) {
      out[l] = std::atomic_ref<T>(*at<T>(addresses[l])).fetch_add(a[l]);
    } else {
      out[l] = update<T>(addresses[l], [&](T old) { return combine(op, kind, old, a[l], b[l]); });
    }
  });
}

using Whole = unsigned __int128;

/// Stores `fresh` where `expected` stands; returns what stood there.
Whole exchange_if(Whole* cell, Whole expected, Whole fresh) {
  // Called by name, because compilers leave the built-in function to a library that may be missing.
  auto low = static_cast<std::uint64_t>(expected);
  auto high = static_cast<std::uint64_t>(expected >> 64);
  asm volatile("lock cmpxchg16b %0"
               : "+m"(*cell), "+a"(low), "+d"(high)
               : "b"(static_cast<std::uint64_t>(fresh)),
                 "c"(static_cast<std::uint64_t>(fresh >> 64))
               : "memory", "cc");
  return Whole{high} << 64 | low;
}

/// `kCount` elements of type T to a lane, from and to scratch memory. Idle lanes read as zeros.
template <class T, std::uint32_t kCount>
void load_apart_of(std::uint8_t* out, const std::uint64_t* addresses, std::uint32_t mask) {
  const auto load = [&](int l) {
    for (std::uint32_t k = 0; k < kCount; ++k) {
      std::memcpy(out + k * kElementStride + static_cast<std::size_t>(l) * sizeof(T),
                  at<const T>(addresses[l]) + k, sizeof(T));
    }
  };
  if (mask == ~0U) {
    for (int l = 0; l < kLanes; ++l) load(l);
    return;
  }
  for (std::uint32_t k = 0; k < kCount; ++k) {
    std::memset(out + k * kElementStride, 0, kLanes * sizeof(T));
  }
  for_each_lane(mask, load);
}

template <class T, std::uint32_t kCount>
void store_apart_of(const std::uint8_t* values, const std::uint64_t* addresses,
                    std::uint32_t mask) {
  const auto store = [&](int l) {
    for (std::uint32_t k = 0; k < kCount; ++k) {
      std::memcpy(at<T>(addresses[l]) + k,
                  values + k * kElementStride + static_cast<std::size_t>(l) * sizeof(T), sizeof(T));
    }
  };
  if (mask == ~0U) {
    for (int l = 0; l < kLanes; ++l) store(l);
    return;
  }
  for_each_lane(mask, store);
}

/// Calls `run.operator()<T, kCount>()` for elements of `bytes` bytes.
template <class Run>
void for_access(std::uint32_t bytes, std::uint32_t count, Run&& run) {
  with_word(bytes, [&]<class T>() {
    switch (count) {
      case 1:
        return run.template operator()<T, 1>();
      case 2:
        return run.template operator()<T, 2>();
      case 4:
        return run.template operator()<T, 4>();
      default:
        return run.template operator()<T, 8>();
    }
  });
}

void load_apart(std::uint8_t* out, const std::uint64_t* addresses, std::uint32_t mask,
                std::uint32_t bytes, std::uint32_t count) {
  for_access(bytes, count, [&]<class T, std::uint32_t kCount>() {
    load_apart_of<T, kCount>(out, addresses, mask);
  });
}

void store_apart(const std::uint8_t* values, const std::uint64_t* addresses, std::uint32_t mask,
                 std::uint32_t bytes, std::uint32_t count) {
  for_access(bytes, count, [&]<class T, std::uint32_t kCount>() {
    store_apart_of<T, kCount>(values, addresses, mask);
  });
}

void spread(std::uint64_t* out, std::uint64_t base, const std::int32_t* table) {
  for (int l = 0; l < kLanes; ++l) {
    out[l] = base + static_cast<std::uint64_t>(std::int64_t{table[l]});
  }
}

void load_strong(std::uint8_t* out, const std::uint64_t* addresses, std::uint32_t mask,
                 std::uint32_t bytes, std::uint32_t count) {
  for_each_lane(mask, [&](int l) {
    std::array<std::uint8_t, 32> whole{};
    const std::uint32_t total = bytes * count;
    if (total == bytes || (total <= 16 && aligned(addresses[l], total))) {
      load_lane(addresses[l], whole.data(), total);
    } else {
      for (std::uint32_t k = 0; k < count; ++k) {
        load_lane(addresses[l] + k * bytes, whole.data() + k * bytes, bytes);
      }
    }
    for (std::uint32_t k = 0; k < count; ++k) {
      std::memcpy(out + k * kElementStride + static_cast<std::size_t>(l) * bytes,
                  whole.data() + k * bytes, bytes);
    }
  });
}

void store_strong(const std::uint8_t* values, const std::uint64_t* addresses, std::uint32_t mask,
                  std::uint32_t bytes, std::uint32_t count) {
  for_each_lane(mask, [&](int l) {
    std::array<std::uint8_t, 32> whole{};
    for (std::uint32_t k = 0; k < count; ++k) {
      std::memcpy(whole.data() + k * bytes,
                  values + k * kElementStride + static_cast<std::size_t>(l) * bytes, bytes);
    }
    const std::uint32_t total = bytes * count;
    if (total == bytes || (total <= 16 && aligned(addresses[l], total))) {
      store_lane(addresses[l], whole.data(), total);
    } else {
      for (std::uint32_t k = 0; k < count; ++k) {
        store_lane(addresses[l] + k * bytes, whole.data() + k * bytes, bytes);
      }
    }
  });
}

/// `code`: operation, kind << 8, bits << 16.
void atomic(void* out, const std::uint64_t* addresses, const void* a, const void* b,
            std::uint32_t mask, std::uint32_t code) {
  const auto op = static_cast<AtomicOp>(code & 0xff);
  const auto kind = static_cast<AtomicKind>((code >> 8) & 0xff);
  with_word((code >> 16) / 8, [&]<class T>() {
    atomic_lanes(static_cast<T*>(out), addresses, static_cast<const T*>(a),
                 static_cast<const T*>(b), mask, op, kind);
  });
}

/// Of 16 bytes, in two halves of which each has a word for every lane; `swaps`: what is expected
/// stands before what is new. Returns what was there.
void atomic_pair(std::uint64_t* out, const std::uint64_t* addresses, const std::uint64_t* values,
                 std::uint32_t mask, std::uint32_t swaps) {
  const auto whole = [&](int at, int l) {
    return Whole{values[64 * at + 32 + l]} << 64 | values[64 * at + l];
  };
  for_each_lane(mask, [&](int l) {
    auto* const cell = at<Whole>(addresses[l]);
    Whole old = 0;
    if (swaps != 0) {
      old = exchange_if(cell, whole(0, l), whole(1, l));
    } else {
      for (Whole seen = exchange_if(cell, 0, 0);; seen = old) {
        old = exchange_if(cell, seen, whole(0, l));
        if (old == seen) break;
      }
    }
    out[l] = static_cast<std::uint64_t>(old);
    out[32 + l] = static_cast<std::uint64_t>(old >> 64);
  });
}

/// Copies `bytes` per lane to target + offsets[lane]; where `sizes` is given only that many and
/// zeros after them.
void copy_async(std::uint8_t* target, const std::int32_t* offsets, const std::uint64_t* sources,
                const std::uint32_t* sizes, std::uint32_t mask, std::uint32_t bytes) {
  const auto put = [&](int l, __m128i value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + offsets[l]), value);
  };
  const auto move = [&](int l) { put(l, _mm_loadu_si128(at<const __m128i>(sources[l]))); };
  bool whole = bytes == 16 && mask == ~0U;
  if (whole && sizes != nullptr) {
    std::uint32_t smallest = 16;
    for (int l = 0; l < kLanes; ++l) smallest = std::min(smallest, sizes[l]);
    whole = smallest == 16;
  }
  if (whole) {
    for (int l = 0; l < kLanes; ++l) move(l);
    return;
  }
  for_each_lane(mask, [&](int l) {
    const std::uint32_t size = sizes == nullptr ? bytes : std::min(sizes[l], bytes);
    if (size == 16) return move(l);
    if (size == 0 && bytes == 16) return put(l, _mm_setzero_si128());
    std::uint8_t* to = target + offsets[l];
    std::memcpy(to, at<const std::uint8_t>(sources[l]), size);
    std::memset(to + size, 0, bytes - size);
  });
}

/// Each of `count` matrices is 8 rows of 16 bytes, at base + offsets of 8 lanes each: side by side
/// they are a register, lane by lane. Its place is an offset in the register file.
void ldmatrix(std::uint8_t* registers, const std::uint32_t* places, const std::uint8_t* base,
              const std::int32_t* offsets, std::uint32_t count, std::uint32_t exchanged) {
  for (std::uint32_t m = 0; m < count; ++m, offsets += 8) {
    __m128i rows[8];
    for (int r = 0; r < 8; ++r) {
      rows[r] = _mm_load_si128(reinterpret_cast<const __m128i*>(base + offsets[r]));
    }
    if (exchanged != 0) transpose(rows);
    auto* to = reinterpret_cast<__m128i*>(registers + places[m]);
    for (int r = 0; r < 8; ++r) _mm_store_si128(to + r, rows[r]);
  }
}

/// The same for elements of 8 bits, or of 6 or 4 that become bytes. `exchanged`: of 16 rows, which
/// are two registers. Apart: the rows of the other stay in the host's registers.
void ldmatrix_bytes(std::uint8_t* registers, const std::uint32_t* places, const std::uint8_t* base,
                    const std::int32_t* offsets, std::uint32_t count, std::uint32_t exchanged,
                    std::uint32_t bits) {
  const std::uint32_t together = exchanged != 0 ? 2 : 1;
  for (std::uint32_t m = 0; m < count; m += together, offsets += 8 * together) {
    __m128i rows[16];
    for (std::uint32_t r = 0; r < 8 * together; ++r) {
      rows[r] = _mm_load_si128(reinterpret_cast<const __m128i*>(base + offsets[r]));
      if (bits != 8) rows[r] = widen(rows[r], bits);
    }
    if (exchanged != 0) exchange_bytes(rows);
    for (std::uint32_t r = 0; r < 8 * together; ++r) {
      _mm_store_si128(reinterpret_cast<__m128i*>(registers + places[m + r / 8]) + r % 8, rows[r]);
    }
  }
}

/// shfl with lane numbers known only now; returns the predicate of each lane.
std::uint32_t shuffle(std::uint32_t* out, const std::uint32_t* a, const std::uint32_t* b,
                      const std::uint32_t* c, std::uint32_t mode) {
  std::uint32_t valid = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    const std::uint32_t segment = (c[l] >> 8) & 31;
    const std::uint32_t clamp = c[l] & 31;
    const std::uint32_t distance = b[l] & 31;
    const auto limit = static_cast<std::int32_t>((l & segment) | (clamp & ~segment & 31));
    std::int32_t source = 0;
    bool inside = false;
    if (mode == 0) {
      source = static_cast<std::int32_t>(l) - static_cast<std::int32_t>(distance);
      inside = source >= limit;
    } else {
      source = static_cast<std::int32_t>(mode == 1   ? l + distance
                                         : mode == 2 ? l ^ distance
                                                     : (l & segment) | (distance & ~segment & 31));
      inside = source <= limit;
    }
    out[l] = a[inside ? source : static_cast<std::int32_t>(l)];
    valid |= static_cast<std::uint32_t>(inside) << l;
  }
  return valid;
}

/// For each lane those of its members with its value; with `all` none unless all have it.
void match(std::uint32_t* out, const std::uint64_t* values, const std::uint32_t* members,
           std::uint32_t active, std::uint32_t all) {
  for_each_lane(active, [&](int l) {
    const std::uint32_t others = active & members[l];
    std::uint32_t same = 0;
    for_each_lane(others, [&](int other) {
      if (values[other] == values[l]) same |= 1U << other;
    });
    out[l] = all != 0 && same != others ? 0 : same;
  });
}

/// redux with a member mask of each lane; `op` as in op_reduce, 8 for signed values.
void reduce(std::uint32_t* out, const std::uint32_t* values, const std::uint32_t* members,
            std::uint32_t active, std::uint32_t op) {
  constexpr AtomicOp kOps[] = {AtomicOp::kAdd, AtomicOp::kMin, AtomicOp::kMax,
                               AtomicOp::kAnd, AtomicOp::kOr,  AtomicOp::kXor};
  const AtomicKind kind = (op & 8) != 0 ? AtomicKind::kSigned : AtomicKind::kUnsigned;
  for_each_lane(active, [&](int l) {
    bool first = true;
    for_each_lane(active & members[l], [&](int other) {
      out[l] = first ? values[other] : combine(kOps[op & 7], kind, out[l], values[other], 0U);
      first = false;
    });
  });
}

}  // namespace

std::vector<RuntimeHelper> memory_helpers() {
  return {{"load_apart", load_apart},
          {"store_apart", store_apart},
          {"spread", spread},
          {"load_strong", load_strong},
          {"store_strong", store_strong},
          {"atomic", atomic},
          {"atomic_pair", atomic_pair},
          {"copy_async", copy_async},
          {"ldmatrix", ldmatrix},
          {"ldmatrix_bytes", ldmatrix_bytes},
          {"shuffle", shuffle},
          {"match", match},
          {"reduce", reduce}};
}

}  // namespace braid::cpu
