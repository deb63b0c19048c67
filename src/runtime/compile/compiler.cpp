#include "runtime/compile/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <iterator>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "runtime/bytes.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/compile/nvrtc_api.h"

namespace braid {
namespace {

constexpr std::uint32_t kPayloadMagic = 0x4b445242;  // "BRDK"
constexpr int kPayloadFormat = 1;

// What kernels include of the host's headers, which NVRTC does not have. int64_t is that of CUDA's
// own <cuda/std/cstdint> for NVRTC; printf and the functions of <cmath> are there without a header.
constexpr const char* kIntegers = R"(#pragma once
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed long long intptr_t;
typedef unsigned long long uintptr_t;
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t;
}
)";
constexpr const char* kHostNames[] = {"cstdint", "stdint.h", "cstddef", "stddef.h", "cmath",
                                      "math.h",  "cstdio",   "stdio.h", "cstdlib",  "stdlib.h"};
constexpr const char* kHostTexts[] = {kIntegers, kIntegers, "", "", "", "", "", "", "", ""};

// An NVRTC program that is destroyed on every path.
class NvrtcProgram : NonCopyable {
 public:
  // `name` is the file name in messages.
  NvrtcProgram(const NvrtcApi& api, const std::string& text, const std::string& name) : api_(api) {
    check("nvrtcCreateProgram",
          api_.nvrtcCreateProgram(&program_, text.c_str(), name.c_str(), std::size(kHostNames),
                                  kHostTexts, kHostNames));
  }
  ~NvrtcProgram() { api_.nvrtcDestroyProgram(&program_); }

  // Returns nvrtcResult.
  int compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    pointers.reserve(options.size());
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return api_.nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  std::string log() {
    return text("nvrtcGetProgramLog", api_.nvrtcGetProgramLogSize, api_.nvrtcGetProgramLog);
  }
  std::string ptx() { return text("nvrtcGetPTX", api_.nvrtcGetPTXSize, api_.nvrtcGetPTX); }
  std::vector<std::uint8_t> cubin() {
    const std::string bytes = fetch("nvrtcGetCUBIN", api_.nvrtcGetCUBINSize, api_.nvrtcGetCUBIN);
    return {bytes.begin(), bytes.end()};
  }

 private:
  using SizeFunction = int (*)(void*, std::size_t*);
  using DataFunction = int (*)(void*, char*);

