// Any bytes as a .safetensors file: an error, or tensors whose bytes fit their shape.

#include <cstdlib>

#include "braid/error.h"
#include "fuzz/temporary_file.h"
#include "runtime/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto path = braid::fuzz::directory() / "fuzz.safetensors";
  braid::fuzz::write_file(path, data, size);
  try {
    const braid::SafetensorsFile file(path);
    for (const auto& [name, entry] : file.entries()) {
      if (!braid::SafetensorsFile::dtype_of(entry)) continue;
      const braid::HostTensor tensor = file.read(name);
      const auto bytes = static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype);
      if (tensor.data.size() != bytes) std::abort();
    }
  } catch (const braid::Error& error) {
    if (error.code() != braid::ErrorCode::kInvalidArgument) std::abort();
  }
  return 0;
}
