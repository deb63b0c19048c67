#include "runtime/cuda/cuda_api.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "codegen/device_model.h"
#include "codegen/target.h"
#include "ir/fail.h"

namespace braid::cuda {
namespace {

// Errors caused by the machine rather than by braid: initialization, devices, memory, driver age,
// peer access, hardware faults.
bool is_environment(Result result) {
  switch (result) {
    case 2:    // out of memory
    case 3:    // not initialized
    case 34:   // stub library
    case 46:   // device unavailable
    case 100:  // no device
    case 101:  // invalid device
    case 102:  // device not licensed
    case kInvalidImage:
    case 209:  // no binary for GPU
    case 214:  // ECC uncorrectable
    case kPeerAccessUnsupported:
    case kJitCompilerNotFound:
    case kUnsupportedPtxVersion:
    case kJitCompilationDisabled:
    case 304:  // operating system
    case kNotPermitted:
    case kNotSupported:
    case 802:  // system not ready
    case 803:  // system driver mismatch
    case 804:  // compatibility mode not supported on this device
      return true;
    default:
      return false;
  }
}

// What it means that the driver refuses a kernel's code, and what to do; empty for other results.
std::string advice(Result result, const std::string& version) {
  switch (result) {
    case kInvalidImage:
      return fmt::format(
          "the driver (CUDA {}) cannot read this machine code: a newer CUDA made it, or it is "
          "damaged. Run `braid cache clear`, and use an NVRTC of the driver's CUDA or older, or "
          "update the driver",
          version);
    case kInvalidPtx:
      return "the driver's compiler rejects this PTX for this GPU. Where braid made it, this is a "
             "bug in braid";
    case kJitCompilerNotFound:
      return "the driver's PTX compiler, libnvidia-ptxjitcompiler.so.1, is not there: install all "
             "of the driver (in a container: with the driver capability `compute`), or unset "
             "CUDA_FORCE_PTX_JIT, since machine code needs no compiler";
    case kUnsupportedPtxVersion:
      return fmt::format(
          "this PTX is newer than the driver, which reads that of CUDA {} and older: use an NVRTC "
          "of that CUDA or older, or update the driver",
          version);
    default:
      return {};
  }
}

std::string driver_library() {
  std::string path = environment("BRAID_LIBCUDA");
  return path.empty() ? "libcuda.so.1" : path;
}

Ordinal device_of(const Api& api, int ordinal) {
  Ordinal device = 0;
  api.run(api.cuDeviceGet, &device, ordinal);
  return device;
}

}  // namespace

const char* Api::how_to_get() {
  return "install the NVIDIA driver (in a container: start it with GPU access, for example "
         "`docker run --gpus all`), or use the cpu device";
}

void Api::check(Result result, const char* call, const std::string& detail) const {
  if (result == kSuccess) return;
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != kSuccess || name == nullptr) name = "unknown error";
  if (cuGetErrorString(result, &text) != kSuccess || text == nullptr) text = "no description";
  ErrorCode code = is_environment(result) ? ErrorCode::kEnvironment : ErrorCode::kInternal;
  // Errors of what the caller does while capturing a stream.
  if (result >= kCaptureUnsupported && result <= kCaptureWrongThread) {
    code = ErrorCode::kInvalidArgument;
  }
  std::string message = fmt::format("{}: {} ({}, {})", call, text, name, result);
  for (const std::string& more : {advice(result, version), detail}) {
    if (!more.empty()) message += "; " + more;
  }
  throw DriverError(code, result, message);
}

Api Api::load(bool virtual_ranks) {
  Api api;
  api.library = DynamicLibrary({driver_library()});
  if (!api.library.loaded()) {
    throw_environment("CUDA driver", "not found; {}. Tried: {}", how_to_get(),
                      api.library.failure());
  }
  std::string missing;
#define BRAID_BIND(name, suffix, parameters) \
  bind_symbol(api.library, #name suffix, api.name.address, missing);
  BRAID_CUDA_FUNCTIONS(BRAID_BIND)
  std::string lacking;
#define BRAID_BIND_OPTIONAL(name, suffix, parameters) \
  bind_symbol(api.library, #name suffix, api.name.address, lacking);
  BRAID_CUDA_OPTIONAL_FUNCTIONS(BRAID_BIND_OPTIONAL)
#undef BRAID_BIND_OPTIONAL
#undef BRAID_BIND
  if (!missing.empty()) {
    throw_environment("CUDA driver", "{} lacks {}; {}", api.library.path(), missing, how_to_get());
  }
  if (virtual_ranks) {
    // Grids that wait for each other on one GPU need a hardware queue each, and no module may load
    // (and so synchronize the device) at its first launch.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  }
  api.check(api.cuInit(0), "cuInit", how_to_get());
  int version = 0;
  api.run(api.cuDriverGetVersion, &version);
  api.version = cuda_version_text(version);
  api.run(api.cuDeviceGetCount, &api.gpus);
  if (api.gpus == 0) {
    throw_environment("CUDA driver", "no GPU is visible; {}", how_to_get());
  }
  return api;
}

const Api& Api::get(bool virtual_ranks) {
  static const Api kApi = load(virtual_ranks);
  return kApi;
}

int driver_cuda_version() {
  const DynamicLibrary library({driver_library()});
  Result (*get_version)(int*) = nullptr;
  std::string missing;
  bind_symbol(library, "cuDriverGetVersion", get_version, missing);
  int version = 0;
  return get_version != nullptr && get_version(&version) == kSuccess ? version : 0;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int device_attribute(const Api& api, int which, Ordinal device) {
  int value = 0;
  api.run(api.cuDeviceGetAttribute, &value, which, device);
  return value;
}

std::string gpu_name(const Api& api, int ordinal) {
  std::array<char, 256> name{};
  api.run(api.cuDeviceGetName, name.data(), static_cast<int>(name.size()) - 1,
          device_of(api, ordinal));
  return name.data();
}

std::string describe_gpu(const Api& api, int ordinal) {
  const Ordinal device = device_of(api, ordinal);
  std::size_t bytes = 0;
  api.run(api.cuDeviceTotalMem, &bytes, device);
  return fmt::format("GPU {}: {}, compute capability {}.{}, {:.1f} GiB", ordinal,
                     gpu_name(api, ordinal),
                     device_attribute(api, kAttributeComputeCapabilityMajor, device),
                     device_attribute(api, kAttributeComputeCapabilityMinor, device),
                     static_cast<double>(bytes) / (1ULL << 30));
}

std::string gpu_target(const Api& api, int ordinal) {
  const Ordinal device = device_of(api, ordinal);
  const int major = device_attribute(api, kAttributeComputeCapabilityMajor, device);
  const int minor = device_attribute(api, kAttributeComputeCapabilityMinor, device);
  if (major < 8) {
    throw_environment("CUDA driver",
                      "{}: braid needs compute capability 8.0 or newer; use the cpu device",
                      describe_gpu(api, ordinal));
  }
  // From Hopper on, architecture-specific instructions need the `a` target.
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

std::string_view gpu_model(const Api& api, int ordinal) {
  const DeviceModel* const known =
      device_model_of_gpu(gpu_name(api, ordinal), Target::parse(gpu_target(api, ordinal)).sm);
  return known == nullptr ? std::string_view() : known->name;
}

}  // namespace braid::cuda
