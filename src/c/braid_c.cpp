#include <dlpack/dlpack.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/braid.h"
#include "braid/error.h"
#include "braid/executable.h"
#include "braid/graph.h"
#include "braid/rendezvous.h"
#include "braid/symmetric_memory.h"
#include "braid/world.h"
#include "c/handles.h"

namespace braid::c {
namespace {

struct OpenWorld {
  World world;
  std::shared_ptr<Rendezvous> meeting;  ///< null where all ranks live here
};
struct Compiled {
  World world;
  Executable executable;
};
struct RankStream {
  World world;
  int rank;
  std::unique_ptr<Stream> stream;
};
struct RankEvent {
  World world;
  int rank;
  std::unique_ptr<Event> event;
};
struct RankGraph {
  World world;
  int rank;
  std::unique_ptr<RecordedGraph> graph;
};

struct Symmetric {
  World world;
  SymmetricMemory memory;
};

/// All that this process has through the C interface: its only state.
struct Tables {
  std::atomic<std::uintptr_t> last = 0;
  Handles<OpenWorld> worlds{"world", last};
  Handles<Compiled> executables{"executable", last};
  Handles<Executable::Plan> plans{"plan", last};
  Handles<RankStream> streams{"stream", last};
  Handles<RankEvent> events{"event", last};
  Handles<RankGraph> graphs{"graph", last};
  Handles<Symmetric> memories{"symmetric memory", last};
};
Tables& tables() {
  static Tables all;
  return all;
}

struct Cancelled {};

std::string& last_error() {
  thread_local std::string text;
  return text;
}

braid_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return BRAID_INVALID_ARGUMENT;
    case ErrorCode::kEnvironment:
      return BRAID_ENVIRONMENT;
    case ErrorCode::kTimeout:
      return BRAID_TIMEOUT;
    case ErrorCode::kCancelled:
      return BRAID_CANCELLED;
    case ErrorCode::kInternal:
      break;
  }
  return BRAID_INTERNAL;
}

braid_status fail(braid_status status, const char* why) noexcept {
  try {
    last_error() = why;
  } catch (const std::exception&) {
    last_error().clear();
  }
  return status;
}

