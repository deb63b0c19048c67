#include "runtime/artifact.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "braid/error.h"
#include "lowering/passes.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
  throw_environment(path.string(), fmt::format("cannot be written: {}", reason));
}

// A directory beside `target` that is removed with all it holds unless it was renamed away.
class StagingDirectory {
 public:
  explicit StagingDirectory(const fs::path& target) {
    const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
    std::error_code error;
    fs::create_directories(parent, error);
    if (error) fail(parent, error.message());
    path_ = parent / fmt::format(".{}.tmp.{}", target.filename().string(), ::getpid());
    fs::remove_all(path_, error);
    if (!fs::create_directory(path_, error)) fail(path_, error.message());
  }
  StagingDirectory(const StagingDirectory&) = delete;
  StagingDirectory& operator=(const StagingDirectory&) = delete;
  ~StagingDirectory() {
    std::error_code error;
    fs::remove_all(path_, error);
  }

  void write(const std::string& name, std::string_view bytes) const {
    const fs::path file = path_ / name;
    std::ofstream out(file, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) fail(file, "the disk is full or the path is not writable");
  }

  // Puts the files in place: as a whole where the directory is new, else one by one.
  void publish(const fs::path& directory) const {
    std::error_code error;
    fs::rename(path_, directory, error);
    if (!error) return;
    if (!fs::is_directory(directory)) fail(directory, error.message());
    for (const fs::directory_entry& file : fs::directory_iterator(path_)) {
      fs::rename(file.path(), directory / file.path().filename(), error);
      if (error) fail(directory / file.path().filename(), error.message());
    }
  }

 private:
  fs::path path_;
};

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

  // "out/" names the directory "out".
  const fs::path place = directory.has_filename() ? directory : directory.parent_path();
  const StagingDirectory staging(place);
  staging.write("program.json", to_json(program));
  const std::vector<std::string> names = file_names(code.sources);
  for (std::size_t i = 0; i < code.sources.size(); ++i) {
    const KernelImage& image = code.compiled[i].image;
    staging.write(names[i] + ".cu", code.sources[i].text);
    staging.write(names[i] + ".ptx", image.ptx);
    staging.write(names[i] + ".cubin",
                  {reinterpret_cast<const char*>(image.cubin.data()), image.cubin.size()});
  }
  staging.publish(place);
  return kernel_reports(program, code, nullptr);
}

}  // namespace braid
