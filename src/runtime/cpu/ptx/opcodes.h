#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "braid/counts.h"
#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu::ptx {

/// The entries of the table of instructions (opcodes.inc, which says how to read one).
enum class Op : std::uint8_t {
#define PTX(op, ...) k##op,
#include "runtime/cpu/ptx/opcodes.inc"
#undef PTX
};

using Unit = InstructionClass;

/// The effect of an instruction on the order in which a warp runs.
enum class Flow : std::uint8_t {
  kNext,
  kBranch,
  kExit,
  kPolls,    ///< a loop around it may be waiting for another thread
  kSleeps,   ///< the same, and it sleeps
  kBarrier,  ///< waits for other warps, without a result
  kArrives,  ///< arrives at a barrier and continues
  kWaits,    ///< waits for other warps, with a result
};

/// How the shape of a result follows from those of the operands (see ShapeAnalysis).
enum class ShapeRule : std::uint8_t {
  kPure,  ///< computed by each lane from its operands: uniform if they are
  // The same, with tables that are tracked further:
  kSum,
  kDifference,
  kProduct,
  kShiftLeft,
  kShiftRight,
  kAnd,
  kOr,
  kXor,
  kMove,
  kConvert,
  kSame,
  // Not decided by the operands alone:
  kLoad,     ///< uniform if the address is, except in per-lane memory
  kGroup,    ///< equal for all lanes named by a member mask (operand 2, if present)
  kUniform,  ///< equal for all lanes
  kLanes,    ///< different per lane
};

/// Where (in which lanes) the results of an instruction are defined.
enum class DefinedRule : std::uint8_t {
  kInputs,    ///< where all operands are
  kAlways,    ///< the sanitizer checks memory, not registers
  kSelect,    ///< where the selected operand is
  kBitwise,   ///< where both sides are, or one that decides the result
  kParts,     ///< any part of a vector operand may be used
  kShuffle,   ///< follows the shuffled values
  kGroup,     ///< all lanes get what all lanes gave
  kElements,  ///< per element: where that of the last operand is, or of a matrix product's C
};

struct Traits {
  std::optional<Unit> unit;  ///< for the counter; derived from the types if absent
  Flow flow = Flow::kNext;
  ShapeRule shape = ShapeRule::kPure;
  DefinedRule defined = DefinedRule::kInputs;
  bool acts = false;   ///< it has effects, which its unit does not say
  bool parts = false;  ///< operands may be parts of registers: `%r1.b0`

  /// Whether it has effects besides its results, so that it must not run where its guard is false.
  [[nodiscard]] bool has_effects() const;
  /// Whether its results depend only on its operands.
  [[nodiscard]] bool is_pure() const { return shape < ShapeRule::kLoad; }
};

/// kTensor: an address with coordinates.
enum class Use : std::uint8_t {
  kWritten,
  kRead,
  kAddress,
  kExtent,
  kConstant,
  kCarry,
  kTensor,
  kUpdated
};
inline bool is_address(Use use) { return use == Use::kAddress || use == Use::kTensor; }

/// An entry of the table.
struct Opcode {
  struct Name {
    std::string_view opcode;
    std::vector<std::string_view> head;  ///< modifiers that belong to its name
  };
  /// A group of alternative modifiers.
  struct Group {
    enum class Need : std::uint8_t { kOne, kMaybe, kMany };
    /// kNumber: signed or unsigned integers; kBits: .b16 to .b64.
    enum class Types : std::uint8_t { kNone, kNumber, kBits, kInt, kFloat, kAny };
    Need need = Need::kOne;
    Types types = Types::kNone;
    bool behind = false;  ///< must come behind the preceding group
    std::vector<std::string_view> names;
  };
  struct OperandUse {
    Use use = Use::kRead;
    bool optional = false;
  };

  Op op;
  Traits traits;
  std::vector<Name> names;
  std::vector<Group> groups;
  std::vector<OperandUse> operands;
  bool any_modifiers = false;
  bool any_operands = false;

  [[nodiscard]] bool has_result() const;
  /// Whether its result is also an operand.
  [[nodiscard]] bool updates() const;
  [[nodiscard]] bool has_address() const;
  [[nodiscard]] bool reads_carry() const;
};

/// All entries, indexed by Op.
std::span<const Opcode> opcodes();

inline bool Instruction::is(Op op) const { return entry != nullptr && entry->op == op; }

/// The traits of the instruction's entry; default traits if it has none.
const Traits& traits(const Instruction& instruction);

bool has_modifier(const Instruction& instruction, std::string_view name);

/// Whether it is a matrix product of a warp group.
bool is_wgmma(const Instruction& instruction);

/// Whether in some lanes one of the values, operands 1 and 2, does not count: of a `selp` the one
/// that is not taken, of an `and` or `or` of predicates one where the other decides.
bool is_choice(const Instruction& instruction);

/// Whether it is a matrix product with a sparse A.
bool is_sparse(const Instruction& instruction);

/// The entry that matches an instruction's opcode and modifiers, or null.
const Opcode* find_opcode(const Instruction& instruction);

/// Makes an instruction of `entry` with these modifiers behind its first name.
Instruction make_instruction(Op entry, std::vector<std::string> modifiers,
                             std::vector<Operand> operands, std::uint32_t line);

/// Throws a description of the error if no entry matches, or if the operands do not fit.
void require_known(const Instruction& instruction);

/// The choice that an instruction's modifiers make in each group of its entry.
class Choices {
 public:
  static constexpr std::size_t kMaxGroups = 14;

  /// If they do not fit, nothing is chosen: see fits().
  Choices(const Opcode& entry, const Instruction& instruction);
  explicit Choices(const Instruction& instruction) : Choices(*instruction.entry, instruction) {}

  [[nodiscard]] bool fits() const { return name_ >= 0; }
  /// Index of the entry's name that is used.
  [[nodiscard]] int name() const { return name_; }
  [[nodiscard]] bool has(std::string_view modifier) const;
  /// Index of the modifier chosen in the group that begins with `first`, or -1. `nth` selects among
  /// several such groups.
  [[nodiscard]] int of(std::string_view first, int nth = 0) const;
  [[nodiscard]] Type type(std::size_t nth = 0) const { return types_[nth]; }

 private:
  bool pick(const std::string& modifier);

  const Opcode& entry_;
  const Instruction& instruction_;
  int name_ = -1;
  std::array<std::int8_t, kMaxGroups> picked_{};  ///< by group; -1 for none
  std::array<Type, 2> types_{};
};

}  // namespace braid::cpu::ptx
