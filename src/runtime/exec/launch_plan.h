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

/// Addresses of a program's parts on one rank, as that rank sees them.
struct RankPlaces {
  int rank = 0;                      ///< rank in the world
  std::vector<Function*> functions;  ///< for each kernel of the program
  /// For each buffer, in its arena or the caller's memory. Those of slices are derived.
  std::vector<std::uint64_t> buffer_addresses;
  /// For each symmetric arena: its address on each rank of the world (SymmetricHeap::peers).
  std::vector<std::vector<std::uint64_t>> peer_arenas;
  std::vector<std::uint64_t> multicasts;  ///< by arena (SymmetricHeap::multicasts)
  std::uint64_t record_address = 0;       ///< address of the rank's protocol::Record
  std::vector<std::uint64_t> marks;  ///< for each step, its marks (KernelParam::Kind::kMarks) if it
                                     ///< has any
  /// For each group that collective steps name; others may be missing.
  std::map<std::string, Communicator*, std::less<>> communicators;
  /// Writes a kernel parameter by value (KernelParam::Kind::kBytes) into `param.size` zero bytes.
  /// May be empty if no kernel has one.
  std::function<void(const Step& step, const KernelParam& param, std::span<std::uint8_t> bytes)>
      write_bytes;
  /// Writes the device's own form of a tensor map (Device::encode).
  std::function<void(const MatrixMap& map, std::span<std::uint8_t> bytes)> encode;
};

/// The number of events of a run: the program's own, and those that fork streams from the first one
/// and join them again.
[[nodiscard]] int events_needed(const Program& program);

/// The streams and events of a run: per rank stream_count() streams and events_needed() events,
/// rank by rank. A rank's stream 0 is the one that the run belongs to.
struct Lanes {
  std::span<Stream* const> streams;
  std::span<Event* const> events;
};

/// A program with every symbol, address and argument resolved, for the ranks of this process: a run
/// is a flat loop over launch records. An immutable value; each run is given its streams.
class LaunchPlan {
 public:
  LaunchPlan() = default;
  /// `bindings` must be complete. Steps with an empty grid or copy are left out. Throws kInternal
  /// if the program contradicts itself. The plan refers to the ranks' functions.
  LaunchPlan(const Program& program, const Bindings& bindings, std::span<const RankPlaces> ranks,
             std::uint64_t timeout_ns);
  LaunchPlan(const LaunchPlan&) = delete;
  LaunchPlan& operator=(const LaunchPlan&) = delete;
  LaunchPlan(LaunchPlan&&) = default;
  LaunchPlan& operator=(LaunchPlan&&) = default;
  ~LaunchPlan() = default;

  /// One launch, copy or collective of a run.
  struct Work {
    std::size_t step;   ///< index in the program
    std::size_t local;  ///< index among the ranks of this process
  };
  [[nodiscard]] std::vector<Work> work() const;

  /// run(lanes) with an event recorded before and behind each piece of work(): `times[2 * i]` and
  /// `times[2 * i + 1]`.
  void run(const Lanes& lanes, std::span<Event* const> times) const;

  /// Enqueues all steps: step by step, and within a step rank by rank, so that ranks that share a
  /// device wait for each other only with all partners enqueued. The other streams of a rank fork
  /// from its stream 0 and join it at the end.
  void run(const Lanes& lanes) const {
    for (const Record& record : records_) enqueue(record, lanes);
  }
  /// Enqueues only one rank's part. Threads may do so for all ranks at the same time.
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
    std::size_t stream = 0, event = 0;  ///< indices in Lanes
    Function* function = nullptr;
    LaunchConfig config;
    std::size_t first_argument = 0, argument_count = 0;
    std::uint64_t destination = 0, source = 0;
    std::size_t bytes = 0;
    std::size_t first_call = 0, call_count = 0;  ///< calls of all ranks of this process
    Work work{};                                 ///< what it belongs to
    [[nodiscard]] bool works() const { return what == What::kLaunch || what == What::kCopy; }
  };
  /// One rank's part of a collective.
  struct Call {
    Communicator* communicator = nullptr;
    std::size_t stream = 0;  ///< index in Lanes
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
  ParameterStorage values_;             ///< values of the arguments
  std::vector<const void*> arguments_;  ///< pointers into values_
};

}  // namespace braid
