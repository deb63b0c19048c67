#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "braid/export.h"
#include "braid/tensor.h"

namespace braid {

/// Reads a file of tensors in the format safetensors, and calls `use` for each, in the order of
/// their names. One tensor is in memory at a time. Everything that the file says is checked: throws
/// kInvalidArgument, which names the file and the tensor, also where braid has no such dtype, and
/// kEnvironment for an I/O error.
BRAID_API void read_safetensors(
    const std::string& path,
    const std::function<void(std::string_view name, const HostTensor& tensor)>& use);

}  // namespace braid
