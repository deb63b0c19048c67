#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/device.h"
#include "lowering/plan/program.h"

namespace braid {

/// Where the parts of a program are on one rank.
struct RankPlaces {
  std::vector<Stream*> streams;                 ///< of each stream of the program, at least one
  std::vector<Event*> events;                   ///< as many as events_needed says
  std::vector<Function*> functions;             ///< of each kernel of the program
  std::vector<std::uint64_t> arena_addresses;   ///< of each arena; 0 when it is not allocated
  std::vector<std::uint64_t> buffer_addresses;  ///< of each buffer, in its arena or the caller's
  std::uint64_t record_address = 0;             ///< of its protocol::Record
};

/// The members of a rank's instance of a group, in order of their index in the group.
[[nodiscard]] std::vector<std::int64_t> group_members(const Program& program,
                                                      std::string_view group, std::int64_t rank);

/// The program's own events, and those with which a run's streams part from the first one and come
/// back to it.
[[nodiscard]] int events_needed(const Program& program);

/// A program with every symbol, address and argument resolved, for all ranks: running it is a flat
/// loop over launch records.
class LaunchPlan {
 public:
  LaunchPlan() = default;
  /// `bindings` must be complete. Steps whose grid or copy is empty are left out. Throws kInternal
  /// where the program contradicts itself. The plan points into the ranks' streams and functions.
  LaunchPlan(const Program& program, const Bindings& bindings, std::span<const RankPlaces> ranks,
             std::uint64_t timeout_ns);

  /// Enqueues all steps: step by step, and within a step rank by rank, so that ranks that share a
  /// device wait for each other with all partners enqueued.
  void run() const {
    for (const Record& r : records_) {
      switch (r.what) {
        case Record::What::kLaunch:
          r.stream->launch(*r.function, r.grid, r.block, r.shared_bytes,
                           {arguments_.data() + r.first_argument, r.argument_count});
          break;
        case Record::What::kCopy:
          r.stream->copy(r.destination, r.source, r.bytes);
          break;
        case Record::What::kRecord:
          r.stream->record(*r.event);
          break;
        case Record::What::kWait:
          r.stream->wait(*r.event);
          break;
      }
    }
  }

 private:
  struct Record {
    enum class What : std::uint8_t { kLaunch, kCopy, kRecord, kWait };
    What what = What::kLaunch;
    Stream* stream = nullptr;
    Function* function = nullptr;
    Event* event = nullptr;
    Dim3 grid, block;
    std::uint32_t shared_bytes = 0;
    std::size_t first_argument = 0, argument_count = 0;
    std::uint64_t destination = 0, source = 0;
    std::size_t bytes = 0;
  };
  class Builder;

  std::vector<Record> records_;
  std::vector<std::uint64_t> words_;    ///< values of the arguments
  std::vector<const void*> arguments_;  ///< into words_
};

}  // namespace braid
