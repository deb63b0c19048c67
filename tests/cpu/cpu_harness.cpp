#include "cpu/cpu_harness.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include "runtime/cpu/cpu_device.h"

namespace braid::cpu_test {
namespace {

using Program = void*;

/// The few NVRTC functions that tests need.
struct Nvrtc {
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*destroy)(Program*);
  bool loaded = false;

  Nvrtc() {
    const char* given = std::getenv("BRAID_NVRTC");
    void* library = nullptr;
    for (const char* path : {given, "/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so.13"}) {
      if (path != nullptr && library == nullptr) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return;
    load(library, "nvrtcCreateProgram", create);
    load(library, "nvrtcCompileProgram", compile);
    load(library, "nvrtcGetPTXSize", ptx_size);
    load(library, "nvrtcGetPTX", ptx);
    load(library, "nvrtcGetProgramLogSize", log_size);
    load(library, "nvrtcGetProgramLog", log);
    load(library, "nvrtcDestroyProgram", destroy);
    loaded = true;
  }

  template <class F>
  static void load(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("NVRTC lacks ") + name);
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc kNvrtc;
  return kNvrtc;
}

}  // namespace

bool have_nvrtc() { return nvrtc().loaded; }

std::string compile_cuda(const std::string& source) {
  Program program = nullptr;
  nvrtc().create(&program, source.c_str(), "test.cu", 0, nullptr, nullptr);
  const char* options[] = {"--gpu-architecture=compute_80", "--fmad=false", "--std=c++17"};
  const int status = nvrtc().compile(program, 3, options);
  std::size_t size = 0;
  nvrtc().log_size(program, &size);
  std::string log(size, '\0');
  nvrtc().log(program, log.data());
  if (status != 0) throw std::runtime_error(log);
  nvrtc().ptx_size(program, &size);
  std::string ptx(size, '\0');
  nvrtc().ptx(program, ptx.data());
  nvrtc().destroy(&program);
  return ptx;
}

Bench::Bench(const std::string& cuda, const CpuOptions& options)
    : Bench(from_ptx(compile_cuda(cuda), options)) {}

Bench Bench::from_ptx(const std::string& ptx, const CpuOptions& options) {
  Bench bench;
  bench.device_ = create_cpu_device(options);
  bench.module_ = bench.device_->load(0, {"k", ptx, {}});
  bench.stream_ = bench.device_->create_stream(0);
  bench.function_ = &bench.module_->function("k");
  return bench;
}

}  // namespace braid::cpu_test
