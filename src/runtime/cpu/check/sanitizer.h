#pragma once

#include <array>
#include <cstdint>
#include <deque>
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
    kBulkFrom,  ///< of the async proxy
    kBulkTo,
    kMatrixFrom  ///< the same of wgmma
  };
  enum Order : std::uint8_t { kWeak, kRelaxed, kAcquire, kRelease, kAcquireRelease };
  Kind kind : 4 = kLoad;
  Order order : 4 = kWeak;
  std::uint8_t scope : 3 = 0;   ///< as Access::scope
  std::uint8_t unread : 5 = 0;  ///< bytes at the end: loaded into registers that nothing reads
  std::uint8_t bytes = 0;       ///< of one lane
  JoinedLoad joined{};
};

/// What it does, for people.
std::string_view verb(AccessCode::Kind kind);
/// The coordinates of number `index` of a grid or a block.
Dim3 position(std::uint64_t index, Dim3 extent);

/// What the checker knows of one stream: its host work is an agent of its own.
struct StreamClock {
  int rank = 0;
  std::uint32_t agent = 0;
  std::uint32_t time = 0;
  VectorClock seen;
  /// Agents of the warps of its kernels, by block and warp: kernels of one stream are ordered, so
  /// they use the same ones again.
  std::unordered_map<std::uint64_t, std::uint32_t> warps;
  /// Those of their copies, by warp (block and number) and channel.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> copies;
};

/// Where the lines of a kernel are, for people.
struct SourceLines {
  std::string ptx_file, cuda_file;
  std::shared_ptr<const SourceMap> map;
  /// Code without a file is called after its kernel, and so is the source behind a PTX file that
  /// does not name it.
  static SourceLines of(const std::string& kernel, std::string_view file,
                        std::shared_ptr<const SourceMap> map);
  [[nodiscard]] std::uint32_t cuda_line(std::uint32_t ptx_line) const;  ///< 0 if unknown
  /// The place of the code itself, where it was inlined into that line; else "".
  [[nodiscard]] std::string inlined(std::uint32_t ptx_line) const;
};

/// One launch under check.
struct LaunchCheck {
  std::shared_ptr<StreamClock> stream;
  std::string kernel;
  std::uint16_t kernel_index = 0;
  Dim3 grid, block;
  SourceLines source;
  std::shared_ptr<const ptx::Function> code;
  std::map<std::uint32_t, ReadUse> uses;         ///< by line, of what was asked for
  std::map<std::uint32_t, StoredFloats> floats;  ///< the same
  VectorClock start;                             ///< what has happened before it
  VectorClock end;                               ///< what its finished warps know
  /// The last copy of an agent that completes on an mbarrier, by block and agent.
  struct InFlight {
    std::uint32_t time, warp, lane, line;
  };
  std::map<std::uint64_t, std::map<std::uint32_t, InFlight>> in_flight;
};

/// One warp under check.
struct WarpCheck {
  std::shared_ptr<LaunchCheck> launch;
  std::uint64_t block = 0;
  std::uint32_t warp = 0;
  std::uint32_t agent = 0;
  std::uint32_t time = 0;
  VectorClock seen;
  /// By relaxed loads: counts from the next fence on whose scope reaches as far as the writer is:
  /// in the block (1), on the device (2), elsewhere (3).
  std::array<VectorClock, 4> acquired;
  /// Up to the last fence whose scope reaches that far: what a relaxed store hands on there.
  std::array<VectorClock, 4> fenced;
  // cp.async: bytes on their way, by group; the open group is the last one.
  struct Copy {
    std::uint64_t address;
    std::uint32_t bytes;
  };
  std::deque<std::pair<std::uint32_t, std::vector<Copy>>> groups;
  std::uint32_t next_group = 1;
  std::vector<Copy> open;
  /// Words of its last atomic with their values before: one that changed nothing may be a poll.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> atomics;
  // Copies that go on beside it: the one that is judged now, an agent of its own, and the groups of
  // each lane.
  bool asynchronous = false;  ///< this is such a copy
  std::unique_ptr<WarpCheck> copy;
  struct BulkGroups {
    std::vector<std::uint32_t> committed;  ///< times of the last copy of each
    std::uint32_t last = 0;                ///< that was issued
    std::uint32_t line = 0;                ///< its line
  };
  std::map<std::uint32_t, BulkGroups> bulk;
  WgmmaCheck wgmma;
  Epoch inits;  ///< its mbarrier.inits are those of an agent of its own
  // What it last polled, for a deadlock's report.
  std::uint64_t polled = 0;
  std::uint32_t polled_line = 0;
  std::uint8_t polled_lane = 0;
};

