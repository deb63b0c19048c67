#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "braid/dim3.h"
#include "runtime/tensor_map.h"

namespace braid::testing {

/// All buffers hold floats (or 32-bit integers in their bits).
using Buffers = std::vector<std::vector<float>>;

struct Argument {
  int buffer = -1;                    ///< index, or -1 for a scalar
  std::int64_t value = 0;             ///< of a scalar
  bool poisoned = false;              ///< nobody writes the buffer before the kernel
  int rank = 0;                       ///< whose memory holds the buffer
  bool own_rank = false;              ///< the scalar is the rank that runs the kernel
  std::optional<TensorMap> map = {};  ///< by which the kernel has the buffer
};
inline Argument buffer(int index, int rank = 0) { return {index, 0, false, rank}; }
inline Argument output(int index, int rank = 0) { return {index, 0, true, rank}; }
inline Argument scalar(std::int64_t value) { return {-1, value, false}; }
inline Argument tensor_map(int index, const TensorMap& map) {
  return {index, 0, false, 0, false, map};
}
inline Argument own_rank() { return {-1, 0, false, 0, true}; }

/// A kernel "k" with twins: `source` is compiled with BUG 0 (right), 1, 2, ...
struct KernelCase {
  std::string name;
  std::string source;
  Dim3 grid, block;
  std::vector<Argument> arguments;
  std::function<Buffers()> buffers;
  std::function<void(Buffers&)> reference;
  std::vector<std::string> bugs;  ///< the kind that is found, by bug
  int world = 1;                  ///< ranks, each of which launches the kernel
  /// Undoes an order that nobody promised, before results are compared.
  std::function<void(Buffers&)> canonical = nullptr;
  std::string note;  ///< part of one of the right kernel's notes; empty where it has none
  std::string target = "sm_80";
  Dim3 cluster = {};
};
inline void PrintTo(const KernelCase& kernel, std::ostream* out) { *out << kernel.name; }

std::vector<KernelCase> kernel_cases();

// --- what buffers hold ---
[[nodiscard]] std::vector<float> random_floats(std::size_t count, unsigned seed = 1);
/// Integers from -6 to 6, which bf16 holds; `step` is no multiple of 13.
[[nodiscard]] std::vector<float> small_integers(std::size_t count, int step);
/// 1, 2, 3, ...
[[nodiscard]] std::vector<float> ramp(std::size_t count);
[[nodiscard]] float int_bits(std::int32_t value);
[[nodiscard]] std::int32_t to_int(float bits);
[[nodiscard]] std::vector<float> ints(const std::vector<std::int32_t>& values);
[[nodiscard]] inline std::vector<float> zeros(std::size_t count) {
  return std::vector<float>(count);
}

/// b[2][row][column] = `finish` of the dot product of b[0][row] and b[1][column], of k elements.
void dot_products(
    Buffers& b, std::size_t rows, std::size_t k, std::size_t columns = 16,
    float (*finish)(float) = [](float sum) { return sum; });

}  // namespace braid::testing
