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

/// What an instruction means for the order in which a warp runs.
enum class Flow : std::uint8_t {
  kNext,
  kBranch,
  kExit,
  kPolls,    ///< a loop around it may be waiting for another thread
  kSleeps,   ///< the same, and it waits itself
  kBarrier,  ///< waits for other warps, and gives no result
  kArrives,  ///< comes to a barrier and goes on
  kWaits,    ///< waits for other warps, and goes on with what it knew
};

/// How the shape of a result follows from those of the operands (see ShapeAnalysis).
enum class ShapeRule : std::uint8_t {
  kPure,  ///< computed by each lane from its operands: uniform where they are
  // The same, with tables that are followed further:
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
  // More than the operands decides:
  kLoad,     ///< uniform where the address is, but for each lane's own memory
  kGroup,    ///< the same for all lanes that one member mask (operand 2, if there) names
  kUniform,  ///< the same for all lanes
  kLanes,    ///< each lane its own
};

/// Where the results of an instruction are defined.
enum class DefinedRule : std::uint8_t {
  kInputs,    ///< where all operands are
  kAlways,    ///< the sanitizer looks at memory, not at registers
  kSelect,    ///< where the operand that is chosen is
  kBitwise,   ///< where both sides are, or one that decides
  kParts,     ///< of a vector operand any part may count
  kShuffle,   ///< as the values go
  kGroup,     ///< all lanes have what all lanes gave
  kElements,  ///< each element where that of the last operand is, or of a matrix product's C
};

struct Traits {
  std::optional<Unit> unit;  ///< for the counter; by the types when absent
  Flow flow = Flow::kNext;
  ShapeRule shape = ShapeRule::kPure;
  DefinedRule defined = DefinedRule::kInputs;
  bool parts = false;  ///< its operands may be parts of registers: `%r1.b0`

  /// It does more than compute its results: where its guard is false it must not run.
  [[nodiscard]] bool has_effects() const;
  /// Its results depend on nothing but its operands.
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
    std::vector<std::string_view> head;  ///< the modifiers that belong to it
  };
  /// Modifiers of one kind.
  struct Group {
    enum class Need : std::uint8_t { kOne, kMaybe, kMany };
    /// kNumber: integers with a sign or without; kBits: .b16 to .b64.
    enum class Types : std::uint8_t { kNone, kNumber, kBits, kInt, kFloat, kAny };
    Need need = Need::kOne;
    Types types = Types::kNone;
    bool behind = false;  ///< comes behind the group before it
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
  /// Its result is an operand, too.
  [[nodiscard]] bool updates() const;
  [[nodiscard]] bool has_address() const;
  [[nodiscard]] bool reads_carry() const;
};

/// All entries, by Op.
std::span<const Opcode> opcodes();

inline bool Instruction::is(Op op) const { return entry != nullptr && entry->op == op; }

/// Those of the entry, or those of no instruction.
const Traits& traits(const Instruction& instruction);

bool has_modifier(const Instruction& instruction, std::string_view name);

/// A matrix product of a warp group.
bool is_wgmma(const Instruction& instruction);

/// A matrix product whose A has half of its elements.
bool is_sparse(const Instruction& instruction);

/// Finds the entry that the opcode and the modifiers of an instruction fit; null without one.
const Opcode* find_opcode(const Instruction& instruction);

/// `entry` with the modifiers behind its first name.
Instruction make_instruction(Op entry, std::vector<std::string> modifiers,
                             std::vector<Operand> operands, std::uint32_t line);

/// Throws what is wrong with an instruction that no entry fits, or whose operands its entry does
/// not take.
void require_known(const Instruction& instruction);

/// What the modifiers of an instruction choose from the groups of its entry.
class Choices {
 public:
  static constexpr std::size_t kMaxGroups = 14;

  /// Nothing is chosen where they do not fit: see fits().
  Choices(const Opcode& entry, const Instruction& instruction);
  explicit Choices(const Instruction& instruction) : Choices(*instruction.entry, instruction) {}

  [[nodiscard]] bool fits() const { return name_ >= 0; }
  /// Which of the entry's names it bears.
  [[nodiscard]] int name() const { return name_; }
  [[nodiscard]] bool has(std::string_view modifier) const;
  /// The place of the modifier that was picked from the group that begins with `first`, or -1.
  /// `nth`: of several such groups.
  [[nodiscard]] int of(std::string_view first, int nth = 0) const;
  [[nodiscard]] Type type(std::size_t nth = 0) const { return types_[nth]; }

 private:
  bool pick(const std::string& modifier);

  const Opcode& entry_;
  const Instruction& instruction_;
  int name_ = -1;
  std::array<std::int8_t, kMaxGroups> picked_{};  ///< by group; -1 for nothing
  std::array<Type, 2> types_{};
};

}  // namespace braid::cpu::ptx