/// Does the work of one call. No exception leaves it.
template <class Work>
braid_status call(Work work) noexcept {
  try {
    last_error().clear();
    work();
    return BRAID_OK;
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const Cancelled&) {
    return fail(BRAID_CANCELLED, "progress: was told to stop");
  } catch (const std::bad_alloc&) {
    return fail(BRAID_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(BRAID_INTERNAL, error.what());
  }
}

template <class T>
T* given(T* pointer, const char* what) {
  if (pointer == nullptr) throw_invalid(what, "is null");
  return pointer;
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

WorldOptions options_of(const braid_world_options* given) {
  WorldOptions options;
  options.warning = [](std::string_view) {};
  if (given == nullptr) return options;
  if (given->bytes != sizeof *given) {
    throw_invalid("options", fmt::format("`bytes` is {}; expected {}, the size of the struct",
                                         given->bytes, sizeof *given));
  }
  options.device = parse_device_kind(text_or_empty(given->device));
  options.world = given->world == 0 ? 1 : given->world;
  options.threads = given->threads;
  options.cache_dir = text_or_empty(given->cache_dir);
  options.target = text_or_empty(given->target);
  options.timeout_s = given->timeout_s;
  options.compile_processes = given->compile_processes;
  options.compile_worker = text_or_empty(given->compile_worker);
  options.compile_in_background = given->compile_in_background != 0;
  void* const context = given->context;
  if (auto* const warning = given->warning) {
    options.warning = [=](std::string_view what) { warning(context, std::string(what).c_str()); };
  }
  if (auto* const progress = given->progress) {
    options.progress = [=](std::size_t done, std::size_t total, std::string_view what) {
      if (progress(context, done, total, std::string(what).c_str()) != 0) throw Cancelled();
    };
  }
  if (auto* const allocate = given->allocate) {
    options.allocator.allocate = [=](int rank, std::size_t bytes) {
      return allocate(context, rank, bytes);
    };
  }
  if (auto* const free = given->free) {
    options.allocator.free = [=](int rank, std::uint64_t address, std::size_t bytes) {
      free(context, rank, address, bytes);
    };
  }
  return options;
}

/// The end of this process, which waits for the others.
std::shared_ptr<Rendezvous> meeting_of(const braid_world_options* given) {
  if (given == nullptr || given->host == nullptr) return nullptr;
  SocketOptions options{.ranks = {given->rank},
                        .world = given->world == 0 ? 1 : given->world,
                        .address = given->host,
                        .job = text_or_empty(given->job)};
  if (given->port != 0) options.port = given->port;
  if (given->meet_timeout_s != 0) options.timeout_s = given->meet_timeout_s;
  return meet_by_socket(options);
}

/// Values of symbols, as braid_prepare takes them.
Bindings bindings_of(const char* const* symbols, const std::int64_t* values, std::size_t count) {
  Bindings bindings;
  for (std::size_t i = 0; i < count; ++i) {
    bindings[given(given(symbols, "symbols")[i], "symbol")] = given(values, "values")[i];
  }
  return bindings;
}

struct Extents {
  std::vector<std::int64_t> shape, strides;
};

Extents extents_of(std::int32_t dims, const std::int64_t* shape, const std::int64_t* strides) {
  if (dims < 0) throw_invalid("tensor", fmt::format("{} dims; expected none or some", dims));
  if (dims > 0) given(shape, "tensor shape");
  Extents extents;
  extents.shape.assign(shape, shape + dims);
  if (strides != nullptr) extents.strides.assign(strides, strides + dims);
  return extents;
}

DeviceTensor device_tensor(const braid_tensor* tensor) {
  given(tensor, "tensor");
  const std::string name = given(tensor->dtype, "tensor dtype");
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype)
    throw_invalid("tensor dtype", fmt::format("found \"{}\"; expected that of a graph", name));
  Extents extents = extents_of(tensor->dims, tensor->shape, tensor->strides);
  return {reinterpret_cast<std::uint64_t>(tensor->data), *dtype, std::move(extents.shape),
          std::move(extents.strides)};
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
  if (is(kDLUInt, 8)) return DType::kU8;
  if (is(kDLPackBool, 8)) return DType::kBool;
  throw_invalid("tensor dtype",
                fmt::format("found DLPack's code {} of {} bits and {} lanes; expected a type of a "
                            "graph",
                            type.code, type.bits, type.lanes));
}

DeviceTensor device_tensor(const DLTensor& tensor, std::string_view device) {
  constexpr int kDLPackManaged = 13;
  const int kind = tensor.device.device_type;
  const bool here = device == "cpu"
                        ? kind == kDLCPU
                        : kind == kDLCUDA || kind == kDLCUDAHost || kind == kDLPackManaged;
  if (!here) {
    throw_invalid("tensor device",
                  fmt::format("found DLPack's device {}; expected the {} device", kind, device));
  }
  const DType dtype = dtype_of(tensor.dtype);
  Extents extents = extents_of(tensor.ndim, tensor.shape, tensor.strides);
  return {reinterpret_cast<std::uint64_t>(tensor.data) + tensor.byte_offset, dtype,
          std::move(extents.shape), std::move(extents.strides)};
}

HostTensor host_tensor(const braid_tensor* tensor) {
  const DeviceTensor source = device_tensor(tensor);
  if (!source.strides.empty()) throw_invalid("tensor strides", "expected null: a dense tensor");
  HostTensor copy{source.dtype, source.shape, {}};
  for (const std::int64_t extent : copy.shape) {
    if (extent < 0) throw_invalid("tensor shape", fmt::format("found {}", extent));
  }
  const std::size_t bytes = static_cast<std::size_t>(copy.numel()) * dtype_size(copy.dtype);
  if (bytes == 0) return copy;
  const auto* const data = static_cast<const std::byte*>(given(tensor->data, "tensor data"));
  copy.data.assign(data, data + bytes);
  return copy;
}

void add_executable(const World& world, Executable executable, braid_executable* handle) {
  tables().executables.add(std::make_shared<Compiled>(Compiled{world, std::move(executable)}),
                           handle);
}
void add_stream(const World& world, int rank, std::unique_ptr<Stream> stream,
                braid_stream* handle) {
  tables().streams.add(std::make_shared<RankStream>(RankStream{world, rank, std::move(stream)}),
                       handle);
}

/// A stream of each rank that the executable has here, in their order.
std::vector<std::shared_ptr<RankStream>> streams_of(const Compiled& compiled,
                                                    const braid_stream* streams,
                                                    std::size_t count) {
  if (count != 0) given(streams, "streams");
  const std::vector<int>& ranks = compiled.world.ranks();
  std::vector<std::shared_ptr<RankStream>> held;
  for (std::size_t i = 0; i < count; ++i) {
    held.push_back(tables().streams.get(streams[i]));
    if (&held[i]->world.device() != &compiled.world.device()) {
      throw_invalid("stream", fmt::format("number {} is of another world", i));
    }
    if (i < ranks.size() && held[i]->rank != ranks[i]) {
      throw_invalid("stream", fmt::format("number {} is of rank {}; expected rank {}", i,
                                          held[i]->rank, ranks[i]));
    }
  }
  return held;
}

void check_same_world(const World& a, const World& b, const char* what) {
  if (&a.device() != &b.device()) throw_invalid(what, "is of another world than the stream");
}
void check_same_rank(int found, int expected, const char* what) {
  if (found == expected) return;
  throw_invalid(what,
                fmt::format("is of rank {}; expected rank {}, the stream's", found, expected));
}

void add_memory(const World& world, SymmetricMemory memory, braid_symmetric* handle) {
  tables().memories.add(std::make_shared<Symmetric>(Symmetric{world, std::move(memory)}), handle);
}

/// Enqueues what a rank does with a memory, on a stream of its own.
template <class Work>
braid_status on_stream(braid_symmetric memory, int rank, braid_stream stream, Work work) {
  return call([&] {
    const auto of = tables().memories.get(memory);
    const auto on = tables().streams.get(stream);
    check_same_world(of->world, on->world, "symmetric memory");
    check_same_rank(rank, on->rank, "rank");
    work(*of, *on->stream);
  });
}

template <class Handle, class T>
braid_status destroy(Handles<T>& table, Handle handle) {
  return call([&] { (void)table.take(handle); });
}

}  // namespace
}  // namespace braid::c