  void check(const char* call, int result) const {
    if (result != 0) throw_internal("NVRTC", "{}: {}", call, api_.nvrtcGetErrorString(result));
  }
  std::string fetch(const char* call, SizeFunction size_of, DataFunction data_of) {
    std::size_t size = 0;
    check(call, size_of(program_, &size));
    std::string bytes(size, '\0');
    if (size > 0) check(call, data_of(program_, bytes.data()));
    return bytes;
  }
  // The same for a text, whose size includes the trailing NUL.
  std::string text(const char* call, SizeFunction size_of, DataFunction data_of) {
    std::string bytes = fetch(call, size_of, data_of);
    while (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();
    return bytes;
  }

  const NvrtcApi& api_;
  void* program_ = nullptr;
};

// The number in front of `unit` in a line such as "Used 12 registers, 1024 bytes smem", or 0.
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  std::size_t end = at;
  while (end > 0 && line[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

// The lines of a log such as "ptxas info : (C7510) Potential Performance Loss: ...". What -v prints
// has no such number.
std::string advice_of(std::string_view log) {
  std::string advice;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.find(": (C") != std::string_view::npos)
      fmt::format_to(std::back_inserter(advice), "{}\n", line);
  }
  return advice;
}

// Options for kernels that are made here.
std::vector<std::string> compile_options(const std::string& architecture, bool line_info) {
  std::vector<std::string> options{"--gpu-architecture=" + architecture, "--fmad=false",
                                   "--std=c++17", "--ptxas-options=-v"};
  if (line_info) options.emplace_back("--generate-line-info");
  return options;
}

std::string key_material(const KernelSource& source, const Target& target,
                         const std::vector<std::string>& options) {
  return fmt::format("braid kernel, format {}\ntarget {}\noptions {}\nentry {}\n\n{}",
                     kPayloadFormat, target.arch(), fmt::join(options, " "), source.entry,
                     source.text);
}

// Decodes a cached kernel; nothing if it is damaged.
std::optional<CompiledKernel> cached_kernel(const std::optional<std::string>& payload) {
  if (!payload) return {};
  std::optional<CompiledKernel> kernel = kernel_from(*payload);
  if (kernel) kernel->cache_hit = true;
  return kernel;
}

std::string maker_of(const NvrtcApi& api) { return "nvrtc " + api.identity; }

/// Null if NVRTC is missing.
const NvrtcApi* find_nvrtc() {
  try {
    return &NvrtcApi::get();
  } catch (const Error&) {
    return nullptr;
  }
}

CompiledKernel compile(const NvrtcApi& api, const KernelSource& source,
                       std::vector<std::string> options) {
  // Textures and launches from a kernel are left out, which no generated kernel has. The code is
  // the same, so no key needs it.
  if (api.has_minimal) options.emplace_back("--minimal");
  const auto start = std::chrono::steady_clock::now();
  NvrtcProgram program(api, source.text, source.entry + ".cu");
  const int result = program.compile(options);
  const std::string log = program.log();
  if (result != 0) {
    throw_internal(source.entry, "NVRTC {} ({}) does not compile it: {}\n{}", api.version,
                   fmt::join(options, " "), api.nvrtcGetErrorString(result), log);
  }
  CompiledKernel kernel;
  // Compiling for a real architecture (sm_XX) gives both PTX and cubin.
  kernel.image = {source.entry, program.ptx(), program.cubin()};
  kernel.resources = parse_ptxas_log(log);
  kernel.advice = advice_of(log);
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  kernel.compile_ms = elapsed.count();
  return kernel;
}

// Throws the first error of a log, "FILE(LINE): error: MESSAGE", with the place FILE:LINE; without
// any, at `file`.
[[noreturn]] void throw_first_error(std::string_view log, const std::string& file) {
  constexpr std::string_view kError = "error: ";
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    const std::size_t at = line.find(kError);
    if (at == std::string_view::npos) continue;
    std::string message(line.substr(at + kError.size()));
    if (message.find("open source file") != std::string::npos) {
      message +=
          "; expected a file beside it or one of CUDA's headers: NVRTC has few of the host's";
    }
    const std::size_t close = line.substr(0, at).rfind("): ");
    const std::size_t open = line.substr(0, at).rfind('(', close);
    if (close == std::string_view::npos || open == std::string_view::npos) {
      throw_invalid(file, message);
    }
    throw_invalid(
        fmt::format("{}:{}", line.substr(0, open), line.substr(open + 1, close - open - 1)),
        message);
  }
  throw_invalid(file, "NVRTC does not compile it and does not say why");
}

}  // namespace

KernelResources parse_ptxas_log(std::string_view log) {
  KernelResources r;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    // Functions that were not inlined print lines of their own: the largest counts.
    r.stack_bytes = std::max(r.stack_bytes, number_before(line, "bytes stack frame"));
    r.spill_store_bytes = std::max(r.spill_store_bytes, number_before(line, "bytes spill stores"));
    r.spill_load_bytes = std::max(r.spill_load_bytes, number_before(line, "bytes spill loads"));
    r.registers = std::max(r.registers, number_before(line, "registers"));
    r.shared_bytes = std::max(r.shared_bytes, number_before(line, "bytes smem"));
  }
  return r;
}

std::string nvrtc_version() { return NvrtcApi::get().version; }
void check_nvrtc_fits_driver() {
  std::string problem;
  try {
    problem = NvrtcApi::get().driver_problem();
  } catch (const Error&) {
    return;
  }
  if (!problem.empty()) throw_environment("NVRTC", problem);
}

