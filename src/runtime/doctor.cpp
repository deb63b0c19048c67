#include "runtime/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "braid/error.h"
#include "codegen/units.h"
#include "ir/text.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/compile/nvrtc_api.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/device_loader.h"
#include "runtime/dynamic_library.h"
#include "runtime/exec/unit_canary.h"
#include "runtime/exec/unit_trials.h"
#include "runtime/nccl/nccl_api.h"

namespace braid {
namespace {

Checkup find_nvrtc() {
  try {
    const NvrtcApi& api = NvrtcApi::get();
    return {"NVRTC", true, api.version, api.library.path(), api.driver_problem()};
  } catch (const Error& error) {
    return {"NVRTC", false, "", "", std::string(message_of(error))};
  }
}

/// What is known of the units of a GPU that are tried before kernels use them.
void find_units(const cuda::Api& api, int gpu, const DiskCache& cache,
                std::vector<Checkup>& findings) {
  const std::string_view model = cuda::gpu_model(api, gpu);
  const Target target =
      Target::parse(model.empty() ? cuda::gpu_target(api, gpu) : std::string(model));
  for (const unsigned units : tried_units()) {
    const bool all = std::ranges::all_of(all_units(), [&](const Unit* unit) {
      return (units & bit_of(*unit)) == 0 || has(target, *unit);
    });
    if (!all) continue;
    const std::string where = fmt::format("GPU {}: {}", gpu, names_of_units(units));
    const std::optional<std::string> known =
        known_finding(cuda::gpu_name(api, gpu), units, target, cache);
    if (!known) {
      findings.push_back({"unit", true, "not tried yet", where, ""});
    } else if (known->empty()) {
      findings.push_back({"unit", true, "passed", where, ""});
    } else {
      findings.push_back({"unit", true, "failed", where,
                          fmt::format("kernels do without {}: {}", names_of_units(units), *known)});
    }
  }
}

void find_driver(const std::filesystem::path& cache_directory, std::vector<Checkup>& findings) {
  try {
    const cuda::Api& api = cuda::Api::get(/*virtual_ranks=*/false);
    findings.push_back({"CUDA driver", true, api.version, api.library.path(), ""});
    const DiskCache cache(cache_directory);
    for (int gpu = 0; gpu < api.gpus; ++gpu) {
      findings.push_back({"GPU", true, "", cuda::describe_gpu(api, gpu), ""});
      const std::size_t row = findings.size() - 1;
      try {
        find_units(api, gpu, cache, findings);
      } catch (const Error& error) {  // an architecture without kernels
        findings[row].how_to_get = message_of(error);
      }
    }
  } catch (const Error& error) {
    findings.push_back({"CUDA driver", false, "", "", std::string(message_of(error))});
  }
}

Checkup find_nccl() {
  try {
    const nccl::Api& api = nccl::Api::get();
    return {"NCCL", true, api.version, api.library.path(), ""};
  } catch (const Error& error) {
    return {"NCCL", false, "", "", std::string(message_of(error))};
  }
}

Checkup find_cpu_device() {
  const DynamicLibrary library(cpu_library_candidates());
  if (!library.loaded()) {
    return {"cpu device", false, "", "",
            fmt::format("{}. Tried: {}", how_to_get_cpu_device(), library.failure())};
  }
  const char* (*llvm_version)() = nullptr;
  std::string missing;
  bind_symbol(library, "braid_cpu_llvm_version", llvm_version, missing);
  return {"cpu device", true, llvm_version == nullptr ? "" : fmt::format("LLVM {}", llvm_version()),
          library.path(), ""};
}

Checkup find_cache(const std::filesystem::path& directory) {
  Checkup finding{"cache", false, "", directory.string(), ""};
  const DiskCache cache(directory);
  const DiskCache::Usage usage = cache.usage();
  finding.version = fmt::format("{} entries, {:.1f} MiB", usage.entries,
                                static_cast<double>(usage.bytes) / (1 << 20));
  if (std::string problem = cache.problem(); !problem.empty()) {
    finding.how_to_get = std::move(problem);
    return finding;
  }
  std::error_code error;
  const bool there = std::filesystem::exists(directory, error);
  finding.found = !there || ::access(directory.c_str(), W_OK | X_OK) == 0;
  if (!finding.found) {
    finding.how_to_get =
        fmt::format("{} cannot be written; every process compiles anew. Set BRAID_CACHE_DIR",
                    directory.string());
  }
  return finding;
}

}  // namespace

std::vector<Checkup> diagnose(const std::filesystem::path& cache_directory) {
  std::vector<Checkup> findings;
  findings.push_back(find_nvrtc());
  find_driver(cache_directory, findings);
  findings.push_back(find_nccl());
  findings.push_back(find_cpu_device());
  findings.push_back(find_cache(cache_directory));
  return findings;
}

}  // namespace braid
