#include "runtime/cpu/translate/emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/floats.h"
#include "runtime/cpu/translate/handlers.h"

namespace braid::cpu {

using llvm::FixedVectorType;
using ptx::Space;
using ptx::Special;

namespace {

llvm::Function* declare_round(llvm::Module& out) {
  llvm::LLVMContext& context = out.getContext();
  auto* type = llvm::FunctionType::get(
      llvm::FixedVectorType::get(llvm::Type::getInt16Ty(context), 32),
      {llvm::FixedVectorType::get(llvm::Type::getFloatTy(context), 32)}, false);
  auto* function =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "ptx.round_by_host", out);
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return function;
}

/// Whether a guard is known to hold in all lanes.
bool is_all(const Value* guard) {
  const auto* known = llvm::dyn_cast<llvm::Constant>(guard);
  return known != nullptr && known->isAllOnesValue();
}

bool sees_other_blocks(const ptx::Function& function) {
  return function.required_cluster[0] != 0 || function.explicit_cluster ||
         std::ranges::any_of(function.body, [](const Instruction& i) {
           return i.is(Op::kMapa) || ptx::has_modifier(i, "shared::cluster") ||
                  ptx::has_modifier(i, "cta_group::2");
         });
}

}  // namespace

Emitter::Emitter(llvm::Module& module, const Task& task)
    : Task(task),
      out(module),
      flow(function),
      shapes(ptx_module, function, flow, aligned),
      sites(function, flow),
      names_blocks(sees_other_blocks(function)),
      ir(module.getContext(), llvm::TargetFolder(module.getDataLayout())),
      round_function(host.rounds_to_bfloat ? declare_round(module) : nullptr),
      wide(ir, round_function, tricks.wide_values) {
  if (instrumentation.counts) joined_loads = find_joined_loads(function, flow);
}

void bad(const Instruction& instruction, const std::string& why) {
  ptx::fail(instruction.line, "'" + instruction.full_name() + "': " + why);
}

void bad_combination(const Instruction& instruction) {
  bad(instruction, "an unsupported combination of modifiers");
}

void need(const Instruction& instruction, std::size_t operands) {
  if (instruction.operands.size() != operands) {
    bad(instruction, "expected " + std::to_string(operands) + " operands, found " +
                         std::to_string(instruction.operands.size()));
  }
}

llvm::Type* Emitter::integer(unsigned bits, bool scalar) const {
  llvm::Type* type = llvm::IntegerType::get(ir.getContext(), bits);
  return scalar ? type : FixedVectorType::get(type, 32);
}

/// The type arithmetic runs in: half and bfloat compute in float.
llvm::Type* Emitter::floating(ptx::Type type, bool scalar) const {
  llvm::Type* result = type.bits == 64 ? llvm::Type::getDoubleTy(ir.getContext())
                                       : llvm::Type::getFloatTy(ir.getContext());
  return scalar ? result : FixedVectorType::get(result, 32);
}

Value* Emitter::constant(unsigned bits, std::uint64_t value) const {
  return llvm::ConstantInt::get(llvm::IntegerType::get(ir.getContext(), bits),
                                llvm::APInt(bits, value));
}

Value* Emitter::splat(Value* scalar) { return ir.CreateVectorSplat(32, scalar); }

Value* Emitter::table_vector(const Shape& shape, unsigned bits) {
  std::vector<llvm::Constant*> elements;
  for (const std::int32_t t : shape.table) {
    elements.push_back(llvm::ConstantInt::get(
        llvm::IntegerType::get(ir.getContext(), bits),
        llvm::APInt(64, static_cast<std::uint64_t>(std::int64_t{t})).trunc(bits)));
  }
  return llvm::ConstantVector::get(elements);
}

Value* Emitter::lanes_of(Value* base, const Shape& shape) {
  if (base->getType()->isVectorTy()) return base;
  if (shape.align == 63) return table_vector(shape, base->getType()->getIntegerBitWidth());
  Value* all = splat(base);
  if (shape.is_uniform()) return all;
  return ir.CreateAdd(all, table_vector(shape, base->getType()->getIntegerBitWidth()));
}

