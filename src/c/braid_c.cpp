// Worlds and executables.

#include <dlpack/dlpack.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/braid.h"
#include "braid/executable.h"
#include "braid/graph.h"
#include "braid/world.h"
#include "c/arguments.h"
#include "c/calls.h"
#include "ir/fail.h"

namespace braid::c {
namespace {

void add_executable(const World& world, Executable executable, braid_executable* handle) {
  Listing listing(executable);
  tables().executables.add(
      std::make_shared<Compiled>(Compiled{world, std::move(executable), std::move(listing)}),
      handle);
}

/// The entry that `at` finds at an index, or null.
template <class Info>
braid_status list(braid_executable executable, std::size_t index, const Info** info,
                  const Info* (Listing::*at)(std::size_t) const) {
  return call([&] {
    *given(info, "info") = nullptr;
    *info = (tables().executables.get(executable)->listing.*at)(index);
  });
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
      throw_invalid("stream", "number {} is of another world", i);
    }
    if (i < ranks.size() && held[i]->rank != ranks[i]) {
      throw_invalid("stream", "number {} is of rank {}; expected rank {}", i, held[i]->rank,
                    ranks[i]);
    }
  }
  return held;
}

}  // namespace
}  // namespace braid::c

using namespace braid::c;  // NOLINT(google-build-using-namespace)

const char* braid_version() { return BRAID_VERSION; }
const char* braid_last_error() { return last_error().c_str(); }

braid_status braid_options_from_environment(braid_world_options* options) {
  return call([&] { set_meeting(*given(options, "options")); });
}
braid_status braid_world_open(const braid_world_options* options, braid_world* world) {
  return call([&] {
    *given(world, "world") = nullptr;
    const braid_world_options all = all_options(options);
    braid::WorldOptions opened = options_of(all);
    braid::PassConfig passes = passes_of(all);
    opened.rendezvous = rendezvous_of(all);
    tables().worlds.add(std::make_shared<OpenWorld>(OpenWorld{
                            braid::World::open(opened), opened.rendezvous, std::move(passes)}),
                        world);
  });
}
braid_status braid_world_destroy(braid_world world) { return destroy(tables().worlds, world); }
braid_status braid_world_barrier(braid_world world) {
  return call([&] {
    const auto in = tables().worlds.get(world);
    if (in->rendezvous != nullptr) in->rendezvous->barrier();
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
    add_executable(in->world, braid::Executable::compile(graph, in->world, in->passes), executable);
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
    for (const auto& arena : braid::Executable::memory_estimate(graph, in->world, in->passes)) {
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
    if (*given(directory, "directory") == 0) braid::throw_invalid("directory", "is empty");
    const std::string path = std::string(directory) + "/program.json";
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

braid_status braid_input(braid_executable executable, size_t index,
                         const braid_tensor_info** input) {
  return list(executable, index, input, &Listing::input);
}
braid_status braid_output(braid_executable executable, size_t index,
                          const braid_tensor_info** output) {
  return list(executable, index, output, &Listing::output);
}
braid_status braid_symbol(braid_executable executable, size_t index,
                          const braid_symbol_info** symbol) {
  return list(executable, index, symbol, &Listing::symbol);
}

braid_status braid_bind(braid_executable executable, std::int32_t rank, const char* name,
                        const braid_tensor* tensor) {
  return call([&] {
    const auto to = tables().executables.get(executable);
    const int dims = to->listing.dims_of(given(name, "name"));
    to->executable.bind(rank, name, device_tensor(tensor, dims));
  });
}
braid_status braid_bind_dlpack(braid_executable executable, std::int32_t rank, const char* name,
                               const DLManagedTensor* tensor) {
  return call([&] {
    const auto to = tables().executables.get(executable);
    const int dims = to->listing.dims_of(given(name, "name"));
    to->executable.bind(
        rank, name,
        device_tensor(given(tensor, "tensor")->dl_tensor, dims, to->world.device().kind()));
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
    const int dims = of->listing.dims_of(given(name, "name"));
    of->executable.set_input(rank, name, host_tensor(tensor, dims));
  });
}
braid_status braid_get_output(braid_executable executable, std::int32_t rank, const char* name,
                              void* data, size_t bytes) {
  return call([&] {
    const auto of = tables().executables.get(executable);
    const braid::HostTensor tensor = of->executable.output(rank, given(name, "name"));
    if (tensor.data.size() != bytes) {
      braid::throw_invalid(name, "has {} bytes; expected room for them, found {}",
                           tensor.data.size(), bytes);
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
    lanes.reserve(held.size());
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
        braid::throw_invalid("stream", "is of rank {}; expected rank {}", on->rank, rank);
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
