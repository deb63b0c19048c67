#include "runtime/compile/compile_request.h"

#include <cstdint>
#include <cstdlib>
#include <optional>

#include "braid/error.h"
#include "runtime/bytes.h"
#include "runtime/compile/disk_cache.h"

namespace braid {
namespace {

[[noreturn]] void throw_no_answer() {
  throw_internal("compile", "the answer of another process is no kernel");
}

}  // namespace

std::string to_bytes(const CompileRequest& request) {
  ByteWriter out;
  out.string(request.source.entry);
  out.string(request.source.text);
  out.string(request.target.arch());
  out.string(request.cache_dir);
  out.value<std::uint8_t>(request.line_info ? 1 : 0);
  out.string(request.nvrtc);
  return out.take();
}

CompileRequest compile_request_from(std::string_view bytes) {
  ByteReader in(bytes);
  CompileRequest request;
  request.source.entry = in.string();
  request.source.text = in.string();
  const std::string target(in.string());
  request.cache_dir = in.string();
  request.line_info = in.value<std::uint8_t>() != 0;
  request.nvrtc = in.string();
  if (!in.done()) throw_invalid("request", "found other bytes; expected one to_bytes() made");
  request.target = Target::parse(target);
  return request;
}

std::string answer_to(const CompileRequest& request) {
  ByteWriter out;
  try {
    ::setenv("BRAID_NVRTC", request.nvrtc.c_str(), 1);
    std::optional<DiskCache> cache;
    if (!request.cache_dir.empty()) cache.emplace(request.cache_dir);
    const CompiledKernel kernel = compile_kernel(request.source, request.target,
                                                 cache ? &*cache : nullptr, request.line_info);
    out.value<std::uint8_t>(1);
    out.value(kernel.compile_ms);
    out.value<std::uint8_t>(kernel.cache_hit ? 1 : 0);
    out.string(to_bytes(kernel));
  } catch (const Error& error) {
    out.value<std::uint8_t>(0);
    out.value(static_cast<int>(error.code()));
    out.string(error.where());
    // what() begins with the place.
    const std::string_view what = error.what();
    out.string(error.where().empty() ? what : what.substr(error.where().size() + 2));
  }
  return out.take();
}

CompiledKernel compiled_from(std::string_view answer) {
  ByteReader in(answer);
  if (in.value<std::uint8_t>() == 0) {
    const int code = in.value<int>();
    std::string where(in.string());
    const std::string message(in.string());
    if (!in.done() || code < 0 || code > static_cast<int>(ErrorCode::kInternal)) throw_no_answer();
    throw Error(static_cast<ErrorCode>(code), std::move(where), message);
  }
  const double compile_ms = in.value<double>();
  const bool hit = in.value<std::uint8_t>() != 0;
  std::optional<CompiledKernel> kernel = kernel_from(in.string());
  if (!kernel || !in.done()) throw_no_answer();
  kernel->compile_ms = compile_ms;
  kernel->cache_hit = hit;
  return *std::move(kernel);
}

}  // namespace braid
