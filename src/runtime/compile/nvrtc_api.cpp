#include "runtime/compile/nvrtc_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "ir/fail.h"
#include "runtime/compile/python_packages.h"
#include "runtime/cuda/cuda_api.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr int kOldest = 12;  // oldest version that is searched for

std::vector<std::string> candidates() {
  if (std::string path = environment("BRAID_NVRTC"); !path.empty()) return {path};
  std::vector<fs::path> directories;
  for (const fs::path& home : cuda_toolkits()) {
    directories.push_back(home / "lib64");
    directories.push_back(home / "lib");
  }
  for (const fs::path& wheels : cuda_wheels()) {
    directories.push_back(wheels / "cu13/lib");
    directories.push_back(wheels / "cuda_nvrtc/lib");
  }
  if (const std::string conda = environment("CONDA_PREFIX"); !conda.empty()) {
    directories.push_back(fs::path(conda) / "lib");
  }
  const std::vector<std::string> names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::vector<std::string> result = library_files(directories, names);
  result.insert(result.end(), names.begin(), names.end());
  return result;
}

// Nothing, with the reason, if the file is not a working NVRTC.
std::optional<NvrtcApi> open(DynamicLibrary library, std::string& problem) {
  NvrtcApi api;
  api.library = std::move(library);
  std::string missing;
#define BRAID_BIND(name, result, parameters) bind_symbol(api.library, #name, api.name, missing);
  BRAID_NVRTC_FUNCTIONS(BRAID_BIND)
#undef BRAID_BIND
  if (!missing.empty()) {
    problem = fmt::format("{} lacks {}", api.library.path(), missing);
    return {};
  }
  int minor = 0;
  if (const int result = api.nvrtcVersion(&api.major, &minor); result != 0) {
    problem =
        fmt::format("{}: nvrtcVersion: {}", api.library.path(), api.nvrtcGetErrorString(result));
    return {};
  }
  api.version = fmt::format("{}.{}", api.major, minor);
  api.has_minimal = std::pair(api.major, minor) >= std::pair(12, 4);
  // NVRTC opens this library by its plain name, which succeeds once it is loaded; the loader does
  // not search wheels.
  const std::string directory = std::filesystem::path(api.library.path()).parent_path();
  api.builtins =
      DynamicLibrary({fmt::format("{}/libnvrtc-builtins.so.{}", directory, api.version)});
  api.identity = fmt::format("{} {}", api.version, api.library.identity());
  return api;
}

}  // namespace

const char* NvrtcApi::how_to_get() {
  return "install the CUDA Toolkit 13, or `pip install nvidia-cuda-nvrtc` into the active Python "
         "environment, or set BRAID_NVRTC to the full path of a libnvrtc.so.13 "
         "(libnvrtc-builtins must lie beside it)";
}

NvrtcApi NvrtcApi::load() {
  const int driver = cuda::driver_cuda_version();
  std::optional<NvrtcApi> too_new;
  std::string failures;
  for (const std::string& candidate : candidates()) {
    DynamicLibrary library({candidate});
    std::string problem = library.failure();
    std::optional<NvrtcApi> api;
    if (library.loaded()) api = open(std::move(library), problem);
    if (!api) {
      failures += (failures.empty() ? "" : "; ") + problem;
    } else if (api->fits(driver)) {
      return *std::move(api);
    } else if (!too_new) {
      too_new = std::move(api);
    }
  }
  if (too_new) return *std::move(too_new);  // the cpu device runs what any version makes
  throw_environment("NVRTC", "not found; {}. Tried: {}", how_to_get(), failures);
}

bool NvrtcApi::fits(int driver) const { return driver == 0 || major <= driver / 1000; }

std::string NvrtcApi::driver_problem() const {
  const int driver = cuda::driver_cuda_version();
  if (fits(driver)) return {};
  const int wanted = driver / 1000;
  std::string older;
  if (wanted >= kOldest) {
    // From CUDA 13 on, the wheel's name has no version.
    const std::string wheel = wanted < 13 ? fmt::format("nvidia-cuda-nvrtc-cu{}", wanted)
                                          : fmt::format("nvidia-cuda-nvrtc=={}.*", wanted);
    older = fmt::format("NVRTC {} (`pip install {}`, BRAID_NVRTC may name it) or ", wanted, wheel);
  }
  return fmt::format(
      "version {} ({}) makes code that the driver, which runs CUDA {} and older, cannot load; "
      "install {}a driver of CUDA {}",
      version, library.path(), cuda::cuda_version_text(driver), older, major);
}

const NvrtcApi& NvrtcApi::get() {
  static const NvrtcApi kApi = load();
  return kApi;
}

std::vector<std::string> NvrtcApi::include_folders() const {
  std::vector<fs::path> candidates;
  if (const std::string home = environment("BRAID_CUDA_HOME"); !home.empty()) {
    candidates.push_back(fs::path(home) / "include");
  }
  candidates.push_back(fs::path(library.path()).parent_path().parent_path() / "include");
  for (const fs::path& wheels : cuda_wheels()) {
    candidates.push_back(wheels / "cu13/include");
    candidates.push_back(wheels / "cuda_runtime/include");
  }
  for (const fs::path& home : cuda_toolkits()) candidates.push_back(home / "include");
  std::error_code error;
  for (const fs::path& folder : candidates) {
    if (!fs::exists(folder / "cuda_fp16.h", error)) continue;
    // cooperative_groups.h of CUDA 13 needs the second folder, which nvcc adds by itself too.
    return {folder, folder / "cccl"};
  }
  return {};
}

}  // namespace braid
