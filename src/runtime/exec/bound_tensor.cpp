#include "runtime/exec/bound_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "ir/fail.h"

namespace braid {
namespace {

constexpr std::uint64_t kAlignment = 16;

std::string text(const DeviceTensor& tensor) {
  return fmt::format("{}[{}]", dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

[[noreturn]] void refuse(const std::string& name, const DeviceTensor& tensor,
                         const std::string& expected) {
  throw_invalid(name, "is bound to {}; expected {}", text(tensor), expected);
}

/// The stride of a dim with one element does not matter; with zero elements no stride does.
bool is_dense(const DeviceTensor& tensor) {
  if (tensor.strides.empty()) return true;
  std::int64_t step = 1;
  for (std::size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] == 0) return true;
    if (tensor.shape[d] != 1 && tensor.strides[d] != step) return false;
    step *= tensor.shape[d];
  }
  return true;
}

void check_extents(const std::string& name, const DeviceTensor& tensor) {
  std::int64_t left = std::numeric_limits<std::int64_t>::max() / 8;  // in bytes of elements
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0) refuse(name, tensor, "no negative dim");
    if (extent > left) refuse(name, tensor, "fewer elements");
    left /= extent > 0 ? extent : 1;
  }
}

}  // namespace

std::size_t dense_bytes(const DeviceTensor& tensor) {
  std::size_t bytes = dtype_size(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

void check_bound(const std::string& name, const TensorType& type, const DeviceTensor& tensor) {
  if (tensor.address == 0 || tensor.address % kAlignment != 0) {
    throw_invalid(name, "address {:#x}; expected a multiple of {} other than 0", tensor.address,
                  kAlignment);
  }
  if (tensor.dtype != type.dtype || tensor.shape.size() != type.shape.size()) {
    refuse(name, tensor, type.str());
  }
  check_extents(name, tensor);
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    if (!type.shape[d].is_constant()) continue;
    const std::int64_t expected = type.shape[d].constant();
    const bool fits = d == 0 ? tensor.shape[d] >= expected : tensor.shape[d] == expected;
    if (!fits) refuse(name, tensor, type.str());
  }
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size()) {
    throw_invalid(name, "{} strides; expected one for each of {} dims, or none",
                  tensor.strides.size(), tensor.shape.size());
  }
  if (!is_dense(tensor)) {
    throw_invalid(name, "strides ({}) of {}; expected a dense row-major tensor",
                  fmt::join(tensor.strides, ", "), text(tensor));
  }
}

void check_bound_at(const std::string& name, const TensorType& type, const DeviceTensor& tensor,
                    const Bindings& bindings) {
  std::vector<std::int64_t> needed;
  bool fits = true;
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    needed.push_back(type.shape[d].evaluate(bindings));
    fits = fits && (d == 0 ? tensor.shape[d] >= needed[d] : tensor.shape[d] == needed[d]);
  }
  if (fits) return;
  refuse(name, tensor,
         fmt::format("at least {}[{}] for these symbols", dtype_name(type.dtype),
                     fmt::join(needed, ", ")));
}

}  // namespace braid
