#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "braid/device.h"
#include "lowering/plan/program.h"
#include "runtime/exec/communicator.h"
#include "runtime/parameter_storage.h"

namespace braid {

/// Where the parts of a program are on one rank, as that rank sees them.
struct RankPlaces {
  int rank = 0;                      ///< of the world
  std::vector<Function*> functions;  ///< of each kernel of the program
  /// Of each buffer, in its arena or the caller's. Those of slices follow from the others.
  std::vector<std::uint64_t> buffer_addresses;
  /// Of each symmetric arena on each rank of the world (SymmetricHeap::peers).
  std::vector<std::vector<std::uint64_t>> peer_arenas;
  std::vector<std::uint64_t> multicasts;  ///< by arena (SymmetricHeap::multicasts)
  std::uint64_t record_address = 0;       ///< of its protocol::Record
  std::vector<std::uint64_t> marks;  ///< of each step (KernelParam::Kind::kMarks), where it has any
  /// Of each group that collective steps name; others may be missing.
  std::map<std::string, Communicator*, std::less<>> communicators;
  /// Writes what a step's kernel takes by value (KernelParam::Kind::kBytes), `param.size` bytes
  /// that are zero; may be empty where no kernel has such a parameter.
  std::function<void(const Step& step, const KernelParam& param, std::span<std::uint8_t> bytes)>
      write_bytes;
};

/// The program's own events, and those with which a run's streams part from the first one and come
/// back to it.
[[nodiscard]] int events_needed(const Program& program);

/// What a run works with: of each rank stream_count() streams and events_needed() events, those of
/// the first rank first. A rank's stream 0 is the one that the run belongs to.
struct Lanes {
  std::span<Stream* const> streams;
  std::span<Event* const> events;
};

/// A program with every symbol, address and argument resolved, for the ranks that live here:
/// running it is a flat loop over launch records. A value: it does not change, and streams are
/// given to each run.
class LaunchPlan {
 public:
  LaunchPlan() = default;
  /// `bindings` must be complete. Steps whose grid or copy is empty are left out. Throws kInternal
  /// where the program contradicts itself. The plan points into the ranks' functions.
  LaunchPlan(const Program& program, const Bindings& bindings, std::span<const RankPlaces> ranks,
             std::uint64_t timeout_ns);
  LaunchPlan(const LaunchPlan&) = delete;
  LaunchPlan& operator=(const LaunchPlan&) = delete;
  LaunchPlan(LaunchPlan&&) = default;
  LaunchPlan& operator=(LaunchPlan&&) = default;
  ~LaunchPlan() = default;

  /// A launch, a copy or a collective of a run.
  struct Work {
    std::size_t step;   ///< of the program
    std::size_t local;  ///< the rank, among those that live here
  };
  [[nodiscard]] std::vector<Work> work() const;

  /// The same as run(lanes), with an event recorded in front of each piece of work() and one behind
  /// it: `times[2 * i]` and `times[2 * i + 1]`.
  void run(const Lanes& lanes, std::span<Event* const> times) const;

  /// Enqueues all steps: step by step, and within a step rank by rank, so that ranks that share a
  /// device wait for each other with all partners enqueued. All streams of a rank begin where its
  /// stream 0 stands, and that one ends with all of them.
  void run(const Lanes& lanes) const {
    for (const Record& record : records_) enqueue(record, lanes);
  }
  /// The part of one of the ranks that live here alone. Threads may do those of all at one time.
  void run(const Lanes& lanes, std::size_t local) const {
    for (const Record& record : records_) {
      if (record.what == Record::What::kCollective) {
        collect(calls_of(record).subspan(local, 1), lanes);
      } else if (record.work.local == local) {
        enqueue(record, lanes);
      }
    }
  }

 private:
  struct Record {
    enum class What : std::uint8_t { kLaunch, kCopy, kRecord, kWait, kCollective };
    What what = What::kLaunch;
    std::size_t stream = 0, event = 0;  ///< of Lanes
    Function* function = nullptr;
    LaunchConfig config;
    std::size_t first_argument = 0, argument_count = 0;
    std::uint64_t destination = 0, source = 0;
    std::size_t bytes = 0;
    std::size_t first_call = 0, call_count = 0;  ///< of all ranks here
    Work work{};                                 ///< whose it is
    [[nodiscard]] bool works() const { return what == What::kLaunch || what == What::kCopy; }
  };
  /// One rank's part of a collective.
  struct Call {
    Communicator* communicator = nullptr;
    std::size_t stream = 0;  ///< of Lanes
    CollectiveCall call;
    Work work{};
  };
  class Builder;

  void enqueue(const Record& r, const Lanes& lanes) const {
    Stream& stream = *lanes.streams[r.stream];
    switch (r.what) {
      case Record::What::kLaunch:
        stream.launch(*r.function, r.config,
                      {arguments_.data() + r.first_argument, r.argument_count});
        break;
      case Record::What::kCopy:
        stream.copy(r.destination, r.source, r.bytes);
        break;
      case Record::What::kRecord:
        stream.record(*lanes.events[r.event]);
        break;
      case Record::What::kWait:
        stream.wait(*lanes.events[r.event]);
        break;
      case Record::What::kCollective:
        collect(calls_of(r), lanes);
        break;
    }
  }
  [[nodiscard]] std::span<const Call> calls_of(const Record& r) const {
    return {calls_.data() + r.first_call, r.call_count};
  }
  static void collect(std::span<const Call> calls, const Lanes& lanes);

  std::vector<Record> records_;
  std::vector<Call> calls_;
  ParameterStorage values_;             ///< of the arguments
  std::vector<const void*> arguments_;  ///< into values_
};

}  // namespace braid
