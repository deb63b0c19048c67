#include "c/arguments.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "braid/process.h"
#include "c/calls.h"
#include "ir/fail.h"
#include "ir/text.h"

namespace braid::c {
namespace {

struct Extents {
  std::vector<std::int64_t> shape, strides;
};

Extents extents_of(std::int32_t dims, const std::int64_t* shape, const std::int64_t* strides,
                   int expected) {
  if (dims != expected) throw_invalid("tensor", "{} dims; expected {}", dims, expected);
  if (dims > 0) given(shape, "tensor shape");
  Extents extents;
  extents.shape.assign(shape, shape + dims);
  if (strides != nullptr) extents.strides.assign(strides, strides + dims);
  return extents;
}

DType dtype_of(const DLDataType& type) {
  const auto is = [&](int code, int bits) {
    return type.code == code && type.bits == bits && type.lanes == 1;
  };
  constexpr int kDLPackBool = 6;  // newer than some headers, as are the 8-bit floats
  constexpr int kDLPackF8E4M3 = 10;
  constexpr int kDLPackF8E5M2 = 12;
  if (is(kDLFloat, 32)) return DType::kF32;
  if (is(kDLFloat, 16)) return DType::kF16;
  if (is(kDLBfloat, 16)) return DType::kBF16;
  if (is(kDLPackF8E4M3, 8)) return DType::kF8E4M3;
  if (is(kDLPackF8E5M2, 8)) return DType::kF8E5M2;
  if (is(kDLInt, 32)) return DType::kI32;
  if (is(kDLInt, 64)) return DType::kI64;
  if (is(kDLInt, 8)) return DType::kI8;
  if (is(kDLUInt, 8)) return DType::kU8;
  if (is(kDLPackBool, 8)) return DType::kBool;
  throw_invalid("tensor dtype",
                "found DLPack's code {} of {} bits and {} lanes; expected a type of a graph",
                type.code, type.bits, type.lanes);
}

}  // namespace

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

braid_world_options all_options(const braid_world_options* given) {
  braid_world_options all{};
  if (given == nullptr) return all;
  constexpr std::size_t kLeast = offsetof(braid_world_options, compile_processes);
  constexpr std::size_t kMost = sizeof all;
  if (given->bytes < kLeast || given->bytes > kMost || given->bytes % alignof(decltype(all)) != 0) {
    throw_invalid(
        "options",
        "`bytes` is {}; expected {}, the size of the struct, or down to {}, of an older one",
        given->bytes, kMost, kLeast);
  }
  std::memcpy(&all, given, given->bytes);
  return all;
}

WorldOptions options_of(const braid_world_options& given) {
  WorldOptions options;
  options.warning = [](std::string_view) {};
  options.device = parse_device_kind(text_or_empty(given.device));
  options.world = given.world == 0 ? 1 : given.world;
  options.threads = given.threads;
  options.cache_dir = text_or_empty(given.cache_dir);
  options.target = text_or_empty(given.target);
  options.timeout_s = given.timeout_s;
  options.compile_processes = given.compile_processes;
  options.compile_worker = text_or_empty(given.compile_worker);
  options.compile_in_background = given.compile_in_background != 0;
  options.tune_db = text_or_empty(given.tune_db);
  options.sanitize = parse_checks(text_or_empty(given.sanitize));
  options.count = given.count != 0;
  void* const context = given.context;
  if (auto* const warning = given.warning) {
    options.warning = [=](std::string_view what) { warning(context, std::string(what).c_str()); };
  }
  if (auto* const progress = given.progress) {
    options.progress = [=](std::size_t done, std::size_t total, std::string_view what) {
      if (progress(context, done, total, std::string(what).c_str()) != 0) throw Cancelled();
    };
  }
  if (auto* const allocate = given.allocate) {
    options.allocator.allocate = [=](int rank, std::size_t bytes) {
      return allocate(context, rank, bytes);
    };
  }
  if (auto* const free = given.free) {
    options.allocator.free = [=](int rank, std::uint64_t address, std::size_t bytes) {
      free(context, rank, address, bytes);
    };
  }
  return options;
}

PassConfig passes_of(const braid_world_options& given) {
  PassConfig passes;
  for (const char* const* at = given.pass_options; at != nullptr && *at != nullptr; ++at) {
    const std::string_view option = *at;
    const std::size_t equals = option.find('=');
    if (equals == option.npos) {
      throw_invalid("pass_options", "found {}; expected NAME=VALUE", quote(option));
    }
    set_pass_option(passes, option.substr(0, equals), option.substr(equals + 1));
  }
  return passes;
}

void set_meeting(braid_world_options& options) {
  thread_local SocketOptions kept;
  constexpr std::size_t kLeast = offsetof(braid_world_options, tune_db);
  if (all_options(&options).bytes < kLeast) {
    throw_invalid("options",
                  "`bytes` is {}; expected {} or more, with the fields that this call sets",
                  options.bytes, kLeast);
  }
  const std::optional<LaunchedProcess> process = process_from_environment();
  if (!process) return;
  kept = process->meeting;
  options.world = kept.world;
  options.rank = process->rank;
  options.host = kept.address.c_str();
  options.port = kept.port;
  options.job = kept.job.c_str();
  options.meet_timeout_s = kept.timeout_s;
}

std::shared_ptr<Rendezvous> rendezvous_of(const braid_world_options& given) {
  if (given.host == nullptr) {
    for (const auto& [name, value] :
         {std::pair("port", given.port), std::pair("rank", given.rank)}) {
      if (value == 0) continue;
      throw_invalid("options", "`{}` is {}, and `host` is null; expected a host", name, value);
    }
    return nullptr;
  }
  SocketOptions options{.ranks = {given.rank},
                        .world = given.world == 0 ? 1 : given.world,
                        .address = given.host,
                        .job = text_or_empty(given.job)};
  if (given.port != 0) options.port = given.port;
  if (given.meet_timeout_s != 0) options.timeout_s = given.meet_timeout_s;
  return meet_by_socket(options);
}

Bindings bindings_of(const char* const* symbols, const std::int64_t* values, std::size_t count) {
  Bindings bindings;
  for (std::size_t i = 0; i < count; ++i) {
    bindings[given(given(symbols, "symbols")[i], "symbol")] = given(values, "values")[i];
  }
  return bindings;
}

DeviceTensor device_tensor(const braid_tensor* tensor, int dims) {
  given(tensor, "tensor");
  const std::string name = given(tensor->dtype, "tensor dtype");
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) throw_invalid("tensor dtype", "found \"{}\"; expected that of a graph", name);
  Extents extents = extents_of(tensor->dims, tensor->shape, tensor->strides, dims);
  return {reinterpret_cast<std::uint64_t>(tensor->data), *dtype, std::move(extents.shape),
          std::move(extents.strides)};
}

