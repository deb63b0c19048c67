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
#include "runtime/exec/pad_kernels.h"
#include "runtime/exec/rendezvous.h"
#include "runtime/exec/world.h"

namespace braid {

/// What a SymmetricMemory is: on each rank that lives here its data, pads by which the members wait
/// for each other, and where those of the peers are.
///
/// Pads are, at the same offsets on all ranks: a head as an arena's (protocol.h), the flags of a
/// barrier for each channel, and for each channel and pair of members those of their signals.
class SymmetricBlock {
 public:
  struct Spec {
    std::string name;
    Group group;
    std::size_t bytes = 0;
    SymmetricOptions options;
    /// Of the caller's memory on each rank that lives here; nothing where it is to be allocated.
    std::vector<std::uint64_t> addresses;
  };
  /// Collective.
  static std::shared_ptr<SymmetricBlock> make(World::Impl& world, Spec spec);
  /// Throws where this rank cannot take part; nothing is known of the others yet.
  SymmetricBlock(World::Impl& world, Spec spec);
  ~SymmetricBlock();
  SymmetricBlock(const SymmetricBlock&) = delete;
  SymmetricBlock& operator=(const SymmetricBlock&) = delete;

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
  /// A rank that lives here.
  struct Here {
    int rank = 0;
    std::vector<int> members;
    std::uint32_t index = 0;               ///< among the members
    std::unique_ptr<Memory> pads, data;    ///< `data` holds the caller's where it is his
    std::uint64_t data_offset = 0;         ///< in that
    std::unique_ptr<Memory> record;        ///< a protocol::Record that the host sees
    std::vector<std::uint64_t> peer_pads;  ///< of each member, as this one sees them
    std::vector<std::uint64_t> peer_data;  ///< likewise
    std::unique_ptr<Stream> urgent;        ///< for what must not wait for kernels
    std::unique_ptr<Event> end_of_use;     ///< of release()
    bool used = false;                     ///< there was one
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
  /// The index of `peer` among the members of `here`.
  [[nodiscard]] std::size_t index_of(const Here& here, int peer) const;
  /// The same of another rank than itself.
  [[nodiscard]] std::size_t index_of_other(const Here& here, int peer) const;
  /// Before something is enqueued for `here`.
  void check_use(const Here& here, const Stream& stream, int channel) const;
  void check_stream(const Here& here, const Stream& stream) const;
  void refuse_if_lost() const;
  [[nodiscard]] std::int64_t pair_number(int channel, std::size_t from, std::size_t to) const;
  /// The part of `here` in a signal from one member to another.
  void pass(const Here& here, std::size_t from, std::size_t to, Stream& stream, int channel) const;
  [[nodiscard]] std::string lost_wait(const Here& here, const protocol::Record& record) const;

  World::Impl& world_;
  Spec spec_;
  std::size_t members_;       ///< of an instance
  PadKernel barrier_, pair_;  ///< of all members, and of one that signals to another
  std::vector<Here> here_;    ///< as World::ranks
  std::vector<std::unique_ptr<Memory>> imported_;
  std::optional<std::uint64_t> on_loss_;  ///< in the world's LossWatch
};

}  // namespace braid
