#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "braid/dim3.h"

namespace braid::testing {

/// All buffers hold floats (or 32-bit integers in their bits).
using Buffers = std::vector<std::vector<float>>;

struct Argument {
  int buffer = -1;         ///< index, or -1 for a scalar
  std::int64_t value = 0;  ///< of a scalar
  bool poisoned = false;   ///< nobody writes the buffer before the kernel
};
inline Argument buffer(int index) { return {index, 0, false}; }
inline Argument output(int index) { return {index, 0, true}; }
inline Argument scalar(std::int64_t value) { return {-1, value, false}; }

/// A kernel "k" with twins: `source` is compiled with BUG 0 (right), 1, 2, ...
struct KernelCase {
  std::string name;
  std::string source;
  Dim3 grid, block;
  std::vector<Argument> arguments;
  std::function<Buffers()> buffers;
  std::function<void(Buffers&)> reference;
  std::vector<std::string> bugs;  ///< the kind that is found, by bug
};
inline void PrintTo(const KernelCase& kernel, std::ostream* out) { *out << kernel.name; }

std::vector<KernelCase> kernel_cases();

}  // namespace braid::testing
