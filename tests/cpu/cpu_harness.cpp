#include "cpu/cpu_harness.h"

#include <stdexcept>

#include "braid/error.h"
#include "runtime/compile/nvrtc_api.h"
#include "runtime/cpu/cpu_device.h"

namespace braid::cpu_test {

std::string compile_cuda(const std::string& source) {
  const NvrtcApi& nvrtc = NvrtcApi::get();
  void* program = nullptr;
  nvrtc.nvrtcCreateProgram(&program, source.c_str(), "test.cu", 0, nullptr, nullptr);
  const char* options[] = {"--gpu-architecture=compute_80", "--fmad=false", "--std=c++17"};
  const int status = nvrtc.nvrtcCompileProgram(program, 3, options);
  std::size_t size = 0;
  nvrtc.nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  nvrtc.nvrtcGetProgramLog(program, log.data());
  if (status != 0) throw std::runtime_error(log);
  nvrtc.nvrtcGetPTXSize(program, &size);
  std::string ptx(size, '\0');
  nvrtc.nvrtcGetPTX(program, ptx.data());
  nvrtc.nvrtcDestroyProgram(&program);
  return ptx;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

Bench::Bench(const std::string& cuda, const CpuOptions& options)
    : Bench(from_ptx(compile_cuda(cuda), options)) {}

Bench Bench::from_ptx(const std::string& ptx, const CpuOptions& options) {
  Bench bench;
  CpuOptions of_this_run = options;
  of_this_run.tricks = cpu_tricks_from_environment();
  bench.device_ = create_cpu_device(of_this_run);
  bench.module_ = bench.device_->load(0, {"k", ptx, {}});
  bench.stream_ = bench.device_->create_stream(0);
  bench.function_ = &bench.module_->function("k");
  return bench;
}

}  // namespace braid::cpu_test
