#include "codegen/passes/axis_info.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "codegen/tile/op_info.h"

namespace braid::tile {
namespace {

constexpr std::int64_t kLarge = 1 << 20;

/// The largest power of two that divides n, at most kLarge.
std::int64_t power_of_two(std::int64_t n) {
  if (n == 0) return kLarge;
  return std::min(kLarge,
                  std::int64_t{1} << std::countr_zero(static_cast<std::uint64_t>(std::llabs(n))));
}

AxisInfo constant_info(std::int64_t divisor) { return {1, power_of_two(divisor), kLarge}; }

}  // namespace

const AxisInfo& AxisAnalysis::of(Id id) {
  const auto at = static_cast<std::size_t>(id);
  if (!known_[at]) {
    info_[at] = compute(id);
    known_[at] = true;
  }
  return info_[at];
}

AxisInfo AxisAnalysis::compute(Id id) {
  const Inst& inst = program_.at(id);
  switch (inst.op) {
    case Op::kConstant:
      return constant_info(inst.integer);
    case Op::kParam: {
      const Param& param = program_.params[inst.index];
      return constant_info(std::max<std::int64_t>(param.divisor, param.what.alignment));
    }
    case Op::kForArg: {
      // The induction variable is low + i * step. Only loops with a known low are handled.
      for (const Inst& loop : program_.insts) {
        if (loop.op != Op::kFor || loop.body_args[0] != id) continue;
        return constant_info(
            std::gcd(of(loop.args[0]).divisibility, of(loop.args[2]).divisibility));
      }
      return inst.type.is_scalar() ? constant_info(1) : AxisInfo{};
    }
    case Op::kRange:
      if (inst.index != axis_) return {1, 1, kLarge};
      return {axis_ == 1 ? inst.type.cols : inst.type.rows, kLarge, 1};
    case Op::kLoad: {
      // One address always holds the same value.
      std::int64_t same = of(inst.args[1]).constancy;
      if (inst.args.size() > 2) same = std::min(same, of(inst.args[2]).constancy);
      return {1, 1, same};
    }
    case Op::kMap:
      break;
    default:
      return inst.type.is_scalar() ? constant_info(1) : AxisInfo{};
  }
  const AxisInfo a = of(inst.args[0]);
  const AxisInfo b = inst.args.size() > 1 ? of(inst.args[1]) : AxisInfo{};
  const std::int64_t both_constant = std::min(a.constancy, b.constancy);
  switch (inst.fn) {
    case Fn::kToI32:
    case Fn::kToI64:
    case Fn::kNot:
      return a;
    case Fn::kAdd:
    case Fn::kSub: {
      AxisInfo out{1, std::min(a.divisibility, b.divisibility), both_constant};
      const std::int64_t ab = std::min(a.contiguity, b.constancy);
      const std::int64_t ba = inst.fn == Fn::kAdd ? std::min(b.contiguity, a.constancy) : 1;
      out.contiguity = std::max(ab, ba);
      return out;
    }
    case Fn::kMul: {
      // A scaled run that counts by one is no run any more; its first element is still a multiple.
      const std::int64_t da = a.contiguity > 1 ? 1 : a.divisibility;
      const std::int64_t db = b.contiguity > 1 ? 1 : b.divisibility;
      return {1, std::min(kLarge, da * db), both_constant};
    }
    case Fn::kRem: {
      // Within an aligned run shorter than every power-of-two factor of the modulus, x % m still
      // counts up by one.
      const std::int64_t run = std::min({a.contiguity, a.divisibility, b.divisibility});
      if (b.constancy >= run && run > 1) return {run, std::min(a.divisibility, b.divisibility), 1};
      return {1, 1, both_constant};
    }
    case Fn::kDiv: {
      const std::int64_t run = std::min({a.contiguity, a.divisibility, b.divisibility});
      const Inst& divisor = program_.at(inst.args[1]);
      const bool is_exact = divisor.op == Op::kConstant && divisor.integer > 0 &&
                            a.divisibility % divisor.integer == 0 && a.contiguity == 1;
      return {1, is_exact ? a.divisibility / divisor.integer : 1,
              std::max(both_constant, b.constancy >= run ? run : 1)};
    }
    case Fn::kLt: {
      const std::int64_t run = std::min({a.contiguity, a.divisibility, b.divisibility});
      return {1, 1, std::max(both_constant, b.constancy >= run ? run : 1)};
    }
    default:
      return {1, 1, both_constant};
  }
}

std::int64_t AxisAnalysis::pointer_alignment(Id pointer) {
  const Inst& inst = program_.at(pointer);
  if (inst.op == Op::kPtrAdd) {
    return std::min(pointer_alignment(inst.args[0]), of(inst.args[1]).divisibility);
  }
  if (op_info(inst.op).leads_to_arena) return of(inst.args[0]).divisibility;
  if (inst.op == Op::kMap && inst.fn == Fn::kSelect) {
    return std::min(pointer_alignment(inst.args[1]), pointer_alignment(inst.args[2]));
  }
  return of(pointer).divisibility;
}

int AxisAnalysis::access_width(Id pointer, Id offset, Id mask, DType dtype, int limit) {
  const auto bytes = static_cast<std::int64_t>(dtype_size(dtype));
  const AxisInfo at = of(offset);
  std::int64_t width = std::min<std::int64_t>(limit, 16 / bytes);
  width = std::min({width, at.contiguity, at.divisibility, pointer_alignment(pointer) / bytes});
  if (mask != kNone) width = std::min(width, of(mask).constancy);
  return static_cast<int>(std::max<std::int64_t>(width, 1));
}

}  // namespace braid::tile