using namespace braid::c;  // NOLINT(google-build-using-namespace)

const char* braid_version() { return BRAID_VERSION; }
const char* braid_last_error() { return last_error().c_str(); }

braid_status braid_world_open(const braid_world_options* options, braid_world* world) {
  return call([&] {
    *given(world, "world") = nullptr;
    braid::WorldOptions opened = options_of(options);
    opened.rendezvous = meeting_of(options);
    tables().worlds.add(
        std::make_shared<OpenWorld>(OpenWorld{braid::World::open(opened), opened.rendezvous}),
        world);
  });
}
braid_status braid_world_destroy(braid_world world) { return destroy(tables().worlds, world); }
braid_status braid_world_barrier(braid_world world) {
  return call([&] {
    const auto in = tables().worlds.get(world);
    if (in->meeting != nullptr) in->meeting->barrier();
  });
}

braid_status braid_world_metrics(braid_world world, braid_metrics* metrics) {
  return call([&] {
    given(metrics, "metrics");
    const braid::WorldMetrics m = tables().worlds.get(world)->world.metrics();
    *metrics = {m.kernels_compiled, m.kernels_from_cache, m.compile_ms, m.plans, m.runs,
                m.failures};
  });
}

braid_status braid_compile(braid_world world, const char* graph_json,
                           braid_executable* executable) {
  return call([&] {
    *given(executable, "executable") = nullptr;
    const auto in = tables().worlds.get(world);
    const braid::Graph graph = braid::parse_graph(given(graph_json, "graph"));
    add_executable(in->world, braid::Executable::compile(graph, in->world), executable);
  });
}
braid_status braid_memory_estimate(braid_world world, const char* graph_json, std::int64_t* bytes,
                                   std::int64_t* bound) {
  return call([&] {
    given(bytes, "bytes");
    const auto in = tables().worlds.get(world);
    const braid::Graph graph = braid::parse_graph(given(graph_json, "graph"));
    std::int64_t all = 0;
    std::int64_t callers = 0;
    for (const auto& arena : braid::Executable::memory_estimate(graph, in->world)) {
      all += arena.bytes;
      if (arena.name == "parameters" || arena.name == "io") callers += arena.bytes;
    }
    *bytes = all;
    if (bound != nullptr) *bound = callers;
  });
}
braid_status braid_save(braid_executable executable, const char* directory) {
  return call([&] {
    tables().executables.get(executable)->executable.save(given(directory, "directory"));
  });
}
braid_status braid_load(braid_world world, const char* directory, braid_executable* executable) {
  return call([&] {
    *given(executable, "executable") = nullptr;
    const auto in = tables().worlds.get(world);
    const std::string path = std::string(given(directory, "directory")) + "/program.json";
    add_executable(in->world, braid::Executable::load(path, in->world), executable);
  });
}
braid_status braid_another(braid_executable executable, braid_executable* another) {
  return call([&] {
    *given(another, "another") = nullptr;
    const auto of = tables().executables.get(executable);
    add_executable(of->world, of->executable.another(), another);
  });
}
braid_status braid_executable_destroy(braid_executable executable) {
  return destroy(tables().executables, executable);
}

