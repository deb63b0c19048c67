#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/device.h"
#include "runtime/cpu/check/access_cost.h"
#include "runtime/cpu/check/finding_list.h"
#include "runtime/cpu/check/read_use.h"
#include "runtime/cpu/check/shadow.h"
#include "runtime/cpu/check/stored_floats.h"
#include "runtime/cpu/check/vector_clock.h"
#include "runtime/cpu/check/wgmma_check.h"
#include "runtime/cpu/ptx/source_map.h"

namespace braid::cpu {

/// What an instruction does to memory, as generated code tells it.
struct AccessCode {
  enum Kind : std::uint8_t {
    kLoad,
    kStore,
    kAtomic,
    kSwap,
    kCopyFrom,
    kCopyTo,
    kBulkFrom,  ///< by the async proxy
    kBulkTo,
    kMatrixFrom,  ///< the same of wgmma
    kTensorFrom,  ///< by tcgen05, of shared or tensor memory
    kTensorTo,
    kTensorUpdate  ///< reads and writes
  };
  enum Order : std::uint8_t { kWeak, kRelaxed, kAcquire, kRelease, kAcquireRelease };
  Kind kind : 4 = kLoad;
  Order order : 4 = kWeak;
  std::uint8_t scope : 3 = 0;   ///< as Access::scope
  std::uint8_t unread : 5 = 0;  ///< bytes at the end: loaded into registers that nothing reads
  std::uint8_t bytes = 0;       ///< of one lane
  JoinedLoad joined{};
};

/// A description of the access, for people.
std::string_view verb(AccessCode::Kind kind);
/// The coordinates of index `index` in a grid or block.
Dim3 position(std::uint64_t index, Dim3 extent);

/// The checker's state of one stream. The stream's host work is an agent of its own.
struct StreamClock {
  int rank = 0;
  std::uint32_t agent = 0;
  std::uint32_t time = 0;
  VectorClock seen;
  /// Agents of its kernels' warps, by block and warp. Kernels of a stream are ordered, so they
  /// reuse the agents.
  std::unordered_map<std::uint64_t, std::uint32_t> warps;
  /// Agents of these warps' copies, by warp (block and number) and channel.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> copies;
};

/// Source places of a kernel's lines, for people.
struct SourceLines {
  std::string ptx_file, source;
  std::shared_ptr<const SourceMap> map;
  /// Code without a file name is named after its kernel, and so is the source of a PTX file that
  /// names none.
  static SourceLines of(const std::string& kernel, std::string_view file,
                        std::shared_ptr<const SourceMap> map);
  [[nodiscard]] std::uint32_t cuda_line(std::uint32_t ptx_line) const;  ///< 0 if unknown
  [[nodiscard]] std::string cuda_file(std::uint32_t ptx_line) const;    ///< of that line
  /// Where the code was inlined from, if it was inlined into that line; else "".
  [[nodiscard]] std::string inlined(std::uint32_t ptx_line) const;
};

struct LaunchCheck {
  std::shared_ptr<StreamClock> stream;
  std::string kernel;
  std::uint16_t kernel_index = 0;
  Dim3 grid, block;
  SourceLines source;
  std::shared_ptr<const ptx::Function> code;
  std::map<std::pair<std::uint32_t, int>, ReadUse> uses;  ///< by line and matrix, on demand
  std::map<std::uint32_t, StoredFloats> floats;           ///< by line, likewise
  VectorClock start;                                      ///< what happened before the launch
  VectorClock end;                                        ///< what its finished warps know
  /// The last copy of an agent that completes on an mbarrier, by block and agent.
  struct InFlight {
    std::uint32_t time, warp, lane, line;
  };
  std::map<std::uint64_t, std::map<std::uint32_t, InFlight>> in_flight;
};

struct WarpCheck {
  std::shared_ptr<LaunchCheck> launch;
  std::uint64_t block = 0;
  std::uint32_t warp = 0;
  std::uint32_t agent = 0;
  std::uint32_t time = 0;
  std::uint32_t unwritten_reads = 0;  ///< so far, of bytes that nobody wrote
  VectorClock seen;
  /// Knowledge acquired by relaxed loads, effective from the next fence whose scope reaches the
  /// writer: in the block (1), on the device (2), elsewhere (3).
  std::array<VectorClock, 4> acquired;
  /// Knowledge up to the last fence whose scope reaches that far, which a relaxed store publishes.
  std::array<VectorClock, 4> fenced;
  /// The strong writes that its strong loads have observed, by address: they precede what it does
  /// there later.
  std::unordered_map<std::uint64_t, VectorClock> observed;
  // cp.async: bytes of the open group; those before it are its agent's.
  struct Copy {
    std::uint64_t address;
    std::uint32_t bytes;
  };
  std::uint32_t next_group = 1;
  std::vector<Copy> open;
  /// Words of its last atomic with their previous values: one that changed nothing may be a poll.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> atomics;
  // Bulk copies: whether this is the agent of one, and the groups of each lane.
  bool asynchronous = false;  ///< this is the agent of a copy
  std::unique_ptr<WarpCheck> copy;
  struct BulkGroups {
    std::vector<std::uint32_t> committed;  ///< time of the last copy of each group
    std::uint32_t last = 0;                ///< time of the last issued copy
    std::uint32_t line = 0;                ///< and its line
  };
  std::map<std::uint32_t, BulkGroups> bulk;
  WgmmaCheck wgmma;
  /// Knowledge from mbarriers that it waited for without an acquire: for tcgen05, behind a
  /// tcgen05.fence::after_thread_sync.
  VectorClock unfenced;
  Epoch inits;  ///< its mbarrier.inits belong to a separate agent
  // The word that it last polled, for the report of a deadlock.
  std::uint64_t polled = 0;
  std::uint32_t polled_line = 0;
  std::uint8_t polled_lane = 0;
};

/// Detects illegal behaviour of kernels: out-of-bounds and misaligned accesses, reads of
/// uninitialized memory, uses of registers that the thread did not write, deadlocks, and data races
/// by happens-before over the scopes of the PTX memory model. Warps are the agents: the lanes of
/// one count as ordered, except within one store. It checks one interleaving, but finds a race in
/// any in which both accesses happen. Thread safe.
class Sanitizer {
 public:
  explicit Sanitizer(unsigned checks) : checks_(checks) {}

