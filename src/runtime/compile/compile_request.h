#pragma once

#include <string>
#include <string_view>

#include "codegen/kernel/spec.h"
#include "codegen/target.h"
#include "runtime/compile/compiler.h"

namespace braid {

/// A request to another process to compile a kernel.
struct CompileRequest {
  KernelSource source;
  Target target;
  std::string cache_dir;  ///< compile cache; "" means none
  bool line_info = false;
  std::string nvrtc;  ///< path of the library in the requesting process, so that both use the same
};

/// Serializes a request; the reader throws kInvalidArgument for malformed bytes.
[[nodiscard]] std::string to_bytes(const CompileRequest& request);
[[nodiscard]] CompileRequest compile_request_from(std::string_view bytes);

/// Compiles the kernel and returns the answer: the kernel, or the error. For a process that does
/// nothing else, because the choice of NVRTC is set in its environment.
[[nodiscard]] std::string answer_to(const CompileRequest& request);
/// The kernel of an answer; throws the error of a failed one.
[[nodiscard]] CompiledKernel compiled_from(std::string_view answer);

}  // namespace braid
