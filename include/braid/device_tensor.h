#pragma once

#include <cstdint>
#include <vector>

#include "braid/dtype.h"

namespace braid {

/// A tensor in device memory that the caller owns.
struct DeviceTensor {
  std::uint64_t address = 0;  ///< device address of the first element
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;         ///< outermost extent first
  std::vector<std::int64_t> strides = {};  ///< in elements; empty means dense row-major
};

}  // namespace braid
