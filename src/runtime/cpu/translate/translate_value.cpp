#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <numeric>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using llvm::FixedVectorType;
using ptx::Space;
using ptx::Special;

llvm::Type* Translator::integer(unsigned bits, bool scalar) const {
  llvm::Type* type = llvm::IntegerType::get(llvm_, bits);
  return scalar ? type : FixedVectorType::get(type, 32);
}

/// The type arithmetic runs in: half and bfloat compute in float.
llvm::Type* Translator::floating(ptx::Type type, bool scalar) const {
  llvm::Type* result =
      type.bits == 64 ? llvm::Type::getDoubleTy(llvm_) : llvm::Type::getFloatTy(llvm_);
  return scalar ? result : FixedVectorType::get(result, 32);
}

llvm::Value* Translator::constant(unsigned bits, std::uint64_t value) const {
  return llvm::ConstantInt::get(llvm::IntegerType::get(llvm_, bits), llvm::APInt(bits, value));
}

llvm::Value* Translator::splat(Value* scalar) { return b_.CreateVectorSplat(32, scalar); }

llvm::Value* Translator::table_vector(const Shape& shape, unsigned bits) {
  std::vector<llvm::Constant*> elements;
  for (const std::int32_t t : shape.table) {
    elements.push_back(llvm::ConstantInt::get(
        llvm::IntegerType::get(llvm_, bits),
        llvm::APInt(64, static_cast<std::uint64_t>(std::int64_t{t})).trunc(bits)));
  }
  return llvm::ConstantVector::get(elements);
}

llvm::Value* Translator::lanes_of(Value* base, const Shape& shape) {
  if (base->getType()->isVectorTy()) return base;
  if (shape.align == 63) return table_vector(shape, base->getType()->getIntegerBitWidth());
  Value* all = splat(base);
  if (shape.is_uniform()) return all;
  return b_.CreateAdd(all, table_vector(shape, base->getType()->getIntegerBitWidth()));
}

unsigned Translator::register_bits(int reg) const {
  return function_.registers[reg].type.total_bits();
}

llvm::Value* Translator::register_file(std::uint32_t offset) {
  return b_.CreateConstInBoundsGEP1_32(b_.getInt8Ty(), registers_, offset);
}

llvm::Value* Translator::slot_pointer(int reg) {
  return register_file(static_cast<std::uint32_t>(slots_[reg]));
}

Translator::Cached& Translator::load_register(int reg) {
  Cached& cached = cache_[reg];
  if (cached.value != nullptr) return cached;
  if (recomputed_[reg] >= 0) {
    recompute(reg);
    return cached;
  }
  const unsigned bits = register_bits(reg);
  const bool scalar = !shapes_.shape(reg).is_vector();
  if (slots_[reg] < 0) {
    cached.value = llvm::Constant::getNullValue(integer(bits, scalar));
  } else if (bits == 1) {
    // Not as i32: LLVM 19 never ends where AVX-512 is there and two such words, cast to lanes, are
    // read apart and under `or`.
    cached.value =
        scalar ? b_.CreateTrunc(b_.CreateLoad(b_.getInt8Ty(), slot_pointer(reg)), b_.getInt1Ty())
               : b_.CreateAlignedLoad(integer(1, false), slot_pointer(reg), llvm::Align(4));
  } else {
    cached.value = b_.CreateAlignedLoad(integer(bits, scalar), slot_pointer(reg),
                                        llvm::Align(scalar ? 8 : 64));
  }
  return cached;
}

llvm::Value* Translator::resize(Value* value, unsigned bits, bool is_signed) {
  llvm::Type* type = value->getType();
  llvm::Type* to = integer(bits, !type->isVectorTy());
  return is_signed ? b_.CreateSExtOrTrunc(value, to) : b_.CreateZExtOrTrunc(value, to);
}

llvm::Value* Translator::context_field(std::size_t offset) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offset);
}

llvm::Value* Translator::field(std::size_t offset, unsigned bits) {
  llvm::LoadInst* load = b_.CreateLoad(integer(bits, true), context_field(offset));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(llvm_, {}));
  return load;
}