  // --- memory ---
  /// `lane_bytes` is the size of each lane's private stretch, 0 if all lanes may access all of it.
  void add_memory(int rank, std::uint64_t address, std::size_t bytes, std::string name,
                  bool initialized, std::size_t lane_bytes = 0);
  void remove_memory(std::uint64_t address);
  /// Whether it has some of these bytes.
  [[nodiscard]] bool knows(std::uint64_t address, std::size_t bytes);
  /// Adds addresses for multimem instructions only. Accesses through them are reported with the
  /// addresses of the memory behind them.
  void add_multicast(std::uint64_t address, std::size_t bytes);
  void name_parts(std::uint64_t memory, std::span<const MemoryPart> parts);

  // --- the host ---
  std::shared_ptr<StreamClock> open_stream(int rank);
  /// The host's knowledge when it hands work to a stream.
  VectorClock host_clock();
  void host_waited(const StreamClock& stream);
  /// The stream learns what `clock` has.
  void join(StreamClock& stream, const VectorClock& clock);
  VectorClock clock_of(const StreamClock& stream);
  /// Records a write by the stream's host work, without checking it.
  void host_wrote(StreamClock& stream, std::uint64_t address, std::size_t bytes);
  /// The same for a word with which it signals others; and a wait of the stream for such a word.
  void told(StreamClock& stream, std::uint64_t word);
  void heard(StreamClock& stream, std::uint64_t word);

  // --- kernels ---
  /// `file` is KernelImage::file.
  std::shared_ptr<LaunchCheck> start_launch(std::shared_ptr<StreamClock> stream, std::string kernel,
                                            std::string_view file, Dim3 grid, Dim3 block,
                                            std::shared_ptr<const SourceMap> map,
                                            std::shared_ptr<const ptx::Function> code);
  void end_launch(LaunchCheck& launch);
  void start_warp(WarpCheck& warp, std::shared_ptr<LaunchCheck> launch, std::uint64_t block,
                  std::uint32_t index);
  /// `entered`: for each basic block of the code WarpCheck::unwritten_reads when the warp last
  /// entered it.
  void end_warp(WarpCheck& warp, const std::uint32_t* entered);
  /// The warp's block is stopped by an error. What it did is over for later kernels, too.
  void stop_warp(const WarpCheck& warp);

