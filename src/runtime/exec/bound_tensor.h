#pragma once

#include <string>

#include "braid/device_tensor.h"
#include "lowering/plan/program.h"

namespace braid {

/// Bytes from the first element of a dense tensor to the end of the last.
[[nodiscard]] std::size_t dense_bytes(const DeviceTensor& tensor);

/// Checks a caller's tensor against `type`, regardless of symbol values: address, dtype, number of
/// dims, strides, constant dims. Throws kInvalidArgument at `name`.
void check_bound(const std::string& name, const TensorType& type, const DeviceTensor& tensor);

/// Checks it at these symbol values: the first dim may be longer, the others must be equal.
void check_bound_at(const std::string& name, const TensorType& type, const DeviceTensor& tensor,
                    const Bindings& bindings);

}  // namespace braid
