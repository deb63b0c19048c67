#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/device.h"
#include "braid/symmetric_memory.h"
#include "codegen/protocol.h"
#include "ir/non_copyable.h"
#include "runtime/exec/pad_kernels.h"
#include "runtime/exec/rendezvous.h"
#include "runtime/exec/world.h"

namespace braid {

/// The implementation of a SymmetricMemory: on each rank of this process its data, its pads (flags
/// with which the members wait for each other), and the addresses of the peers' data and pads.
///
/// Pads have the same offsets on all ranks: a head like an arena's (protocol.h), the flags of a
/// barrier for each channel, and the flags of signals for each channel and pair of members.
class SymmetricBlock : NonCopyable {
 public:
  struct Spec {
    std::string name;
    Group group;
    std::size_t bytes = 0;
    SymmetricOptions options;
    /// The caller's memory on each rank of this process; empty if it is to be allocated.
    std::vector<std::uint64_t> addresses;
  };
  /// Collective.
  static std::shared_ptr<SymmetricBlock> make(World::Impl& world, Spec spec);
  /// Throws if this rank cannot take part; nothing is known about the others yet.
  SymmetricBlock(World::Impl& world, Spec spec);
  ~SymmetricBlock();

  [[nodiscard]] const Spec& spec() const { return spec_; }
  [[nodiscard]] const std::vector<int>& members(int rank) const { return here(rank).members; }
  [[nodiscard]] std::uint64_t buffer(int rank, int peer, std::span<const std::int64_t> shape,
                                     DType dtype, std::size_t offset) const;
  void barrier(int rank, Stream& stream, int channel) const;
  void put_signal(int rank, int peer, Stream& stream, int channel) const;
  void wait_signal(int rank, int peer, Stream& stream, int channel) const;
  void acquire(int rank, Stream& stream) const;
  void release(int rank, Stream& stream);
  void check() const;
  void recover();

 private:
  /// A rank of this process.
  struct Here {
    int rank = 0;
    std::vector<int> members;
    std::uint32_t index = 0;               ///< index among the members
    std::unique_ptr<Memory> pads, data;    ///< `data` refers to the caller's memory if that is used
    std::uint64_t data_offset = 0;         ///< offset in data
    std::unique_ptr<Memory> record;        ///< a host-visible protocol::Record
    std::vector<std::uint64_t> peer_pads;  ///< for each member, as this one sees them
    std::vector<std::uint64_t> peer_data;  ///< likewise
    std::unique_ptr<Stream> urgent;        ///< stream for work that must not wait for kernels
    std::unique_ptr<Event> end_of_use;     ///< recorded by release()
    bool used = false;                     ///< release() was called before
  };

  [[nodiscard]] Here open(std::size_t local);
  void use_caller_memory(Here& here, std::uint64_t address) const;
  [[nodiscard]] std::vector<RankCard> cards() const;
  void connect(const std::vector<RankCard>& cards);
  void find_peer(Here& here, int peer, const RankCard& card);
  void reset() const;

  [[nodiscard]] std::string place() const { return "symmetric memory '" + spec_.name + "'"; }
  [[nodiscard]] const Here& here(int rank) const { return here_[local_of(rank)]; }
  [[nodiscard]] std::size_t local_of(int rank) const;
  [[nodiscard]] std::size_t index_of(const Here& here, int peer) const;
  /// The same, for a rank other than itself.
  [[nodiscard]] std::size_t index_of_other(const Here& here, int peer) const;
  /// Called before something is enqueued for `here`.
  void check_use(const Here& here, const Stream& stream, int channel) const;
  void check_stream(const Here& here, const Stream& stream) const;
  void refuse_if_lost() const;
  [[nodiscard]] std::int64_t pair_number(int channel, std::size_t from, std::size_t to) const;
  /// Enqueues the part of `here` in a signal from one member to another.
  void pass(const Here& here, std::size_t from, std::size_t to, Stream& stream, int channel) const;
  [[nodiscard]] std::string lost_wait(const Here& here, const protocol::Record& record) const;

  World::Impl& world_;
  Spec spec_;
  std::size_t members_;       ///< in an instance of the group
  PadKernel barrier_, pair_;  ///< for all members, and for a signal between two
  std::vector<Here> here_;    ///< in the order of World::ranks
  std::vector<std::unique_ptr<Memory>> imported_;
  std::optional<std::uint64_t> on_loss_;  ///< its entry in the world's LossWatch
};

}  // namespace braid