/// Finds what a kernel may not do: accesses out of bounds and misaligned, reads of memory that
/// nobody wrote, uses of registers that the thread did not write, races by happens-before over the
/// scopes of the PTX memory model, and deadlocks. Warps are the agents: lanes of one are taken as
/// ordered, but for those of one store. It judges one interleaving, but a race is found in any in
/// which both sides happen. Thread safe.
class Sanitizer {
 public:
  /// Of braid/checks.h.
  explicit Sanitizer(unsigned checks) : checks_(checks) {}

  // --- memory ---
  /// `lane_bytes`: of the stretch that each lane of a warp has for itself, 0 where all may go.
  void add_memory(int rank, std::uint64_t address, std::size_t bytes, std::string name,
                  bool initialized, std::size_t lane_bytes = 0);
  void remove_memory(std::uint64_t address);
  /// Addresses for multimem instructions alone; these come with those of the memory behind them.
  void add_multicast(std::uint64_t address, std::size_t bytes);
  /// As Device::name_parts.
  void name_parts(std::uint64_t memory, std::span<const MemoryPart> parts);

  // --- the host ---
  std::shared_ptr<StreamClock> open_stream(int rank);
  /// What the host knows when it hands work to a stream.
  VectorClock host_clock();
  /// The host waited for the stream.
  void host_waited(const StreamClock& stream);
  /// The stream goes on with what was known elsewhere.
  void join(StreamClock& stream, const VectorClock& clock);
  VectorClock clock_of(const StreamClock& stream);
  /// The stream's host work wrote there. That is not judged, only remembered.
  void host_wrote(StreamClock& stream, std::uint64_t address, std::size_t bytes);
  /// The same of a word by which it tells others, and: the stream has waited for what it tells.
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
  void end_warp(WarpCheck& warp);

  /// The values of a store, `count` elements of `bytes` to a lane.
  struct Values {
    const std::uint8_t* start;
    std::uint32_t bytes;
    std::uint32_t count;
    [[nodiscard]] std::uint8_t byte(std::uint32_t lane, std::size_t index) const;
    /// Of two lanes, or but for rounding.
    [[nodiscard]] bool same(std::uint32_t a, std::uint32_t b,
                            StoredFloats rounded = StoredFloats::kNone) const;
  };
  /// One access of the lanes of `mask`. Returns a message when it must not be done. `values`: what
  /// a store writes, where that is known.
  std::string access(WarpCheck& warp, const std::uint64_t* addresses, std::uint32_t mask,
                     AccessCode code, std::uint32_t line, const Values* values = nullptr);
  /// A weak store of the lanes of `mask`, after access(): no two may differ on one place.
  void stores(WarpCheck& warp, const std::uint64_t* addresses, std::uint32_t mask,
              const Values& values, std::uint32_t line);
  void fence(WarpCheck& warp, std::uint8_t scope);
  /// fence.mbarrier_init: one of the warp's mbarrier.inits alone.
  void fence_inits(WarpCheck& warp);
  /// An operation over lanes, run by those of `here`; members[lane] is the mask that a lane gives.
  void members(WarpCheck& warp, const std::uint32_t* members, std::uint32_t here,
               std::uint32_t live, std::uint32_t line);
  void commit_group(WarpCheck& warp);
  void wait_group(WarpCheck& warp, std::uint32_t pending);