braid_status braid_bind(braid_executable executable, std::int32_t rank, const char* name,
                        const braid_tensor* tensor) {
  return call([&] {
    const auto to = tables().executables.get(executable);
    to->executable.bind(rank, given(name, "name"), device_tensor(tensor));
  });
}
braid_status braid_bind_dlpack(braid_executable executable, std::int32_t rank, const char* name,
                               const DLManagedTensor* tensor) {
  return call([&] {
    const auto to = tables().executables.get(executable);
    to->executable.bind(
        rank, given(name, "name"),
        device_tensor(given(tensor, "tensor")->dl_tensor, to->world.device().kind()));
  });
}

braid_status braid_prepare(braid_executable executable, const char* const* symbols,
                           const std::int64_t* values, size_t count, braid_plan* plan) {
  return call([&] {
    *given(plan, "plan") = nullptr;
    const auto of = tables().executables.get(executable);
    tables().plans.add(std::make_shared<braid::Executable::Plan>(
                           of->executable.prepare(bindings_of(symbols, values, count))),
                       plan);
  });
}
braid_status braid_plan_destroy(braid_plan plan) { return destroy(tables().plans, plan); }
braid_status braid_ready(braid_executable executable, const char* const* symbols,
                         const std::int64_t* values, size_t count, std::int32_t* ready) {
  return call([&] {
    given(ready, "ready");
    const auto of = tables().executables.get(executable);
    *ready = of->executable.ready(bindings_of(symbols, values, count)) ? 1 : 0;
  });
}

braid_status braid_set_input(braid_executable executable, std::int32_t rank, const char* name,
                             const braid_tensor* tensor) {
  return call([&] {
    const auto of = tables().executables.get(executable);
    of->executable.set_input(rank, given(name, "name"), host_tensor(tensor));
  });
}
braid_status braid_get_output(braid_executable executable, std::int32_t rank, const char* name,
                              void* data, size_t bytes) {
  return call([&] {
    const auto of = tables().executables.get(executable);
    const braid::HostTensor tensor = of->executable.output(rank, given(name, "name"));
    if (tensor.data.size() != bytes) {
      braid::throw_invalid(name, fmt::format("has {} bytes; expected room for them, found {}",
                                             tensor.data.size(), bytes));
    }
    if (bytes != 0) std::memcpy(given(data, "data"), tensor.data.data(), bytes);
  });
}

