#pragma once

#include <llvm/Analysis/TargetFolder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "braid/matrix_sums.h"
#include "runtime/cpu/check/sanitizer.h"
#include "runtime/cpu/check/tally.h"
#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/run/matrix_code.h"
#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/cpu/run/warp_context.h"
#include "runtime/cpu/translate/control_flow.h"
#include "runtime/cpu/translate/shape_analysis.h"
#include "runtime/cpu/translate/wide_values.h"
#include "runtime/cpu_tricks.h"

namespace braid::cpu {

using llvm::Value;
using ptx::Choices;
using ptx::Instruction;
using ptx::Op;
using ptx::Operand;

/// Bytes at the end of the register file through which values are passed to run-time helpers.
inline constexpr std::uint32_t kScratchBytes = 128 * 160;

/// Constants of the type of a value.
inline llvm::Constant* number_like(const Value* value, std::uint64_t number) {
  return llvm::ConstantInt::get(value->getType(), number);
}
inline llvm::Constant* zero_like(const Value* value) {
  return llvm::Constant::getNullValue(value->getType());
}
inline llvm::Constant* ones_like(const Value* value) {
  return llvm::Constant::getAllOnesValue(value->getType());
}

/// Throws: what is wrong with an instruction, and its line.
[[noreturn]] void bad(const Instruction& instruction, const std::string& why);
[[noreturn]] void bad_combination(const Instruction& instruction);
/// Throws unless the instruction has so many operands.
void need(const Instruction& instruction, std::size_t operands);

/// Where the variables of a kernel live.
struct Layout {
  std::vector<std::int64_t> offsets;           ///< by variable: in params, shared or local memory
  std::vector<llvm::GlobalVariable*> globals;  ///< by variable, for .global and .const
  std::uint32_t local_bytes = 0;
  std::uint32_t shared_bytes = 0;
};

/// A kernel to translate, and how: the text may be checked, counted, and run on this host.
struct Task {
  const ptx::Module& ptx_module;
  const ptx::Function& function;
  const Layout& layout;
  bool aligned;  ///< blocks are full rows of warps
  Instrumentation instrumentation;
  HostCode host;
  MatrixSums sums;
  CpuTricks tricks;
};

/// A register inside a block: `value` in its own shape, `lanes` as a vector once needed.
struct Cached {
  Value* value = nullptr;
  Value* lanes = nullptr;
  bool dirty = false;
};
using RegisterCache = std::unordered_map<int, Cached>;

/// What a run-time helper is given: a value, or a number or a code of 32 bits.
struct Argument {
  Argument(Value* given) : value(given) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>, int> = 0>
  Argument(T given) : number(static_cast<std::uint32_t>(given)) {}
  template <class T, std::enable_if_t<std::is_class_v<T> && kIsCodeWord<T>, int> = 0>
  Argument(const T& code) {
    std::memcpy(&number, &code, sizeof code);
  }
  Value* value = nullptr;
  std::uint32_t number = 0;
};

/// What the handlers of instructions write code with: registers and operands of a kernel as LLVM
/// values, calls of run-time helpers, and which lanes run what is being written.
///
/// Values are iN, or <32 x iN> when they differ over the lanes (see Shape); floats are bitcast
/// where an operation needs them. Registers that live across blocks are kept in a register file in
/// memory; inside a block they are SSA values.
struct Emitter : Task {
  Emitter(llvm::Module& module, const Task& task);

  // Types and constants.
  llvm::Type* integer(unsigned bits, bool scalar) const;
  llvm::Type* floating(ptx::Type type, bool scalar) const;
  Value* constant(unsigned bits, std::uint64_t value) const;
  Value* splat(Value* scalar);
  Value* table_vector(const Shape& shape, unsigned bits);
  Value* lanes_of(Value* base, const Shape& shape);
  /// The address of these words.
  Value* constant_words(llvm::ArrayRef<std::uint32_t> words);

  // Registers.
  unsigned register_bits(int reg) const;
  Value* register_file(std::uint32_t offset);
  Value* slot_pointer(int reg);
  Cached& load_register(int reg);
  void store_register(int reg, Value* value);
  void write_register(int reg, Value* value);

  // Operands.
  Value* read_scalar(const Operand& operand, unsigned bits);
  Value* read_lanes(const Operand& operand, unsigned bits);
  /// As bases or as lanes, as the current instruction computes.
  Value* read(const Operand& operand, unsigned bits);
  Value* read_predicate(const Operand& operand);
  Value* read_float(const Operand& operand, ptx::Type type);
  void write(const Operand& operand, Value* value);
  void write_float(const Operand& operand, Value* value, ptx::Type type);
  /// A result with a predicate, which only a pair takes: then both are written here, and the result
  /// is null.
  Value* with_predicate(const Instruction& i, Value* result, Value* predicate);
  /// A result that the instruction made for the whole warp.
  Value* uniform(Value* scalar);
  Value* special(ptx::Special special, bool scalar);
  /// The address of a variable in its own space; local and call-parameter variables are host
  /// addresses of lane 0.
  Value* scalar_address(const Operand& variable);

