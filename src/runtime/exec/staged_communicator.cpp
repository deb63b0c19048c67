#include "runtime/exec/staged_communicator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>

#include "ir/fail.h"
#include "runtime/exec/import_peer.h"
#include "runtime/exec/reduction_ptx.h"
#include "runtime/name_memory.h"

namespace braid {
namespace {

constexpr std::size_t kPieceAlignment = 256;
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kMaxBlocks = 64;
constexpr std::uint32_t kPastAllEpochs = 1U << 30U;

std::size_t word_bytes(std::size_t members) {
  const std::size_t bytes = 2 * members * sizeof(std::uint32_t);
  return (bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(Device& device, StagedOptions options)
      : Communicator(device, options.rank), device_(device), options_(std::move(options)) {
    for (const auto& [dtype, op] : options_.reductions) {
      kernels_[{dtype, op}] = device.load(
          options_.rank,
          {kReductionEntry, reduction_ptx(dtype, op, options_.members.size()), {}, "communicator"});
      (void)kernels_[{dtype, op}]->function(kReductionEntry);  // forces lazy loading
    }
  }

  [[nodiscard]] std::string offer() override {
    const std::size_t words = word_bytes(options_.members.size());
    memory_ = device_.allocate_shared(options_.rank, words + options_.stage_bytes);
    name_memory(device_, *memory_, memory_->size(), "stage of " + options_.group);
    alarm_ = device_.create_stream(options_.rank);
    alarm_->fill(memory_->address(), 0, words);
    alarm_->synchronize();
    return memory_->export_handle();
  }
  void connect(std::span<const std::string> offers) override {
    epoch_ = 0;
    imported_.clear();
    memories_.clear();
    for (std::size_t member = 0; member < options_.members.size(); ++member) {
      if (member == options_.index) {
        memories_.push_back(memory_->address());
        continue;
      }
      imported_.push_back(import_peer(device_, options_.rank,
                                      static_cast<int>(options_.members[member]), offers[member]));
      if (imported_.back()->size() != memory_->size()) {
        throw_invalid(options_.group, "member {} has a stage of {} bytes; expected {}, as here",
                      member, imported_.back()->size(), memory_->size());
      }
      memories_.push_back(imported_.back()->address());
    }
    stages_.clear();
    for (const std::uint64_t memory : memories_) {
      stages_.push_back(memory + word_bytes(options_.members.size()));
    }
  }
  void enqueue(const CollectiveCall& call, Stream& stream) override {
    const std::uint32_t epoch = ++epoch_;
    const std::size_t bytes = call.count * dtype_size(call.dtype);
    if (bytes > options_.stage_bytes) {
      throw_internal(options_.group, "an operand of {} bytes; expected {} at most", bytes,
                     options_.stage_bytes);
    }
    // Nobody reads the previous contents of the stage any more.
    hear(stream, Word::kDone, epoch - 1);
    const auto root = static_cast<std::size_t>(call.root);
    if (call.op != CollectiveCall::Op::kBroadcast || root == options_.index) {
      stream.copy(stages_[options_.index], call.send, bytes);
    }
    tell(stream, Word::kReady, epoch);
    hear(stream, Word::kReady, epoch);
    take(call, stream);
    tell(stream, Word::kDone, epoch);
  }
  void abort() noexcept override {
    const std::uint32_t past = epoch_ + kPastAllEpochs;
    try {
      for (std::size_t w = 0; w < 2 * options_.members.size(); ++w) {
        alarm_->write_value(memory_->address() + w * sizeof(std::uint32_t), past);
      }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // A lost device ends all work by itself.
    }
  }

 private:
  /// Words with which members tell this one that their stage is `ready`, and that they are `done`
  /// with this one's stage.
  enum class Word : std::uint8_t { kReady, kDone };
  [[nodiscard]] std::uint64_t word(std::uint64_t memory, Word which, std::size_t of) const {
    const std::size_t index = (which == Word::kReady ? 0 : options_.members.size()) + of;
    return memory + index * sizeof(std::uint32_t);
  }
  void tell(Stream& stream, Word which, std::uint32_t epoch) const {
    for (std::size_t member = 0; member < options_.members.size(); ++member) {
      if (member == options_.index) continue;
      stream.write_value(word(memories_[member], which, options_.index), epoch);
    }
  }
  void hear(Stream& stream, Word which, std::uint32_t epoch) const {
    for (std::size_t member = 0; member < options_.members.size(); ++member) {
      if (member == options_.index) continue;
      stream.wait_value(word(memories_[options_.index], which, member), epoch);
    }
  }
  /// Computes the result from the stages of all members.
  void take(const CollectiveCall& call, Stream& stream) const {
    using Op = CollectiveCall::Op;
    const std::size_t bytes = call.count * dtype_size(call.dtype);
    const std::size_t chunk = call.count / options_.members.size();
    switch (call.op) {
      case Op::kAllReduce:
        return reduce(call, 0, call.count, stream);
      case Op::kReduceScatter:
        return reduce(call, options_.index * chunk, chunk, stream);
      case Op::kAllGather:
        for (std::size_t member = 0; member < options_.members.size(); ++member) {
          stream.copy(call.receive + member * bytes, stages_[member], bytes);
        }
        return;
      case Op::kAllToAll:
        return all_to_all(call, stream);
      case Op::kBroadcast:
        return stream.copy(call.receive, stages_[call.root], bytes);
    }
  }
  void reduce(const CollectiveCall& call, std::uint64_t first, std::uint64_t count,
              Stream& stream) const {
    const auto kernel = kernels_.find({call.dtype, call.reduce});
    if (kernel == kernels_.end()) {
      throw_internal(options_.group, "a reduction of {} that was not announced",
                     dtype_name(call.dtype));
    }
    const std::array<const void*, 4> args{stages_.data(), &call.receive, &first, &count};
    const auto blocks = static_cast<std::uint32_t>(
        std::min<std::uint64_t>((count + kThreads - 1) / kThreads, kMaxBlocks));
    stream.launch(kernel->second->function(kReductionEntry), {{blocks}, {kThreads}}, args);
  }
  void all_to_all(const CollectiveCall& call, Stream& stream) const {
    const std::size_t size = dtype_size(call.dtype);
    std::uint64_t to = call.receive;
    for (std::size_t member = 0; member < options_.members.size(); ++member) {
      const std::size_t bytes = call.receive_counts[member] * size;
      if (bytes > 0) stream.copy(to, stages_[member] + call.receive_starts[member] * size, bytes);
      to += bytes;
    }
  }

  Device& device_;
  StagedOptions options_;
  std::map<StagedOptions::Reduction, std::unique_ptr<Module>> kernels_;
  std::unique_ptr<Memory> memory_;                 ///< the words, then the stage
  std::vector<std::unique_ptr<Memory>> imported_;  ///< the other members'
  std::vector<std::uint64_t> memories_, stages_;   ///< addresses, for each member
  std::unique_ptr<Stream> alarm_;                  ///< stream on which abort() writes
  std::atomic<std::uint32_t> epoch_ = 0;           ///< epoch of the last call
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(Device& device, StagedOptions options) {
  return std::make_unique<StagedCommunicator>(device, std::move(options));
}

}  // namespace braid