unsigned Emitter::register_bits(int reg) const { return function.registers[reg].type.total_bits(); }

Value* Emitter::register_file(std::uint32_t offset) {
  return ir.CreateConstInBoundsGEP1_32(ir.getInt8Ty(), registers, offset);
}

Value* Emitter::slot_pointer(int reg) {
  return register_file(static_cast<std::uint32_t>(slots[reg]));
}

Cached& Emitter::load_register(int reg) {
  Cached& cached = cache[reg];
  if (cached.value != nullptr) return cached;
  if (recomputed[reg] >= 0) {
    recompute(reg);
    return cached;
  }
  const unsigned bits = register_bits(reg);
  const bool scalar = !shapes.shape(reg).is_vector();
  if (slots[reg] < 0) {
    cached.value = llvm::Constant::getNullValue(integer(bits, scalar));
  } else if (bits == 1) {
    // Not as i32: LLVM 19 never ends where AVX-512 is there and two such words, cast to lanes, are
    // read apart and under `or`.
    cached.value =
        scalar ? ir.CreateTrunc(ir.CreateLoad(ir.getInt8Ty(), slot_pointer(reg)), ir.getInt1Ty())
               : ir.CreateAlignedLoad(integer(1, false), slot_pointer(reg), llvm::Align(4));
  } else {
    cached.value = ir.CreateAlignedLoad(integer(bits, scalar), slot_pointer(reg),
                                        llvm::Align(scalar ? 8 : 64));
  }
  return cached;
}

Value* Emitter::resize(Value* value, unsigned bits, bool is_signed) {
  llvm::Type* type = value->getType();
  llvm::Type* to = integer(bits, !type->isVectorTy());
  return is_signed ? ir.CreateSExtOrTrunc(value, to) : ir.CreateZExtOrTrunc(value, to);
}

Value* Emitter::context_field(std::size_t offset) {
  return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), context, offset);
}

Value* Emitter::field(std::size_t offset, unsigned bits) {
  llvm::LoadInst* load = ir.CreateLoad(integer(bits, true), context_field(offset));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir.getContext(), {}));
  return load;
}

Value* Emitter::shared_start() {
  Value* window = field(offsetof(WarpContext, shared), 64);
  return names_blocks ? ir.CreateSub(window, own_rank()) : window;
}

/// The block's rank, where addresses of shared memory have it.
Value* Emitter::own_rank() {
  Value* rank = ir.CreateZExt(field(offsetof(WarpContext, cluster_rank), 32), ir.getInt64Ty());
  return ir.CreateShl(rank, 24);
}

Value* Emitter::special(Special special, bool scalar) {
  const auto lane_table = [&](auto&& element) {
    std::vector<llvm::Constant*> elements;
    for (unsigned l = 0; l < 32; ++l) elements.push_back(ir.getInt32(element(l)));
    return llvm::ConstantVector::get(elements);
  };
  if (special < Special::kNtid && !aligned) {
    Value* pointer =
        context_field(offsetof(WarpContext, tid) + 128 * static_cast<std::size_t>(special));
    return ir.CreateAlignedLoad(integer(32, false), pointer, llvm::Align(64));
  }
  switch (special) {
    case Special::kLaneId:
      return scalar ? ir.getInt32(0) : table_vector(Shape::lanes(63), 32);
    case Special::kLaneMaskEq:
      return lane_table([](unsigned l) { return 1U << l; });
    case Special::kLaneMaskLt:
      return lane_table([](unsigned l) { return (1U << l) - 1; });
    case Special::kLaneMaskLe:
      return lane_table([](unsigned l) { return (2U << l) - 1; });
    case Special::kLaneMaskGe:
      return lane_table([](unsigned l) { return ~((1U << l) - 1); });
    case Special::kLaneMaskGt:
      return lane_table([](unsigned l) { return l == 31 ? 0U : ~((2U << l) - 1); });
    default: {
      Value* value = warp_special(special);
      if (scalar) return value;
      return special == Special::kTid ? lanes_of(value, Shape::lanes(5)) : splat(value);
    }
  }
}

