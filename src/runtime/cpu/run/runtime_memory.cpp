#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/cpu/run/warp_context.h"

namespace braid::cpu {
namespace {

constexpr int kLanes = 32;
/// Values of one element of a vector access are this far apart in scratch memory.
constexpr std::size_t kElementStride = 256;

template <class Body>
void for_each_lane(std::uint32_t mask, Body&& body) {
  while (mask != 0) {
    body(std::countr_zero(mask));
    mask &= mask - 1;
  }
}

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

template <class T>
T load_ordered(std::uint64_t address) {
  return std::atomic_ref<T>(*at<T>(address)).load(std::memory_order_acquire);
}

template <class T>
void store_ordered(std::uint64_t address, T value) {
  std::atomic_ref<T>(*at<T>(address)).store(value, std::memory_order_release);
}

bool aligned(std::uint64_t address, std::uint32_t bytes) { return address % bytes == 0; }

/// One access of up to 16 bytes; whole when it is aligned (x86 with AVX moves 16 aligned bytes in
/// one piece), else element by element.
void load_lane(std::uint64_t address, std::uint8_t* to, std::uint32_t bytes) {
  if (bytes == 16) {
    const __m128i value = _mm_load_si128(at<const __m128i>(address));
    std::atomic_thread_fence(std::memory_order_acquire);
    std::memcpy(to, &value, 16);
  } else if (bytes == 8) {
    const auto value = load_ordered<std::uint64_t>(address);
    std::memcpy(to, &value, 8);
  } else if (bytes == 4) {
    const auto value = load_ordered<std::uint32_t>(address);
    std::memcpy(to, &value, 4);
  } else if (bytes == 2) {
    const auto value = load_ordered<std::uint16_t>(address);
    std::memcpy(to, &value, 2);
  } else {
    *to = load_ordered<std::uint8_t>(address);
  }
}

template <class T>
T from_bytes(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

void store_lane(std::uint64_t address, const std::uint8_t* from, std::uint32_t bytes) {
  if (bytes == 16) {
    std::atomic_thread_fence(std::memory_order_release);
    _mm_store_si128(at<__m128i>(address), from_bytes<__m128i>(from));
  } else if (bytes == 8) {
    store_ordered(address, from_bytes<std::uint64_t>(from));
  } else if (bytes == 4) {
    store_ordered(address, from_bytes<std::uint32_t>(from));
  } else if (bytes == 2) {
    store_ordered(address, from_bytes<std::uint16_t>(from));
  } else {
    store_ordered(address, *from);
  }
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t size = bits & 0x7fffU;
  if (size >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000U | ((size & 0x3ffU) << 13));
  const float value = std::bit_cast<float>(size << 13) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const float size = std::bit_cast<float>(bits & 0x7fffffffU);
  if (size != size) return 0x7fff;
  if (size >= 65520.0F) return sign | 0x7c00;
  if (size < 0x1p-14F) {
    // Adding 0.5 aligns the last kept bit with the last bit of the float.
    const float sum = size + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3f000000U));
  }
  std::uint32_t rounded = std::bit_cast<std::uint32_t>(size) - (112U << 23);
  rounded += 0xfffU + ((rounded >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// The new value of an atomic operation.
template <class T>
T combine(AtomicOp op, AtomicKind kind, T old, T a, T b) {
  using Signed = std::make_signed_t<T>;
  const bool is_signed = kind == AtomicKind::kSigned;
  switch (op) {
    case AtomicOp::kAdd:
      if (kind == AtomicKind::kFloat) {
        if constexpr (sizeof(T) == 4) {
          return std::bit_cast<T>(std::bit_cast<float>(old) + std::bit_cast<float>(a));
        } else if constexpr (sizeof(T) == 8) {
          return std::bit_cast<T>(std::bit_cast<double>(old) + std::bit_cast<double>(a));
        }
      }
      if (kind == AtomicKind::kHalf || kind == AtomicKind::kBfloat) {
        T result = 0;
        for (unsigned shift = 0; shift < 8 * sizeof(T); shift += 16) {
          const auto x = static_cast<std::uint16_t>(old >> shift);
          const auto y = static_cast<std::uint16_t>(a >> shift);
          const std::uint16_t sum = kind == AtomicKind::kHalf
                                        ? float_to_half(half_to_float(x) + half_to_float(y))
                                        : float_to_bfloat(bfloat_to_float(x) + bfloat_to_float(y));
          result = static_cast<T>(result | (static_cast<T>(sum) << shift));
        }
        return result;
      }
      return static_cast<T>(old + a);
    case AtomicOp::kMin:
      return is_signed ? static_cast<T>(std::min(static_cast<Signed>(old), static_cast<Signed>(a)))
                       : std::min(old, a);
    case AtomicOp::kMax:
      return is_signed ? static_cast<T>(std::max(static_cast<Signed>(old), static_cast<Signed>(a)))
                       : std::max(old, a);
    case AtomicOp::kAnd:
      return old & a;
    case AtomicOp::kOr:
      return old | a;
    case AtomicOp::kXor:
      return old ^ a;
    case AtomicOp::kExch:
      return a;
    case AtomicOp::kCas:
      return old == a ? b : old;
    case AtomicOp::kInc:
      return old >= a ? T{0} : static_cast<T>(old + 1);
    case AtomicOp::kDec:
      return old == 0 || old > a ? a : static_cast<T>(old - 1);
  }
  return old;
}

template <class T>
void atomic_lanes(T* out, const std::uint64_t* addresses, const T* a, const T* b,
                  std::uint32_t mask, AtomicOp op, AtomicKind kind) {
  for_each_lane(mask, [&](int l) {
    std::atomic_ref<T> cell(*at<T>(addresses[l]));
    if (op == AtomicOp::kAdd && kind <= AtomicKind::kSigned) {
      out[l] = cell.fetch_add(a[l]);
      return;
    }
    T old = cell.load();
    while (!cell.compare_exchange_weak(old, combine(op, kind, old, a[l], b[l]))) {
    }
    out[l] = old;
  });
}

/// `kCount` elements of type T to a lane, from and to scratch memory. Idle lanes read as zeros.
template <class T, std::uint32_t kCount>
void load_apart(std::uint8_t* out, const std::uint64_t* addresses, std::uint32_t mask) {
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
void store_apart(const std::uint8_t* values, const std::uint64_t* addresses, std::uint32_t mask) {
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
  const auto counted = [&]<class T>() {
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
  };
  switch (bytes) {
    case 1:
      return counted.template operator()<std::uint8_t>();
    case 2:
      return counted.template operator()<std::uint16_t>();
    case 4:
      return counted.template operator()<std::uint32_t>();
    default:
      return counted.template operator()<std::uint64_t>();
  }
}

/// Exchanges rows and columns of 8x8 elements of 16 bits: three times, each half of the rows joins
/// the other, element by element.
void transpose(__m128i (&rows)[8]) {
  for (int step = 0; step < 3; ++step) {
    __m128i joined[8];
    for (int r = 0; r < 4; ++r) {
      joined[2 * r] = _mm_unpacklo_epi16(rows[r], rows[r + 4]);
      joined[2 * r + 1] = _mm_unpackhi_epi16(rows[r], rows[r + 4]);
    }
    std::copy(joined, joined + 8, rows);
  }
}

}  // namespace
}  // namespace braid::cpu

extern "C" {

static void braid_cpu_load_apart(std::uint8_t* out, const std::uint64_t* addresses,
                                 std::uint32_t mask, std::uint32_t bytes, std::uint32_t count) {
  braid::cpu::for_access(bytes, count, [&]<class T, std::uint32_t kCount>() {
    braid::cpu::load_apart<T, kCount>(out, addresses, mask);
  });
}

static void braid_cpu_store_apart(const std::uint8_t* values, const std::uint64_t* addresses,
                                  std::uint32_t mask, std::uint32_t bytes, std::uint32_t count) {
  braid::cpu::for_access(bytes, count, [&]<class T, std::uint32_t kCount>() {
    braid::cpu::store_apart<T, kCount>(values, addresses, mask);
  });
}

static void braid_cpu_load_strong(std::uint8_t* out, const std::uint64_t* addresses,
                                  std::uint32_t mask, std::uint32_t bytes, std::uint32_t count,
                                  braid::cpu::WarpContext* /*context*/) {
  using namespace braid::cpu;
  for_each_lane(mask, [&](int l) {
    std::array<std::uint8_t, 16> whole{};
    const std::uint32_t total = bytes * count;
    if (total == bytes || aligned(addresses[l], total)) {
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

static void braid_cpu_store_strong(const std::uint8_t* values, const std::uint64_t* addresses,
                                   std::uint32_t mask, std::uint32_t bytes, std::uint32_t count,
                                   braid::cpu::WarpContext* /*context*/) {
  using namespace braid::cpu;
  for_each_lane(mask, [&](int l) {
    std::array<std::uint8_t, 16> whole{};
    for (std::uint32_t k = 0; k < count; ++k) {
      std::memcpy(whole.data() + k * bytes,
                  values + k * kElementStride + static_cast<std::size_t>(l) * bytes, bytes);
    }
    const std::uint32_t total = bytes * count;
    if (total == bytes || aligned(addresses[l], total)) {
      store_lane(addresses[l], whole.data(), total);
    } else {
      for (std::uint32_t k = 0; k < count; ++k) {
        store_lane(addresses[l] + k * bytes, whole.data() + k * bytes, bytes);
      }
    }
  });
}

/// `code`: operation, kind << 8, bits << 16.
static void braid_cpu_atomic(void* out, const std::uint64_t* addresses, const void* a,
                             const void* b, std::uint32_t mask, std::uint32_t code) {
  using namespace braid::cpu;
  const auto op = static_cast<AtomicOp>(code & 0xff);
  const auto kind = static_cast<AtomicKind>((code >> 8) & 0xff);
  const auto run = [&]<class T>(T*) {
    atomic_lanes(static_cast<T*>(out), addresses, static_cast<const T*>(a),
                 static_cast<const T*>(b), mask, op, kind);
  };
  switch (code >> 16) {
    case 16:
      run(static_cast<std::uint16_t*>(nullptr));
      break;
    case 32:
      run(static_cast<std::uint32_t*>(nullptr));
      break;
    default:
      run(static_cast<std::uint64_t*>(nullptr));
      break;
  }
}

/// Copies `bytes` per lane to target + offsets[lane]; where `sizes` is given only that many and
/// zeros after them.
static void braid_cpu_copy_async(std::uint8_t* target, const std::int32_t* offsets,
                                 const std::uint64_t* sources, const std::uint32_t* sizes,
                                 std::uint32_t mask, std::uint32_t bytes) {
  using namespace braid::cpu;
  const auto move = [&](int l) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + offsets[l]),
                     _mm_loadu_si128(at<const __m128i>(sources[l])));
  };
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
    std::uint8_t* to = target + offsets[l];
    if (size == 16) {
      move(l);
      return;
    }
    std::memcpy(to, at<const std::uint8_t>(sources[l]), size);
    std::memset(to + size, 0, bytes - size);
  });
}

/// Each of `count` matrices is 8 rows of 16 bytes, at base + offsets of 8 lanes each: side by side
/// they are a register, lane by lane. Its place is an offset in the register file.
static void braid_cpu_ldmatrix(std::uint8_t* registers, const std::uint32_t* places,
                               const std::uint8_t* base, const std::int32_t* offsets,
                               std::uint32_t count, std::uint32_t exchanged) {
  for (std::uint32_t m = 0; m < count; ++m, offsets += 8) {
    __m128i rows[8];
    for (int r = 0; r < 8; ++r) {
      rows[r] = _mm_load_si128(reinterpret_cast<const __m128i*>(base + offsets[r]));
    }
    if (exchanged != 0) braid::cpu::transpose(rows);
    auto* to = reinterpret_cast<__m128i*>(registers + places[m]);
    for (int r = 0; r < 8; ++r) _mm_store_si128(to + r, rows[r]);
  }
}

/// shfl with lane numbers known only now; returns the predicate of each lane.
static std::uint32_t braid_cpu_shuffle(std::uint32_t* out, const std::uint32_t* a,
                                       const std::uint32_t* b, const std::uint32_t* c,
                                       std::uint32_t mode) {
  std::uint32_t valid = 0;
  for (std::uint32_t l = 0; l < braid::cpu::kLanes; ++l) {
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
static void braid_cpu_match(std::uint32_t* out, const std::uint64_t* values,
                            const std::uint32_t* members, std::uint32_t active, std::uint32_t all) {
  braid::cpu::for_each_lane(active, [&](int l) {
    const std::uint32_t others = active & members[l];
    std::uint32_t same = 0;
    braid::cpu::for_each_lane(others, [&](int other) {
      if (values[other] == values[l]) same |= 1U << other;
    });
    out[l] = all != 0 && same != others ? 0 : same;
  });
}

/// redux with a member mask of each lane; `op` as in Translator::op_reduce, 8 for signed values.
static void braid_cpu_reduce(std::uint32_t* out, const std::uint32_t* values,
                             const std::uint32_t* members, std::uint32_t active, std::uint32_t op) {
  using namespace braid::cpu;
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

}  // extern "C"

namespace braid::cpu {

#define BRAID_CPU_HELPER(name) \
  RuntimeHelper { #name, reinterpret_cast < void*>(&name) }

std::span<const RuntimeHelper> memory_helpers() {
  static const std::array kHelpers = {
      BRAID_CPU_HELPER(braid_cpu_load_apart),
      BRAID_CPU_HELPER(braid_cpu_store_apart),
      BRAID_CPU_HELPER(braid_cpu_load_strong),
      BRAID_CPU_HELPER(braid_cpu_store_strong),
      BRAID_CPU_HELPER(braid_cpu_atomic),
      BRAID_CPU_HELPER(braid_cpu_copy_async),
      BRAID_CPU_HELPER(braid_cpu_ldmatrix),
      BRAID_CPU_HELPER(braid_cpu_shuffle),
      BRAID_CPU_HELPER(braid_cpu_match),
      BRAID_CPU_HELPER(braid_cpu_reduce),
      RuntimeHelper{"memset", reinterpret_cast<void*>(&std::memset)},
      RuntimeHelper{"memcpy", reinterpret_cast<void*>(&std::memcpy)},
      RuntimeHelper{"memmove", reinterpret_cast<void*>(&std::memmove)},
  };
  return kHelpers;
}

#undef BRAID_CPU_HELPER

}  // namespace braid::cpu
