// Streams, events, recorded graphs and symmetric memory.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/braid.h"
#include "braid/error.h"
#include "braid/symmetric_memory.h"
#include "braid/world.h"
#include "c/arguments.h"
#include "c/calls.h"

namespace braid::c {
namespace {

void add_stream(const World& world, int rank, std::unique_ptr<Stream> stream,
                braid_stream* handle) {
  tables().streams.add(std::make_shared<RankStream>(RankStream{world, rank, std::move(stream)}),
                       handle);
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

}  // namespace
}  // namespace braid::c

using namespace braid::c;  // NOLINT(google-build-using-namespace)

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