std::string nvrtc_path() { return NvrtcApi::get().library.path(); }

std::string to_bytes(const CompiledKernel& kernel) {
  ByteWriter out;
  out.value(kPayloadMagic);
  out.value(kPayloadFormat);
  out.string(kernel.image.entry);
  out.string(kernel.image.ptx);
  out.string({reinterpret_cast<const char*>(kernel.image.cubin.data()), kernel.image.cubin.size()});
  const KernelResources& r = kernel.resources;
  for (int v :
       {r.registers, r.shared_bytes, r.spill_store_bytes, r.spill_load_bytes, r.stack_bytes}) {
    out.value(v);
  }
  return out.take();
}

std::optional<CompiledKernel> kernel_from(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.value<std::uint32_t>() != kPayloadMagic || in.value<int>() != kPayloadFormat) return {};
  CompiledKernel kernel;
  kernel.image.entry = in.string();
  kernel.image.ptx = in.string();
  const std::string_view cubin = in.string();
  kernel.image.cubin.assign(cubin.begin(), cubin.end());
  KernelResources& r = kernel.resources;
  for (int* v :
       {&r.registers, &r.shared_bytes, &r.spill_store_bytes, &r.spill_load_bytes, &r.stack_bytes}) {
    *v = in.value<int>();
  }
  if (!in.done()) return {};
  return kernel;
}

std::optional<CompiledKernel> find_kernel(const KernelSource& source, const Target& target,
                                          const DiskCache* cache, bool line_info) {
  if (cache == nullptr) return {};
  const std::string material =
      key_material(source, target, compile_options(target.arch(), line_info));
  // Without NVRTC an entry from any NVRTC version is used.
  const NvrtcApi* const api = find_nvrtc();
  if (api == nullptr) return cached_kernel(cache->get_of_any_maker(material));
  return cached_kernel(cache->get({material, maker_of(*api)}));
}

CompiledKernel compile_kernel(const KernelSource& source, const Target& target,
                              const DiskCache* cache, bool line_info) {
  const std::vector<std::string> options = compile_options(target.arch(), line_info);
  if (cache == nullptr) return compile(NvrtcApi::get(), source, options);
  if (find_nvrtc() == nullptr) {
    if (std::optional<CompiledKernel> made = find_kernel(source, target, cache, line_info)) {
      return *std::move(made);
    }
  }
  const NvrtcApi& api = NvrtcApi::get();
  const std::string material = key_material(source, target, options);
  std::optional<CompiledKernel> compiled;
  auto make = [&] {
    compiled = compile(api, source, options);
    return to_bytes(*compiled);
  };
  const std::string maker = maker_of(api);
  const CacheKey key{material, maker};
  std::optional<CompiledKernel> made = cached_kernel(cache->get_or_create(key, make));
  if (compiled) return *std::move(compiled);
  if (made) return *std::move(made);
  cache->put(key, make());  // the entry was not written by this code
  return *std::move(compiled);
}

std::string compile_file(const std::string& text, const std::string& path, const Target& target) {
  const NvrtcApi& api = NvrtcApi::get();
  NvrtcProgram program(api, text, path);
  // A virtual architecture gives only PTX. Products and sums are fused as NVRTC does by default.
  std::vector<std::string> options{"--gpu-architecture=compute_" + target.arch().substr(3),
                                   "--std=c++17", "--generate-line-info"};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  // Headers such as <cuda.h> declare functions of the host as well.
  options.emplace_back("--device-as-default-execution-space");
  options.push_back("--include-path=" + (folder.empty() ? "." : folder.string()));
  for (const std::string& headers : api.include_folders()) {
    options.push_back("--include-path=" + headers);
  }
  const int result = program.compile(options);
  if (result != 0) throw_first_error(program.log(), path);
  return program.ptx();
}

}  // namespace braid