  // Values.
  Value* resize(Value* value, unsigned bits, bool is_signed);
  Value* bits_to_float(Value* bits, ptx::Type type);
  Value* float_to_bits(Value* value, ptx::Type type);
  Value* intrinsic(llvm::Intrinsic::ID id, std::initializer_list<Value*> arguments);
  /// Applies `body` to each half of these vectors of 32 words; a half is a register on hosts with
  /// AVX-512.
  Value* by_halves(std::initializer_list<Value*> values,
                   llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> body);
  /// The result of `body` on the values (as floats) of operands 1..inputs; packed types half by
  /// half.
  Value* both_halves(const Instruction& instruction, ptx::Type type, std::size_t inputs,
                     const std::function<Value*(llvm::ArrayRef<Value*>)>& body);
  Value* pointer_to(Value* address) { return ir.CreateIntToPtr(address, ir.getPtrTy()); }
  /// Of <32 x i1>: a bit for each lane.
  Value* lane_bits(Value* lanes) { return ir.CreateBitCast(lanes, ir.getInt32Ty()); }

  // Run-time helpers (runtime_helpers.h), and scratch memory for what they are given.
  Value* scratch(unsigned index);
  std::uint32_t scratch_place(unsigned index) const;
  Value* to_scratch(unsigned index, Value* lanes);
  Value* from_scratch(unsigned index, llvm::Type* type);
  /// Without a type it has no result.
  Value* call(const char* name, llvm::ArrayRef<Argument> arguments, llvm::Type* result = nullptr);
  /// Calls helper(out, in0, in1, .. [, mode]) over 32 lanes of one type; in scalar mode on one
  /// value.
  Value* map_lanes(const char* helper, std::initializer_list<Value*> arguments,
                   std::optional<Argument> mode = std::nullopt);
  Value* context_field(std::size_t offset);
  Value* field(std::size_t offset, unsigned bits);
  /// The host address of address 0 of the block's own shared memory (see `names_blocks`).
  Value* shared_start();

  // Lanes.
  /// <32 x i1> or null for all: those that run the current instruction.
  Value* execution_mask();
  Value* execution_bits();
  /// Those of the warp that have not returned.
  Value* live_lanes();

  // Blocks of LLVM.
  llvm::BasicBlock* new_block(const char* name);
  /// Emits `if (condition) body()` with the body out of the way.
  void split(Value* condition, const char* name, llvm::function_ref<void()> body,
             llvm::MDNode* weights = nullptr);
  void split_unlikely(Value* condition, llvm::function_ref<void()> body);

  // Instructions.
  /// Emits one under its guard.
  void emit(const Instruction& instruction);
  /// Tells that the warp runs code which does more than look at memory, where some does no more.
  void tell_action();
  void store_action();

  llvm::Module& out;
  ControlFlow flow;
  ShapeAnalysis shapes;
  CountSites sites;
  /// Whether addresses of shared memory have the block's rank in its cluster in bits 24 and above,
  /// as on a GPU: code that clears bit 24 means the even block of a pair. Only where other blocks'
  /// memory is accessed; elsewhere the bits are zero, and addresses constants.
  bool names_blocks;
  std::vector<JoinedLoad> joined_loads;  ///< by instruction, if accesses are counted
  llvm::IRBuilder<llvm::TargetFolder> ir;
  /// A function that rounds 32 f32 to bf16, until expand_roundings(); null if the host cannot.
  llvm::Function* round_function;
  WideValues wide;
  /// For results of min and max: the same result with the NaN's original payload.
  llvm::DenseMap<Value*, Value*> raw_extremes;

  llvm::Function* kernel = nullptr;
  Value* context = nullptr;
  Value* registers = nullptr;
  std::uint32_t register_bytes = 0;
  std::uint32_t live_slot = 0;
  std::vector<std::int32_t> slots;       ///< by register: its place in the file, -1 for none
  std::vector<std::int32_t> recomputed;  ///< by register: the instruction to recompute it with; -1
                                         ///< if kept
  std::vector<std::int32_t> stream_slots;   ///< by instruction: slot of its last address; -1 for
                                            ///< none
  std::vector<std::int32_t> defined_slots;  ///< by register: slot with the lanes that wrote it; -1
                                            ///< for all
  std::vector<std::int32_t> accumulators;   ///< by register: its number in wgmma checks, or -1
  BitSet read_registers;  ///< those that some instruction reads, if accesses are checked

  // State while a block is emitted.
  RegisterCache cache;
  Value* mask = nullptr;       ///< <32 x i1>, null for all lanes
  Value* mask_bits = nullptr;  ///< i32, ~0 for all
  Value* parked = nullptr;     ///< of its last barrier: how the run ends, kEnds to go on
  bool divergent = false;
  bool looks = false;  ///< Block::looks

  // State while an instruction is emitted.
  std::uint32_t line = 0;
  Shape result_shape;
  bool on_bases = false;  ///< it computes on bases
  Value* guard_lanes = nullptr;
  Value* guard_scalar = nullptr;
  bool recomputing = false;
  JoinedLoad joined_now;

 private:
  Value* warp_special(ptx::Special special);
  void emit_plain(const Instruction& instruction);
  void recompute(int reg);
  Value* own_rank();
};

}  // namespace braid::cpu