  // --- wgmma (wgmma_check.cpp): what it reads is for async_access(); registers go by numbers ---
  void wgmma_fence(WarpCheck& warp);
  /// `what`: of its operands, the same for all warps of a group.
  void wgmma_issue(WarpCheck& warp, std::span<const std::uint32_t> sums,
                   std::span<const std::uint32_t> inputs, std::uint64_t what, std::uint32_t line);
  /// Other instructions: those that move a register, and those that do more. `sets`: it writes a
  /// constant.
  void wgmma_move(WarpCheck& warp, std::uint32_t to, std::uint32_t from);
  void wgmma_touch(WarpCheck& warp, std::span<const std::uint32_t> reads,
                   std::span<const std::uint32_t> writes, bool sets, std::uint32_t line);
  void wgmma_commit(WarpCheck& warp);
  void wgmma_waited(std::span<WarpCheck* const> group, std::uint32_t pending, std::uint32_t line);
  /// A warp comes to a barrier, or does so .relaxed, and is let go by it.
  void arrive(WarpCheck& warp, VectorClock& barrier);
  void arrive_relaxed(const WarpCheck& warp, VectorClock& barrier);
  void depart(WarpCheck& warp, const VectorClock& barrier);

  // --- the async proxy (async_proxy.cpp) ---
  /// The channels of a warp's copies, each of which completes in order; others are the address of
  /// the mbarrier on which copies complete.
  static constexpr std::uint64_t kBulkReads = 0, kBulkWrites = 1, kMatrix = 2, kInits = 3,
                                 kLastChannel = 15;
  /// Lanes of the warp issue a copy, or whatever the async proxy does in their name. Returns its
  /// time in the channel; what it does to memory is said by async_access() before anything else is
  /// issued.
  std::uint32_t start_async(WarpCheck& warp, std::uint64_t channel, std::uint32_t lane,
                            std::uint32_t line);
  /// The async proxy reads (kBulkFrom), writes (kBulkTo) or reduces to (kAtomic) these bytes.
  /// Returns a message when it must not. `data`: what it writes, where that is known.
  std::string async_access(WarpCheck& warp, std::uint64_t address, std::size_t bytes,
                           AccessCode code, std::uint32_t lane, std::uint32_t line,
                           const std::uint8_t* data = nullptr);
  /// The warp has waited for what it issued up to this time.
  void finish_async(WarpCheck& warp, std::uint64_t channel, std::uint32_t time);
  /// fence.proxy.async.
  void fence_async(WarpCheck& warp);
  /// Of copies from shared memory; bulk_wait leaves `pending` groups of each lane.
  void bulk_issued(WarpCheck& warp, std::uint32_t lane, std::uint32_t time, std::uint32_t line);
  void bulk_commit(WarpCheck& warp, std::uint32_t lanes);
  void bulk_wait(WarpCheck& warp, std::uint32_t lanes, std::uint32_t pending, bool reads_only);
  /// All warps of a block in a cluster have ended, which knew that much; their shared memory may be
  /// gone for the others.
  void exit_block(const WarpCheck& last, const VectorClock& known, std::uint64_t shared);
  /// All warps of a block, and of its cluster, have ended.
  void end_block(const std::shared_ptr<LaunchCheck>& launch, std::uint64_t block);
  /// A new mbarrier, and one that is none any more; a releasing arrival at one, and the end of a
  /// copy; an acquiring test that found the phase complete. `wide`: for all of the cluster;
  /// `completes`: the phase.
  void initialize(WarpCheck& warp, std::uint64_t barrier);
  void reset_phases(std::uint64_t barrier);
  void arrive_at(WarpCheck& warp, std::uint64_t barrier, bool wide, bool completes);
  void copied_to(WarpCheck& warp, std::uint64_t barrier, bool completes);
  void wait_for(WarpCheck& warp, std::uint64_t barrier, bool wide);

  /// Stores and finished blocks so far: what can let a waiting block go on.
  [[nodiscard]] std::uint64_t progress();
  /// %globaltimer: a clock of its own, that goes on with accesses and with looks at it. So a
  /// deadline does not depend on how busy the machine is, and a seed is a run.
  [[nodiscard]] std::uint64_t now_ns();
  /// Records that these warps, of blocks that only poll, wait for ever.
  void deadlock(const std::vector<const WarpCheck*>& warps);
  /// Those lanes use a register that they did not write, as `what` says.
  void undefined(WarpCheck& warp, std::uint32_t lanes, const char* what, std::uint32_t reg,
                 std::uint32_t line);
  /// Records a finding of the executor itself.
  void report(WarpCheck& warp, std::string_view kind, std::string message, std::uint32_t line);