  /// The values of a store: `count` elements of `bytes` per lane.
  struct Values {
    const std::uint8_t* start;
    std::uint32_t bytes;
    std::uint32_t count;
    std::uint32_t lanes = 0;  ///< that store
    [[nodiscard]] std::uint8_t byte(std::uint32_t lane, std::size_t index) const;
    /// Whether two lanes store the same value, or values that differ only by rounding.
    [[nodiscard]] bool same(std::uint32_t a, std::uint32_t b,
                            StoredFloats rounded = StoredFloats::kNone) const;
    /// The size of the largest finite value that is stored.
    [[nodiscard]] double largest(StoredFloats kind) const;
  };
  /// Checks one access by the lanes of `mask`. Returns a message if it must not be done. `values`
  /// are what a store writes, if known.
  std::string access(WarpCheck& warp, const std::uint64_t* addresses, std::uint32_t mask,
                     AccessCode code, std::uint32_t line, const Values* values = nullptr);
  /// Checks a weak store by the lanes of `mask`, after access(): no two lanes may write different
  /// values to one place.
  void stores(WarpCheck& warp, const std::uint64_t* addresses, std::uint32_t mask,
              const Values& values, std::uint32_t line);
  /// A `selp` takes its first value in the lanes of `first`, its second one in those of `second`.
  void chose(WarpCheck& warp, std::uint32_t first, std::uint32_t second, std::uint32_t line);
  void fence(WarpCheck& warp, std::uint8_t scope);
  /// fence.mbarrier_init: a fence only for the warp's mbarrier.inits.
  void fence_inits(WarpCheck& warp);
  /// Checks an operation over lanes, executed by the lanes of `here`; members[lane] is the member
  /// mask that a lane gives.
  void members(WarpCheck& warp, const std::uint32_t* members, std::uint32_t here,
               std::uint32_t live, std::uint32_t line);
  void commit_group(WarpCheck& warp);
  /// The copies of the warp so far arrive at an mbarrier.
  void copies_arrive(WarpCheck& warp, std::uint64_t barrier);
  void wait_group(WarpCheck& warp, std::uint32_t pending);

  // --- wgmma (wgmma_check.cpp): its reads go to async_access(); registers are numbered ---
  void wgmma_fence(WarpCheck& warp);
  /// `what` is a hash of its operands, equal for all warps of a group.
  void wgmma_issue(WarpCheck& warp, std::span<const std::uint32_t> sums,
                   std::span<const std::uint32_t> inputs, std::uint64_t what, std::uint32_t line);
  /// Other instructions: wgmma_move copies a register, wgmma_use does more. `sets`: it writes a
  /// constant.
  void wgmma_move(WarpCheck& warp, std::uint32_t to, std::uint32_t from);
  void wgmma_touch(WarpCheck& warp, std::span<const std::uint32_t> reads,
                   std::span<const std::uint32_t> writes, bool sets, std::uint32_t line);
  void wgmma_commit(WarpCheck& warp);
  void wgmma_waited(std::span<WarpCheck* const> group, std::uint32_t pending, std::uint32_t line);
  /// A warp arrives at a barrier, arrives .relaxed, or is released by it.
  void arrive(WarpCheck& warp, VectorClock& barrier);
  void arrive_relaxed(const WarpCheck& warp, VectorClock& barrier);
  void depart(WarpCheck& warp, const VectorClock& barrier);

  // --- the async proxy (async_proxy.cpp) ---
  /// Channels of a warp's copies; each completes in order. Other channels are the address of the
  /// mbarrier on which copies complete.
  static constexpr std::uint64_t kBulkReads = 0, kBulkWrites = 1, kMatrix = 2, kInits = 3,
                                 kTensorLoads = 4, kTensorStores = 5,
                                 kTensorLanes = 32,  ///< and what each lane issues to the unit
      kLastChannel = 63;
  /// Lanes of the warp issue a copy, or other work of the async proxy. Returns its time in the
  /// channel. Its accesses must be reported by async_access() before anything else is issued.
  std::uint32_t start_async(WarpCheck& warp, std::uint64_t channel, std::uint32_t lane,
                            std::uint32_t line);
  /// The async proxy reads (kBulkFrom), writes (kBulkTo) or reduces to (kAtomic) these bytes.
  /// Returns a message if it must not. `data` is what it writes, if known.
  std::string async_access(WarpCheck& warp, std::uint64_t address, std::size_t bytes,
                           AccessCode code, std::uint32_t lane, std::uint32_t line,
                           const std::uint8_t* data = nullptr);
  /// The warp has waited for what it issued up to this time.
  void finish_async(WarpCheck& warp, std::uint64_t channel, std::uint32_t time);
  void fence_async(WarpCheck& warp);
  /// The address that a tcgen05.alloc has written is there for the async proxy, too: the ISA does
  /// not say by which proxy it is written, and Triton lets bulk copies reuse its place.
  void show_async(WarpCheck& warp);

