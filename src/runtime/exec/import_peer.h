#pragma once

#include <fmt/format.h>

#include <memory>
#include <string_view>

#include "braid/device.h"
#include "braid/error.h"

namespace braid {

/// Device::import_memory for memory of rank `peer`, which errors name.
inline std::unique_ptr<Memory> import_peer(Device& device, int rank, int peer,
                                           std::string_view handle) {
  try {
    return device.import_memory(rank, handle);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("rank {} cannot be reached", peer), error.what());
  }
}

}  // namespace braid
