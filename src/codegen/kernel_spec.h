#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
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

/// The seam between lowering and codegen: what one kernel computes and how. The body is a small
/// graph whose inputs and outputs are the kernel's buffers; it carries the symbols and groups it
/// uses. A collective in a body has an `algorithm` and, but for packets, reads a value with that
/// `comm_group`: an input, or an output that the kernel writes to its arena before it signals.
struct KernelSpec {
  std::shared_ptr<const Graph> body;
  Config config;
};

/// One parameter of a kernel, in order. The values are filled in per launch by the executable.
struct KernelParam {
  enum class Kind : std::uint8_t {
    kInput,      ///< u64: address of body input `index`
    kOutput,     ///< u64: address of body output `index`
    kScalar,     ///< i64: `expr` at the symbols' values
    kPeers,      ///< u64[world], by value: address of each rank's symmetric arena of `group`
    kMulticast,  ///< u64: the multicast address of these arenas
    kOffset,  ///< u64: offset of body input `index` in the symmetric arena (the same on every rank)
    kResultOffset,  ///< the same of body output `index`
    kRank,          ///< i32: this rank's index in `group`
    kFlags,         ///< u64: offset of this step's flag words in the arena of `group`
    kScratch,       ///< u64: offset of this step's scratch in the arena of `group`
    kStep,          ///< i32: index of the step in the program, for the record
    kRecord,        ///< u64: address of this rank's protocol::Record
    kClosing,  ///< i32: 1 when this step ends with a barrier, so that no remote read outlives the
               ///< run
    kTimeout,  ///< i64: nanoseconds a wait may take
    kMarks,    ///< u64: address of kMarksOfBlock times protocol::Mark for each block, of this step
    kBytes,    ///< `size` bytes by value, which whoever launches makes: a tensor map; `index` tells
               ///< those of one kernel apart
  };
  Kind kind;
  int index = 0;
  Expr expr = 0;
  std::string group;
  int size = 0, alignment = 1;  ///< kBytes
};
/// As the text form and a plan spell it: "input", "result_offset".
[[nodiscard]] std::string_view param_name(KernelParam::Kind kind);
/// Nothing when there is no such kind.
[[nodiscard]] std::optional<KernelParam::Kind> param_named(std::string_view name);

/// What any target passes by value, and the strictest alignment of it.
inline constexpr int kMaxParamBytes = 4096;
inline constexpr int kMaxParamAlignment = 128;
/// Throws kInvalidArgument at `place` for bytes that no kernel can take by value.
void check_param(const std::string& place, const KernelParam& param);

/// That a kernel reads or writes an operand in the memory of its peers.
struct RemoteAccess {
  bool output;  ///< of the body; else an input
  int index;
  bool write;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that <=> is compared with
  auto operator<=>(const RemoteAccess&) const = default;
};

/// An operand that the kernel uses as its own memory: what it held is gone afterwards.
struct Clobbered {
  bool output;  ///< of the body; else an input
  int index;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that <=> is compared with
  auto operator<=>(const Clobbered&) const = default;
};

/// An output of the body that may lie where an input does: of each element, the thread that writes
/// it has read what was there, and no other one reads it.
struct InPlace {
  int output, input;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that <=> is compared with
  auto operator<=>(const InPlace&) const = default;
};

/// What must be known of a kernel before any text exists.
struct Requirements {
  std::string template_name;         ///< for people
  Expr grid = 1;                     ///< number of blocks; constant when the kernel waits for peers
  int threads = 0;                   ///< threads per block
  int shared_bytes = 0;              ///< dynamic shared memory
  LaunchAttributes attributes;       ///< of its launches
  std::vector<KernelParam> params;   ///< in the order of the kernel's signature
  std::string comm_group;            ///< the group of its peers; empty for a local kernel
  bool meets = false;                ///< all ranks of the group meet in it
  std::vector<RemoteAccess> remote;  ///< what it does in the memory of peers, scratch apart
  std::vector<Clobbered> clobbered;
  std::vector<InPlace> in_place;  ///< where the text allows it: allows_in_place
  /// What a step that launches it owns in the symmetric arena of `comm_group`, zero before the
  /// first run: 32-bit flag words (an epoch of each block, then for each slot a flag of each rank),
  /// and bytes that peers write.
  std::int64_t flag_words = 0;
  std::int64_t scratch_bytes = 0;
};

/// The most blocks of a collective, on all ranks that share a device (docs/architecture.md,
/// Communication).
inline constexpr std::int64_t kMaxCollectiveBlocks = 32;

/// How many blocks of a gather within the kernel of its matmuls copy; by default so many.
inline constexpr std::string_view kCopyBlocksSetting = "num_copy_blocks";
inline constexpr std::int64_t kGatherGemmCopyBlocks = 16;

/// A number of a config that the code generator takes: a power of two, or any, in a range.
struct Setting {
  std::string_view name;
  std::int64_t min, max;
  bool power_of_two;
};

/// A setting of any kernel, 1 where it is there: operands may lie in one place. The text of others
/// promises the compiler that none do, but for kernels that communicate.
inline constexpr const char* kInPlaceSetting = "in_place";
[[nodiscard]] bool allows_in_place(const KernelSpec& spec, const Requirements& needs);

/// A setting of kernels without a matmul, but for those whose rows no block holds: how many
/// elements a thread has; eight where it is left out. They lie together up to eight; more are of
/// other rows, where it has rows, and so are never fewer.
inline constexpr Setting kElementsSetting = {"elements", 4, 16, true};

/// A setting of kernels whose blocks can note what they do when: 1 where they do.
inline constexpr const char* kMarksSetting = "marks";

/// CUDA C++ of one kernel, self-contained. The text is the kernel's identity.
struct KernelSource {
  std::string entry;
  std::string text;
};

/// Of a kernel that waits and would fill a device: how many multiprocessors it leaves to others
/// that wait beside it. Left out: none.
inline constexpr std::string_view kLeavesSetting = "leaves";

// A body's template (templates/template.h) answers:

/// Its name, for people.
[[nodiscard]] std::string_view template_name(const Graph& body);
/// Empty when the body can be one kernel; else the reason, for people. The fuser builds the body
/// that a merge would have and asks (profit is its own question); the cost is linear in the body.
[[nodiscard]] std::string cannot_fuse(const Graph& body);
/// What it reads of a config.
[[nodiscard]] std::span<const Setting> settings(const Graph& body);
[[nodiscard]] Config default_config(const Graph& body, const Target& target);
/// What a tuner may choose from; results do not depend on the choice.
[[nodiscard]] std::vector<Config> candidates(const Graph& body, const Target& target);

/// `ranks_per_device` bounds the grid of a kernel that waits (docs/architecture.md, Communication).
[[nodiscard]] Requirements requirements(const KernelSpec& spec, const Target& target,
                                        int ranks_per_device = 1);
/// The tile program of a spec after all passes: what `emit` prints.
[[nodiscard]] tile::Program tile_program(const KernelSpec& spec, const Target& target,
                                         int ranks_per_device);
[[nodiscard]] KernelSource emit(const KernelSpec& spec, const Target& target);

}  // namespace braid