/// One that all lanes agree on, or the base of what they have.
Value* Emitter::warp_special(Special special) {
  struct Field {
    Special first;
    unsigned axes;
    std::size_t offset;
  };
  static constexpr Field kFields[] = {
      {Special::kTid, 3, offsetof(WarpContext, tid_base)},
      {Special::kNtid, 3, offsetof(WarpContext, ntid)},
      {Special::kCtaid, 3, offsetof(WarpContext, ctaid)},
      {Special::kNctaid, 3, offsetof(WarpContext, nctaid)},
      {Special::kClusterId, 3, offsetof(WarpContext, clusterid)},
      {Special::kNclusterId, 3, offsetof(WarpContext, nclusterid)},
      {Special::kClusterCtaid, 3, offsetof(WarpContext, cluster_ctaid)},
      {Special::kClusterNctaid, 3, offsetof(WarpContext, cluster_nctaid)},
      {Special::kWarpId, 1, offsetof(WarpContext, warp)},
      {Special::kNwarpId, 1, offsetof(WarpContext, warps)},
      {Special::kDynamicSharedSize, 1, offsetof(WarpContext, dynamic_shared)},
      {Special::kTotalSharedSize, 1, offsetof(WarpContext, total_shared)},
      {Special::kGridId, 1, offsetof(WarpContext, grid_id)},
      {Special::kClusterRank, 1, offsetof(WarpContext, cluster_rank)},
      {Special::kClusterSize, 1, offsetof(WarpContext, cluster_size)},
      {Special::kExplicitCluster, 1, offsetof(WarpContext, explicit_cluster)}};
  for (const Field& known : kFields) {
    const unsigned axis = static_cast<unsigned>(special) - static_cast<unsigned>(known.first);
    if (axis < known.axes) return field(known.offset + std::size_t{4} * axis, 32);
  }
  Value* wide = nullptr;  // of which there are names for the upper half
  switch (special) {
    case Special::kNsmId:
      return ir.getInt32(1);
    case Special::kReservedBegin:
      return ir.getInt32(layout.shared_bytes - ptx::kReservedSharedBytes);
    case Special::kReservedMiddle:
      return ir.getInt32(layout.shared_bytes - ptx::kReservedSharedBytes / 2);
    case Special::kReservedEnd:
      return ir.getInt32(layout.shared_bytes);
    case Special::kReservedSize:
      return ir.getInt32(ptx::kReservedSharedBytes);
    case Special::kClock:
    case Special::kClockHi:
    case Special::kClock64:
      wide = call("clock", {}, ir.getInt64Ty());
      break;
    case Special::kGlobalTimer:
    case Special::kGlobalTimerLo:
    case Special::kGlobalTimerHi:
      wide = call("globaltimer", {context}, ir.getInt64Ty());
      break;
    case Special::kGridWorkspaceLow:
    case Special::kGridWorkspaceHigh:
      wide = field(offsetof(WarpContext, grid_workspace), 64);
      break;
    default:
      return ir.getInt32(0);
  }
  const bool high = special == Special::kClockHi || special == Special::kGlobalTimerHi ||
                    special == Special::kGridWorkspaceHigh;
  return high ? ir.CreateLShr(wide, 32) : wide;
}

