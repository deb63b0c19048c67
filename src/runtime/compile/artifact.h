#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/executable.h"
#include "braid/graph.h"
#include "codegen/target.h"
#include "lowering/tuned.h"
#include "runtime/compile/compile_program.h"

namespace braid {

struct ArtifactOptions {
  PassConfig passes;
  int ranks_per_device = 1;  ///< bounds the grids of kernels that wait
  CompileTools tools;
  FindTuned tuned;  ///< looks up kernel configurations; may be empty
  std::function<void(std::string_view pass)> pass_progress;  ///< PassContext::progress
  /// Makes the content of `kernels.json`, one more of the files; empty: no such file.
  std::function<std::string(const std::vector<KernelReport>& kernels)> report;
};

/// Lowers and compiles a graph for a target, without a device, and writes into `directory`, created
/// where needed: `program.json`; each kernel's .cu, .ptx and .cubin; and `code.json`, which
/// describes these. All files are written before the first is published (see OutputFile), so none
/// is ever incomplete. Grids in the reports are the largest. Throws kEnvironment when the directory
/// cannot be written.
std::vector<KernelReport> write_artifact(const Graph& graph, const Target& target,
                                         const std::filesystem::path& directory,
                                         const ArtifactOptions& options);

/// Writes the same files for a compiled program.
std::vector<KernelReport> write_artifact(
    const Program& program, const ProgramCode& code, const std::filesystem::path& directory,
    const std::function<std::string(const std::vector<KernelReport>& kernels)>& report = {});

/// Reads the code of a program from the files of write_artifact; nothing where there is no
/// `code.json`. Compiles nothing. Throws kInvalidArgument, naming the file, when one is missing or
/// damaged, and when the files belong to another program.
[[nodiscard]] std::optional<ProgramCode> read_code(const Program& program,
                                                   const std::filesystem::path& directory);

}  // namespace braid
