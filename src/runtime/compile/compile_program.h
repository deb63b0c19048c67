#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "braid/executable.h"
#include "lowering/plan/program.h"
#include "runtime/compile/compiler.h"

namespace braid {

class DiskCache;

/// As WorldOptions::progress; may be empty.
using Progress = std::function<void(std::size_t done, std::size_t total, std::string_view what)>;

/// The kernels of a program as text and as code. Kernels of equal text are one.
struct ProgramCode {
  std::vector<KernelSource> sources;
  std::vector<CompiledKernel> compiled;  ///< of each source
  std::vector<std::size_t> code_of;      ///< for each kernel of the program its source
};

/// Prints every kernel; nothing is compiled yet.
[[nodiscard]] ProgramCode print_program(const Program& program);

/// Prints and compiles every kernel (or takes it from `cache`, which may be null). With `line_info`
/// the PTX says which line of the text it came from.
[[nodiscard]] ProgramCode compile_program(const Program& program, const DiskCache* cache,
                                          const Progress& progress, bool line_info = false);

/// "mm+silu": what a kernel computes, in program order.
[[nodiscard]] std::string op_names(const KernelSpec& spec);

/// One report for each source. Grids are those at `bindings`, or the largest when it is null; of
/// several variants launches are those of the one that runs then, or the most of one.
[[nodiscard]] std::vector<KernelReport> kernel_reports(const Program& program,
                                                       const ProgramCode& code,
                                                       const Bindings* bindings);

}  // namespace braid