Value* Emitter::scalar_address(const Operand& operand) {
  const auto index = static_cast<std::size_t>(operand.index);
  const ptx::Variable& variable = ptx_module.variables[index];
  Value* base = nullptr;
  if (variable.space == Space::kGlobal || variable.space == Space::kConst) {
    base = ir.CreatePtrToInt(layout.globals[index], ir.getInt64Ty());
  } else if (variable.space == Space::kShared) {
    base = ir.getInt64(static_cast<std::uint64_t>(layout.offsets[index]));
    if (names_blocks) base = ir.CreateAdd(base, own_rank());
  } else {
    const bool parameter =
        std::ranges::find(function.params, operand.index) != function.params.end();
    base = ir.CreateAdd(
        field(parameter ? offsetof(WarpContext, params) : offsetof(WarpContext, local), 64),
        ir.getInt64(static_cast<std::uint64_t>(layout.offsets[index])));
  }
  return operand.bits == 0 ? base : ir.CreateAdd(base, ir.getInt64(operand.bits));
}

Value* Emitter::read_scalar(const Operand& operand, unsigned bits) {
  switch (operand.form) {
    case Operand::Form::kInteger:
    case Operand::Form::kFloat32:
      return constant(
          bits, bits == 64 && operand.form == Operand::Form::kFloat32
                    ? llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, operand.bits))
                          .bitcastToAPInt()
                          .getZExtValue()
                    : operand.bits);
    case Operand::Form::kFloat64: {
      if (bits == 64) return constant(64, operand.bits);
      llvm::APFloat value(llvm::APFloat::IEEEdouble(), llvm::APInt(64, operand.bits));
      bool inexact = false;
      value.convert(bits == 16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::IEEEsingle(),
                    llvm::APFloat::rmNearestTiesToEven, &inexact);
      return ir.getInt(value.bitcastToAPInt());
    }
    case Operand::Form::kRegister:
      return resize(load_register(operand.index).value, bits, false);
    case Operand::Form::kSpecial:
      return resize(special(static_cast<Special>(operand.index), true), bits, false);
    case Operand::Form::kVariable:
      return resize(scalar_address(operand), bits, false);
    default:
      ptx::fail(line, "an operand is of the wrong form");
  }
}

Value* Emitter::read_lanes(const Operand& operand, unsigned bits) {
  if (operand.form == Operand::Form::kRegister) {
    load_register(operand.index);
    Cached& cached = cache[operand.index];
    if (cached.lanes == nullptr) {
      cached.lanes = lanes_of(cached.value, shapes.shape(operand.index));
    }
    return resize(cached.lanes, bits, false);
  }
  if (operand.form == Operand::Form::kSpecial) {
    return resize(special(static_cast<Special>(operand.index), false), bits, false);
  }
  if (operand.form == Operand::Form::kVariable) {
    const Space space = ptx_module.variables[operand.index].space;
    Value* base = scalar_address(operand);
    if (space != Space::kLocal && space != Space::kParam) return resize(splat(base), bits, false);
    std::vector<llvm::Constant*> offsets;
    for (unsigned l = 0; l < 32; ++l) {
      offsets.push_back(ir.getInt64(std::uint64_t{l} * layout.local_bytes));
    }
    return resize(ir.CreateAdd(splat(base), llvm::ConstantVector::get(offsets)), bits, false);
  }
  return splat(read_scalar(operand, bits));
}

Value* Emitter::read(const Operand& operand, unsigned bits) {
  return on_bases ? read_scalar(operand, bits) : read_lanes(operand, bits);
}

Value* Emitter::read_predicate(const Operand& operand) {
  Value* value = read(operand, 1);
  return operand.negated ? ir.CreateNot(value) : value;
}

Value* Emitter::bits_to_float(Value* bits, ptx::Type type) {
  const bool scalar = !bits->getType()->isVectorTy();
  if (type.bits >= 32) return ir.CreateBitCast(bits, floating(type, scalar));
  const ptx::Type single{ptx::Kind::kFloat, 32, 1};
  if (type.kind == ptx::Kind::kBfloat) {
    Value* wide = ir.CreateShl(ir.CreateZExt(bits, integer(32, scalar)), 16);
    return ir.CreateBitCast(wide, floating(single, scalar));
  }
  llvm::Type* half = llvm::Type::getHalfTy(ir.getContext());
  Value* value = ir.CreateBitCast(bits, scalar ? half : FixedVectorType::get(half, 32));
  Value* wide = ir.CreateFPExt(value, floating(single, scalar));
  // Else LLVM narrows what follows to half, which x86 computes lane by lane, and loses the sign of
  // a zero in a select.
  return ir.CreateArithmeticFence(wide, wide->getType());
}

