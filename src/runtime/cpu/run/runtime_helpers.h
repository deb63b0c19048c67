#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace braid::cpu {

enum class AtomicOp : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };
enum class AtomicKind : std::uint8_t { kUnsigned, kSigned, kFloat, kHalf, kBfloat };

/// What helper "multimem" does.
struct MultimemCode {
  enum What : std::uint8_t { kLoadReduce, kStore, kReduce };
  What what : 2 = kStore;
  bool wide : 1 = false;  ///< 16-bit floats are summed up in f32
  AtomicOp op : 5 = AtomicOp::kAdd;
  AtomicKind kind : 4 = AtomicKind::kUnsigned;
  std::uint8_t lanes : 4 = 1;  ///< of those in a register
  std::uint8_t count = 1;      ///< registers
  std::uint8_t bits = 32;      ///< of what is reduced by itself: of f16x2, 16
  [[nodiscard]] std::uint32_t bytes() const { return std::uint32_t{bits} * lanes * count / 8; }
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
inline constexpr std::uint32_t kMmaHopper = 2048;   ///< MatrixSums::kHopper; C and D are f32
inline constexpr std::uint32_t kMmaOfGroup = 4096;  ///< .. of wgmma

/// What helper "barrier" does. The first three return a result.
enum class BarrierKind : std::uint32_t {
  kPopc,
  kAnd,
  kOr,
  kSync,
  kPark,  ///< does not wait: returns whether the warp must
  kArrive
};

/// Why generated code gives up: helper "stop".
enum class Stop : std::uint32_t { kTrap, kEndless, kWrap };

/// What helper "cluster_barrier" does.
enum class ClusterBarrier : std::uint32_t { kArrive, kArriveRelaxed, kWait };

/// The codes of helpers are structs of up to 32 bits, all of them used, which go as one word.
template <class Code>
inline constexpr bool kIsCodeWord =
    std::is_trivially_copyable_v<Code> &&
    sizeof(Code) <= sizeof(std::uint32_t) && std::has_unique_object_representations_v<Code>;

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
std::vector<RuntimeHelper> tensor_memory_helpers();
std::vector<RuntimeHelper> tensor_multiply_helpers();
/// Helpers that stop or park the warp (block_runner.cpp).
std::vector<RuntimeHelper> control_helpers();
std::vector<RuntimeHelper> multimem_helpers();
/// Helpers that count accesses (runtime_counts.cpp).
std::vector<RuntimeHelper> count_helpers();
std::vector<RuntimeHelper> mbarrier_helpers();
std::vector<RuntimeHelper> bulk_helpers();

}  // namespace braid::cpu