  // --- tcgen05 (tensor_memory_check.cpp) ---
  /// The same as start_async, for work of a channel that is done in the order of issue.
  void start_tensor(WarpCheck& warp, std::uint64_t channel, std::uint32_t lane, std::uint32_t line);
  /// The warp has waited for all that it issued to the channel.
  void tensor_waited(WarpCheck& warp, std::uint64_t channel);
  void tensor_fence_after(WarpCheck& warp);
  /// For copies from shared memory; bulk_wait leaves `pending` groups of each lane in flight.
  void bulk_issued(WarpCheck& warp, std::uint32_t lane, std::uint32_t time, std::uint32_t line);
  void bulk_commit(WarpCheck& warp, std::uint32_t lanes);
  void bulk_wait(WarpCheck& warp, std::uint32_t lanes, std::uint32_t pending, bool reads_only);
  /// All warps of a block in a cluster have ended, with this knowledge; from now on its shared
  /// memory may be gone for the others.
  void exit_block(const WarpCheck& last, const VectorClock& known, std::uint64_t shared);
  /// All warps of a block, and of its cluster, have ended.
  void end_block(const std::shared_ptr<LaunchCheck>& launch, std::uint64_t block);
  /// mbarriers: initialization and invalidation; a releasing arrival, and the completion of a copy;
  /// a test that found the phase complete. `wide` means cluster scope; `completes` means
  /// that it completes the phase; one that does not order is relaxed.
  void initialize(WarpCheck& warp, std::uint64_t barrier);
  void reset_phases(std::uint64_t barrier);
  void arrive_at(WarpCheck& warp, std::uint64_t barrier, bool wide, bool completes, bool releases);
  void copied_to(WarpCheck& warp, std::uint64_t barrier, bool completes);
  void wait_for(WarpCheck& warp, std::uint64_t barrier, bool wide, bool acquires);

  /// Counts stores and finished blocks: events that can release a waiting block.
  [[nodiscard]] std::uint64_t progress();
  /// %globaltimer: a virtual clock, advanced by accesses and by reads of it. So deadlines do not
  /// depend on the machine's load, and a seed determines a run.
  [[nodiscard]] std::uint64_t now_ns();
  /// Records that these warps, of blocks that only poll, wait forever.
  void deadlock(const std::vector<const WarpCheck*>& warps);
  /// Those lanes use a register that they did not write, as `what` says.
  void undefined(WarpCheck& warp, std::uint32_t lanes, const char* what, std::uint32_t reg,
                 std::uint32_t line);
  /// The same for a store, after access(). What a thread keeps for itself or for its block may
  /// never be read: there the bytes count as unwritten again. `part`: in each lane's access.
  struct Part {
    std::uint32_t offset, bytes;
  };
  void stored_undefined(WarpCheck& warp, const std::uint64_t* addresses, std::uint32_t lanes,
                        Part part, const char* what, std::uint32_t reg, std::uint32_t line);
  /// Records a finding of the executor itself.
  void report(WarpCheck& warp, std::string_view kind, std::string message, std::uint32_t line);

  [[nodiscard]] std::vector<Finding> findings();
  /// Harmless findings: writes of the same value, and reads whose values nobody uses.
  [[nodiscard]] std::vector<Finding> notes();
  /// Forgets both.
  void forget();