Value* Emitter::float_to_bits(Value* value, ptx::Type type) {
  const bool scalar = !value->getType()->isVectorTy();
  if (type.bits >= 32) return ir.CreateBitCast(value, integer(type.bits, scalar));
  if (type.kind == ptx::Kind::kBfloat) return round_to_bfloat(*this, value, Rounding::kNearest);
  return round_to_half(*this, value, Rounding::kNearest);
}

Value* Emitter::read_float(const Operand& operand, ptx::Type type) {
  return bits_to_float(read(operand, type.bits), type);
}

void Emitter::write_float(const Operand& operand, Value* value, ptx::Type type) {
  write(operand, float_to_bits(value, type));
}

void Emitter::write(const Operand& operand, Value* value) {
  if (operand.form == Operand::Form::kSink) return;
  if (!operand.is_register()) ptx::fail(line, "a result must be a register");
  write_register(operand.index, value);
}

void Emitter::write_register(int reg, Value* value) {
  const unsigned bits = register_bits(reg);
  const unsigned given = value->getType()->getScalarSizeInBits();
  if ((given == 1) != (bits == 1)) {
    ptx::fail(line, given == 1 ? "a result is a predicate, and its register is not"
                               : "a result is no predicate, and its register is");
  }
  if (given != bits) value = resize(value, bits, false);
  const Shape& shape = shapes.shape(reg);
  if (shape.is_vector()) value = lanes_of(value, result_shape);
  if (guard_lanes != nullptr) {
    value = ir.CreateSelect(guard_lanes, value, load_register(reg).value);
  } else if (guard_scalar != nullptr) {
    value = ir.CreateSelect(guard_scalar, value, load_register(reg).value);
  }
  cache[reg] = Cached{value, nullptr, true};
}

Value* Emitter::uniform(Value* scalar) {
  result_shape = Shape::uniform();
  return scalar;
}

Value* Emitter::with_predicate(const Instruction& i, Value* result, Value* predicate) {
  if (i.operands[0].form != Operand::Form::kPair) return result;
  write(i.operands[0].elements[0], result);
  write(i.operands[0].elements[1], predicate);
  return nullptr;
}

Value* Emitter::intrinsic(llvm::Intrinsic::ID id, std::initializer_list<Value*> arguments) {
  return ir.CreateIntrinsic((*arguments.begin())->getType(), id,
                            llvm::ArrayRef<Value*>(arguments.begin(), arguments.size()));
}

Value* Emitter::by_halves(std::initializer_list<Value*> values,
                          llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> body) {
  std::vector<int> order(32);
  std::iota(order.begin(), order.end(), 0);
  const llvm::ArrayRef<int> all = order;
  Value* results[2];
  for (std::size_t half = 0; half < 2; ++half) {
    llvm::SmallVector<Value*, 3> parts;
    for (Value* value : values) {
      parts.push_back(ir.CreateShuffleVector(value, all.slice(16 * half, 16)));
    }
    results[half] = body(parts);
  }
  return ir.CreateShuffleVector(results[0], results[1], all);
}

std::uint32_t Emitter::scratch_place(unsigned index) const {
  return register_bytes - kScratchBytes + 128 * index;
}

Value* Emitter::scratch(unsigned index) { return register_file(scratch_place(index)); }

