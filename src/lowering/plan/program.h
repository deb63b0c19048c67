#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.h"

namespace braid {

enum class ArenaKind : std::uint8_t {
  kParameters,
  kWorkspace,
  kSymmetric,
  kIo,
  kState,  ///< zero at first, and shared by all plans and runs of an executable: a KV cache
};

/// One block of memory per rank. `symmetric:<group>` has the same size, and the same offset for the
/// same buffer, on every rank and in every run; it opens with the head of protocol.h.
struct Arena {
  ArenaKind kind;
  std::string group;   ///< of a symmetric arena
  std::int64_t bytes;  ///< with symbols at their maximum
  [[nodiscard]] std::string name()
      const;  ///< "parameters", "workspace", "symmetric:tp", "io", "state"
};

/// What a buffer holds. The words of a step that communicates (its flags, and the scratch that
/// peers write) are that step's alone and lie in its group's arena; they are zeroed before the
/// first run and keep their bytes between runs.
enum class BufferKind : std::uint8_t { kTensor, kFlags, kScratch };
/// "tensor", "flags", "scratch".
[[nodiscard]] std::string_view name_of(BufferKind kind);

/// One of the equal chunks that a buffer's first dims are cut into, one for each rank of a group:
/// that of the rank `shift` after this one, which wraps. So it lies elsewhere on each rank.
struct Slice {
  int of;  ///< a buffer that is no slice; all of its slices are of one group
  std::string group;
  std::int64_t shift;  ///< from 0
};

/// A place in an arena. Two buffers may share bytes when their lives do not overlap.
struct Buffer {
  BufferKind kind = BufferKind::kTensor;
  std::string name;  ///< of the value it holds
  TensorType type;
  int arena;
  std::int64_t offset;
  std::int64_t bytes;  ///< with symbols at their maximum
  int first_step;      ///< lifetime, inclusive, in the order of issue (lifetimes.h)
  int last_step;
  /// Else arena, offset and lifetime are those of the buffer that it is a part of.
  std::optional<Slice> slice = std::nullopt;
};

/// Where slices begin that a kernel reads or writes: chunks have a multiple of so many bytes.
inline constexpr std::int64_t kSliceAlignment = 16;
/// Whether all chunks of that type begin there, whatever the symbols are.
[[nodiscard]] bool has_aligned_chunks(const TensorType& chunk, const SymbolTable& symbols);

/// A distinct kernel; several steps may launch one.
struct ProgramKernel {
  KernelSpec spec;
  Requirements needs;
};

/// One piece of work on one stream of every rank. A stream runs its steps in the order of issue.
/// All streams begin where the caller's stream, 0, stands when a run begins, and stream 0 ends with
/// all of them.
struct Step {
  enum class Kind : std::uint8_t {
    kLaunch,
    kCopy,
    kBarrier,     ///< launches a kernel without operands that waits for all peers
    kCollective,  ///< by a communicator, on whole buffers
    kEventRecord,
    kEventWait
  };
  Kind kind = Kind::kLaunch;
  std::string name;  ///< of the node it runs
  int stream = 0;
  // kLaunch, kBarrier
  int kernel = -1;
  std::vector<int> inputs;   ///< buffers of the body's inputs; of a collective's operand
  std::vector<int> outputs;  ///< buffers of the body's outputs; of a collective's result
  int flags = -1;            ///< buffer of its flag words, of a kernel that waits
  int scratch = -1;          ///< buffer that peers write, of a kernel that asks for one
  bool closing_barrier = false;
  std::map<std::string, std::int64_t> indexed;  ///< names of the body's nodes that take indices
  // kCopy: buffer to buffer, of equal size
  int source = -1;
  int destination = -1;
  /// The rank whose buffer a copy's operand is, `shift` ranks after this one in the group, which
  /// wraps; the buffer lies in the group's arena.
  struct Peer {
    std::string group;
    std::int64_t shift = 0;
  };
  std::optional<Peer> source_peer, destination_peer;  ///< none: this rank's own
  // kCollective: as the op of that name, "all_reduce"; chunks are along dim 0
  std::string op, group, reduce_op;
  TensorType operand;                ///< as the collective sees it; a view may have another shape
  std::int64_t src = -1;             ///< of a broadcast
  std::vector<std::int64_t> splits;  ///< uneven ones, as Collective::splits
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

/// Entries of a list: [first, end).
struct IndexRange {
  int first = 0, end = 0;
  [[nodiscard]] bool has(int index) const { return index >= first && index < end; }
  [[nodiscard]] int size() const { return end - first; }
};

/// What runs for a part of the values of the symbols (variants.h).
struct Variant {
  SymbolTable symbols;                 ///< within the program's
  IndexRange buffers, kernels, steps;  ///< its own
};

/// The plan as data (docs/architecture.md, Program): steps in order, operands as (arena, offset),
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
  /// In the order of which the first that has a value runs for it. None: all steps run for all.
  /// Their lists follow each other; buffers in front of them all are those of inputs and outputs.
  std::vector<Variant> variants;
  std::string hash;  ///< of all above: what ranks must agree on before the first launch
};

/// The JSON of a Program, without the hash when `with_hash` is false (its hash is taken of that
/// text).
[[nodiscard]] std::string to_json(const Program& program, bool with_hash = true);

/// A program from its JSON, checked so that running it can do no more harm than a graph's own
/// could. `where` is the file, for errors. Throws kInvalidArgument with the place of the first
/// thing that is wrong. The hash may be left out.
[[nodiscard]] Program parse_program(std::string_view text, std::string_view where = "");
[[nodiscard]] Program load_program(const std::string& path);
/// Whether a text is meant as one: its first key is "braid_program".
[[nodiscard]] bool is_program(std::string_view text);

/// XXH3-128, in hex.
[[nodiscard]] std::string hash_of(std::string_view bytes);
/// That of the text without the hash.
[[nodiscard]] std::string hash_of(const Program& program);

/// What a step does with a buffer: on its own rank, or on its peers, which do the same with this
/// rank's.
struct Access {
  static constexpr int kWhole = -1;
  int buffer;  ///< no slice
  bool write;
  bool remote;
  bool clobbers = false;  ///< what is written is nobody's value
  int part = kWhole;      ///< of a slice its shift: two parts of one buffer have no byte in common
};
[[nodiscard]] std::vector<Access> accesses(const Program& program, const Step& step);

/// The group whose peers a step waits for, by flags or by packets; empty for any other step.
[[nodiscard]] const std::string& comm_group(const Program& program, const Step& step);

/// Whether all peers have done with what they did before when such a step ends. One that only takes
/// packets knows no more than that they have begun with it.
[[nodiscard]] bool meets(const Program& program, const Step& step);

/// How many streams the steps use: one past the highest.
[[nodiscard]] int stream_count(const Program& program);
/// How many events the steps use: one past the highest.
[[nodiscard]] int event_count(const Program& program);

/// Checks a plan against its own rules: everything in range and inside its arena, flags and scratch
/// owned by one step, room for all kernels that wait at one time (residency.h), no remote access
/// that outlives a run, lifetimes as they follow from the steps, and no hazard (hazards.h). Throws
/// kInternal, naming the step or buffer; kInvalidArgument where there is no room.
void verify(const Program& program);

}  // namespace braid
