#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "braid/launch_config.h"
#include "codegen/target.h"
#include "ir/expr.h"

namespace braid {

namespace tile {
struct Program;
}

/// Meta-parameters, named as in Triton: BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps, num_stages.
using Config = std::map<std::string, std::int64_t>;

/// The interface between lowering and codegen: what one kernel computes, and its configuration. The
/// body is a small graph whose inputs and outputs are the kernel's buffers, with the symbols and
/// groups that it uses. A collective in a body has an `algorithm` and, except for packets, reads a
/// value with that `comm_group`: an input, or an output that the kernel writes to its arena before
/// it signals.
///
/// The nodes of a body may also be kernels, each with its body and configuration: joined kernels
/// (kernel/joined.h).
struct KernelSpec {
  std::shared_ptr<const Graph> body;
  Config config;
};
[[nodiscard]] bool is_joined(const Graph& body);
/// The configuration of joined kernels: their number of warps.
[[nodiscard]] Config joined_config(const Graph& body);

/// What a tensor map says of an operand that lies in memory as a matrix [rows, columns], or as
/// several, of which bulk copies take `box` rows and kMapRowBytes of columns at a time, swizzled by
/// 128 bytes.
struct TileMap {
  Expr rows = 0, columns = 0;
  int box = 0;
  DType dtype = DType::kBF16;
  Expr row_stride = 0;  ///< elements from a row to the next one; 0: `columns`
  /// Dims along which there are several matrices, the innermost first, and elements from one to the
  /// next.
  struct Outer {
    Expr extent, stride;
  };
  std::vector<Outer> outer = {};
};
/// A tensor map has 5 dims at most.
inline constexpr std::size_t kMostOuter = 3;
inline constexpr int kMapBytes = 128, kMapAlignment = 64, kMapRowBytes = 128;

/// A kernel parameter. The executable fills in its value for each launch.
struct KernelParam {
  enum class Kind : std::uint8_t {
    kInput,      ///< u64: address of body input `index`
    kOutput,     ///< u64: address of body output `index`
    kScalar,     ///< i64: `expr` at the symbols' values
    kPeers,      ///< u64[world], by value: address of each rank's symmetric arena of `group`
    kMulticast,  ///< u64: the multicast address of these arenas
    kOffset,  ///< u64: offset of body input `index` in the symmetric arena (the same on every rank)
    kResultOffset,  ///< u64: offset of body output `index`, likewise
    kRank,          ///< i32: this rank's index in `group`
    kFlags,         ///< u64: offset of this step's flag words in the arena of `group`
    kScratch,       ///< u64: offset of this step's scratch in the arena of `group`
    kStep,          ///< i32: index of the step in the program, for the error record
    kRecord,        ///< u64: address of this rank's protocol::Record
    kClosing,   ///< i32: 1 when this step ends with a barrier, so that no remote read outlives the
                ///< run
    kTimeout,   ///< i64: nanoseconds a wait may take
    kMarks,     ///< u64: address of this step's marks, kMarksOfBlock times protocol::Mark per block
    kBytes,     ///< `size` bytes by value, made by the launching code (a tensor map); `index`
                ///< distinguishes several in one kernel
    kCounter,   ///< u64: address of this step's flag words, for a kernel whose blocks meet
    kInputMap,  ///< 128 bytes by value: the tensor map `map` of body input `index`
    kOutputMap,  ///< the same of body output `index`
  };
  Kind kind;
  int index = 0;
  Expr expr = 0;
  std::string group;
  int size = 0, alignment = 1;  ///< for kBytes
  TileMap map = {};             ///< for kInputMap, kOutputMap
  [[nodiscard]] bool is_map() const { return kind == Kind::kInputMap || kind == Kind::kOutputMap; }
};
/// The name in the text form and in plans: "input", "result_offset".
[[nodiscard]] std::string_view param_name(KernelParam::Kind kind);
/// Returns nothing for an unknown name.
[[nodiscard]] std::optional<KernelParam::Kind> param_named(std::string_view name);

/// Limits of a parameter by value, in bytes, that hold on every target: size and alignment.
inline constexpr int kMaxParamBytes = 4096;
inline constexpr int kMaxParamAlignment = 128;
/// Throws kInvalidArgument at `place` for bytes that a kernel cannot take by value.
void check_param(const std::string& place, const KernelParam& param);

/// An access to an operand in the memory of peers.
struct RemoteAccess {
  bool output;  ///< an output of the body, else an input
  int index;
  bool write;
  auto operator<=>(const RemoteAccess&) const = default;
};

/// An operand that the kernel overwrites as scratch; its old value is lost.
struct Clobbered {
  bool output;  ///< an output of the body, else an input
  int index;
  auto operator<=>(const Clobbered&) const = default;
};

/// An output of the body that may share its place with an input: the thread that writes an element
/// has read the input's element before, and no other thread reads it.
struct InPlace {
  int output, input;
  auto operator<=>(const InPlace&) const = default;
};

/// The facts about a kernel that planning needs before any text exists.
struct Requirements {
  std::string template_name;         ///< for people
  Expr grid = 1;                     ///< number of blocks; constant when the kernel waits for peers
  int threads = 0;                   ///< threads per block
  int shared_bytes = 0;              ///< dynamic shared memory
  LaunchAttributes attributes;       ///< of its launches
  std::vector<KernelParam> params;   ///< in the order of the signature
  std::string comm_group;            ///< the group of its peers; empty for a local kernel
  bool meets = false;                ///< every run of it is a barrier of all ranks of the group
  std::vector<RemoteAccess> remote;  ///< accesses to memory of peers, except scratch
  std::vector<Clobbered> clobbered;
  std::vector<InPlace> in_place;  ///< valid if the text allows it: allows_in_place
  /// What a step that launches it owns in the symmetric arena of `comm_group`, zeroed before the
  /// first run: 32-bit flag words (an epoch per block, then for each slot a flag per rank), and
  /// bytes that peers write. A local kernel whose blocks meet owns one word in the `state` arena.
  std::int64_t flag_words = 0;
  std::int64_t scratch_bytes = 0;
};

/// The most blocks of a collective kernel, over all ranks that share a device
/// (docs/architecture.md, Communication).
inline constexpr std::int64_t kMaxCollectiveBlocks = 32;

/// The number of blocks that copy in a kernel with a gather and its matmuls, and its default.
inline constexpr std::string_view kCopyBlocksSetting = "num_copy_blocks";
inline constexpr std::int64_t kGatherGemmCopyBlocks = 16;

/// A number in a config: its range, and whether it must be a power of two.
struct Setting {
  std::string_view name;
  std::int64_t min, max;
  bool power_of_two;
};

/// A setting of any kernel: 1 if operands may share a place. The text of other kernels promises the
/// compiler that no operands alias, unless they communicate.
inline constexpr const char* kInPlaceSetting = "in_place";
[[nodiscard]] bool allows_in_place(const KernelSpec& spec, const Requirements& needs);

/// Elements per thread, default eight, for kernels without a matmul whose rows fit in a block. Up
/// to eight are adjacent; more belong to other rows where there are rows, and with rows there are
/// never fewer.
inline constexpr Setting kElementsSetting = {"elements", 4, 16, true};

/// A setting of kernels whose blocks can record what they do: 1 if they do.
inline constexpr const char* kMarksSetting = "marks";

/// The CUDA C++ text of one kernel. It is self-contained, and is the kernel's identity.
struct KernelSource {
  std::string entry;
  std::string text;
  unsigned units = 0;  ///< bits of the units that it uses (codegen/units.h)
};

/// For a kernel that waits and could fill the device: how many multiprocessors it leaves to others
/// that wait beside it. Default: none.
inline constexpr std::string_view kLeavesSetting = "leaves";

// A body's kernel (kernel/kernel.h) answers:

/// The kernel's name, for people.
[[nodiscard]] std::string_view template_name(const Graph& body);
/// Why the body cannot be one kernel, for people; empty where it can. The fuser asks this about the
/// body that a merge would have (whether the merge pays is another question). Linear in the body.
[[nodiscard]] std::string cannot_fuse(const Graph& body);
/// What it reads of a config.
[[nodiscard]] std::vector<Setting> settings(const Graph& body);
[[nodiscard]] Config default_config(const Graph& body, const Target& target);
/// The configurations that a tuner may choose from; all give the same results. `resident`: as one
/// of joined kernels.
[[nodiscard]] std::vector<Config> candidates(const Graph& body, const Target& target,
                                             bool resident = false);

/// The requirements of a kernel. `ranks_per_device` bounds the grid of a kernel that waits
/// (docs/architecture.md, Communication).
[[nodiscard]] Requirements requirements(const KernelSpec& spec, const Target& target,
                                        int ranks_per_device = 1);
/// The tile program of a spec after all passes, which `emit` prints.
[[nodiscard]] tile::Program tile_program(const KernelSpec& spec, const Target& target,
                                         int ranks_per_device);
[[nodiscard]] KernelSource emit(const KernelSpec& spec, const Target& target);

}  // namespace braid
