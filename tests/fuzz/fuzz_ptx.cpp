// Any text as PTX: an error, or a module.

#include <cstdint>

#include "braid/error.h"
#include "runtime/cpu/ptx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    (void)braid::cpu::ptx::parse({reinterpret_cast<const char*>(data), size});
  } catch (const braid::Error&) {
    // The error is the answer.
  }
  return 0;
}