Value* Emitter::constant_words(llvm::ArrayRef<std::uint32_t> words) {
  llvm::Constant* data = llvm::ConstantDataArray::get(ir.getContext(), words);
  auto* variable =
      new llvm::GlobalVariable(out, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
  variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return variable;
}

Value* Emitter::to_scratch(unsigned index, Value* lanes) {
  Value* pointer = scratch(index);
  ir.CreateAlignedStore(lanes, pointer, llvm::Align(64));
  return pointer;
}

Value* Emitter::from_scratch(unsigned index, llvm::Type* type) {
  return ir.CreateAlignedLoad(type, scratch(index), llvm::Align(64));
}

/// Calls a run-time helper (runtime_helpers.h); without a type it has no result.
Value* Emitter::call(const char* name, llvm::ArrayRef<Argument> arguments, llvm::Type* result) {
  std::vector<Value*> values;
  std::vector<llvm::Type*> types;
  for (const Argument& argument : arguments) {
    values.push_back(argument.value != nullptr ? argument.value : ir.getInt32(argument.number));
    types.push_back(values.back()->getType());
  }
  if (result == nullptr) result = ir.getVoidTy();
  auto callee =
      out.getOrInsertFunction(helper_symbol(name), llvm::FunctionType::get(result, types, false));
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotThrow();
  }
  return ir.CreateCall(callee, values);
}

Value* Emitter::map_lanes(const char* helper, std::initializer_list<Value*> arguments,
                          std::optional<Argument> mode) {
  llvm::Type* type = (*arguments.begin())->getType();
  const bool scalar = !type->isVectorTy();
  std::vector<Argument> pointers{scratch(0)};
  unsigned index = 2;
  for (Value* argument : arguments) {
    pointers.push_back(to_scratch(index, scalar ? splat(argument) : argument));
    index += 2;
  }
  if (mode) pointers.push_back(*mode);
  call(helper, pointers);
  return from_scratch(0, type);
}

Value* Emitter::execution_mask() {
  if (guard_lanes == nullptr) return mask;
  return mask == nullptr ? guard_lanes : ir.CreateAnd(mask, guard_lanes);
}

Value* Emitter::live_lanes() { return ir.CreateLoad(ir.getInt32Ty(), register_file(live_slot)); }

Value* Emitter::execution_bits() {
  Value* mask = execution_mask();
  return mask == nullptr ? ir.getInt32(~0U) : lane_bits(mask);
}

Value* Emitter::both_halves(const Instruction& instruction, ptx::Type type, std::size_t inputs,
                            const std::function<Value*(llvm::ArrayRef<Value*>)>& body) {
  const ptx::Type element{type.kind, type.bits, 1};
  std::vector<Value*> whole;
  for (std::size_t i = 1; i <= inputs; ++i) {
    whole.push_back(read(instruction.operands[i], type.total_bits()));
  }
  if (type.lanes == 1) {
    for (Value*& value : whole) value = bits_to_float(value, element);
    return float_to_bits(body(whole), element);
  }
  Value* result = nullptr;
  for (unsigned half = 0; half < 2; ++half) {
    std::vector<Value*> parts;
    for (Value* value : whole) {
      Value* part = half == 0 ? value : ir.CreateLShr(value, type.bits);
      parts.push_back(bits_to_float(resize(part, type.bits, false), element));
    }
    Value* bits = resize(float_to_bits(body(parts), element), type.total_bits(), false);
    result = half == 0 ? bits : ir.CreateOr(result, ir.CreateShl(bits, type.bits));
  }
  return result;
}

llvm::BasicBlock* Emitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(ir.getContext(), name, kernel);
}

void Emitter::split(Value* condition, const char* name, llvm::function_ref<void()> body,
                    llvm::MDNode* weights) {
  llvm::BasicBlock* some = new_block(name);
  llvm::BasicBlock* next = new_block("next");
  ir.CreateCondBr(condition, some, next, weights);
  ir.SetInsertPoint(some);
  body();
  ir.CreateBr(next);
  ir.SetInsertPoint(next);
}

void Emitter::split_unlikely(Value* condition, llvm::function_ref<void()> body) {
  split(condition, "cold", body, llvm::MDBuilder(ir.getContext()).createBranchWeights(1, 1 << 20));
}

