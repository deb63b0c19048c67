#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/cpu/run/runtime_helpers.h"

// Per-lane operations of helpers: single-copy atomic accesses, and the arithmetic of atomics.

namespace braid::cpu {

/// Distance in scratch memory of the values of consecutive vector elements.
inline constexpr std::size_t kElementStride = 256;

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

inline bool aligned(std::uint64_t address, std::uint32_t bytes) { return address % bytes == 0; }

/// Calls run.operator()<T>() with an unsigned T of so many bytes.
template <class Run>
auto with_word(std::size_t bytes, Run&& run) {
  switch (bytes) {
    case 1:
      return run.template operator()<std::uint8_t>();
    case 2:
      return run.template operator()<std::uint16_t>();
    case 4:
      return run.template operator()<std::uint32_t>();
    default:
      return run.template operator()<std::uint64_t>();
  }
}

/// Puts change(old) in the place of what stands there, in one piece; returns that.
template <class T, class Change>
T update(std::uint64_t address, const Change& change) {
  std::atomic_ref<T> cell(*at<T>(address));
  T old = cell.load();
  while (!cell.compare_exchange_weak(old, change(old))) {
  }
  return old;
}

/// One access of up to 16 bytes; whole when it is aligned (x86 with AVX moves 16 aligned bytes in
/// one piece), else element by element. That x86 keeps it in order with others suffices for 16; the
/// compiler must, too.
inline void load_lane(std::uint64_t address, std::uint8_t* to, std::uint32_t bytes) {
  if (bytes == 16) {
    const __m128i value = _mm_load_si128(at<const __m128i>(address));
    std::atomic_signal_fence(std::memory_order_acquire);
    std::memcpy(to, &value, 16);
    return;
  }
  with_word(bytes, [&]<class T>() {
    const T value = std::atomic_ref<T>(*at<T>(address)).load(std::memory_order_acquire);
    std::memcpy(to, &value, sizeof(T));
  });
}

template <class T>
T from_bytes(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline void store_lane(std::uint64_t address, const std::uint8_t* from, std::uint32_t bytes) {
  if (bytes == 16) {
    std::atomic_signal_fence(std::memory_order_release);
    _mm_store_si128(at<__m128i>(address), from_bytes<__m128i>(from));
    return;
  }
  with_word(bytes, [&]<class T>() {
    std::atomic_ref<T>(*at<T>(address)).store(from_bytes<T>(from), std::memory_order_release);
  });
}

inline float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t size = bits & 0x7fffU;
  if (size >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000U | ((size & 0x3ffU) << 13));
  const float value = std::bit_cast<float>(size << 13) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

inline std::uint16_t float_to_half(float value) {
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

inline float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// Converts the bits of e4m3 or e5m2 to those of an f32.
inline std::uint32_t from_float8(std::uint32_t code, bool e5m2) {
  const std::uint32_t sign = (code & 0x80U) << 24;
  const std::uint32_t size = code & 0x7fU;
  if (!e5m2 && size == 0x7f) return 0x7fffffff;
  if (e5m2 && size > 0x7b) return sign | (size == 0x7c ? 0x7f800000U : 0x7fffffffU);
  const int mantissa = e5m2 ? 2 : 3;
  const float scaled = std::bit_cast<float>(size << (23 - mantissa));
  const float value = scaled * (e5m2 ? 0x1p112F : 0x1p120F);
  return std::bit_cast<std::uint32_t>(value) | sign;
}

inline float widen(AtomicKind kind, std::uint16_t bits) {
  return kind == AtomicKind::kHalf ? half_to_float(bits) : bfloat_to_float(bits);
}
inline std::uint16_t narrow(AtomicKind kind, float value) {
  return kind == AtomicKind::kHalf ? float_to_half(value) : float_to_bfloat(value);
}

/// Add, min and max of the 16-bit floats in a word. Min and max of a NaN and a number are the
/// number.
template <class T>
T combine_halves(AtomicOp op, AtomicKind kind, T old, T a) {
  T result = 0;
  for (unsigned shift = 0; shift < 8 * sizeof(T); shift += 16) {
    const float x = widen(kind, static_cast<std::uint16_t>(old >> shift));
    const float y = widen(kind, static_cast<std::uint16_t>(a >> shift));
    // Not fmin and fmax, which return NaN for a signalling NaN.
    const float number = x != x ? y : x;
    const float value = op == AtomicOp::kAdd   ? x + y
                        : y != y || x != x     ? number
                        : op == AtomicOp::kMin ? std::min(x, y)
                                               : std::max(x, y);
    result = static_cast<T>(result | (static_cast<T>(narrow(kind, value)) << shift));
  }
  return result;
}

/// The new value after an atomic operation.
template <class T>
T combine(AtomicOp op, AtomicKind kind, T old, T a, T b) {
  if (kind >= AtomicKind::kHalf && op <= AtomicOp::kMax) return combine_halves(op, kind, old, a);
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

}  // namespace braid::cpu
