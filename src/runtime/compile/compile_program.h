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

/// The kernels of a program as text and as code. Kernels of equal text are one.
struct ProgramCode {
  std::vector<KernelSource> sources;
  std::vector<CompiledKernel> compiled;  ///< of each source
  std::vector<std::size_t> code_of;      ///< for each kernel of the program its source
};

/// Prints every kernel; nothing is compiled yet.
[[nodiscard]] ProgramCode print_program(const Program& program);

/// What kernels are compiled with.
struct CompileTools {
  const DiskCache* cache = nullptr;    ///< none when null
  Progress progress;                   ///< may be empty
  bool line_info = false;              ///< the PTX says which line of the text it came from
  WorkerProcesses* workers = nullptr;  ///< compile what is in no cache; null: this process does
  std::stop_token stop;                ///< ends a compile with kCancelled, between kernels
};

/// Compiles these kernels of code.sources, or takes them from the cache. Those of code.compiled are
/// there for all sources, and `done` says how many hold something.
void compile_sources(ProgramCode& code, std::span<const std::size_t> which, const Target& target,
                     const CompileTools& tools, std::size_t& done);

/// Prints and compiles every kernel (or takes it from the cache).
[[nodiscard]] ProgramCode compile_program(const Program& program, const CompileTools& tools = {});

/// "mm+silu": what a kernel computes, in program order.
[[nodiscard]] std::string op_names(const KernelSpec& spec);

/// One report for each source. Grids are those at `bindings`, or the largest when it is null; of
/// several variants launches are those of the one that runs then, or the most of one.
[[nodiscard]] std::vector<KernelReport> kernel_reports(const Program& program,
                                                       const ProgramCode& code,
                                                       const Bindings* bindings);

}  // namespace braid
