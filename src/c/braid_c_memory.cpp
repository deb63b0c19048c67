// Memory of ranks, and what they share.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "braid/braid.h"
#include "braid/symmetric_memory.h"
#include "braid/world.h"
#include "c/calls.h"
#include "ir/fail.h"

namespace braid::c {
namespace {

void* pointer_to(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

void add_memory(const World& world, SymmetricMemory memory, braid_symmetric* handle) {
  tables().symmetric.add(std::make_shared<Symmetric>(Symmetric{world, std::move(memory)}), handle);
}

/// Enqueues what a rank does with a memory, on a stream of its own.
template <class Work>
braid_status on_stream(braid_symmetric memory, braid_stream stream, Work work) {
  return call([&] {
    const auto of = tables().symmetric.get(memory);
    const auto on = tables().streams.get(stream);
    check_same_world(of->world, on->world, "symmetric memory");
    work(*of, *on->stream);
  });
}

}  // namespace
}  // namespace braid::c

using namespace braid::c;  // NOLINT(google-build-using-namespace)

braid_status braid_memory_allocate(braid_world world, std::int32_t rank, size_t bytes,
                                   braid_memory* memory) {
  return call([&] {
    *given(memory, "memory") = nullptr;
    const auto in = tables().worlds.get(world);
    if (bytes == 0) braid::throw_invalid("bytes", "0; expected 1 or more");
    tables().memories.add(std::make_shared<RankMemory>(RankMemory{
                              in->world, in->world.device().allocate_shared(rank, bytes)}),
                          memory);
  });
}
braid_status braid_memory_address(braid_memory memory, void** address) {
  return call([&] {
    *given(address, "address") = nullptr;
    const auto held = tables().memories.get(memory);
    if (held->memory == nullptr) braid::throw_invalid("memory", "is its lender's");
    *address = pointer_to(held->memory->address());
  });
}
braid_status braid_memory_destroy(braid_memory memory) {
  return destroy(tables().memories, memory);
}

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
      braid::throw_invalid("data", "{} addresses; expected one for each of {} ranks", count,
                           in->world.ranks().size());
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
    const auto of = tables().symmetric.get(memory);
    const std::int64_t all = static_cast<std::int64_t>(of->memory.size());
    *address = pointer_to(of->memory.buffer(rank, peer, {&all, 1}, braid::DType::kU8));
  });
}
braid_status braid_symmetric_barrier(braid_symmetric memory, std::int32_t rank, braid_stream stream,
                                     std::int32_t channel) {
  return on_stream(memory, stream, [&](const Symmetric& of, braid::Stream& on) {
    of.memory.barrier(rank, on, channel);
  });
}
braid_status braid_symmetric_put_signal(braid_symmetric memory, std::int32_t rank,
                                        std::int32_t peer, braid_stream stream,
                                        std::int32_t channel) {
  return on_stream(memory, stream, [&](const Symmetric& of, braid::Stream& on) {
    of.memory.put_signal(rank, peer, on, channel);
  });
}
braid_status braid_symmetric_wait_signal(braid_symmetric memory, std::int32_t rank,
                                         std::int32_t peer, braid_stream stream,
                                         std::int32_t channel) {
  return on_stream(memory, stream, [&](const Symmetric& of, braid::Stream& on) {
    of.memory.wait_signal(rank, peer, on, channel);
  });
}
braid_status braid_symmetric_check(braid_symmetric memory) {
  return call([&] { tables().symmetric.get(memory)->memory.check(); });
}
braid_status braid_symmetric_recover(braid_symmetric memory) {
  return call([&] { tables().symmetric.get(memory)->memory.recover(); });
}
braid_status braid_symmetric_destroy(braid_symmetric memory) {
  return destroy(tables().symmetric, memory);
}
