#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/dtype.h"
#include "braid/export.h"
#include "braid/graph.h"
#include "braid/world.h"

namespace braid {

class SymmetricBlock;  // opaque

struct SymmetricOptions {
  int channels = 8;  ///< number of channels for barriers and for signals
  /// Free text about what the caller stores where. All ranks must pass the same.
  std::string layout = {};
};

/// Memory of the caller's that all ranks of a group can reach: the same number of bytes on each
/// rank, and flags with which ranks wait for each other on streams. `group` is as in a graph; each
/// instance of a group with several instances shares among itself.
///
/// Functions marked collective are called by all worlds that meet, in the same order; they throw
/// naming a rank that asked for something else. The object is a handle: copies refer to the same
/// memory, which is freed with the last of them. No work that uses it may be in flight then, on
/// peers either (Rendezvous::barrier). Calls on one memory come from one thread at a time.
class BRAID_API SymmetricMemory {
 public:
  using Options = SymmetricOptions;

  /// Collective. Allocates `bytes` on each rank of this world, not zeroed.
  static SymmetricMemory allocate(const World& world, const std::string& name, const Group& group,
                                  std::size_t bytes, const Options& options = {});
  /// Collective. Shares memory that the caller has allocated on the world's device. `addresses` has
  /// one entry for each rank of this world, in order, each a multiple of 16. The memory must
  /// outlive this object. Throws kInvalidArgument where the device does not know the memory,
  /// kEnvironment where it cannot be shared with ranks elsewhere (Memory::export_handle).
  static SymmetricMemory register_memory(const World& world, const std::string& name,
                                         const Group& group,
                                         std::span<const std::uint64_t> addresses,
                                         std::size_t bytes, const Options& options = {});
  /// Scratch of at least `min_bytes` that all users of the group in this world share. It is
  /// collective when it has to grow, as it does at the first call; else it returns at once. Ranks
  /// ask for the same sizes in the same order. A handle keeps the memory it was given: growing
  /// moves nobody's memory. Users take turns with acquire() and release(). `streams` are those it
  /// is about to be used on. If one of them is being captured, growing throws kInvalidArgument,
  /// because an allocation would invalidate the capture.
  static SymmetricMemory workspace(const World& world, const std::string& name, const Group& group,
                                   std::size_t min_bytes, std::span<Stream* const> streams = {});

  [[nodiscard]] std::size_t size() const;  ///< bytes
  [[nodiscard]] int channels() const;
  /// The ranks that share memory with `rank`, a rank of this world, in the group's order.
  [[nodiscard]] const std::vector<int>& members(int rank) const;

  /// The address at which `rank`, a rank of this world, reaches a tensor `offset` bytes into the
  /// memory of `peer`, a member (itself included). Throws kInvalidArgument where the tensor does
  /// not fit or is not aligned to its elements.
  [[nodiscard]] std::uint64_t buffer(int rank, int peer, std::span<const std::int64_t> shape,
                                     DType dtype, std::size_t offset = 0) const;

  /// Enqueues a barrier of all members that call it on this channel. Work before it on each
  /// member's stream is visible to work behind it on all. Channels are independent; on each rank
  /// one stream at a time uses a channel. The launch may be captured and replayed. The kernels of
  /// all members wait for each other, so each needs room for one block.
  void barrier(int rank, Stream& stream, int channel = 0) const;
  /// Enqueues a signal to `peer`, which lets one wait_signal() there for this rank and channel
  /// pass. Work before it on the stream is visible behind that wait.
  void put_signal(int rank, int peer, Stream& stream, int channel = 0) const;
  /// Enqueues a wait for one put_signal() by `peer` on this channel.
  void wait_signal(int rank, int peer, Stream& stream, int channel = 0) const;

  /// Orders all later work on the stream after what other users of this memory on the same rank
  /// enqueued before their release(). It does not order other ranks: users end with a barrier().
  void acquire(int rank, Stream& stream) const;
  /// Lets the next user begin once the work enqueued so far is done.
  void release(int rank, Stream& stream) const;

  /// To be called once the streams are synchronized. Throws kTimeout naming rank, channel and peer
  /// when a wait took longer than WorldOptions::timeout_s, and kEnvironment naming a lost rank.
  /// From then on all waits give up, until recover().
  void check() const;
  /// Collective, with no work in flight. Resets barriers and signals to their initial state.
  void recover() const;

 private:
  SymmetricMemory(std::shared_ptr<World::Impl> world, std::shared_ptr<SymmetricBlock> block);
  /// Throws kInvalidArgument for a moved-from object, and in a forked child.
  [[nodiscard]] SymmetricBlock& block() const;
  std::shared_ptr<World::Impl> world_;  ///< must outlive the block
  std::shared_ptr<SymmetricBlock> block_;
};

}  // namespace braid