DeviceTensor device_tensor(const DLTensor& tensor, int dims, std::string_view device) {
  constexpr int kDLPackManaged = 13;
  const int kind = tensor.device.device_type;
  const bool here = device == "cpu"
                        ? kind == kDLCPU
                        : kind == kDLCUDA || kind == kDLCUDAHost || kind == kDLPackManaged;
  if (!here) {
    throw_invalid("tensor device", "found DLPack's device {}; expected the {} device", kind,
                  device);
  }
  const DType dtype = dtype_of(tensor.dtype);
  Extents extents = extents_of(tensor.ndim, tensor.shape, tensor.strides, dims);
  return {reinterpret_cast<std::uint64_t>(tensor.data) + tensor.byte_offset, dtype,
          std::move(extents.shape), std::move(extents.strides)};
}

HostTensor host_tensor(const braid_tensor* tensor, int dims) {
  const DeviceTensor source = device_tensor(tensor, dims);
  if (!source.strides.empty()) throw_invalid("tensor strides", "expected null: a dense tensor");
  HostTensor copy{source.dtype, source.shape, {}};
  for (const std::int64_t extent : copy.shape) {
    if (extent < 0) throw_invalid("tensor shape", "found {}", extent);
  }
  const std::size_t bytes = static_cast<std::size_t>(copy.numel()) * dtype_size(copy.dtype);
  if (bytes == 0) return copy;
  const auto* const data = static_cast<const std::byte*>(given(tensor->data, "tensor data"));
  copy.data.assign(data, data + bytes);
  return copy;
}

}  // namespace braid::c
