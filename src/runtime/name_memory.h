#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "braid/device.h"

namespace braid {

/// Names the first `bytes` of an allocation for the device's inspector, if there is one.
inline void name_memory(Device& device, const Memory& memory, std::size_t bytes, std::string name) {
  Inspector* const inspector = device.inspector();
  if (inspector == nullptr) return;
  const MemoryPart part{memory.address(), bytes, std::move(name)};
  inspector->name_parts(part.address, {&part, 1});
}

}  // namespace braid