 private:
  struct Region {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    int rank = 0;
    std::size_t lane_bytes = 0;
    bool of_block = false;  ///< gone when its block has ended
    enum Kind : std::uint8_t { kPlain, kMulticast, kExited };
    Kind kind = kPlain;  ///< other kinds: addresses for multimem only, or of a block that has
                         ///< exited
    std::size_t most_others = 4;  ///< accesses that a cell keeps besides its last write
    std::string name;
    std::vector<MemoryPart> parts;                   ///< may overlap, for buffers live at different
                                                     ///< times
    std::map<std::uint64_t, std::uint64_t> covered;  ///< start -> end of disjoint stretches
    std::unique_ptr<Shadow> shadow;
  };
  /// What a release published at an address.
  struct Published {
    std::array<VectorClock, 4> clocks;  ///< by the reader's distance, as in WarpCheck::acquired
    VectorClock writes;  ///< of the address: the last one, and what read-modify-writes followed
    int rank = 0;
    std::uint64_t block = 0;
    const LaunchCheck* launch = nullptr;
  };
  /// Knowledge of those that arrived at an mbarrier: so far, and up to the end of its last phase.
  struct Phases {
    struct Known {
      VectorClock all;
      std::map<std::uint64_t, VectorClock> by_block;  ///< visible to the own block only
      void join(const VectorClock& clock, std::uint64_t block, bool wide);
    };
    Known now, done;
    /// By agent: its last group of cp.async that arrives there. All up to it have arrived for who
    /// waits for it.
    std::map<std::uint32_t, std::uint32_t> copies;
  };
  /// One instruction's accesses by lanes that are contiguous in memory; `lane` is the first.
  struct Lane {
    WarpCheck& warp;
    std::uint32_t lane;
    std::uint32_t line;
    AccessCode code;
    std::uint64_t address = 0;
    bool by_several = false;  ///< more lanes access the first one's bytes
    [[nodiscard]] Lane at(std::uint64_t later) const {
      Lane result = *this;
      result.lane += static_cast<std::uint32_t>((later - address) / code.bytes);
      result.address = later;
      return result;
    }
  };
  /// Key of equal findings. `other` is its known_side(), or a register.
  struct Known {
    std::string kind;
    std::uint16_t kernel;
    std::uint32_t line;
    std::uint64_t other;
    auto operator<=>(const Known&) const = default;
  };

  /// A racing read whose value may be discarded.
  struct Suspect {
    Known known;
    Finding finding;  ///< reported if the value is used
    std::string note;
    std::uint32_t time = 0;   ///< time of the first such read
    std::uint32_t lanes = 0;  ///< lanes that have read racing bytes
    const ReadUse* use = nullptr;
  };
  /// What is reported of a value that nobody wrote: of where it was read first.
  struct Origin {
    Known known;
    Finding finding;
  };
  /// A read of uninitialized bytes, which another warp of the block may write later.
  struct Unwritten {
    Finding finding;
    struct Bytes {
      std::uint64_t start, end;
      std::uint32_t lane;  ///< first reading lane
      std::uint32_t width;
      std::uint32_t time;
      std::uint32_t lanes;  ///< lanes that read some of it
      std::uint32_t index;  ///< WarpCheck::unwritten_reads
    };
    std::vector<Bytes> bytes;
    std::uint64_t origin = 0;  ///< address of the finding's offset 0
    bool counts = false;       ///< it counts whatever becomes of the values
    /// They are what a store computed from a value that nobody wrote.
    std::optional<Origin> computed_from;
  };
  using Unwrittens = std::map<std::pair<std::uint32_t, Known>, Unwritten>;  ///< by reader
  /// A moment of a warp. Its time passes at barriers and the like; the other number tells reads
  /// between these apart.
  struct Moment {
    std::uint32_t time = 0;
    std::uint32_t unwritten_reads = 0;  ///< WarpCheck::unwritten_reads
  };
  /// When each lane of a warp did something last.
  class LaneMoments {
   public:
    void note(std::uint32_t lanes, const WarpCheck& warp) {
      done_ |= lanes;
      for (; lanes != 0; lanes &= lanes - 1) {
        last_[std::countr_zero(lanes)] = {warp.time, warp.unwritten_reads};
      }
    }
    /// The lanes that did so then or later.
    [[nodiscard]] std::uint32_t since(const Moment& then) const {
      std::uint32_t lanes = 0;
      for (std::uint32_t l = 0; l < 32; ++l) {
        const bool later =
            last_[l].time >= then.time && last_[l].unwritten_reads >= then.unwritten_reads;
        lanes |= (later ? 1U : 0U) << l;
      }
      return lanes & done_;
    }

