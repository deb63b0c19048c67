#include "codegen/tile/interval.h"

#include <algorithm>

namespace braid::tile {
namespace {

/// So deep an expression is looked into.
constexpr int kMostDepth = 8;

constexpr Interval kOf32Bits{std::numeric_limits<std::int32_t>::min(),
                             std::numeric_limits<std::int32_t>::max()};

bool is_within(const Interval& inner, const Interval& outer) {
  return inner.least >= outer.least && inner.most <= outer.most;
}

/// The loop whose induction variable it is, or nothing.
const Inst* loop_of(const Program& p, Id induction) {
  for (const Inst& loop : p.insts) {
    if (loop.op == Op::kFor && loop.body_args[0] == induction) return &loop;
  }
  return nullptr;
}

Interval interval(const Program& p, Id id, int depth);

Interval of_map(const Program& p, const Inst& inst, int depth) {
  const auto arg = [&](std::size_t i) { return interval(p, inst.args[i], depth + 1); };
  // Sums and products of these do not overflow 64 bits.
  const auto are_small = [](const Interval& a, const Interval& b) {
    return is_within(a, kOf32Bits) && is_within(b, kOf32Bits);
  };
  const Interval a = arg(0);
  switch (inst.fn) {
    case Fn::kToI32:
    case Fn::kToI64:
      return a;
    case Fn::kRound:
    case Fn::kSaturate: {
      const Interval all = interval_of(inst.dtype);
      return is_within(a, all) ? a : all;
    }
    case Fn::kAdd:
    case Fn::kWrapAdd: {
      const Interval b = arg(1);
      if (are_small(a, b)) return {a.least + b.least, a.most + b.most};
      // Indices do not overflow.
      return inst.fn == Fn::kAdd && a.least >= 0 && b.least >= 0 ? Interval{0} : Interval();
    }
    case Fn::kSub:
    case Fn::kWrapSub: {
      const Interval b = arg(1);
      if (are_small(a, b)) return {a.least - b.most, a.most - b.least};
      return {};
    }
    case Fn::kMul: {
      const Interval b = arg(1);
      if (a.least < 0 || b.least < 0) return {};
      return are_small(a, b) ? Interval{a.least * b.least, a.most * b.most} : Interval{0};
    }
    case Fn::kDiv:
      return a.least >= 0 && arg(1).least >= 0 ? Interval{0, a.most} : Interval();
    case Fn::kRem: {
      const Interval b = arg(1);
      return a.least >= 0 && b.least > 0 ? Interval{0, std::min(a.most, b.most - 1)} : Interval();
    }
    case Fn::kBitAnd: {
      const Interval b = arg(1);
      if (a.least < 0 && b.least < 0) return {};
      return {0, std::min(a.least < 0 ? b.most : a.most, b.least < 0 ? a.most : b.most)};
    }
    case Fn::kSelect: {
      const Interval b = arg(1), c = arg(2);
      return {std::min(b.least, c.least), std::max(b.most, c.most)};
    }
    case Fn::kShiftRight:
      return {std::min<std::int64_t>(a.least, 0), std::max<std::int64_t>(a.most, 0)};
    default:
      return {};
  }
}

Interval interval(const Program& p, Id id, int depth) {
  const Inst& inst = p.at(id);
  if (inst.type.kind == Kind::kF32 || depth > kMostDepth) return {};
  switch (inst.op) {
    case Op::kConstant:
      return {inst.integer, inst.integer};
    case Op::kRange:
      return {0, std::max(inst.type.rows, inst.type.cols) - 1};
    case Op::kProgramId:
    case Op::kNumPrograms:
      return {0, kOf32Bits.most};
    case Op::kLoad:
    case Op::kLoadScalar:
    case Op::kLoadShared:
      return interval_of(inst.dtype);
    case Op::kForArg: {
      const Inst* const loop = loop_of(p, id);
      if (loop == nullptr || interval(p, loop->args[2], depth + 1).least < 0) return {};
      return {interval(p, loop->args[0], depth + 1).least,
              interval(p, loop->args[1], depth + 1).most};
    }
    case Op::kMap: {
      const Interval numbers = of_map(p, inst, depth);
      return inst.type.kind == Kind::kI32 && !is_within(numbers, kOf32Bits) ? kOf32Bits : numbers;
    }
    default:
      return {};
  }
}

bool is_multiple(const Program& p, Id id, std::int64_t factor, int depth) {
  const Inst& inst = p.at(id);
  if (depth > kMostDepth) return false;
  const auto is = [&](Id arg) { return is_multiple(p, arg, factor, depth + 1); };
  if (inst.op == Op::kConstant) {
    return inst.type.kind != Kind::kF32 && inst.integer % factor == 0;
  }
  if (inst.op == Op::kForArg) {
    const Inst* const loop = loop_of(p, id);
    return loop != nullptr && is(loop->args[0]) && is(loop->args[2]);
  }
  if (inst.op != Op::kMap) return false;
  switch (inst.fn) {
    case Fn::kToI32:
    case Fn::kToI64:
      return is(inst.args[0]);
    case Fn::kAdd:
    case Fn::kSub:
      return is(inst.args[0]) && is(inst.args[1]);
    case Fn::kMul:
      return is(inst.args[0]) || is(inst.args[1]);
    default:
      return false;
  }
}

}  // namespace

Interval interval_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kBool:
      return {0, 1};
    case DType::kI32:
      return kOf32Bits;
    default:
      return {};
  }
}

Interval interval_of(const Program& program, Id value) { return interval(program, value, 0); }

bool is_multiple(const Program& program, Id value, std::int64_t factor) {
  return is_multiple(program, value, factor, 0);
}

}  // namespace braid::tile
