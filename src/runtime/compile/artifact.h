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
  FindTuned tuned;  ///< of kernels' configurations; may be empty
  std::function<void(std::string_view pass)> pass_progress;  ///< PassContext::progress
  /// The content of `kernels.json`, one more of the files. May be empty: then there is none.
  std::function<std::string(const std::vector<KernelReport>& kernels)> report;
};

/// Lowers and compiles a graph for a target, without a device, and writes `program.json`, for each
/// kernel its .cu, .ptx and .cubin, and `code.json`, which says what these files hold, into
/// `directory`, which is made where needed. All files are written before the first takes its place
/// (see OutputFile), so that none is ever half there.
/// Grids in the reports are the largest. Throws kEnvironment when the directory cannot be written.
std::vector<KernelReport> write_artifact(const Graph& graph, const Target& target,
                                         const std::filesystem::path& directory,
                                         const ArtifactOptions& options);

/// The same files of a program that is compiled already. Returns what the other one does.
std::vector<KernelReport> write_artifact(
    const Program& program, const ProgramCode& code, const std::filesystem::path& directory,
    const std::function<std::string(const std::vector<KernelReport>& kernels)>& report = {});

/// The code of a program from the files that write_artifact wrote into a directory; nothing where
/// there is no `code.json`. Nothing is compiled. Throws kInvalidArgument, naming the file, when one
/// is missing or not what was written, and when the files are those of another program.
[[nodiscard]] std::optional<ProgramCode> read_code(const Program& program,
                                                   const std::filesystem::path& directory);

}  // namespace braid
