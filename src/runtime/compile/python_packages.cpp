#include "runtime/compile/python_packages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/dynamic_library.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Sorted by name, so that results are reproducible.
std::vector<fs::path> children(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> result;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    result.push_back(it->path());
  }
  std::ranges::sort(result);
  return result;
}

}  // namespace

fs::path build_environment(const fs::path& libraries) {
  // build/release/lib/libbraid.so has build/venv beside its tree.
  const fs::path tree = libraries.parent_path();
  std::error_code error;
  if (!fs::exists(tree / "CMakeCache.txt", error)) return {};
  return tree.parent_path() / "venv";
}

fs::path packages_around(const fs::path& libraries) {
  const fs::path package = libraries.parent_path();
  const fs::path packages = package.parent_path();
  const bool is_package = libraries.filename() == "lib" && package.filename() == "braid" &&
                          packages.filename().string().ends_with("-packages");
  return is_package ? packages : fs::path();
}

std::vector<fs::path> cuda_wheels() {
  std::vector<fs::path> environments;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (std::string path = environment(name); !path.empty()) environments.emplace_back(path);
  }
  if (fs::path made = build_environment(library_folder()); !made.empty()) {
    environments.push_back(std::move(made));
  }
  if (std::string home = environment("HOME"); !home.empty()) {
    environments.push_back(fs::path(home) / ".local");
  }
  environments.emplace_back("/usr/local");
  environments.emplace_back("/usr");

  std::vector<fs::path> result;
  const auto look_in = [&](const fs::path& packages) {
    std::error_code error;
    fs::path wheels = packages / "nvidia";
    if (fs::is_directory(wheels, error)) result.push_back(std::move(wheels));
  };
  if (const fs::path own = packages_around(library_folder()); !own.empty()) look_in(own);
  for (const fs::path& environment : environments) {
    for (const fs::path& python : children(environment / "lib")) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) look_in(python / packages);
    }
  }
  return result;
}

std::vector<fs::path> cuda_toolkits() {
  std::vector<fs::path> result;
  for (const char* name : {"BRAID_CUDA_HOME", "CUDA_HOME"}) {
    if (std::string home = environment(name); !home.empty()) result.emplace_back(home);
  }
  const fs::path usual = "/usr/local/cuda";
  if (std::ranges::find(result, usual) == result.end()) result.push_back(usual);
  return result;
}

}  // namespace braid