   private:
    std::uint32_t done_ = 0;
    std::array<Moment, 32> last_{};
  };
  /// Stores of a line: all, and those that did not pass on what nobody wrote.
  struct Stored {
    LaneMoments all, kept;
  };
  using Chosen = std::array<LaneMoments, 2>;  ///< choices of each value of a `selp`
  /// How a write compares to unordered ones: different, the same value, or equal up to rounding.
  enum class Same : std::uint8_t { kNo, kValue, kRounded };
  struct Reader {
    std::uint32_t agent, time, line;
    std::uint32_t lanes;  ///< 0: those of the current access that read the bytes
  };
  /// A stretch of memory with one history, and its first byte.
  struct Stretch {
    const Region& region;
    Cell& cell;
    std::uint64_t address;
    std::size_t bytes;
  };

  struct UndefinedLoad {
    std::uint32_t lanes = 0;
    Moment when;
  };

  struct AgentInfo;

  void wgmma_finding(WarpCheck& warp, std::uint32_t other, std::uint32_t line,
                     std::string_view message);
  Region* find(std::uint64_t address);
  VectorClock now(const WarpCheck& warp) const;
  [[nodiscard]] bool holds(const Region* region, const Lane& lane, std::size_t bytes) const;
  const Region* nearest(std::uint64_t address) const;
  std::string judge_place(const Lane& lane, const Region* region, std::size_t bytes);
  /// The bytes of an agent's cp.async groups up to `last` have arrived; `time`: they count as
  /// written then.
  void land(std::uint32_t agent, std::uint32_t last, std::optional<std::uint32_t> time);
  void keep_read(const Stretch& at, const WarpCheck& warp, const Access& access) const;
  void check_cell(const Lane& run, const Stretch& at, bool writes, const Values* values);
  bool check_races(const Lane& lane, const Stretch& at, bool writes, Same same);
  static Same compare(const Lane& run, const Stretch& at, const Values& values);
  static StoredFloats floats_of(LaunchCheck& launch, std::uint32_t line);
  void check_async(const Lane& lane, const Stretch& at, bool writes, const std::uint8_t* data);
  void check_proxy(const Lane& lane, const Stretch& at);
  std::uint32_t copies_of(const WarpCheck& warp, std::uint64_t channel);
  std::uint32_t twin_of(std::uint32_t agent);
  void end_bulk(WarpCheck& warp);
  /// `bytes` from the lane's address on race; 0 if no value is read there.
  void race(const Lane& lane, const Region& region, const Access& before, std::string_view what,
            std::size_t bytes = 0);
  [[nodiscard]] bool in_block(const WarpCheck& warp, const Access& before) const;
  [[nodiscard]] std::optional<Reader> reader(const Lane& lane, const Access& before,
                                             std::string_view what, std::size_t bytes) const;
  const ReadUse* use_of(const AgentInfo& agent, std::uint32_t time, std::uint32_t line,
                        int matrix = kAllMatrices);
  /// Whether it is so of a use of a value, and the lanes that have it there.
  using Reached = std::function<bool(const ReadUse&, std::uint32_t)>;
  bool follow(const AgentInfo& reader, const ReadUse& use, const Moment& then, std::uint32_t lanes,
              const Reached& reached);
  [[nodiscard]] bool is_used(const AgentInfo& reader, const ReadUse& use, const Moment& then,
                             std::uint32_t lanes, LaneMoments Stored::*of_which);
  void await_lanes(const Lane& lane, Suspect& suspect, const Reader& reader, std::size_t bytes);
  void settle_values(std::uint32_t agent, const std::uint32_t* entered);
  void judge(std::uint32_t agent, const Suspect& suspect);
  void settle(std::uint32_t agent, const std::uint32_t* entered = nullptr);
  void note(const Lane& lane, const Region& region, const Access& before, Same same);
  [[nodiscard]] std::string undefined_store(const Cell& cell) const;
  std::uint32_t computed_lanes(const AgentInfo& agent, std::uint32_t load,
                               const UndefinedLoad& read, std::uint32_t store);
  [[nodiscard]] Origin origin_of(const Unwrittens::value_type& read) const;
  std::uint32_t pass_on(const WarpCheck& warp, const std::uint64_t* addresses, std::uint32_t mask,
                        std::uint32_t bytes, std::uint32_t line);
  bool forget_bytes(std::uint64_t address, std::size_t bytes);
  void add_unwritten(const Lane& lane, const Stretch& at);
  void is_written(const Access& read, std::uint64_t start, std::uint64_t end);
  void settle_unwritten(bool all);
  [[nodiscard]] bool ordered(const WarpCheck& warp, const Access& before) const;
  [[nodiscard]] bool both_strong(const Lane& lane, const Access& before) const;
  [[nodiscard]] bool in_scope(const WarpCheck& warp, std::uint8_t scope, std::uint32_t agent) const;
  /// Whether it releases: what it does is part of that.
  [[nodiscard]] bool synchronize(const Lane& lane, std::uint64_t address, bool loads, bool stores);
  /// Adds a finding, one per kind, kernel, line and other side.
  void add(const Lane& lane, std::string_view kind, std::string message, const Region* region,
           std::string other = "", std::uint64_t side = 0);
  void keep(const Known& known, Finding finding);
  [[nodiscard]] FindingList::Cause cause_of(const Known& known, const Finding& finding) const;
  [[nodiscard]] std::uint64_t known_side(const Access& access) const;
  [[nodiscard]] Finding describe(const Lane& lane, std::string_view kind, std::string message,
                                 const Region* region, std::string other) const;
  [[nodiscard]] std::string place(const Access& access) const;
  std::pair<std::string, std::int64_t> name_of(const Region& region, std::uint64_t address) const;

