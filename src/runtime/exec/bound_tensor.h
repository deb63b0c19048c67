#pragma once

#include <string>

#include "braid/device_tensor.h"
#include "lowering/plan/program.h"

namespace braid {

/// Bytes from the first element of a dense tensor to the end of the last.
[[nodiscard]] std::size_t dense_bytes(const DeviceTensor& tensor);

/// Whether a tensor of the caller's can be what the program calls `type`, whatever its symbols are:
/// address, dtype, number of dims, strides, constant dims. Throws kInvalidArgument at `name`.
void check_bound(const std::string& name, const TensorType& type, const DeviceTensor& tensor);

/// Whether it holds the type at these values: the first dim may be longer, no other one differs.
void check_bound_at(const std::string& name, const TensorType& type, const DeviceTensor& tensor,
                    const Bindings& bindings);

}  // namespace braid