llvm::Value* Translator::special(Special special, bool scalar) {
  const auto lane_table = [&](auto&& element) {
    std::vector<llvm::Constant*> elements;
    for (unsigned l = 0; l < 32; ++l) elements.push_back(b_.getInt32(element(l)));
    return llvm::ConstantVector::get(elements);
  };
  if (special < Special::kNtid && !aligned_) {
    Value* pointer =
        context_field(offsetof(WarpContext, tid) + 128 * static_cast<std::size_t>(special));
    return b_.CreateAlignedLoad(integer(32, false), pointer, llvm::Align(64));
  }
  switch (special) {
    case Special::kLaneId:
      return scalar ? b_.getInt32(0) : table_vector(Shape::lanes(63), 32);
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
llvm::Value* Translator::warp_special(Special special) {
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
      return b_.getInt32(1);
    case Special::kClock:
    case Special::kClockHi:
    case Special::kClock64:
      wide = call("clock", {}, b_.getInt64Ty());
      break;
    case Special::kGlobalTimer:
    case Special::kGlobalTimerLo:
    case Special::kGlobalTimerHi:
      wide = call("globaltimer", {context_}, b_.getInt64Ty());
      break;
    case Special::kGridWorkspaceLow:
    case Special::kGridWorkspaceHigh:
      wide = field(offsetof(WarpContext, grid_workspace), 64);
      break;
    default:
      return b_.getInt32(0);
  }
  const bool high = special == Special::kClockHi || special == Special::kGlobalTimerHi ||
                    special == Special::kGridWorkspaceHigh;
  return high ? b_.CreateLShr(wide, 32) : wide;
}

/// The address of a variable in its own space; local and call-parameter variables are host
/// addresses of lane 0.
llvm::Value* Translator::scalar_address(const Operand& operand) {
  const auto index = static_cast<std::size_t>(operand.index);
  const ptx::Variable& variable = module_.variables[index];
  Value* base = nullptr;
  if (variable.space == Space::kGlobal || variable.space == Space::kConst) {
    base = b_.CreatePtrToInt(layout_.globals[index], b_.getInt64Ty());
  } else if (variable.space == Space::kShared) {
    base = b_.getInt64(static_cast<std::uint64_t>(layout_.offsets[index]));
  } else {
    const bool parameter =
        std::ranges::find(function_.params, operand.index) != function_.params.end();
    base = b_.CreateAdd(
        field(parameter ? offsetof(WarpContext, params) : offsetof(WarpContext, local), 64),
        b_.getInt64(static_cast<std::uint64_t>(layout_.offsets[index])));
  }
  return operand.bits == 0 ? base : b_.CreateAdd(base, b_.getInt64(operand.bits));
}

llvm::Value* Translator::read_scalar(const Operand& operand, unsigned bits) {
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
      return b_.getInt(value.bitcastToAPInt());
    }
    case Operand::Form::kRegister:
      return resize(load_register(operand.index).value, bits, false);
    case Operand::Form::kSpecial:
      return resize(special(static_cast<Special>(operand.index), true), bits, false);
    case Operand::Form::kVariable:
      return resize(scalar_address(operand), bits, false);
    default:
      ptx::fail(line_, "an operand is of the wrong form");
  }
}

llvm::Value* Translator::read_lanes(const Operand& operand, unsigned bits) {
  if (operand.form == Operand::Form::kRegister) {
    load_register(operand.index);
    Cached& cached = cache_[operand.index];
    if (cached.lanes == nullptr) {
      cached.lanes = lanes_of(cached.value, shapes_.shape(operand.index));
    }
    return resize(cached.lanes, bits, false);
  }
  if (operand.form == Operand::Form::kSpecial) {
    return resize(special(static_cast<Special>(operand.index), false), bits, false);
  }
  if (operand.form == Operand::Form::kVariable) {
    const Space space = module_.variables[operand.index].space;
    Value* base = scalar_address(operand);
    if (space != Space::kLocal && space != Space::kParam) return resize(splat(base), bits, false);
    std::vector<llvm::Constant*> offsets;
    for (unsigned l = 0; l < 32; ++l) {
      offsets.push_back(b_.getInt64(std::uint64_t{l} * layout_.local_bytes));
    }
    return resize(b_.CreateAdd(splat(base), llvm::ConstantVector::get(offsets)), bits, false);
  }
  return splat(read_scalar(operand, bits));
}

