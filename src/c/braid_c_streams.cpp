// Streams, events and recorded graphs.

#include <cstdint>
#include <memory>
#include <utility>

#include "braid/braid.h"
#include "braid/world.h"
#include "c/calls.h"

namespace braid::c {
namespace {

void add_stream(const World& world, int rank, std::unique_ptr<Stream> stream,
                braid_stream* handle) {
  tables().streams.add(std::make_shared<RankStream>(RankStream{world, rank, std::move(stream)}),
                       handle);
}

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

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
    tables().events.add(
        std::make_shared<RankEvent>(RankEvent{in->world, in->world.device().create_event(rank)}),
        event);
  });
}
braid_status braid_event_record(braid_event event, braid_stream stream) {
  return call([&] {
    const auto what = tables().events.get(event);
    const auto on = tables().streams.get(stream);
    check_same_world(what->world, on->world, "event");
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
        std::make_shared<RankGraph>(RankGraph{on->world, on->stream->end_capture()}), graph);
  });
}
braid_status braid_replay(braid_graph graph, braid_stream stream) {
  return call([&] {
    const auto what = tables().graphs.get(graph);
    const auto on = tables().streams.get(stream);
    check_same_world(what->world, on->world, "graph");
    on->stream->replay(*what->graph);
  });
}
braid_status braid_graph_destroy(braid_graph graph) { return destroy(tables().graphs, graph); }

braid_status braid_copy(braid_stream stream, void* to, const void* from, size_t bytes) {
  return call(
      [&] { tables().streams.get(stream)->stream->copy(address_of(to), address_of(from), bytes); });
}
braid_status braid_copy_from_host(braid_stream stream, void* to, const void* from, size_t bytes) {
  return call(
      [&] { tables().streams.get(stream)->stream->copy_from_host(address_of(to), from, bytes); });
}
braid_status braid_copy_to_host(braid_stream stream, void* to, const void* from, size_t bytes) {
  return call(
      [&] { tables().streams.get(stream)->stream->copy_to_host(to, address_of(from), bytes); });
}
