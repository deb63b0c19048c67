#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid::cpu {

enum class AtomicOp : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };
enum class AtomicKind : std::uint8_t { kUnsigned, kSigned, kFloat, kHalf, kBfloat };

/// What helper "multimem" does: one word.
struct MultimemCode {
  enum What : std::uint8_t { kLoadReduce, kStore, kReduce };
  What what = kStore;
  AtomicOp op = AtomicOp::kAdd;
  AtomicKind kind = AtomicKind::kUnsigned;
  bool wide = false;       ///< 16-bit floats are summed up in f32
  std::uint8_t bits = 32;  ///< of what is reduced by itself: of f16x2, 16
  std::uint8_t lanes = 1;  ///< of those in a register
  std::uint8_t count = 1;  ///< registers
  [[nodiscard]] std::uint32_t bytes() const { return std::uint32_t{bits} * lanes * count / 8; }
  [[nodiscard]] std::uint32_t pack() const {
    return static_cast<std::uint32_t>(what) | static_cast<std::uint32_t>(op) << 2U |
           static_cast<std::uint32_t>(kind) << 6U | static_cast<std::uint32_t>(wide) << 10U |
           std::uint32_t{lanes} << 12U | std::uint32_t{count} << 16U | std::uint32_t{bits} << 24U;
  }
  static MultimemCode unpack(std::uint32_t code) {
    return {static_cast<What>(code & 3U),
            static_cast<AtomicOp>(code >> 2U & 15U),
            static_cast<AtomicKind>(code >> 6U & 15U),
            (code >> 10U & 1U) != 0,
            static_cast<std::uint8_t>(code >> 24U),
            static_cast<std::uint8_t>(code >> 12U & 15U),
            static_cast<std::uint8_t>(code >> 16U & 255U)};
  }
};

/// Bits of the `code` of helper "mma".
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

/// What helper "barrier" does. The first three return a result.
enum class BarrierKind : std::uint32_t {
  kPopc,
  kAnd,
  kOr,
  kSync,
  kPark,  ///< does not wait: returns whether the warp has to
  kArrive
};

/// Why generated code gives up: helper "stop".
enum class Stop : std::uint32_t { kTrap, kEndless, kWrap };

/// What helper "cluster_barrier" does.
enum class ClusterBarrier : std::uint32_t { kArrive, kArriveRelaxed, kWait };

/// A function that generated code may call: for it, what it has of a warp is the address of a
/// WarpContext, with which a BlockRunner::Warp begins. None throws: they run on fibers with
/// generated frames below them.
struct RuntimeHelper {
  template <class Result, class... Args>
  RuntimeHelper(const char* name, Result (*function)(Args...))
      : name(name), address(reinterpret_cast<void*>(function)) {}
  const char* name;
  void* address;
};
inline std::string helper_symbol(const char* name) { return std::string("braid_cpu_") + name; }

/// Helpers that compute (runtime_math.cpp, runtime_memory.cpp, runtime_mma.cpp,
/// runtime_matrix.cpp).
std::vector<RuntimeHelper> math_helpers();
std::vector<RuntimeHelper> memory_helpers();
std::vector<RuntimeHelper> mma_helpers();
std::vector<RuntimeHelper> matrix_helpers();
std::vector<RuntimeHelper> wgmma_helpers();
/// Helpers that stop or park the warp (block_runner.cpp).
std::vector<RuntimeHelper> control_helpers();
std::vector<RuntimeHelper> multimem_helpers();
/// Helpers that count accesses (runtime_counts.cpp).
std::vector<RuntimeHelper> count_helpers();
std::vector<RuntimeHelper> mbarrier_helpers();
std::vector<RuntimeHelper> bulk_helpers();

}  // namespace braid::cpu
