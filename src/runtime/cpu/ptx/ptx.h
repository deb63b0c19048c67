#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/error.h"

namespace braid::cpu::ptx {

/// The syntax tree of a PTX module: names are resolved to indices, nothing else is interpreted.
/// Rule: whoever makes a tree guarantees that every index in it is in range.

enum class Kind : std::uint8_t { kPred, kBits, kUnsigned, kSigned, kFloat, kBfloat };

/// A fundamental type; `lanes` is 2 for the packed f16x2 and bf16x2.
struct Type {
  Kind kind = Kind::kBits;
  std::uint16_t bits = 32;
  std::uint8_t lanes = 1;
  [[nodiscard]] unsigned total_bits() const { return unsigned{bits} * lanes; }
  [[nodiscard]] bool is_signed() const { return kind == Kind::kSigned; }
  [[nodiscard]] bool is_float() const { return kind == Kind::kFloat || kind == Kind::kBfloat; }
  bool operator==(const Type&) const = default;
};

/// Parses ".f16x2" and the like, without the dot.
std::optional<Type> parse_type(std::string_view name);

/// kCluster is the shared memory of all blocks of a cluster.
enum class Space : std::uint8_t { kGeneric, kParam, kGlobal, kShared, kLocal, kConst, kCluster };

/// The largest cluster; a device need not support it.
inline constexpr std::uint32_t kMaxClusterBlocks = 16;

struct Register {
  std::string name;
  Type type;
};

/// A module-scope, function-scope or parameter variable.
struct Variable {
  /// The address of another variable within an initial value.
  struct Relocation {
    std::uint64_t offset;
    int variable;
    std::int64_t addend;
    std::uint32_t bytes = 8;  ///< bytes of the address that are kept
    std::uint32_t shift = 0;  ///< starting from this bit
  };
  std::string name;
  Space space = Space::kGlobal;
  std::uint64_t size = 0;
  std::uint32_t align = 1;
  std::uint32_t element = 1;  ///< element size in bytes, without the vector
  std::string type;           ///< element type, "u64"
  std::uint32_t line = 0;
  bool dynamic = false;  ///< `.extern .shared x[]`: starts where the static shared memory ends
  std::vector<std::uint8_t> init;
  std::vector<Relocation> relocations;
};

/// What reading a special register gives: those that say nothing here are kZero. Of those with axes
/// y and z come behind x.
enum class Special : std::uint8_t {
  kTid,
  kNtid = kTid + 3,
  kCtaid = kNtid + 3,
  kNctaid = kCtaid + 3,
  kClusterId = kNctaid + 3,
  kNclusterId = kClusterId + 3,
  kClusterCtaid = kNclusterId + 3,
  kClusterNctaid = kClusterCtaid + 3,
  kLaneId = kClusterNctaid + 3,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kLaneMaskEq,
  kLaneMaskLe,
  kLaneMaskLt,
  kLaneMaskGe,
  kLaneMaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobalTimer,
  kGlobalTimerLo,
  kGlobalTimerHi,
  kDynamicSharedSize,
  kTotalSharedSize,
  kGridWorkspaceLow,
  kGridWorkspaceHigh,
  kClusterRank,
  kClusterSize,
  kExplicitCluster,
  kReservedBegin,   ///< in shared memory, of kReservedSharedBytes
  kReservedMiddle,  ///< where cooperative groups keep tiles of several warps
  kReservedEnd,
  kReservedSize,
  kZero
};

/// What a GPU reserves of a block's shared memory; kernels that name it have it here, too.
inline constexpr std::uint32_t kReservedSharedBytes = 1024;
inline bool names_reserved_shared(Special special) {
  return special >= Special::kReservedBegin && special <= Special::kReservedSize;
}

/// Looks up a name such as "%tid.x".
std::optional<Special> parse_special(std::string_view name);
/// All known names in order; "%envreg<32>" stands for 32 of them, "%tid" for its components.
std::vector<std::string> special_names();

struct Operand {
  enum class Form : std::uint8_t {
    kRegister,  ///< `index`
    kInteger,   ///< `bits`
    kFloat32,   ///< `bits` of an f32
    kFloat64,   ///< `bits` of an f64
    kVariable,  ///< address of variable `index`, plus `bits`
    kSpecial,   ///< `index` is a Special
    kVector,    ///< `elements`: {a, b}, or the argument list of a call
    kMemory,    ///< `elements[0]` is the base (register, variable or integer), plus `bits`;
                ///< `elements[1]`, if present, has the coordinates in a tensor
    kLabel,     ///< `index` into Function::labels
    kFunction,  ///< `index` into Module::functions
    kPair,      ///< `elements`: p|q
    kSink,      ///< `_`
  };
  Form form = Form::kInteger;
  /// The bytes or halves of a register that a video instruction selects: "b3210", whose last is
  /// at[0].
  struct Parts {
    std::uint8_t bits = 0;
    std::uint8_t count = 0;
    std::array<std::uint8_t, 4> at{};
  };
  bool negated = false;  ///< !p
  bool minus = false;    ///< -r, in vmad
  Parts parts;
  std::int32_t index = 0;
  std::uint64_t bits = 0;
  std::vector<Operand> elements;
  [[nodiscard]] bool is_register() const { return form == Form::kRegister; }
  static Operand of_register(std::int32_t index) {
    return {.form = Form::kRegister, .index = index};
  }
  static Operand of(Form form, std::vector<Operand> elements) {
    return {.form = form, .elements = std::move(elements)};
  }
};

inline Operand variable_in_brackets(std::int32_t index) {
  return Operand::of(Operand::Form::kMemory, {{.form = Operand::Form::kVariable, .index = index}});
}

/// An entry of the table of instructions (opcodes.h).
struct Opcode;
enum class Op : std::uint8_t;

struct Instruction {
  std::string name;                    ///< "ld", as written
  const Opcode* entry = nullptr;       ///< null if the table has none
  std::vector<std::string> modifiers;  ///< "global", "v4", "f32", "L1::no_allocate"
  std::vector<Operand> operands;
  std::int32_t guard = -1;  ///< predicate register, or -1
  bool guard_negated = false;
  std::uint32_t line = 0;
  std::uint32_t source_line = 0;  ///< line of the CUDA text, from the last `.loc`; 0 if none
  std::uint64_t source_file = 0;  ///< of that line, in Module::source_files
  std::uint32_t inlined = 0;      ///< for inlined code: index in Module::inlined, plus one
  [[nodiscard]] bool is(Op op) const;
  [[nodiscard]] std::string full_name() const;
  /// The last modifier that is a type.
  [[nodiscard]] std::optional<Type> type() const;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<int> params;   ///< variables
  std::vector<int> results;  ///< variables, for a `.func`
  std::vector<Register> registers;
  std::vector<int> locals;  ///< variables declared in the body
  std::vector<Instruction> body;
  std::vector<std::uint32_t> labels;                ///< index of the instruction behind each label
  std::array<std::uint32_t, 3> max_threads{};       ///< .maxntid, zeros when absent
  std::array<std::uint32_t, 3> required_threads{};  ///< .reqntid, zeros when absent
  std::array<std::uint32_t, 3> required_cluster{};  ///< .reqnctapercluster, zeros when absent
  std::uint32_t max_cluster = 0;                    ///< .maxclusterrank, 0 when absent
  bool explicit_cluster = false;                    ///< must be launched in clusters
  std::uint32_t max_registers = 0;                  ///< .maxnreg, 0 when absent
  std::uint32_t min_blocks = 1;                     ///< .minnctapersm
  std::uint32_t line = 0;
  std::optional<Error> error;  ///< why it cannot run; then only the name is known
};

struct Module {
  std::vector<Function> functions;
  std::vector<Variable> variables;
  std::map<std::uint64_t, std::string> source_files;  ///< by their numbers in `.file`
  std::vector<std::string> inlined;                   ///< "mine.cuh:5 in outer"
  std::vector<int> addressed;                         ///< functions whose address is taken
};

/// The value of a pointer to a function.
constexpr std::uint64_t function_address(int index) {
  return (static_cast<std::uint64_t>(index) + 1) << 4U;
}

/// Throws braid::Error (kInvalidArgument, place "ptx") for `line`.
[[noreturn]] void fail(std::uint32_t line, const std::string& message);

/// Parses PTX text (a trailing NUL is fine). An error within a function becomes that function's
/// error, "ptx:LINE: ..."; one in a variable becomes the error of every function that uses it.
/// Other errors are thrown. Never crashes.
Module parse(std::string_view text);

/// Inlines all calls in `entry`; a call by address becomes a selection among all possible targets.
/// Throws for recursion, for functions without a body, and the error of a called function.
void inline_calls(Module& module, Function& entry);

}  // namespace braid::cpu::ptx