braid_status braid_run(braid_executable executable, braid_plan plan, const braid_stream* streams,
                       size_t count) {
  return call([&] {
    const auto of = tables().executables.get(executable);
    const auto what = tables().plans.get(plan);
    const auto held = streams_of(*of, streams, count);
    std::vector<braid::Stream*> lanes;
    for (const auto& stream : held) lanes.push_back(stream->stream.get());
    of->executable.run(*what, lanes);
  });
}
braid_status braid_run_rank(braid_executable executable, braid_plan plan, std::int32_t rank,
                            braid_stream stream) {
  return call([&] {
    const auto of = tables().executables.get(executable);
    const auto what = tables().plans.get(plan);
    std::shared_ptr<RankStream> on;
    if (stream != nullptr) {
      on = tables().streams.get(stream);
      check_same_world(of->world, on->world, "executable");
      if (on->rank != rank) {
        braid::throw_invalid("stream",
                             fmt::format("is of rank {}; expected rank {}", on->rank, rank));
      }
    }
    of->executable.run_rank(*what, rank, on == nullptr ? nullptr : on->stream.get());
  });
}
braid_status braid_cancel(braid_executable executable) {
  return call([&] { tables().executables.get(executable)->executable.cancel(); });
}
braid_status braid_synchronize(braid_executable executable) {
  return call([&] { tables().executables.get(executable)->executable.synchronize(); });
}
braid_status braid_recover(braid_executable executable) {
  return call([&] { tables().executables.get(executable)->executable.recover(); });
}

braid_status braid_stream_create(braid_world world, std::int32_t rank, braid_stream* stream) {
  return call([&] {
    *given(stream, "stream") = nullptr;
    const auto in = tables().worlds.get(world);
    add_stream(in->world, rank, in->world.device().create_stream(rank), stream);
  });
}
braid_status braid_stream_wrap(braid_world world, std::int32_t rank, void* raw,
                               braid_stream* stream) {
  return call([&] {
    *given(stream, "stream") = nullptr;
    const auto in = tables().worlds.get(world);
    add_stream(in->world, rank, in->world.device().wrap_stream(rank, raw), stream);
  });
}
braid_status braid_stream_synchronize(braid_stream stream) {
  return call([&] { tables().streams.get(stream)->stream->synchronize(); });
}
braid_status braid_stream_destroy(braid_stream stream) { return destroy(tables().streams, stream); }

braid_status braid_event_create(braid_world world, std::int32_t rank, braid_event* event) {
  return call([&] {
    *given(event, "event") = nullptr;
    const auto in = tables().worlds.get(world);
    tables().events.add(std::make_shared<RankEvent>(
                            RankEvent{in->world, rank, in->world.device().create_event(rank)}),
                        event);
  });
}
braid_status braid_event_record(braid_event event, braid_stream stream) {
  return call([&] {
    const auto what = tables().events.get(event);
    const auto on = tables().streams.get(stream);
    check_same_world(what->world, on->world, "event");
    check_same_rank(what->rank, on->rank, "event");
    on->stream->record(*what->event);
  });
}
braid_status braid_stream_wait(braid_stream stream, braid_event event) {
  return call([&] {
    const auto on = tables().streams.get(stream);
    const auto what = tables().events.get(event);
    check_same_world(what->world, on->world, "event");
    on->stream->wait(*what->event);
  });
}
braid_status braid_event_destroy(braid_event event) { return destroy(tables().events, event); }

