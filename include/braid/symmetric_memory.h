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

class SymmetricBlock;  // runtime/exec/symmetric_block.h

/// Of a symmetric memory.
struct SymmetricOptions {
  int channels = 8;  ///< of barriers, and of signals
  /// What the caller keeps where, in his own words: all ranks must say the same.
  std::string layout = {};
};

/// Memory of the caller's own that all ranks of a group reach: as many bytes on each of them, with
/// what they need to wait for each other on streams. `group` is as in a graph; where it has several
/// instances, each shares with itself alone.
///
/// Calls that are marked collective are made by all worlds that meet, in the same order; they say
/// which rank asked for something else. A handle: copies are the same memory, which lives until the
/// last of them is gone. By then no work that uses it may be in flight, on peers neither
/// (Rendezvous::barrier). Calls on one memory come from one thread at a time.
class BRAID_API SymmetricMemory {
 public:
  using Options = SymmetricOptions;

  /// Collective. Allocates on each rank that lives here; the bytes are not zeroed.
  static SymmetricMemory allocate(const World& world, const std::string& name, const Group& group,
                                  std::size_t bytes, const Options& options = {});
  /// Collective. The same of memory that the caller has on the world's device: its address on each
  /// rank that lives here, in their order, each a multiple of 16. It must stay until this is gone.
  /// Throws kInvalidArgument where the device does not know such memory, kEnvironment where ranks
  /// elsewhere cannot be given it (Memory::export_handle).
  static SymmetricMemory register_memory(const World& world, const std::string& name,
                                         const Group& group,
                                         std::span<const std::uint64_t> addresses,
                                         std::size_t bytes, const Options& options = {});
  /// Scratch of a group, which all who ask this world for it share: `min_bytes` or more. Collective
  /// where it has to grow, which it does at the first call; else it returns at once. Ranks ask for
  /// the same sizes in the same order. A handle keeps what it was given: growing moves nobody's
  /// memory. Users take turns by acquire() and release(). `streams`: those on which it is about to
  /// be used. Where one of them is being captured it does not grow, and kInvalidArgument says so:
  /// an allocation would spoil the capture.
  static SymmetricMemory workspace(const World& world, const std::string& name, const Group& group,
                                   std::size_t min_bytes, std::span<Stream* const> streams = {});

  [[nodiscard]] std::size_t size() const;  ///< bytes
  [[nodiscard]] int channels() const;
  /// Those who share memory with `rank`, which lives here, in the order of the group.
  [[nodiscard]] const std::vector<int>& members(int rank) const;

  /// Where `rank`, which lives here, finds a tensor in the memory of `peer`, itself or another
  /// member, `offset` bytes from its begin. Throws kInvalidArgument where it is not all inside, or
  /// not aligned to its elements.
  [[nodiscard]] std::uint64_t buffer(int rank, int peer, std::span<const std::int64_t> shape,
                                     DType dtype, std::size_t offset = 0) const;

  /// Enqueues that the rank meets all members who do the same on this channel: what each did before
  /// on its stream, the others see after. Channels are apart from each other; one is used by one
  /// stream of a rank at a time. The launch may be captured and replayed. As the kernels of all
  /// members wait for each other, there must be room for one block of each.
  void barrier(int rank, Stream& stream, int channel = 0) const;
  /// Enqueues that `peer` may pass one more wait_signal() of this rank's channel. What was done
  /// before on the stream is seen after that wait.
  void put_signal(int rank, int peer, Stream& stream, int channel = 0) const;
  /// Enqueues a wait for one put_signal() of `peer` on this channel.
  void wait_signal(int rank, int peer, Stream& stream, int channel = 0) const;

  /// What is enqueued on the stream from now on comes after all that users of this memory on the
  /// same rank enqueued before their release(). It says nothing of other ranks: users end with a
  /// barrier().
  void acquire(int rank, Stream& stream) const;
  /// Lets the next user begin once what is enqueued so far is done.
  void release(int rank, Stream& stream) const;

  /// Once the streams are synchronized: throws kTimeout naming rank, channel and peer where a wait
  /// took longer than WorldOptions::timeout_s, kEnvironment naming a rank that is lost. All waits
  /// give up from then on, until recover().
  void check() const;
  /// Collective, with no work in flight: barriers and signals are as in new memory.
  void recover() const;

 private:
  SymmetricMemory(std::shared_ptr<World::Impl> world, std::shared_ptr<SymmetricBlock> block);
  /// Throws kInvalidArgument where this was moved from, and in a fork.
  [[nodiscard]] SymmetricBlock& block() const;
  std::shared_ptr<World::Impl> world_;  ///< outlives the block
  std::shared_ptr<SymmetricBlock> block_;
};

}  // namespace braid
