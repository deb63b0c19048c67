#pragma once

#include <span>
#include <string>
#include <string_view>

#include "braid/dtype.h"
#include "codegen/target.h"

namespace braid {

namespace tile {
struct DotLayouts;
struct Inst;
struct Program;
}  // namespace tile

// The units of a multiprocessor that multiply and copy, each a record with what passes need to
// know. Passes and printer ask for the unit of an operation; nobody asks for an architecture. A new
// unit is a record in units.cpp and its instructions in codegen/cuda.

/// A dtype of operands, and the first architecture on which the unit multiplies it.
struct Factor {
  DType dtype;
  int least_sm = kLeastSm;
};

/// How a unit multiplies a [M, K] by b [K, N]; the sums are f32.
struct Multiplier {
  /// How it reads an operand in shared memory: element by element; as fragments, by ldmatrix; or
  /// itself, where descriptors say.
  enum class Reads { kElements, kFragments, kDescriptors };
  /// Where its sums are: in registers; there, too, but made beside the threads, for `async_dot`; or
  /// in a memory of its own, for `dot_to_sums`.
  enum class Sums { kInRegisters, kUnderWay, kInOwnMemory };

  std::span<const Factor> factors;
  Reads reads;
  bool from_registers = false;  ///< an operand may be in registers
  Sums sums = Sums::kInRegisters;
  int rows = 16;       ///< of the result, in one instruction
  int step_bytes = 0;  ///< of K, in one instruction; 0: one element
  /// Architectures [from, below) where it has no instruction for 8-bit floats: they become f16 on
  /// their way to it.
  int widens_from = 0, widens_below = 0;
  /// So many products of 8-bit floats at most in one sum along K, which has fewer bits than f32; 0:
  /// any number.
  int chain_of_float8 = 0;
  /// The layouts that a dot wants for its tiles; null where no dot does.
  tile::DotLayouts (*layouts)(const tile::Program& program, const tile::Inst& dot) = nullptr;
  /// For the swizzle of operand `side` in shared memory: SharedLayout's `row_step`.
  int (*row_step)(const tile::Inst& dot, std::size_t side) = nullptr;

  /// Elements of K in one instruction.
  [[nodiscard]] int step(DType dtype) const {
    return step_bytes == 0 ? 1 : step_bytes / static_cast<int>(dtype_size(dtype));
  }
  [[nodiscard]] bool widens(DType dtype, int sm) const {
    return is_float8(dtype) && widens_from <= sm && sm < widens_below;
  }
};

/// How a unit moves data.
struct Copier {
  /// What one instruction moves: a piece for one thread, a tile of a tensor, or a piece of the
  /// memory of all ranks.
  enum class Moves { kPiece, kTile, kPieceOfAllRanks };
  /// When what it moved is there: with the instruction, once the thread has waited for its group of
  /// copies, or once an mbarrier has counted the bytes.
  enum class Completes { kAtOnce, kInGroups, kAtMbarrier };

  Moves moves;
  Completes completes;
  int least_bytes, most_bytes;  ///< of a piece, or of a tile's row; aligned to as many
};

/// One unit; it multiplies or copies.
struct Unit {
  std::string_view name;       ///< that of its instruction in PTX; for people, too
  int least_sm = kLeastSm;     ///< the first architecture that has it
  int below_sm = 0;            ///< those from here on have not; 0: all have
  bool arch_specific = false;  ///< only code for one architecture alone (`a`) may use it
  bool optional = true;        ///< false: every kernel needs it, so it cannot be switched off
  const Multiplier* multiplies = nullptr;
  const Copier* copies = nullptr;
};

namespace units {

extern const Unit kFma;         ///< multiply-adds of each thread
extern const Unit kMmaSync;     ///< matrix products of a warp
extern const Unit kWgmma;       ///< asynchronous matrix products of a group of four warps
extern const Unit kTcgen05;     ///< those of a thread, whose sums are in tensor memory
extern const Unit kLoadStore;   ///< loads and stores, through registers
extern const Unit kCpAsync;     ///< asynchronous copies into shared memory
extern const Unit kBulkTensor;  ///< bulk copies of tiles of tensors: TMA
extern const Unit kMultimem;    ///< reductions and stores over links: NVLink SHARP

}  // namespace units

/// All of them; of those that do the same, the fastest is last.
[[nodiscard]] std::span<const Unit* const> all_units();
/// "fma, mma.sync, ..."
[[nodiscard]] std::string unit_names();

/// Its bit in a set of units, such as Target::off.
[[nodiscard]] unsigned bit_of(const Unit& unit);

/// Whether kernels for the target may use it.
[[nodiscard]] bool has(const Target& target, const Unit& unit);
/// The unit that multiplies operands of a dtype, beside the threads or not; null where the target
/// has none.
[[nodiscard]] const Unit* multiplier(const Target& target, DType dtype, bool asynchronous = false);
/// Whether its sums are in a memory of its own.
[[nodiscard]] inline bool has_own_sums(const Unit& unit) {
  return unit.multiplies->sums == Multiplier::Sums::kInOwnMemory;
}
/// How many products along K of operands of a dtype are one chain of sums; such chains, each from
/// zero, are added up in f32 in their order. 0: all of K is one. The same for all units of a
/// target, as an element's bits must not depend on which of them multiplies.
[[nodiscard]] int chain_along_k(const Target& target, DType dtype);
/// Whether it copies pieces in groups, which `commit_group` and `wait_group` count.
[[nodiscard]] bool copies_in_groups(const Target& target);
/// The first architecture on which some unit multiplies the dtype.
[[nodiscard]] int least_sm_of(DType dtype);

namespace tile {

/// The unit of an operation that multiplies or copies, by the program's target; null for others.
/// Throws kInvalidArgument, with the reason, where the target has none.
[[nodiscard]] const Unit* unit_of(const Program& program, const Inst& inst);
/// The bits of the units of all its operations.
[[nodiscard]] unsigned units_of(const Program& program);

}  // namespace tile

}  // namespace braid