braid_status braid_begin_capture(braid_stream stream) {
  return call([&] { tables().streams.get(stream)->stream->begin_capture(); });
}
braid_status braid_end_capture(braid_stream stream, braid_graph* graph) {
  return call([&] {
    *given(graph, "graph") = nullptr;
    const auto on = tables().streams.get(stream);
    tables().graphs.add(
        std::make_shared<RankGraph>(RankGraph{on->world, on->rank, on->stream->end_capture()}),
        graph);
  });
}
braid_status braid_replay(braid_graph graph, braid_stream stream) {
  return call([&] {
    const auto what = tables().graphs.get(graph);
    const auto on = tables().streams.get(stream);
    check_same_world(what->world, on->world, "graph");
    check_same_rank(what->rank, on->rank, "graph");
    on->stream->replay(*what->graph);
  });
}
braid_status braid_graph_destroy(braid_graph graph) { return destroy(tables().graphs, graph); }

braid_status braid_symmetric_allocate(braid_world world, const char* name, size_t bytes,
                                      braid_symmetric* memory) {
  return call([&] {
    *given(memory, "memory") = nullptr;
    const auto in = tables().worlds.get(world);
    add_memory(
        in->world,
        braid::SymmetricMemory::allocate(in->world, given(name, "name"), {in->world.size()}, bytes),
        memory);
  });
}
braid_status braid_symmetric_register(braid_world world, const char* name, void* const* data,
                                      size_t count, size_t bytes, braid_symmetric* memory) {
  return call([&] {
    *given(memory, "memory") = nullptr;
    const auto in = tables().worlds.get(world);
    if (count != in->world.ranks().size()) {
      braid::throw_invalid("data", fmt::format("{} addresses; expected one for each of {} ranks",
                                               count, in->world.ranks().size()));
    }
    std::vector<std::uint64_t> addresses;
    for (std::size_t i = 0; i < count; ++i) {
      addresses.push_back(reinterpret_cast<std::uint64_t>(given(data, "data")[i]));
    }
    add_memory(in->world,
               braid::SymmetricMemory::register_memory(in->world, given(name, "name"),
                                                       {in->world.size()}, addresses, bytes),
               memory);
  });
}
braid_status braid_symmetric_address(braid_symmetric memory, std::int32_t rank, std::int32_t peer,
                                     void** address) {
  return call([&] {
    *given(address, "address") = nullptr;
    const auto of = tables().memories.get(memory);
    const std::int64_t all = static_cast<std::int64_t>(of->memory.size());
    *address = reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
        of->memory.buffer(rank, peer, {&all, 1}, braid::DType::kU8));
  });
}
braid_status braid_symmetric_barrier(braid_symmetric memory, std::int32_t rank, braid_stream stream,
                                     std::int32_t channel) {
  return on_stream(memory, rank, stream, [&](const Symmetric& of, braid::Stream& on) {
    of.memory.barrier(rank, on, channel);
  });
}
braid_status braid_symmetric_put_signal(braid_symmetric memory, std::int32_t rank,
                                        std::int32_t peer, braid_stream stream,
                                        std::int32_t channel) {
  return on_stream(memory, rank, stream, [&](const Symmetric& of, braid::Stream& on) {
    of.memory.put_signal(rank, peer, on, channel);
  });
}
braid_status braid_symmetric_wait_signal(braid_symmetric memory, std::int32_t rank,
                                         std::int32_t peer, braid_stream stream,
                                         std::int32_t channel) {
  return on_stream(memory, rank, stream, [&](const Symmetric& of, braid::Stream& on) {
    of.memory.wait_signal(rank, peer, on, channel);
  });
}
braid_status braid_symmetric_check(braid_symmetric memory) {
  return call([&] { tables().memories.get(memory)->memory.check(); });
}
braid_status braid_symmetric_recover(braid_symmetric memory) {
  return call([&] { tables().memories.get(memory)->memory.recover(); });
}
braid_status braid_symmetric_destroy(braid_symmetric memory) {
  return destroy(tables().memories, memory);
}