  static constexpr std::size_t kMostNotes = 4096;
  static constexpr std::uint64_t kSide = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kHostBlock = ~std::uint64_t{0};
  struct AgentInfo {
    int rank;
    std::uint64_t block;  ///< kHostBlock for the host work of a stream
    std::uint32_t warp;
    std::uint32_t stream;
    LaunchCheck* launch = nullptr;  ///< the launch that runs it, or last ran it and has not ended
    bool ended = false;
    std::uint32_t start = 0;                            ///< its time at the start
    std::unordered_map<std::uint32_t, Stored> stores;   ///< by line
    std::unordered_map<std::uint32_t, Chosen> choices;  ///< likewise
    /// Loads, by line, that read bytes which nobody wrote when they last ran.
    std::map<std::uint32_t, UndefinedLoad> undefined_loads;
    enum Role : std::uint8_t { kWarp, kCopies, kInits, kTwin };
    Role role = kWarp;       ///< other roles: its copies, its mbarrier.inits, or its stores as seen
                             ///< by copies
    std::uint32_t twin = 0;  ///< the agent with that role
    std::uint32_t issued = 0;  ///< number of copies or inits
    enum Work : std::uint8_t { kCopying, kWgmma, kTensor };
    Work work = kCopying;  ///< what its copies are
    /// cp.async: bytes in flight, by group.
    std::deque<std::pair<std::uint32_t, std::vector<WarpCheck::Copy>>> groups;
  };

  std::mutex mutex_;
  unsigned checks_;
  std::map<std::uint64_t, Region> regions_;
  Region* last_region_ = nullptr;
  std::vector<AgentInfo> agents_;
  std::vector<std::string> kernels_;
  std::vector<Dim3> block_shapes_;  ///< by kernel, from the last launch
  std::vector<Dim3> grid_shapes_;
  std::vector<SourceLines> sources_;
  std::uint32_t streams_ = 0;
  VectorClock host_;
  std::unordered_map<std::uint64_t, Published> published_;
  std::map<std::uint64_t, Phases> phases_;     ///< by mbarrier
  std::map<std::uint64_t, VectorClock> told_;  ///< by word: knowledge of its last writer
  std::uint64_t progress_ = 0;
  std::uint64_t ticks_ = 0;
  FindingList findings_;
  std::set<Known> known_;
  std::map<Known, Finding> notes_;
  std::map<std::pair<std::uint32_t, Known>, Suspect> suspects_;  ///< by reader
  Unwrittens unwritten_;
  /// By kernel and line of a store that passed on what it computed from such values.
  std::map<std::pair<std::size_t, std::uint32_t>, Origin> computed_;
  /// Stretches that the current access reads: whose lanes are not known yet.
  struct Fresh {
    std::uint64_t start, end;
    std::uint32_t* lanes;
  };
  std::vector<std::pair<Unwritten*, std::size_t>> fresh_;
  std::vector<Fresh> suspected_;
};

}  // namespace braid::cpu