llvm::Value* Translator::read(const Operand& operand, unsigned bits) {
  return scalar_ ? read_scalar(operand, bits) : read_lanes(operand, bits);
}

llvm::Value* Translator::read_predicate(const Operand& operand) {
  Value* value = read(operand, 1);
  return operand.negated ? b_.CreateNot(value) : value;
}

llvm::Value* Translator::bits_to_float(Value* bits, ptx::Type type) {
  const bool scalar = !bits->getType()->isVectorTy();
  if (type.bits >= 32) return b_.CreateBitCast(bits, floating(type, scalar));
  const ptx::Type single{ptx::Kind::kFloat, 32, 1};
  if (type.kind == ptx::Kind::kBfloat) {
    Value* wide = b_.CreateShl(b_.CreateZExt(bits, integer(32, scalar)), 16);
    return b_.CreateBitCast(wide, floating(single, scalar));
  }
  llvm::Type* half = llvm::Type::getHalfTy(llvm_);
  Value* value = b_.CreateBitCast(bits, scalar ? half : FixedVectorType::get(half, 32));
  Value* wide = b_.CreateFPExt(value, floating(single, scalar));
  // Else LLVM narrows what follows to half, which x86 computes lane by lane, and loses the sign of
  // a zero in a select.
  return b_.CreateArithmeticFence(wide, wide->getType());
}

llvm::Value* Translator::float_to_bits(Value* value, ptx::Type type) {
  const bool scalar = !value->getType()->isVectorTy();
  if (type.bits >= 32) return b_.CreateBitCast(value, integer(type.bits, scalar));
  if (type.kind == ptx::Kind::kBfloat) return round_to_bfloat(value, Rounding::kNearest);
  return round_to_half(value, Rounding::kNearest);
}

llvm::Value* Translator::read_float(const Operand& operand, ptx::Type type) {
  return bits_to_float(read(operand, type.bits), type);
}

void Translator::write_float(const Operand& operand, Value* value, ptx::Type type) {
  write(operand, float_to_bits(value, type));
}

void Translator::write(const Operand& operand, Value* value) {
  if (operand.form == Operand::Form::kSink) return;
  if (!operand.is_register()) ptx::fail(line_, "a result must be a register");
  write_register(operand.index, value);
}

void Translator::write_register(int reg, Value* value) {
  const unsigned bits = register_bits(reg);
  const unsigned given = value->getType()->getScalarSizeInBits();
  if ((given == 1) != (bits == 1)) {
    ptx::fail(line_, given == 1 ? "a result is a predicate, and its register is not"
                                : "a result is no predicate, and its register is");
  }
  if (given != bits) value = resize(value, bits, false);
  const Shape& shape = shapes_.shape(reg);
  if (shape.is_vector()) value = lanes_of(value, result_shape_);
  if (guard_lanes_ != nullptr) {
    value = b_.CreateSelect(guard_lanes_, value, load_register(reg).value);
  } else if (guard_scalar_ != nullptr) {
    value = b_.CreateSelect(guard_scalar_, value, load_register(reg).value);
  }
  cache_[reg] = Cached{value, nullptr, true};
}

/// A result that the instruction made for the whole warp.
llvm::Value* Translator::uniform(Value* scalar) {
  result_shape_ = Shape::uniform();
  return scalar;
}

/// A result with a predicate, which only a pair takes: then both are written here.
llvm::Value* Translator::with_predicate(const Instruction& i, Value* result, Value* predicate) {
  if (i.operands[0].form != Operand::Form::kPair) return result;
  write(i.operands[0].elements[0], result);
  write(i.operands[0].elements[1], predicate);
  return nullptr;
}

