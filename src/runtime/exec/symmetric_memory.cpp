#include "braid/symmetric_memory.h"

#include <algorithm>

#include "ir/fail.h"
#include "ir/groups.h"
#include "runtime/exec/symmetric_block.h"

namespace braid {

SymmetricMemory::SymmetricMemory(std::shared_ptr<World::Impl> world,
                                 std::shared_ptr<SymmetricBlock> block)
    : world_(std::move(world)), block_(std::move(block)) {}

SymmetricMemory SymmetricMemory::allocate(const World& world, const std::string& name,
                                          const Group& group, std::size_t bytes,
                                          const Options& options) {
  return {world.impl_, SymmetricBlock::make(world.impl(), {name, group, bytes, options, {}})};
}

SymmetricMemory SymmetricMemory::register_memory(const World& world, const std::string& name,
                                                 const Group& group,
                                                 std::span<const std::uint64_t> addresses,
                                                 std::size_t bytes, const Options& options) {
  return {world.impl_,
          SymmetricBlock::make(
              world.impl(), {name, group, bytes, options, {addresses.begin(), addresses.end()}})};
}

// Keyed by the ranks that share it: equal names of different ranks are separate.
SymmetricMemory SymmetricMemory::workspace(const World& world, const std::string& name,
                                           const Group& group, std::size_t min_bytes,
                                           std::span<Stream* const> streams) {
  World::Impl& w = world.impl();
  const std::lock_guard lock(w.meeting);
  const auto instances = group_instances(group, world.size());
  const auto found = w.workspaces.find(instances);
  // A group whose size contradicts its ranks is refused when it is created.
  const bool known = found != w.workspaces.end() && found->second->spec().group.size == group.size;
  const std::size_t had = known ? found->second->spec().bytes : 0;
  if (had > 0 && had >= min_bytes) return {world.impl_, found->second};
  w.take_part([&] {
    if (std::ranges::none_of(streams,
                             [](const Stream* stream) { return stream->is_capturing(); })) {
      return;
    }
    throw_invalid("symmetric memory '" + name + "'",
                  "found {} bytes, and a stream that is being captured; expected a call for {} "
                  "bytes before the capture",
                  had, min_bytes);
  });
  auto block = SymmetricBlock::make(w, {name, group, std::max(had, min_bytes), {}, {}});
  w.workspaces[instances] = block;
  return {world.impl_, std::move(block)};
}

SymmetricBlock& SymmetricMemory::block() const {
  if (block_ == nullptr) throw_invalid("symmetric memory", "was moved from; expected one");
  world_->refuse_fork();
  return *block_;
}

std::size_t SymmetricMemory::size() const { return block().spec().bytes; }
int SymmetricMemory::channels() const { return block().spec().options.channels; }
const std::vector<int>& SymmetricMemory::members(int rank) const { return block().members(rank); }

std::uint64_t SymmetricMemory::buffer(int rank, int peer, std::span<const std::int64_t> shape,
                                      DType dtype, std::size_t offset) const {
  return block().buffer(rank, peer, shape, dtype, offset);
}

void SymmetricMemory::barrier(int rank, Stream& stream, int channel) const {
  block().barrier(rank, stream, channel);
}
void SymmetricMemory::put_signal(int rank, int peer, Stream& stream, int channel) const {
  block().put_signal(rank, peer, stream, channel);
}
void SymmetricMemory::wait_signal(int rank, int peer, Stream& stream, int channel) const {
  block().wait_signal(rank, peer, stream, channel);
}
void SymmetricMemory::acquire(int rank, Stream& stream) const { block().acquire(rank, stream); }
void SymmetricMemory::release(int rank, Stream& stream) const { block().release(rank, stream); }
void SymmetricMemory::check() const { block().check(); }
void SymmetricMemory::recover() const { block().recover(); }

}  // namespace braid
