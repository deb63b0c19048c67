#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/communicator.h"

namespace braid {

/// A communicator over what every device has: memory that ranks hand to each other, copies, values
/// that streams write and wait for, and one small kernel for each reduction. Each member keeps its
/// operand in a stage that the others read; reductions are in rank order in f32 and round once, as
/// those of our kernels.
class StagedCommunicator final : public Communicator {
 public:
  using Reduction = std::pair<DType, ReduceOp>;
  struct Options {
    std::string group;                  ///< for messages
    int rank = 0;                       ///< of the world
    std::size_t index = 0;              ///< of the rank in the group
    std::vector<std::int64_t> members;  ///< of the group: ranks of the world
    std::size_t stage_bytes = 0;        ///< of the largest operand
    std::set<Reduction> reductions;     ///< that will be asked for
  };
  /// Throws kInvalidArgument for a reduction that there is none of.
  StagedCommunicator(Device& device, Options options);

  [[nodiscard]] std::string offer() override;
  void connect(std::span<const std::string> offers) override;
  void enqueue(const CollectiveCall& call, Stream& stream) override;
  void abort() noexcept override;

 private:
  /// The words by which members tell this one that their stage is `ready`, and that they are `done`
  /// with this one's.
  enum class Word : std::uint8_t { kReady, kDone };
  [[nodiscard]] std::uint64_t word(std::uint64_t memory, Word which, std::size_t of) const;
  void tell(Stream& stream, Word which, std::uint32_t epoch) const;
  void hear(Stream& stream, Word which, std::uint32_t epoch) const;
  /// What is asked for, out of the stages of all members.
  void take(const CollectiveCall& call, Stream& stream) const;
  void reduce(const CollectiveCall& call, std::uint64_t first, std::uint64_t count,
              Stream& stream) const;
  void all_to_all(const CollectiveCall& call, Stream& stream) const;

  Device& device_;
  Options options_;
  std::map<Reduction, std::unique_ptr<Module>> kernels_;
  std::unique_ptr<Memory> memory_;                 ///< the words, then the stage
  std::vector<std::unique_ptr<Memory>> imported_;  ///< the others'
  std::vector<std::uint64_t> memories_, stages_;   ///< addresses, of each member
  std::unique_ptr<Stream> alarm_;                  ///< on which abort() writes
  std::atomic<std::uint32_t> epoch_ = 0;           ///< of the last call
};

}  // namespace braid
