// Kernels of the caller's own, and what a checked or counted world has seen of them.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "braid/braid.h"
#include "braid/world.h"
#include "c/arguments.h"
#include "c/calls.h"
#include "codegen/device_model.h"
#include "ir/fail.h"
#include "ir/text.h"
#include "runtime/inspection_json.h"
#include "runtime/tensor_map.h"

namespace braid::c {
namespace {

/// A struct of the caller's, which says its own size.
template <class T>
const T& whole(const T* options, const char* what) {
  if (given(options, what)->bytes != sizeof(T)) {
    throw_invalid(what, "`bytes` is {}; expected {}, the size of the struct", options->bytes,
                  sizeof(T));
  }
  return *options;
}

Dim3 extent(const std::uint32_t (&values)[3]) {
  return {std::max(values[0], 1U), std::max(values[1], 1U), std::max(values[2], 1U)};
}

/// The type of CUtensorMapDataType's number.
TensorMap::Type element_type(int number) {
  using Type = TensorMap::Type;
  constexpr std::array kTypes = {Type::kU8,  Type::kU16, Type::kU32, Type::kS32, Type::kU64,
                                 Type::kS64, Type::kF16, Type::kF32, Type::kF64, Type::kBf16};
  if (number < 0 || static_cast<std::size_t>(number) >= kTypes.size()) {
    throw_invalid("tensor map type", "found {}; expected 0 to {} of CUtensorMapDataType", number,
                  kTypes.size() - 1);
  }
  return kTypes[number];
}

TensorMap tensor_map_of(const braid_tensor_map& given_map) {
  constexpr auto kMost = static_cast<int>(TensorMap::kMaxRank);
  if (given_map.rank < 1 || given_map.rank > kMost) {
    throw_invalid("tensor map rank", "found {}; expected 1 to {}", given_map.rank, kMost);
  }
  if (given_map.swizzle < 0 || given_map.swizzle > static_cast<int>(TensorMap::Swizzle::k128)) {
    throw_invalid("tensor map swizzle", "found {}; expected 0 to 3 of CUtensorMapSwizzle",
                  given_map.swizzle);
  }
  const auto rank = static_cast<std::size_t>(given_map.rank);
  TensorMap map{.type = element_type(given_map.type),
                .swizzle = static_cast<TensorMap::Swizzle>(given_map.swizzle),
                .nan_fill = given_map.nan_fill != 0,
                .rank = static_cast<std::uint32_t>(rank),
                .address = reinterpret_cast<std::uint64_t>(given_map.data)};
  std::copy_n(given(given_map.dims, "tensor map dims"), rank, map.dims.begin());
  std::copy_n(given(given_map.box, "tensor map box"), rank, map.box.begin());
  if (rank > 1) {
    std::copy_n(given(given_map.strides, "tensor map strides"), rank - 1, map.strides.begin());
  }
  if (const auto problem = map.problem()) throw_invalid("tensor map", *problem);
  return map;
}

Inspector& inspector_of(const World& world) {
  Inspector* const inspector = world.device().inspector();
  if (inspector == nullptr) {
    throw_invalid("world", "it checks and counts nothing; expected `sanitize` or `count`");
  }
  return *inspector;
}

const DeviceModel& model_of(const char* device) {
  const DeviceModel* const model = find_device_model(given(device, "device"));
  if (model == nullptr) {
    throw_invalid("device", "{} is unknown; expected one of {}", quote(device), device_names());
  }
  return *model;
}

}  // namespace
}  // namespace braid::c

using namespace braid::c;  // NOLINT(google-build-using-namespace)

