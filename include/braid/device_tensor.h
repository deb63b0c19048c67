#pragma once

#include <cstdint>
#include <vector>

#include "braid/dtype.h"

namespace braid {

/// A tensor in device memory that is the caller's.
struct DeviceTensor {
  std::uint64_t address = 0;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides = {};  ///< in elements; empty: dense row-major
};

}  // namespace braid
