#include "runtime/nvrtc_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "braid/error.h"
#include "runtime/python_packages.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Where a CUDA toolkit may lie.
std::vector<fs::path> toolkits() {
  std::vector<fs::path> result;
  for (const char* name : {"BRAID_CUDA_HOME", "CUDA_HOME"}) {
    if (std::string home = environment(name); !home.empty()) result.emplace_back(home);
  }
  const fs::path usual = "/usr/local/cuda";
  if (std::find(result.begin(), result.end(), usual) == result.end()) result.push_back(usual);
  return result;
}

std::vector<std::string> candidates() {
  if (std::string path = environment("BRAID_NVRTC"); !path.empty()) return {path};
  std::vector<fs::path> directories;
  for (const fs::path& home : toolkits()) {
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
  const std::vector<std::string> versions{"13", "12"};
  std::vector<std::string> result;
  for (const fs::path& directory : directories) {
    for (std::string& file : library_files(directory.string(), "libnvrtc.so", versions)) {
      result.push_back(std::move(file));
    }
  }
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    result.emplace_back(name);
  }
  return result;
}

}  // namespace

const char* NvrtcApi::how_to_get() {
  return "install the CUDA Toolkit 13, or `pip install nvidia-cuda-nvrtc` into the active Python "
         "environment, or set BRAID_NVRTC to the full path of a libnvrtc.so.13 "
         "(libnvrtc-builtins must lie beside it)";
}

NvrtcApi NvrtcApi::load() {
  NvrtcApi api;
  api.library = DynamicLibrary(candidates());
  if (!api.library.loaded()) {
    throw_environment("NVRTC",
                      fmt::format("not found; {}. Tried: {}", how_to_get(), api.library.failure()));
  }
  std::string missing;
#define BRAID_BIND(name, result, parameters) bind_symbol(api.library, #name, api.name, missing);
  BRAID_NVRTC_FUNCTIONS(BRAID_BIND)
#undef BRAID_BIND
  if (!missing.empty()) {
    throw_environment("NVRTC",
                      fmt::format("{} lacks {}; {}", api.library.path(), missing, how_to_get()));
  }
  int major = 0;
  int minor = 0;
  if (const int result = api.nvrtcVersion(&major, &minor); result != 0) {
    throw_environment("NVRTC", fmt::format("{}: nvrtcVersion: {}", api.library.path(),
                                           api.nvrtcGetErrorString(result)));
  }
  api.version = fmt::format("{}.{}", major, minor);
  // NVRTC opens this one by its plain name, which the loader finds when it is there already: a
  // wheel lies where the loader does not look.
  const std::string directory = std::filesystem::path(api.library.path()).parent_path();
  api.builtins =
      DynamicLibrary({fmt::format("{}/libnvrtc-builtins.so.{}", directory, api.version)});
  api.identity = fmt::format("{} {}", api.version, api.library.identity());
  return api;
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
  for (const fs::path& home : toolkits()) candidates.push_back(home / "include");
  std::error_code error;
  for (const fs::path& folder : candidates) {
    if (!fs::exists(folder / "cuda_fp16.h", error)) continue;
    // cooperative_groups.h of CUDA 13 needs the second, which nvcc adds by itself, too.
    return {folder, folder / "cccl"};
  }
  return {};
}

}  // namespace braid