  [[nodiscard]] std::vector<Finding> findings();
  /// What looks like a finding and harms nothing: writes of the same value, and reads whose values
  /// nobody uses.
  [[nodiscard]] std::vector<Finding> notes();

 private:
  struct Region {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    int rank = 0;
    std::size_t lane_bytes = 0;
    enum Kind : std::uint8_t { kPlain, kMulticast, kExited };
    Kind kind = kPlain;  ///< else addresses for multimem alone, or of a block that has exited
    std::string name;
    std::vector<MemoryPart> parts;                   ///< may overlap: buffers that live in turn
    std::map<std::uint64_t, std::uint64_t> covered;  ///< start -> end, apart from each other
    std::unique_ptr<Shadow> shadow;
  };
  /// What a release published at an address.
  struct Published {
    std::array<VectorClock, 4> clocks;  ///< by how far off the reader is, as WarpCheck::acquired
    int rank = 0;
    std::uint64_t block = 0;
    const LaunchCheck* launch = nullptr;
  };
  /// What those that came to an mbarrier knew: up to now, and up to the end of its last phase.
  struct Phases {
    struct Known {
      VectorClock all;
      std::map<std::uint64_t, VectorClock> by_block;  ///< for others of the block alone
      void join(const VectorClock& clock, std::uint64_t block, bool wide);
    };
    Known now, done;
  };
  /// What one instruction does by lanes that follow each other in memory, `lane` the first.
  struct Lane {
    WarpCheck& warp;
    std::uint32_t lane;
    std::uint32_t line;
    AccessCode code;
    std::uint64_t address = 0;
    [[nodiscard]] Lane at(std::uint64_t later) const {
      Lane result = *this;
      result.lane += static_cast<std::uint32_t>((later - address) / code.bytes);
      result.address = later;
      return result;
    }
  };
  /// Findings that say the same. `other`: known_side() of it, or a register.
  struct Known {
    std::string kind;
    std::uint16_t kernel;
    std::uint32_t line;
    std::uint64_t other;
    // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that <=> is compared with
    auto operator<=>(const Known&) const = default;
  };

  /// A read that races: its value may be discarded.
  struct Suspect {
    Known known;
    Finding finding;  ///< if it is not
    std::string note;
    std::uint32_t time = 0;  ///< of the read
    const ReadUse* use = nullptr;
  };
  /// A read of bytes that nobody wrote: another warp of its block may come to write them.
  struct Unwritten {
    Known known;
    Finding finding;
    struct Bytes {
      std::uint64_t start, end;
      std::uint32_t lane;  ///< that reads the first
      std::uint32_t width;
      std::uint32_t time;
      std::uint32_t lanes;  ///< all that read some of it
    };
    std::vector<Bytes> bytes;
    std::uint64_t origin = 0;  ///< where the finding's offset is 0
    bool counts = false;       ///< whatever becomes of the values
  };
  /// The last store of a line by a warp, and all lanes that ever stored there.
  struct Stored {
    std::uint32_t time = 0;
    std::uint32_t lanes = 0;
  };
  /// A write beside others that nothing orders: of what they wrote, or of a float that is as good.
  enum class Same : std::uint8_t { kNo, kValue, kRounded };
  /// Who read what an access races with.
  struct Reader {
    std::uint32_t agent, time, line;
  };
  /// A stretch of memory of one history, and its first byte.
  struct Stretch {
    const Region& region;
    Cell& cell;
    std::uint64_t address;
    std::size_t bytes;
  };

  struct AgentInfo;

