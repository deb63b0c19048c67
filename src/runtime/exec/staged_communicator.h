#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/communicator.h"

namespace braid {

/// A communicator that works on every device: memory shared between ranks, copies, values that
/// streams write and wait for, and a small kernel per reduction. Each member copies its operand
/// into a stage that the others read. Reductions are in rank order in f32 and round once, like
/// those of our kernels.
class StagedCommunicator final : public Communicator {
 public:
  using Reduction = std::pair<DType, ReduceOp>;
  struct Options {
    std::string group;                  ///< for messages
    int rank = 0;                       ///< rank in the world
    std::size_t index = 0;              ///< index in the group
    std::vector<std::int64_t> members;  ///< the group's ranks in the world
    std::size_t stage_bytes = 0;        ///< size of the largest operand
    std::set<Reduction> reductions;     ///< reductions that will be requested
  };
  /// Throws kInvalidArgument for an unsupported reduction.
  StagedCommunicator(Device& device, Options options);

  [[nodiscard]] std::string offer() override;
  void connect(std::span<const std::string> offers) override;
  void enqueue(const CollectiveCall& call, Stream& stream) override;
  void abort() noexcept override;

 private:
  /// Words with which members tell this one that their stage is `ready`, and that they are `done`
  /// with this one's stage.
  enum class Word : std::uint8_t { kReady, kDone };
  [[nodiscard]] std::uint64_t word(std::uint64_t memory, Word which, std::size_t of) const;
  void tell(Stream& stream, Word which, std::uint32_t epoch) const;
  void hear(Stream& stream, Word which, std::uint32_t epoch) const;
  /// Computes the result from the stages of all members.
  void take(const CollectiveCall& call, Stream& stream) const;
  void reduce(const CollectiveCall& call, std::uint64_t first, std::uint64_t count,
              Stream& stream) const;
  void all_to_all(const CollectiveCall& call, Stream& stream) const;

  Device& device_;
  Options options_;
  std::map<Reduction, std::unique_ptr<Module>> kernels_;
  std::unique_ptr<Memory> memory_;                 ///< the words, then the stage
  std::vector<std::unique_ptr<Memory>> imported_;  ///< the other members'
  std::vector<std::uint64_t> memories_, stages_;   ///< addresses, for each member
  std::unique_ptr<Stream> alarm_;                  ///< stream on which abort() writes
  std::atomic<std::uint32_t> epoch_ = 0;           ///< epoch of the last call
};

}  // namespace braid
