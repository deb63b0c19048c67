// Any text as PTX: an error, or functions that LLVM's verifier accepts.

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "braid/error.h"
#include "runtime/cpu/translate/jit.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid::cpu;
  try {
    const Program program(std::string(reinterpret_cast<const char*>(data), size));
    // Every variant now and then.
    for (std::size_t entry = 0; entry < program.entries().size(); ++entry) {
      llvm::LLVMContext context;
      llvm::Module module("fuzz", context);
      Jit::translate(module, program, entry, size % 2 == 0,
                     {.checks = size % 3 == 0, .counts = size % 5 == 0});
    }
  } catch (const braid::Error& error) {
    // The error is the answer, unless it is our own.
    if (error.code() == braid::ErrorCode::kInternal) {
      std::fprintf(stderr, "%s\n", error.what());
      std::abort();
    }
  }
  return 0;
}
