#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/checks.h"
#include "braid/device.h"
#include "braid/export.h"
#include "braid/rendezvous.h"

namespace braid {

enum class DeviceKind : std::uint8_t {
  kAny,  ///< cuda where there is a GPU, else cpu
  kCuda,
  kCpu,
};
/// Reads "", "cuda" or "cpu". Throws kInvalidArgument with what was expected.
[[nodiscard]] BRAID_API DeviceKind parse_device_kind(std::string_view text);

/// Memory from a pool of the caller's.
struct Allocator {
  /// `bytes` of the device's memory for a rank, 256-byte aligned; 0 where none is left.
  std::function<std::uint64_t(int rank, std::size_t bytes)> allocate;
  /// Takes it back, with no work in flight that uses it. Must not throw.
  std::function<void(int rank, std::uint64_t address, std::size_t bytes)> free;
};

/// What the executables of a world did since it was opened. Those of a warm server compile nothing.
struct WorldMetrics {
  std::uint64_t kernels_compiled = 0;    ///< by NVRTC
  std::uint64_t kernels_from_cache = 0;  ///< and from files of Executable::save
  double compile_ms = 0;                 ///< in NVRTC
  std::uint64_t plans = 0;               ///< that were prepared
  std::uint64_t runs = 0;                ///< that were enqueued
  std::uint64_t failures = 0;            ///< of runs
};

/// Where kernels run, and where their compiled forms are kept between processes.
struct WorldOptions {
  DeviceKind device = DeviceKind::kAny;
  int world = 1;  ///< ranks
  /// Worker threads of the cpu device; 0 = all cores. A launch of few instructions runs on the
  /// thread that launches it.
  int threads = 0;
  std::string cache_dir;  ///< "" = the default one (docs/command.md)
  bool use_cache = true;
  /// How many processes compile at one time the kernels of an executable that no cache holds: NVRTC
  /// compiles one after the other in each. 0: this process does it. They are started where there
  /// are two such kernels or more, by posix_spawn, and are gone when the executable is compiled.
  int compile_processes = 0;
  /// The program that these are: `braid-worker`. "": the one beside libbraid.so; where there is
  /// none, `warning` is told, and this process compiles.
  std::string compile_worker;
  /// Executable::compile of a graph with buckets (Symbol::buckets) returns when the kernels of the
  /// first one are there; a thread of the executable compiles those of the others: see
  /// Executable::ready.
  bool compile_in_background = false;
  /// What kernels are compiled for, "sm_90a", or a device that they are planned for, "H100"; "":
  /// the GPU's own on cuda, on cpu the first one that can run the graph. Executable::compile
  /// refuses a graph that needs a later one.
  std::string target;
  /// How many ranks the plan lets share a GPU, which bounds the grids of kernels that wait; 0: as
  /// many as do on cuda (fewer are refused), one on cpu, so that the grids tested there are those
  /// of one rank per GPU.
  int ranks_per_device = 0;
  /// Checks of the cpu device. What they find is in Device::findings(). A checked run uses one
  /// thread.
  Checks sanitize = kCheckNothing;
  Schedule schedule;  ///< of a checked run; refused without checks unless it is kTurns
  /// Count what kernels do on the cpu device: Device::counts().
  bool count = false;
  /// Of a kernel whose blocks do not wait for others, run chosen blocks only, and scale their
  /// counts to its grid (KernelCounts::blocks_run). Results are no results then. Such a run uses
  /// one thread; refused without `count`.
  bool count_sample = false;
  /// Where the ranks of this world meet the others; its ranks() are those of this world. Null: all
  /// ranks live here. The executables of such worlds are compiled in the same order in all of them.
  /// Where it says that a rank is lost (Rendezvous::lost), runs end with an error that says so; a
  /// new world needs a new rendezvous.
  std::shared_ptr<Rendezvous> rendezvous;
  /// Of a world with ranks elsewhere on cuda: which of the GPUs that this process sees has its
  /// first rank, modulo their number; the others follow. -1: the process's number on its machine,
  /// as LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK or SLURM_LOCALID say, else the rank.
  int gpu = -1;
  /// Of groups with "symmetric": false, by name: an ncclComm_t for each of this world's ranks, in
  /// the order of ranks(), that the caller has made. It is never destroyed here, and must stay
  /// until the executables are gone; but where a peer is lost it is aborted (ncclCommAbort), as
  /// nothing else ends its kernels, and must not be used again: the error says so. Other groups get
  /// communicators of their own. Without effect where no NCCL is used (docs/architecture.md).
  std::map<std::string, std::vector<void*>, std::less<>> nccl_communicators;
  /// Of the arenas that ranks do not share and the caller does not bind. Empty: the device's own
  /// memory. A checked run on cpu needs that.
  Allocator allocator;
  /// A file that tune() wrote: what Executable::compile makes takes the configurations of kernels
  /// from there that were found for this device, target and NVRTC; a plan says what became of each
  /// (`braid explain`). Ranks whose databases differ are refused where that changes the plan.
  std::string tune_db;
  double timeout_s = 0;  ///< how long a wait for a peer may take; 0 = 30 s on cuda, 120 s on cpu
  /// Called before each kernel that is compiled or taken from the cache, and once when all are
  /// there (`done == total`). What it throws ends the compile, its processes included, and leaves
  /// Executable::compile; where that has returned (compile_in_background) the calls come from the
  /// executable's thread, and prepare() throws it for buckets that are not there.
  std::function<void(std::size_t done, std::size_t total, std::string_view what)> progress;
  /// Told of each pass before it runs, while a graph becomes a program: before the first kernel.
  std::function<void(std::string_view pass)> pass_progress;
  /// Told, on one line, of what costs speed only: a cache directory that is not safe to use. Empty:
  /// the line goes to standard error.
  std::function<void(std::string_view what)> warning;
};

/// N ranks and the device they run on; all of them, or some (WorldOptions::rendezvous), live here.
/// Several executables may share a world. A handle: copies are the same world, which lives until
/// the last of them and of its executables is gone. A child that is forked from the process cannot
/// use it, nor what was made with it: kInvalidArgument says so; it may only let them go.
class BRAID_API World {
 public:
  /// Throws kEnvironment, with how to get it, when something is missing, and when the kernels of
  /// several ranks could not run at the same time or not reach each other's memory.
  static World open(const WorldOptions& options);
  /// The same on a device that is there already, which several worlds may share. What the options
  /// say of the device does not count then, its number of ranks included.
  static World open(const WorldOptions& options, std::shared_ptr<Device> device);

  [[nodiscard]] int size() const;                       ///< ranks of all worlds that meet
  [[nodiscard]] const std::vector<int>& ranks() const;  ///< those that live here
  [[nodiscard]] Device& device() const;
  /// Any thread may ask.
  [[nodiscard]] WorldMetrics metrics() const;

 private:
  friend class Executable;
  friend class SymmetricBlock;
  friend class SymmetricMemory;
  struct Impl;
  explicit World(std::shared_ptr<Impl> impl);
  /// Throws kInvalidArgument where this was moved from, and in a fork.
  [[nodiscard]] Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace braid