llvm::Value* Translator::intrinsic(llvm::Intrinsic::ID id,
                                   std::initializer_list<Value*> arguments) {
  return b_.CreateIntrinsic((*arguments.begin())->getType(), id,
                            llvm::ArrayRef<Value*>(arguments.begin(), arguments.size()));
}

/// Applies `body` to each half of these vectors of 32 words; a half is a register on hosts with
/// AVX-512.
llvm::Value* Translator::by_halves(std::initializer_list<Value*> values,
                                   llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> body) {
  std::vector<int> order(32);
  std::iota(order.begin(), order.end(), 0);
  const llvm::ArrayRef<int> all = order;
  Value* results[2];
  for (std::size_t half = 0; half < 2; ++half) {
    llvm::SmallVector<Value*, 3> parts;
    for (Value* value : values) {
      parts.push_back(b_.CreateShuffleVector(value, all.slice(16 * half, 16)));
    }
    results[half] = body(parts);
  }
  return b_.CreateShuffleVector(results[0], results[1], all);
}

std::uint32_t Translator::scratch_place(unsigned index) const {
  return register_bytes_ - kScratchBytes + 128 * index;
}

llvm::Value* Translator::scratch(unsigned index) { return register_file(scratch_place(index)); }

/// The address of these words.
llvm::Value* Translator::constant_words(llvm::ArrayRef<std::uint32_t> words) {
  llvm::Constant* data = llvm::ConstantDataArray::get(llvm_, words);
  auto* variable = new llvm::GlobalVariable(out_, data->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, data);
  variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return variable;
}

llvm::Value* Translator::to_scratch(unsigned index, Value* lanes) {
  Value* pointer = scratch(index);
  b_.CreateAlignedStore(lanes, pointer, llvm::Align(64));
  return pointer;
}

llvm::Value* Translator::from_scratch(unsigned index, llvm::Type* type) {
  return b_.CreateAlignedLoad(type, scratch(index), llvm::Align(64));
}

/// Calls a run-time helper (runtime_helpers.h); without a type it has no result.
llvm::Value* Translator::call(const char* name, llvm::ArrayRef<Argument> arguments,
                              llvm::Type* result) {
  std::vector<Value*> values;
  std::vector<llvm::Type*> types;
  for (const Argument& argument : arguments) {
    values.push_back(argument.value != nullptr ? argument.value : b_.getInt32(argument.number));
    types.push_back(values.back()->getType());
  }
  if (result == nullptr) result = b_.getVoidTy();
  auto callee =
      out_.getOrInsertFunction(helper_symbol(name), llvm::FunctionType::get(result, types, false));
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotThrow();
  }
  return b_.CreateCall(callee, values);
}

/// Calls helper(out, in0, in1, .. [, mode]) over 32 lanes of one type; in scalar mode on one value.
llvm::Value* Translator::map_lanes(const char* helper, std::initializer_list<Value*> arguments,
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

llvm::Value* Translator::execution_mask() {
  if (guard_lanes_ == nullptr) return mask_;
  return mask_ == nullptr ? guard_lanes_ : b_.CreateAnd(mask_, guard_lanes_);
}

/// Those of the warp that have not returned.
llvm::Value* Translator::live_lanes() {
  return b_.CreateLoad(b_.getInt32Ty(), register_file(live_slot_));
}

llvm::Value* Translator::execution_bits() {
  Value* mask = execution_mask();
  return mask == nullptr ? b_.getInt32(~0U) : lane_bits(mask);
}

/// The result of `body` on the values (as floats) of operands 1..inputs; packed types half by half.
llvm::Value* Translator::both_halves(const Instruction& instruction, ptx::Type type,
                                     std::size_t inputs,
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
      Value* part = half == 0 ? value : b_.CreateLShr(value, type.bits);
      parts.push_back(bits_to_float(resize(part, type.bits, false), element));
    }
    Value* bits = resize(float_to_bits(body(parts), element), type.total_bits(), false);
    result = half == 0 ? bits : b_.CreateOr(result, b_.CreateShl(bits, type.bits));
  }
  return result;
}

}  // namespace braid::cpu
