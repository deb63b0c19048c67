#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "braid/executable.h"
#include "lowering/plan/program.h"
#include "runtime/compile/compiler.h"

namespace braid {

class DiskCache;
class WorkerProcesses;

/// As WorldOptions::progress; may be empty.
using Progress = std::function<void(std::size_t done, std::size_t total, std::string_view what)>;

/// The kernels of a program as text and as code. Kernels with equal text are stored once.
struct ProgramCode {
  std::vector<KernelSource> sources;
  std::vector<CompiledKernel> compiled;  ///< for each source
  std::vector<std::size_t> code_of;      ///< for each kernel of the program: its source
};

/// Prints every kernel; compiles nothing.
[[nodiscard]] ProgramCode print_program(const Program& program);

/// Settings and helpers of a compile.
struct CompileTools {
  const DiskCache* cache = nullptr;    ///< may be null
  Progress progress;                   ///< may be empty
  bool line_info = false;              ///< the PTX names lines of the CUDA text
  WorkerProcesses* workers = nullptr;  ///< compile what no cache holds; null: this process does
  std::stop_token stop;                ///< ends a compile with kCancelled, between kernels
};

/// Compiles these kernels of code.sources, or takes them from the cache. code.compiled has an entry
/// for every source; `done` marks those that are filled.
void compile_sources(ProgramCode& code, std::span<const std::size_t> which, const Target& target,
                     const CompileTools& tools, std::size_t& done);

/// Compiles all kernels of a printed program, or takes them from the cache.
[[nodiscard]] ProgramCode compile_printed(ProgramCode code, const Target& target,
                                          const CompileTools& tools);
/// Prints every kernel, and compiles it or takes it from the cache.
[[nodiscard]] ProgramCode compile_program(const Program& program, const CompileTools& tools = {});

/// The ops that a kernel computes, in program order: "mm+silu"; of joined kernels "rms_norm, mm".
[[nodiscard]] std::string op_names(const KernelSpec& spec);

/// One report per source. Grids are those at `bindings`, or the largest if it is null. With
/// variants, launches are those of the variant that runs at the bindings, or the most of any.
[[nodiscard]] std::vector<KernelReport> kernel_reports(const Program& program,
                                                       const ProgramCode& code,
                                                       const Bindings* bindings);

}  // namespace braid
