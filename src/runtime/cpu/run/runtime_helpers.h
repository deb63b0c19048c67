#pragma once

#include <cstdint>
#include <span>

namespace braid::cpu {

enum class AtomicOp : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };
enum class AtomicKind : std::uint8_t { kUnsigned, kSigned, kFloat, kHalf, kBfloat };

/// Bits of the `code` of braid_cpu_mma.
inline constexpr std::uint32_t kMmaBfloat = 1;
inline constexpr std::uint32_t kMmaShort = 2;    ///< half of the k that fills the registers
inline constexpr std::uint32_t kMmaHalfSum = 4;  ///< C and D are f16
inline constexpr std::uint32_t kMmaFloat8 = 8;   ///< k is 32, elements are e4m3
inline constexpr std::uint32_t kMmaE5m2A = 16;   ///< .. those of A are e5m2
inline constexpr std::uint32_t kMmaE5m2B = 32;
inline constexpr std::uint32_t kMmaTf32 = 64;   ///< k is 8, or 4 if short
inline constexpr std::uint32_t kMmaInt8 = 128;  ///< k is 32, or 16 if short; C and D are s32
inline constexpr std::uint32_t kMmaSignedA = 256;
inline constexpr std::uint32_t kMmaSignedB = 512;
inline constexpr std::uint32_t kMmaSaturate = 1024;

/// What braid_cpu_barrier does. The first three return a result.
enum class BarrierKind : std::uint32_t {
  kPopc,
  kAnd,
  kOr,
  kSync,
  kPark,  ///< does not wait: returns whether the warp has to
  kArrive
};

/// A function that generated code may call. They all have C linkage and never throw: they run on
/// fibers with generated frames below them.
struct RuntimeHelper {
  const char* name;
  void* address;
};

/// Helpers that compute (runtime_math.cpp, runtime_memory.cpp, runtime_mma.cpp).
std::span<const RuntimeHelper> math_helpers();
std::span<const RuntimeHelper> memory_helpers();
std::span<const RuntimeHelper> mma_helpers();
/// Helpers that stop or park the warp (block_runner.cpp).
std::span<const RuntimeHelper> control_helpers();

}  // namespace braid::cpu
