#pragma once

#include <vector>

#include "braid/device.h"

namespace braid {

/// What a device that may check kernels has found.
inline std::vector<Finding> found_by(Device& device) {
  Inspector* const inspector = device.inspector();
  return inspector == nullptr ? std::vector<Finding>() : inspector->findings();
}

}  // namespace braid