  void wgmma_finding(WarpCheck& warp, std::uint32_t other, std::uint32_t line,
                     std::string_view message);
  Region* find(std::uint64_t address);
  VectorClock now(const WarpCheck& warp) const;
  [[nodiscard]] bool holds(const Region* region, const Lane& lane, std::size_t bytes) const;
  const Region* nearest(std::uint64_t address) const;
  std::string judge_place(const Lane& lane, const Region* region, std::size_t bytes);
  void keep_read(Cell& cell, const WarpCheck& warp, const Access& access) const;
  void check_cell(const Lane& run, const Stretch& at, bool writes, const Values* values);
  bool check_races(const Lane& lane, const Stretch& at, bool writes, Same same);
  static Same compare(const Lane& run, const Stretch& at, const Values& values);
  static StoredFloats floats_of(LaunchCheck& launch, std::uint32_t line);
  void check_async(const Lane& lane, const Stretch& at, bool writes, const std::uint8_t* data);
  void check_proxy(const Lane& lane, const Stretch& at);
  std::uint32_t copies_of(const WarpCheck& warp, std::uint64_t channel);
  std::uint32_t twin_of(std::uint32_t agent);
  void end_bulk(WarpCheck& warp);
  void race(const Lane& lane, const Region& region, const Access& before, std::string_view what);
  /// Whether the access is one of the block's other warps.
  [[nodiscard]] bool in_block(const WarpCheck& warp, const Access& before) const;
  [[nodiscard]] std::optional<Reader> reader(const Lane& lane, const Access& before,
                                             std::string_view what) const;
  const ReadUse* use_of(const Reader& reader);
  [[nodiscard]] static bool is_stored(const AgentInfo& reader, const ReadUse& use,
                                      std::uint32_t time, std::uint32_t lanes);
  void settle_values(std::uint32_t agent);
  void judge(std::uint32_t agent, const Suspect& suspect);
  void settle(std::uint32_t agent);
  void note(const Lane& lane, const Region& region, const Access& before, Same same);
  void add_unwritten(const Lane& lane, const Stretch& at);
  void is_written(const Access& read, std::uint64_t start, std::uint64_t end);
  void settle_unwritten(bool all);
  [[nodiscard]] bool ordered(const WarpCheck& warp, const Access& before) const;
  [[nodiscard]] bool both_strong(const Lane& lane, const Access& before) const;
  [[nodiscard]] bool in_scope(const WarpCheck& warp, std::uint8_t scope, std::uint32_t agent) const;
  void synchronize(const Lane& lane, std::uint64_t address, bool loads, bool stores);
  /// One finding for each kind, kernel, line and other side.
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
    LaunchCheck* launch = nullptr;  ///< that runs it, or ran it last and is not over
    bool ended = false;
    std::uint32_t start = 0;                           ///< its time when it started
    std::unordered_map<std::uint32_t, Stored> stores;  ///< by line
    enum Role : std::uint8_t { kWarp, kCopies, kInits, kTwin };
    Role role = kWarp;       ///< else: of its copies, its mbarrier.inits, or what copies see of it
    std::uint32_t twin = 0;  ///< the agent that is that
    std::uint32_t issued = 0;  ///< copies, or inits
    bool matrix = false;       ///< its copies are the reads of wgmma
  };

  std::mutex mutex_;
  unsigned checks_;
  std::map<std::uint64_t, Region> regions_;
  Region* last_region_ = nullptr;
  std::vector<AgentInfo> agents_;
  std::vector<std::string> kernels_;
  std::vector<Dim3> block_shapes_;  ///< of each kernel, the last launch's
  std::vector<Dim3> grid_shapes_;
  std::vector<SourceLines> sources_;
  std::uint32_t streams_ = 0;
  VectorClock host_;
  std::unordered_map<std::uint64_t, Published> published_;
  std::map<std::uint64_t, Phases> phases_;     ///< of each mbarrier
  std::map<std::uint64_t, VectorClock> told_;  ///< of each word, what its last writer knew
  std::uint64_t progress_ = 0;
  std::uint64_t ticks_ = 0;
  FindingList findings_;
  std::set<Known> known_;
  std::map<Known, Finding> notes_;
  std::map<std::pair<std::uint32_t, Known>, Suspect> suspects_;  ///< by the reader
  std::map<std::pair<std::uint32_t, Known>, Unwritten> unwritten_;
  std::vector<std::pair<Unwritten*, std::size_t>>
      fresh_;  ///< stretches, of the access that is judged
};

}  // namespace braid::cpu
