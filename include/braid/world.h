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
#include "braid/matrix_sums.h"
#include "braid/rendezvous.h"

namespace braid {

enum class DeviceKind : std::uint8_t {
  kAny,  ///< cuda where there is a GPU, else cpu
  kCuda,
  kCpu,
};
/// Parses "", "cuda" or "cpu". Throws kInvalidArgument with what was expected.
[[nodiscard]] BRAID_API DeviceKind parse_device_kind(std::string_view text);

/// The caller's allocator for device memory.
struct Allocator {
  /// Returns `bytes` of device memory of a rank, 256-byte aligned, or 0 when none is left.
  std::function<std::uint64_t(int rank, std::size_t bytes)> allocate;
  /// Frees it. No work that uses it is in flight. Must not throw.
  std::function<void(int rank, std::uint64_t address, std::size_t bytes)> free;
};

/// Counters over all executables of a world since it was opened. A warm server compiles nothing.
struct WorldMetrics {
  std::uint64_t kernels_compiled = 0;    ///< compiled by NVRTC
  std::uint64_t kernels_from_cache = 0;  ///< from the cache or from files of Executable::save
  double compile_ms = 0;                 ///< in NVRTC
  std::uint64_t plans = 0;               ///< plans prepared
  std::uint64_t runs = 0;                ///< runs enqueued
  std::uint64_t failures = 0;            ///< runs that failed
};

/// Where kernels run and how they are compiled and cached.
struct WorldOptions {
  DeviceKind device = DeviceKind::kAny;
  int world = 1;  ///< number of ranks
  /// Worker threads of the cpu device; 0 means one per core. A launch of few instructions runs on
  /// the launching thread.
  int threads = 0;
  std::string cache_dir;  ///< "" means the default one (docs/command.md)
  bool use_cache = true;
  /// Number of processes that compile kernels no cache holds, in parallel; each compiles one kernel
  /// at a time. 0: this process compiles. They are started by posix_spawn where two or more kernels
  /// must be compiled, and end with the compile.
  int compile_processes = 0;
  /// The program to run as a compile process, `braid-worker`. "": the one beside libbraid.so; where
  /// that is missing, `warning` is called and this process compiles.
  std::string compile_worker;
  /// For a graph with buckets (Symbol::buckets): Executable::compile returns once the kernels of
  /// the first bucket are compiled, and a thread of the executable compiles the others. See
  /// Executable::ready.
  bool compile_in_background = false;
  /// The target to compile for ("sm_90a"), or a device to plan for ("H100"). "": on cuda the GPU's
  /// own; on cpu the first one that can run the graph. Executable::compile refuses a graph that
  /// needs a later one. Behind a colon may stand the units that kernels may use, by name
  /// (docs/command.md, --units): "H100:mma.sync,cp.async", ":mma.sync".
  std::string target;
  /// How many ranks the plan assumes share a GPU, which bounds the grids of kernels that wait for
  /// peers. 0: on cuda as many as do (less is refused); on cpu one, so that tests run the grids of
  /// one rank per GPU.
  int ranks_per_device = 0;
  /// Checks of the cpu device (see Inspector::findings()). A checked run uses one thread.
  Checks sanitize = kCheckNothing;
  Schedule schedule;  ///< of a checked run; without checks only kTurns is accepted
  /// Count what kernels do on the cpu device; see Inspector::counts().
  bool count = false;
  /// For kernels whose blocks do not wait for others, run only a sample of blocks and scale the
  /// counts to the grid (KernelCounts::blocks_run). The outputs are meaningless. Such a run uses
  /// one thread. Needs `count`.
  bool count_sample = false;
  /// How the cpu device adds the products of matrix instructions (docs/numerics.md).
  MatrixSums matrix_sums = MatrixSums::kRounded;
  /// Where this world's ranks meet those of other worlds; its ranks() are the ranks of this world.
  /// Null: all ranks are in this world. Worlds that meet compile their executables in the same
  /// order. Once a rank is lost (Rendezvous::lost), runs end with an error that says so, and a new
  /// world needs a new rendezvous.
  std::shared_ptr<Rendezvous> rendezvous;
  /// On cuda, in a world with ranks elsewhere: the index, among the GPUs that this process sees and
  /// modulo their number, of its first rank's GPU; its other ranks follow. -1: the local rank, from
  /// LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK or SLURM_LOCALID, else the rank.
  int gpu = -1;
  /// The caller's NCCL communicators for groups with "symmetric": false, by group: an ncclComm_t
  /// for each rank of this world, in the order of ranks(). They are never destroyed here and must
  /// outlive the executables. When a peer is lost they are aborted (ncclCommAbort), since nothing
  /// else ends their kernels; the error says so, and they must not be used again. Other groups get
  /// their own communicators. Ignored where NCCL is not used (docs/architecture.md).
  std::map<std::string, std::vector<void*>, std::less<>> nccl_communicators;
  /// Allocates the arenas that ranks do not share and that the caller does not bind. Empty: the
  /// device allocates them, as a checked run on cpu requires.
  Allocator allocator;
  /// A database file that tune() wrote. Executable::compile takes kernel configurations from it
  /// that were found for this device, target and NVRTC; `braid explain` shows which. Ranks with
  /// different databases are refused where the plans differ.
  std::string tune_db;
  double timeout_s = 0;  ///< limit of a wait for a peer; 0 means 30 s on cuda, 120 s on cpu
  /// Called before each kernel that is compiled or taken from the cache, and once at the end with
  /// `done == total`. An exception from it ends the compile and its processes and leaves
  /// Executable::compile. With compile_in_background later calls come from the executable's thread,
  /// and prepare() rethrows the exception for buckets that are not compiled.
  std::function<void(std::size_t done, std::size_t total, std::string_view what)> progress;
  /// Called before each pass while a graph is lowered, before any kernel is compiled.
  std::function<void(std::string_view pass)> pass_progress;
  /// Called with one line about what costs only speed, such as a cache directory that is not safe
  /// to use. Empty: the line goes to standard error.
  std::function<void(std::string_view what)> warning;
};

/// N ranks and the device that they run on. All of them are in this process, or some
/// (WorldOptions::rendezvous). Several executables may share a world. The object is a handle:
/// copies refer to the same world, which lives until the last copy and the last executable are
/// gone. In a forked child every use throws kInvalidArgument; only destruction is allowed.
class BRAID_API World {
 public:
  /// Opens the device. Throws kEnvironment, with how to fix it, when something is missing, when the
  /// kernels of several ranks could not run at the same time, or when ranks could not reach each
  /// other's memory.
  static World open(const WorldOptions& options);
  /// Opens a world on an existing device, which several worlds may share. Options that describe the
  /// device, its number of ranks included, are ignored.
  static World open(const WorldOptions& options, std::shared_ptr<Device> device);

  [[nodiscard]] int size() const;                       ///< number of ranks, over all worlds that
                                                        ///< meet
  [[nodiscard]] const std::vector<int>& ranks() const;  ///< ranks of this world
  [[nodiscard]] Device& device() const;
  /// Thread safe.
  [[nodiscard]] WorldMetrics metrics() const;

 private:
  friend class Executable;
  friend class SymmetricBlock;
  friend class SymmetricMemory;
  struct Impl;
  explicit World(std::shared_ptr<Impl> impl);
  /// Throws kInvalidArgument for a moved-from object, and in a forked child.
  [[nodiscard]] Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace braid
