#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/kernel_spec.h"

namespace braid {

enum class ArenaKind : std::uint8_t { kParameters, kWorkspace, kSymmetric, kIo };

/// One block of memory per rank. `symmetric:<group>` has the same size, and the same offset for the
/// same buffer, on every rank and in every run; it opens with the head of protocol.h.
struct Arena {
  ArenaKind kind;
  std::string group;                       ///< of a symmetric arena
  std::int64_t bytes;                      ///< with symbols at their maximum
  [[nodiscard]] std::string name() const;  ///< "parameters", "workspace", "symmetric:tp", "io"
};

/// What a buffer holds. The words of a step that communicates (its flags, and the scratch that
/// peers write) are that step's alone and lie in its group's arena; they are zeroed before the
/// first run and keep their bytes between runs.
enum class BufferKind : std::uint8_t { kTensor, kFlags, kScratch };

/// A place in an arena. Two buffers may share bytes when their lives do not overlap.
struct Buffer {
  BufferKind kind = BufferKind::kTensor;
  std::string name;  ///< of the value it holds
  TensorType type;
  int arena;
  std::int64_t offset;
  std::int64_t bytes;  ///< with symbols at their maximum
  int first_step;      ///< lifetime, inclusive: the step that writes it ...
  int last_step;       ///< ... and the last one that needs it (remote readers and closing barrier
                       ///< counted)
};

/// A distinct kernel; several steps may launch one.
struct ProgramKernel {
  KernelSpec spec;
  Requirements needs;
};

struct Step {
  enum class Kind : std::uint8_t { kLaunch, kCopy };
  Kind kind = Kind::kLaunch;
  std::string name;  ///< of the node it runs
  int stream = 0;
  // kLaunch
  int kernel = -1;
  std::vector<int> inputs;   ///< buffers of the body's inputs
  std::vector<int> outputs;  ///< buffers of the body's outputs
  int flags = -1;            ///< buffer of its flag words, of a kernel that waits
  int scratch = -1;          ///< buffer that peers write, of a kernel that asks for one
  bool closing_barrier = false;
  std::map<std::string, std::int64_t> indexed;  ///< names of the body's nodes that take indices
  // kCopy: buffer to buffer, of equal size
  int source = -1;
  int destination = -1;
};

struct ProgramTensor {
  std::string name;
  int buffer;
  TensorType type;
  InputKind kind = InputKind::kActivation;
  bool per_rank = false;
};

/// The plan as data (DESIGN §5): steps in order, operands as (arena, offset), sizes as expressions
/// over symbols.
struct Program {
  std::string name;
  Target target;
  int ranks_per_device = 1;
  SymbolTable symbols;
  GroupTable groups;
  std::int64_t world = 1;
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<ProgramKernel> kernels;
  std::vector<Step> steps;
  std::vector<ProgramTensor> inputs;
  std::vector<ProgramTensor> outputs;
  std::string hash;  ///< of all above: what ranks must agree on before the first launch
};

/// The JSON of a Program, without the hash when `with_hash` is false (its hash is taken of that
/// text).
[[nodiscard]] std::string to_json(const Program& program, bool with_hash = true);

/// XXH3-128 of the text without the hash, in hex.
[[nodiscard]] std::string hash_of(const Program& program);

/// The buffers that a launch of the kernel reads from the memory of all ranks.
[[nodiscard]] std::vector<int> remote_buffers(const KernelSpec& spec, const Step& step);

/// Checks a plan against its own rules: buffers inside their arena, no two live buffers overlap,
/// symmetric buffers not reused before the group's next barrier after their last remote read.
/// Throws kInternal, naming the step or buffer.
void verify(const Program& program);

}  // namespace braid
