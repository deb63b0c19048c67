#pragma once

#include <cstdint>
#include <vector>

#include "braid/dtype.h"

namespace braid {

/// A tensor in device memory that is the caller's.
struct DeviceTensor {
  std::uint64_t address = 0;               ///< of its first element, on the rank's device
  DType dtype = DType::kF32;               ///< of its elements
  std::vector<std::int64_t> shape;         ///< the outermost extent first
  std::vector<std::int64_t> strides = {};  ///< in elements; empty: dense row-major
};

}  // namespace braid