void Emitter::store_register(int reg, Value* value) {
  const unsigned bits = register_bits(reg);
  const bool vector = shapes.shape(reg).is_vector();
  if (bits == 1) {
    if (vector) {
      value = lane_bits(value);
      if (mask != nullptr && divergent) {
        Value* old = ir.CreateLoad(ir.getInt32Ty(), slot_pointer(reg));
        value =
            ir.CreateOr(ir.CreateAnd(value, mask_bits), ir.CreateAnd(old, ir.CreateNot(mask_bits)));
      }
    } else {
      value = ir.CreateZExt(value, ir.getInt8Ty());
    }
    ir.CreateStore(value, slot_pointer(reg));
    return;
  }
  const llvm::Align align(vector ? 64 : 8);
  if (vector && mask != nullptr && divergent) {
    Value* old = ir.CreateAlignedLoad(value->getType(), slot_pointer(reg), align);
    value = ir.CreateSelect(mask, value, old);
  }
  ir.CreateAlignedStore(value, slot_pointer(reg), align);
}

void Emitter::tell_action() {
  if (flow.looks() && !looks) store_action();
}

void Emitter::store_action() {
  if (instrumentation.checks) return;
  ir.CreateStore(ir.getInt32(1), context_field(offsetof(WarpContext, acted)));
}

/// Without the guard.
void Emitter::emit_plain(const Instruction& instruction) {
  Value* result = handler(instruction.entry->op)(*this, instruction);
  if (result != nullptr) write(instruction.operands[0], result);
}

void Emitter::emit(const Instruction& instruction) {
  line = instruction.line;
  result_shape = has_result(instruction) ? shapes.result_shape(instruction) : Shape::vector();
  if (result_shape.form == Shape::Form::kUnknown) result_shape = Shape::vector();
  on_bases = result_shape.is_table();
  guard_lanes = guard_scalar = nullptr;
  if (instruction.guard < 0) return emit_plain(instruction);
  const bool effects = ptx::traits(instruction).has_effects();
  const bool uniform = !shapes.shape(instruction.guard).is_vector();
  Value* guard = load_register(instruction.guard).value;
  if (instruction.guard_negated) guard = ir.CreateNot(guard);
  if (uniform && effects) {
    llvm::BasicBlock* before = ir.GetInsertBlock();
    const RegisterUse use = register_use(instruction);
    std::vector<Value*> old;
    for (const int r : use.writes) old.push_back(load_register(r).value);
    auto saved = cache;
    llvm::BasicBlock* then = new_block("then");
    llvm::BasicBlock* after = new_block("after");
    ir.CreateCondBr(guard, then, after);
    ir.SetInsertPoint(then);
    emit_plain(instruction);
    std::vector<Value*> fresh;
    for (const int r : use.writes) fresh.push_back(load_register(r).value);
    llvm::BasicBlock* end = ir.GetInsertBlock();
    ir.CreateBr(after);
    ir.SetInsertPoint(after);
    cache = std::move(saved);
    for (std::size_t i = 0; i < use.writes.size(); ++i) {
      llvm::PHINode* phi = ir.CreatePHI(old[i]->getType(), 2);
      phi->addIncoming(old[i], before);
      phi->addIncoming(fresh[i], end);
      cache[use.writes[i]] = Cached{phi, nullptr, true};
    }
    return;
  }
  if (uniform) {
    guard_scalar = guard;
  } else if (!is_all(guard)) {
    guard_lanes = guard;
  }
  emit_plain(instruction);
  guard_lanes = guard_scalar = nullptr;
}

/// Emits the instruction that made a register once more, in the middle of another one.
void Emitter::recompute(int reg) {
  const auto state = std::tuple(line, result_shape, on_bases, guard_lanes, guard_scalar);
  const bool within = std::exchange(recomputing, true);
  emit(function.body[recomputed[reg]]);
  recomputing = within;
  std::tie(line, result_shape, on_bases, guard_lanes, guard_scalar) = state;
}

}  // namespace braid::cpu
