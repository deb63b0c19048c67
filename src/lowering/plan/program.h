#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel/spec.h"

namespace braid {

enum class ArenaKind : std::uint8_t {
  kParameters,
  kWorkspace,
  kSymmetric,
  kIo,
  kState,  ///< zeroed at first, and shared by all plans and runs of an executable: a KV cache
};

/// A block of memory on each rank. `symmetric:<group>` has the same size, and each buffer the same
/// offset, on every rank and in every run; it starts with the head of protocol.h.
struct Arena {
  ArenaKind kind;
  std::string group;   ///< for a symmetric arena
  std::int64_t bytes;  ///< with symbols at their maximum
  [[nodiscard]] std::string name()
      const;  ///< "parameters", "workspace", "symmetric:tp", "io", "state"
};

/// The content of a buffer. The words of a step that communicates (its flags, and the scratch that
/// peers write) belong to that step alone and lie in its group's arena. They are zeroed before the
/// first run and keep their bytes between runs.
enum class BufferKind : std::uint8_t { kTensor, kFlags, kScratch };
/// The name in JSON: "tensor", "flags" or "scratch".
[[nodiscard]] std::string_view name_of(BufferKind kind);

/// One of the equal chunks into which a buffer's first dims are cut, one for each rank of a group:
/// the chunk of the rank `shift` after this one, cyclically. So it lies elsewhere on each rank.
struct Slice {
  int of;  ///< a buffer that is no slice; all its slices are of one group
  std::string group;
  std::int64_t shift;  ///< at least 0
};

/// A range of an arena. Two buffers may share bytes when their lifetimes do not overlap.
struct Buffer {
  BufferKind kind = BufferKind::kTensor;
  std::string name;  ///< name of the value it holds
  TensorType type;
  int arena;
  std::int64_t offset;
  std::int64_t bytes;  ///< with symbols at their maximum
  int first_step;      ///< lifetime in the order of issue, inclusive (lifetimes.h)
  int last_step;
  /// If set, arena, offset and lifetime are those of the buffer that it is part of.
  std::optional<Slice> slice = std::nullopt;
};

/// Alignment in bytes of slices that a kernel reads or writes; a chunk's size is a multiple of it.
inline constexpr std::int64_t kSliceAlignment = 16;
/// Whether all chunks of that type are so aligned, for all values of the symbols.
[[nodiscard]] bool has_aligned_chunks(const TensorType& chunk, const SymbolTable& symbols);

/// A distinct kernel, which several steps may launch.
struct ProgramKernel {
  KernelSpec spec;
  Requirements needs;
};

/// A piece of work on one stream of every rank. A stream executes its steps in the order of issue.
/// When a run begins, all streams wait for the caller's stream, 0; at the end stream 0 waits for
/// all.
struct Step {
  enum class Kind : std::uint8_t {
    kLaunch,
    kCopy,
    kBarrier,     ///< launches a kernel without operands that waits for all peers
    kCollective,  ///< run by a communicator, on whole buffers
    kEventRecord,
    kEventWait
  };
  Kind kind = Kind::kLaunch;
  std::string name;  ///< name of the node it runs
  int stream = 0;
  // kLaunch, kBarrier
  int kernel = -1;
  std::vector<int> inputs;   ///< buffers of the body's inputs, or of a collective's operand
  std::vector<int> outputs;  ///< buffers of the body's outputs, or of a collective's result
  int flags = -1;            ///< buffer of its flag words, for a kernel that waits
  int scratch = -1;          ///< buffer that peers write, for a kernel that asks for one
  bool closing_barrier = false;
  std::map<std::string, std::int64_t> indexed;  ///< names of the body's nodes that check values
  // kCopy: copies a buffer to one of equal size
  int source = -1;
  int destination = -1;
  /// The rank whose buffer is an operand of a copy: `shift` ranks after this one in the group,
  /// cyclically. The buffer lies in the group's arena.
  struct Peer {
    std::string group;
    std::int64_t shift = 0;
  };
  std::optional<Peer> source_peer, destination_peer;  ///< unset: this rank's own
  // kCollective: like the op of that name, "all_reduce"; chunks are along dim 0
  std::string op, group, reduce_op;
  TensorType operand;                ///< type in the collective's view; a view may have another
                                     ///< shape
  std::int64_t src = -1;             ///< root of a broadcast
  std::vector<std::int64_t> splits;  ///< uneven splits, as Collective::splits
  // kEventRecord, kEventWait
  int event = -1;
};

struct ProgramTensor {
  std::string name;
  int buffer;
  TensorType type;
  InputKind kind = InputKind::kActivation;
  bool per_rank = false;
};

/// The entries [first, end) of a list.
struct IndexRange {
  int first = 0, end = 0;
  [[nodiscard]] bool has(int index) const { return index >= first && index < end; }
  [[nodiscard]] int size() const { return end - first; }
};

/// The part of a program that runs for some of the symbol values (variants.h).
struct Variant {
  SymbolTable symbols;  ///< ranges within the program's
  IndexRange buffers, kernels, steps;
};

/// A plan as data (docs/architecture.md, Program): steps in order, operands as (arena, offset),
/// sizes as expressions over symbols.
struct Program {
  std::string name;
  Target target;
  int ranks_per_device = 1;
  bool batch_invariant = true;  ///< PassConfig::batch_invariant
  SymbolTable symbols;
  GroupTable groups;
  std::int64_t world = 1;
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<ProgramKernel> kernels;
  std::vector<Step> steps;
  std::vector<ProgramTensor> inputs;
  std::vector<ProgramTensor> outputs;
  /// For given symbol values the first variant that contains them runs. Empty: all steps run for
  /// all values. The variants' list ranges are consecutive; buffers before the first are those of
  /// inputs and outputs.
  std::vector<Variant> variants;
  std::string hash;  ///< hash of all of the above, on which ranks must agree before the first
                     ///< launch
};

/// The JSON of a Program. Its hash is that of the JSON with `with_hash` false.
[[nodiscard]] std::string to_json(const Program& program, bool with_hash = true);

/// Reads a program from JSON, and checks it so that running it can do no more harm than a graph
/// could. `where` names the file in errors. Throws kInvalidArgument with the place of the first
/// error. The hash is optional.
[[nodiscard]] Program parse_program(std::string_view text, std::string_view where = "");
[[nodiscard]] Program load_program(const std::string& path);
/// Whether a text is meant as a program: its first key is "braid_program".
[[nodiscard]] bool is_program(std::string_view text);

/// XXH3-128 in hex.
[[nodiscard]] std::string hash_of(std::string_view bytes);
[[nodiscard]] std::string hash_of(const Program& program);

/// An access of a step to a buffer, on its own rank or on its peers. The peers access this rank's
/// buffer in the same way.
struct Access {
  static constexpr int kWhole = -1;
  int buffer;  ///< not a slice
  bool write;
  bool remote;
  bool clobbers = false;  ///< the bytes written are no buffer's value
  int part = kWhole;      ///< the shift of a slice; different parts of one buffer are disjoint
};
[[nodiscard]] std::vector<Access> accesses(const Program& program, const Step& step);

/// Whether the step's kernel replaces elements of the buffer, and does not read it.
[[nodiscard]] bool only_updates(const Program& program, const Step& step, int buffer);

/// The group whose peers a step waits for, by flags or packets; empty for other steps.
[[nodiscard]] const std::string& comm_group(const Program& program, const Step& step);

/// Whether all peers have finished their earlier work when this step ends. After one that only
/// receives packets, they have merely begun it.
[[nodiscard]] bool meets(const Program& program, const Step& step);

/// The number of streams that the steps use: one past the highest.
[[nodiscard]] int stream_count(const Program& program);
/// The number of events that the steps use: one past the highest.
[[nodiscard]] int event_count(const Program& program);

/// Verifies a plan: everything is in range and inside its arena, flags and scratch are owned by one
/// step, all kernels that wait at one time fit on the device (residency.h), no remote access
/// outlives a run, lifetimes follow from the steps, and there is no hazard (hazards.h). Throws
/// kInternal, naming the step or buffer; kInvalidArgument where the kernels do not fit.
void verify(const Program& program);

}  // namespace braid
