#pragma once

#include <string>
#include <string_view>

#include "codegen/kernel/spec.h"
#include "codegen/target.h"
#include "runtime/compile/compiler.h"

namespace braid {

/// A kernel for another process to compile.
struct CompileRequest {
  KernelSource source;
  Target target;
  std::string cache_dir;  ///< of the compile cache; "": none
  bool line_info = false;
  std::string nvrtc;  ///< the file of the library, the same as in the process that asks
};

/// As bytes. Throws kInvalidArgument for what is none.
[[nodiscard]] std::string to_bytes(const CompileRequest& request);
[[nodiscard]] CompileRequest compile_request_from(std::string_view bytes);

/// Compiles it: the answer, which holds the kernel or the error. For a process that does nothing
/// else, as the choice of NVRTC is put into its environment.
[[nodiscard]] std::string answer_to(const CompileRequest& request);
/// The kernel of an answer; throws its error.
[[nodiscard]] CompiledKernel compiled_from(std::string_view answer);

}  // namespace braid