braid_status braid_kernel_load(braid_world world, std::int32_t rank,
                               const braid_kernel_source* source, braid_kernel* kernel) {
  return call([&] {
    *given(kernel, "kernel") = nullptr;
    const auto in = tables().worlds.get(world);
    const braid_kernel_source& from = whole(source, "source");
    const std::string entry = given(from.entry, "entry");
    auto module = in->world.device().load(
        rank, {entry, given(from.ptx, "ptx"), {}, text_or_empty(from.file)});
    braid::Function& function = module->function(entry);
    tables().kernels.add(std::make_shared<RankKernel>(RankKernel{
                             in->world, rank, entry, from.registers, std::move(module), &function}),
                         kernel);
  });
}
braid_status braid_kernel_launch(braid_kernel kernel, braid_stream stream,
                                 const braid_launch* launch) {
  return call([&] {
    const auto what = tables().kernels.get(kernel);
    const auto on = tables().streams.get(stream);
    const braid_launch& how = whole(launch, "launch");
    check_same_world(what->world, on->world, "kernel");
    if (what->rank != on->rank) {
      braid::throw_invalid("kernel", "is of rank {}, the stream of rank {}", what->rank, on->rank);
    }
    if (how.count != 0) given(how.args, "args");
    for (std::size_t i = 0; i < how.count; ++i) given(how.args[i], "argument");
    what->function->set_max_dynamic_shared(how.shared_bytes);
    on->stream->launch(
        *what->function,
        {extent(how.grid), extent(how.block), how.shared_bytes, {.cluster = extent(how.cluster)}},
        {how.args, how.count});
  });
}
braid_status braid_kernel_destroy(braid_kernel kernel) { return destroy(tables().kernels, kernel); }

braid_status braid_tensor_map_encode(braid_world world, const braid_tensor_map* map,
                                     void* encoded) {
  return call([&] {
    const auto in = tables().worlds.get(world);
    given(encoded, "encoded");
    if (in->world.device().kind() != "cpu") {
      braid::throw_environment("tensor map", "expected the driver's cuTensorMapEncodeTiled");
    }
    const auto bytes = tensor_map_of(whole(map, "map")).encoded();
    std::memcpy(encoded, bytes.data(), bytes.size());
  });
}

braid_status braid_memory_lend(braid_world world, std::int32_t rank, void* data, size_t bytes,
                               const char* name, braid_memory* memory) {
  return call([&] {
    *given(memory, "memory") = nullptr;
    const auto in = tables().worlds.get(world);
    given(data, "data");
    given(name, "name");
    braid::Inspector* const inspector = in->world.device().inspector();
    std::unique_ptr<braid::Memory> lent;
    if (inspector != nullptr) {
      lent = inspector->lend(rank, {reinterpret_cast<std::uint64_t>(data), bytes, name});
    }
    tables().memories.add(std::make_shared<RankMemory>(RankMemory{in->world, std::move(lent)}),
                          memory);
  });
}

braid_status braid_findings(braid_world world, const char** json) {
  thread_local std::string kept;
  return call([&] {
    *given(json, "json") = nullptr;
    braid::Inspector& inspector = inspector_of(tables().worlds.get(world)->world);
    kept = braid::Json::object({{"findings", braid::findings_json(inspector.findings())},
                                {"notes", braid::findings_json(inspector.notes())}})
               .line();
    *json = kept.c_str();
  });
}
braid_status braid_kernel_counts(braid_kernel kernel, const char* device, const char** json) {
  thread_local std::string kept;
  return call([&] {
    *given(json, "json") = nullptr;
    const auto of = tables().kernels.get(kernel);
    const braid::DeviceModel& model = model_of(device);
    for (braid::KernelCounts& counts : inspector_of(of->world).counts()) {
      if (counts.kernel != of->entry) continue;
      counts.registers = static_cast<std::uint32_t>(of->registers);
      kept = braid::counts_json(counts, model).line();
      *json = kept.c_str();
    }
  });
}
braid_status braid_forget(braid_world world) {
  return call([&] { inspector_of(tables().worlds.get(world)->world).forget(); });
}
braid_status braid_describe_device(const char* device, braid_device_info* info) {
  return call([&] {
    constexpr int kReservedKib = 1;  // of each block
    const braid::DeviceModel& model = model_of(device);
    *given(info, "info") = {model.sm, model.sms, (model.shared_kib - kReservedKib) * 1024,
                            model.ghz};
  });
}
