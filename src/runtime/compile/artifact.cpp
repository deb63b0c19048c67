#include "runtime/compile/artifact.h"

#include <fmt/format.h>

#include <deque>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "braid/error.h"
#include "lowering/passes.h"
#include "runtime/output_file.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Entry names are unique as long as codegen derives them from the text; a file must be in any case.
std::vector<std::string> file_names(const std::vector<KernelSource>& sources) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const KernelSource& source : sources) {
    std::string name = source.entry;
    for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", source.entry, i);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::vector<KernelReport> write_artifact(const Graph& graph, const Target& target,
                                         const fs::path& directory,
                                         const ArtifactOptions& options) {
  PassContext context;
  context.target = target;
  context.ranks_per_device = options.ranks_per_device;
  context.config = options.passes;
  const Program program = lower(graph, context);
  const ProgramCode code = compile_program(program, options.cache, options.progress);

  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    throw_environment(directory.string(), fmt::format("cannot be made: {}", error.message()));
  }
  // All are written before the first takes its place.
  std::deque<OutputFile> files;
  const auto write = [&](const std::string& name, std::string_view bytes) {
    files.emplace_back(directory / name, std::span(&bytes, 1));
  };
  write("program.json", to_json(program));
  const std::vector<std::string> names = file_names(code.sources);
  for (std::size_t i = 0; i < code.sources.size(); ++i) {
    const KernelImage& image = code.compiled[i].image;
    write(names[i] + ".cu", code.sources[i].text);
    write(names[i] + ".ptx", image.ptx);
    write(names[i] + ".cubin",
          {reinterpret_cast<const char*>(image.cubin.data()), image.cubin.size()});
  }
  std::vector<KernelReport> reports = kernel_reports(program, code, nullptr);
  if (options.report) write("kernels.json", options.report(reports));
  for (OutputFile& file : files) file.publish();
  return reports;
}

}  // namespace braid
