#include "codegen/tile/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "braid/error.h"
#include "codegen/tile/interval.h"
#include "codegen/tile/op_info.h"

namespace braid::tile {
namespace {

/// A key that identifies a parameter.
std::string text_of(const KernelParam& param) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {}", static_cast<int>(param.kind), param.index, param.group,
                  param.expr.str(), param.map.rows.str(), param.map.columns.str(), param.map.box,
                  param.map.row_stride.str());
  for (const auto& [extent, stride] : param.map.outer) {
    text += fmt::format(" {} {}", extent.str(), stride.str());
  }
  return text;
}

/// The result of an integer function of constants, where folding pays.
std::optional<std::int64_t> fold(Fn fn, const std::vector<std::int64_t>& x) {
  switch (fn) {
    case Fn::kAdd:
      return x[0] + x[1];
    case Fn::kSub:
      return x[0] - x[1];
    case Fn::kMul:
      return x[0] * x[1];
    case Fn::kMin:
      return std::min(x[0], x[1]);
    case Fn::kMax:
      return std::max(x[0], x[1]);
    case Fn::kToI32:
    case Fn::kToI64:
      return x[0];
    default:
      return std::nullopt;
  }
}

}  // namespace

Builder::Builder(Program& program) : p_(program), block_(&program.body) {
  for (const Param& param : program.params) {
    params_.emplace(text_of(param.what), static_cast<int>(params_.size()));
  }
}

Id Builder::append(Inst inst) {
  // A tile filled with a constant may start an accumulator, so it is not shared.
  const bool pure = op_info(inst.op).pure && !(inst.op == Op::kConstant && !inst.type.is_scalar());
  if (!pure) {
    const Id id = detached(std::move(inst));
    block_->push_back(id);
    return id;
  }
  std::string key = fmt::format("{} {} {} {} {} {} {} {} {} {}", static_cast<int>(inst.op),
                                static_cast<int>(inst.type.kind), inst.type.rows, inst.type.cols,
                                static_cast<int>(inst.fn), static_cast<int>(inst.dtype), inst.index,
                                inst.number, inst.integer, fmt::join(inst.args, ","));
  for (const auto& table : known_) {
    if (auto it = table.find(key); it != table.end()) return it->second;
  }
  const Id id = detached(std::move(inst));
  block_->push_back(id);
  known_.back().emplace(std::move(key), id);
  return id;
}

Id Builder::detached(Inst inst) {
  p_.insts.push_back(std::move(inst));
  return static_cast<Id>(p_.insts.size()) - 1;
}

KernelParam Builder::in_program(KernelParam what) const {
  using enum KernelParam::Kind;
  const bool is_input = what.kind == kInput;
  if (operands_.outputs.empty() || (!is_input && what.kind != kOutput)) return what;
  const auto& operands = is_input ? operands_.inputs : operands_.outputs;
  const Operands::Operand& operand = operands[what.index];
  what.kind = operand.is_output ? kOutput : kInput;
  what.index = operand.index;
  return what;
}

Id Builder::param(const KernelParam& of_body, std::int64_t divisor) {
  const KernelParam what = in_program(of_body);
  const auto [known, is_new] =
      params_.try_emplace(text_of(what), static_cast<int>(p_.params.size()));
  if (is_new) p_.params.push_back({what, divisor});
  const bool pointer = what.kind == KernelParam::Kind::kInput ||
                       what.kind == KernelParam::Kind::kOutput ||
                       what.kind == KernelParam::Kind::kBytes || what.is_map();
  return append({.op = Op::kParam,
                 .type = {pointer ? Kind::kPtr : Kind::kI64},
                 .args = {},
                 .index = known->second});
}

Id Builder::scalar(const Expr& expr, std::int64_t divisor) {
  if (expr.is_constant()) return integer(expr.evaluate({}));
  return param({.kind = KernelParam::Kind::kScalar, .expr = expr, .group = {}}, divisor);
}

Id Builder::constant(Kind kind, double value) {
  if (kind != Kind::kF32) return integer(static_cast<std::int64_t>(value), kind);
  return append({.op = Op::kConstant, .type = {kind}, .args = {}, .number = value});
}

Id Builder::integer(std::int64_t value, Kind kind) {
  return append({.op = Op::kConstant, .type = {kind}, .args = {}, .integer = value});
}

Id Builder::range(int rows, int cols, int axis) {
  return append({.op = Op::kRange, .type = {Kind::kI32, rows, cols}, .args = {}, .index = axis});
}

Id Builder::map(Fn fn, std::vector<Id> args, DType dtype) {
  Type type = p_.at(args[0]).type;
  std::vector<std::int64_t> constants;
  bool all_small = true;  // so far only constants that fit every integer type
  for (Id arg : args) {
    const Inst& inst = p_.at(arg);
    type.rows = std::max(type.rows, inst.type.rows);
    type.cols = std::max(type.cols, inst.type.cols);
    constexpr std::int64_t kSmall = 1 << 30;
    const bool fits = inst.op == Op::kConstant && inst.type.is_scalar() && inst.integer > -kSmall &&
                      inst.integer < kSmall;
    if (is_integer(type.kind) && inst.type.kind == Kind::kI64 && !fits) type.kind = Kind::kI64;
    if (is_integer(type.kind) && inst.type.kind == Kind::kI32 && all_small) type.kind = Kind::kI32;
    all_small = all_small && fits;
    if (inst.op == Op::kConstant && inst.type.is_scalar() && is_integer(inst.type.kind)) {
      constants.push_back(inst.integer);
    }
  }
  if (fn == Fn::kToI32 || fn == Fn::kToI64) {
    const Kind kind = fn == Fn::kToI32 ? Kind::kI32 : Kind::kI64;
    const Inst& inst = p_.at(args[0]);
    const bool is_widened = inst.op == Op::kMap && inst.fn == Fn::kToI64;
    if (is_widened && p_.at(inst.args[0]).type.kind == kind) return inst.args[0];
    if (inst.op == Op::kConstant && !inst.type.is_scalar() && is_integer(inst.type.kind)) {
      Inst other = inst;
      other.type.kind = kind;
      return append(std::move(other));
    }
  }
  if (constants.size() == args.size()) {
    if (auto value = fold(fn, constants)) return integer(*value, type.kind);
  }
  const auto is_constant = [&](Id id, std::int64_t value) {
    const Inst& inst = p_.at(id);
    return inst.op == Op::kConstant && inst.type.is_scalar() && is_integer(type.kind) &&
           inst.integer == value;
  };
  // What adds whole multiples of the divisor has no part in the rest.
  if (fn == Fn::kRem && constants.size() == 1 && p_.at(args[1]).op == Op::kConstant) {
    const Id rest = without_multiples(args[0], p_.at(args[1]).integer);
    if (rest != args[0]) return map(fn, {rest, args[1]});
  }
  if (fn == Fn::kDiv && constants.size() == 1 && p_.at(args[1]).op == Op::kConstant) {
    if (const auto quotient = divided(args[0], p_.at(args[1]).integer)) return *quotient;
  }
  // a + b * d < c * d where a / d + b < c, which is the same for whole runs of columns.
  if (fn == Fn::kLt && constants.size() == 1 && p_.at(args[1]).op == Op::kConstant) {
    const Inst& sum = p_.at(args[0]);
    for (const Id term : sum.op == Op::kMap && sum.fn == Fn::kAdd ? sum.args : std::vector<Id>()) {
      const Inst& product = p_.at(term);
      const bool is_product = !product.type.is_scalar() && product.op == Op::kMap &&
                              product.fn == Fn::kMul && p_.at(product.args[1]).op == Op::kConstant;
      const std::int64_t divisor = is_product ? p_.at(product.args[1]).integer : 0;
      if (divisor <= 1 || constants[0] % divisor != 0) continue;
      if (const auto quotient = divided(args[0], divisor)) {
        return map(fn, {*quotient, integer(constants[0] / divisor, p_.at(args[1]).type.kind)});
      }
    }
  }
  if (is_integer(type.kind) && args.size() == 2) {
    const bool one_neutral = fn == Fn::kMul;
    const std::int64_t neutral = one_neutral ? 1 : 0;
    if (fn == Fn::kAdd || fn == Fn::kMul) {
      if (is_constant(args[0], neutral)) return args[1];
      if (is_constant(args[1], neutral)) return args[0];
    }
    if (fn == Fn::kSub && is_constant(args[1], 0)) return args[0];
    if (fn == Fn::kMul && (is_constant(args[0], 0) || is_constant(args[1], 0))) {
      return integer(0, type.kind);
    }
  }
  switch (fn) {
    case Fn::kLt:
    case Fn::kEq:
    case Fn::kAnd:
    case Fn::kNot:
      type.kind = Kind::kPred;
      break;
    case Fn::kRound:
      if (dtype == DType::kBool) type.kind = Kind::kI64;
      break;
    case Fn::kSelect:
      type.kind = p_.at(args[1]).type.kind;
      break;
    case Fn::kToI32:
      type.kind = Kind::kI32;
      break;
    case Fn::kToI64:
    case Fn::kSaturate:
      type.kind = Kind::kI64;
      break;
    case Fn::kToF32:
    case Fn::kAsF32:
      type.kind = Kind::kF32;
      break;
    default:
      break;
  }
  return append({.op = Op::kMap, .type = type, .args = std::move(args), .fn = fn, .dtype = dtype});
}

bool Builder::is_exact(DType dtype, Id value) const {
  const auto is_within = [&](Id number, const Interval& all) {
    const Interval numbers = interval_of(p_, number);
    return numbers.least >= all.least && numbers.most <= all.most;
  };
  if (is_integer(type(value).kind)) {
    return dtype != DType::kBool && is_within(value, interval_of(dtype));
  }
  if (dtype != DType::kF16 && dtype != DType::kBF16) return false;
  const Inst& inst = p_.at(value);
  if (inst.op == Op::kLoad) return is_float8(inst.dtype);
  if (inst.op != Op::kMap || inst.fn != Fn::kToF32) return false;
  const std::int64_t most = dtype == DType::kF16 ? 1 << 11 : 1 << 8;  // all up to it are there
  return is_within(inst.args[0], {-most, most});
}

Id Builder::without_multiples(Id sum, std::int64_t divisor) {
  const Inst inst = p_.at(sum);
  if (inst.op != Op::kMap || inst.fn != Fn::kAdd || divisor <= 0 ||
      interval_of(p_, inst.args[0]).least < 0 || interval_of(p_, inst.args[1]).least < 0) {
    return sum;
  }
  for (const std::size_t side : {0, 1}) {
    // A scalar may make a tile of the sum; what is left has its shape.
    const Id other = inst.args[1 - side];
    if (is_multiple(p_, inst.args[side], divisor) && type(other).rows == inst.type.rows &&
        type(other).cols == inst.type.cols) {
      return without_multiples(other, divisor);
    }
  }
  const Id a = without_multiples(inst.args[0], divisor);
  const Id b = without_multiples(inst.args[1], divisor);
  return a == inst.args[0] && b == inst.args[1] ? sum : map(Fn::kAdd, {a, b});
}

std::optional<Id> Builder::divided(Id sum, std::int64_t divisor) {
  const Inst inst = p_.at(sum);
  const auto is = [&](const Inst& of, Fn fn) { return of.op == Op::kMap && of.fn == fn; };
  const auto factor = [&](Id product) {
    const Inst& of = p_.at(product);
    const bool is_whole = is(of, Fn::kMul) && p_.at(of.args[1]).op == Op::kConstant &&
                          type(of.args[1]).is_scalar() && p_.at(of.args[1]).integer == divisor &&
                          interval_of(p_, of.args[0]).least >= 0;
    return is_whole ? std::optional(of.args[0]) : std::nullopt;
  };
  if (divisor <= 0) return std::nullopt;
  if (!is(inst, Fn::kAdd)) return factor(sum);
  for (const std::size_t side : {0, 1}) {
    const Id other = inst.args[1 - side];
    const auto whole = factor(inst.args[side]);
    if (whole && interval_of(p_, other).least >= 0) {
      return map(Fn::kAdd, {map(Fn::kDiv, {other, integer(divisor)}), *whole});
    }
  }
  return std::nullopt;
}

Id Builder::ptr_add(Id pointer, Id elements, DType dtype) {
  const Id bytes = map(Fn::kMul, {elements, integer(static_cast<std::int64_t>(dtype_size(dtype)))});
  if (p_.at(bytes).op == Op::kConstant && p_.at(bytes).integer == 0) return pointer;
  return append({.op = Op::kPtrAdd, .type = {Kind::kPtr}, .args = {pointer, bytes}});
}

Id Builder::peer(Id offset, Id rank) {
  return append({.op = Op::kPeer, .type = {Kind::kPtr}, .args = {offset, rank}});
}

Id Builder::multicast(Id offset, const std::string& group) {
  param({.kind = KernelParam::Kind::kMulticast, .index = 0, .expr = 0, .group = group});
  return append({.op = Op::kMulticast, .type = {Kind::kPtr}, .args = {offset}});
}

Id Builder::load_by(Op op, Id pointer, Id offset, Id mask, DType dtype) {
  const Type& at = type(offset);
  std::vector<Id> args{pointer, offset};
  if (mask != kNone) args.push_back(mask);
  return append({.op = op,
                 .type = {is_float(dtype) ? Kind::kF32 : Kind::kI64, at.rows, at.cols},
                 .args = std::move(args),
                 .dtype = dtype});
}

void Builder::store_by(Op op, Id pointer, Id offset, Id value, Id mask, DType dtype) {
  std::vector<Id> args{pointer, offset, value};
  if (mask != kNone) args.push_back(mask);
  append({.op = op, .type = {}, .args = std::move(args), .dtype = dtype});
}

Id Builder::ll_load(Id pointer, Id offset, Id rank, Id mask, DType dtype) {
  const Type& at = type(offset);
  std::vector<Id> args{pointer, offset, rank};
  if (mask != kNone) args.push_back(mask);
  return append({.op = Op::kLlLoad,
                 .type = {is_float(dtype) ? Kind::kF32 : Kind::kI64, at.rows, at.cols},
                 .args = std::move(args),
                 .dtype = dtype});
}

Id Builder::convert_layout(Id tile) {
  return append({.op = Op::kConvertLayout, .type = type(tile), .args = {tile}});
}

void Builder::can_fail() {
  for (const auto kind : {KernelParam::Kind::kRecord, KernelParam::Kind::kStep}) {
    param({.kind = kind, .index = 0, .expr = 0, .group = {}});
  }
}

void Builder::check_index(Id index, Id extent, Id mask, int node) {
  can_fail();
  std::vector<Id> args{extent, index};
  if (mask != kNone) args.push_back(mask);
  append({.op = Op::kCheckIndex, .type = {}, .args = std::move(args), .index = node});
}

Id Builder::reduce(Fn fn, Id tile) {
  const Type from = type(tile);
  return append({.op = Op::kReduce, .type = {from.kind, from.rows, 1}, .args = {tile}, .fn = fn});
}

Id Builder::dot(Id a, Id b, Id accumulator, bool trans_a, bool trans_b, DType dtype) {
  return append({.op = Op::kDot,
                 .type = type(accumulator),
                 .args = {a, b, accumulator},
                 .dtype = dtype,
                 .trans_a = trans_a,
                 .trans_b = trans_b});
}

Id Builder::splat(Kind kind, int rows, int cols, double value) {
  return append({.op = Op::kConstant,
                 .type = {kind, rows, cols},
                 .args = {},
                 .number = kind == Kind::kF32 ? value : 0,
                 .integer = kind == Kind::kF32 ? 0 : static_cast<std::int64_t>(value)});
}

Id Builder::splat_integer(int rows, int cols, std::int64_t value) {
  return append(
      {.op = Op::kConstant, .type = {Kind::kI64, rows, cols}, .args = {}, .integer = value});
}

void Builder::order_by_loads(std::size_t from) {
  std::unordered_map<Id, int> loads;
  const auto first = block_->begin() + static_cast<std::ptrdiff_t>(from);
  for (auto it = first; it != block_->end(); ++it) {
    int most = 0;
    for (const Id arg : p_.at(*it).args) {
      const auto before = loads.find(arg);
      if (before == loads.end()) continue;
      most = std::max(most, before->second + (op_info(p_.at(arg).op).reads ? 1 : 0));
    }
    loads.emplace(*it, most);
  }
  std::stable_sort(first, block_->end(), [&](Id a, Id b) { return loads.at(a) < loads.at(b); });
}

Id Builder::spread(Id value, int rows, int cols) {
  // Adding -0 leaves every float unchanged, -0 included.
  return map(Fn::kAdd, {splat(type(value).kind, rows, cols, -0.0), value});
}

void Builder::communicate(const std::string& group, int world) {
  p_.communicates = true;
  p_.world = world;
  using P = KernelParam::Kind;
  for (P kind : {P::kPeers, P::kRank, P::kFlags, P::kTimeout}) {
    param({.kind = kind, .index = 0, .expr = 0, .group = group});
  }
  can_fail();
}

void Builder::signal(Id slot, Id rank, Id predicate) {
  append({.op = Op::kSignal, .type = {}, .args = {slot, rank, predicate}});
}

void Builder::wait(Id slot, Id rank, Id predicate) {
  append({.op = Op::kWait, .type = {}, .args = {slot, rank, predicate}});
}

void Builder::mark(protocol::Mark::What what, Id rank, Id number) {
  param({.kind = KernelParam::Kind::kMarks, .index = 0, .expr = 0, .group = {}});
  append({.op = Op::kMark, .type = {}, .args = {rank, number}, .index = static_cast<int>(what)});
}

void Builder::wait_slots(Id first, Id count) {
  append({.op = Op::kWait, .type = {}, .args = {first, kNone, kNone, count}});
}

void Builder::meet_blocks() {
  for (const auto kind : {KernelParam::Kind::kCounter, KernelParam::Kind::kTimeout}) {
    param({.kind = kind, .index = 0, .expr = 0, .group = {}});
  }
  can_fail();
  append({.op = Op::kMeetBlocks, .type = {}, .args = {}});
}

Id Builder::begin_for(Id low, Id high, Id step, std::vector<Id> initial) {
  Inst loop{.op = Op::kFor, .type = {}, .args = {low, high, step}};
  loop.body_args.push_back(detached({.op = Op::kForArg, .type = {Kind::kI64}, .args = {}}));
  for (std::size_t i = 0; i < initial.size(); ++i) {
    loop.args.push_back(initial[i]);
    loop.body_args.push_back(detached({.op = Op::kForArg,
                                       .type = type(initial[i]),
                                       .args = {initial[i]},
                                       .index = static_cast<int>(i) + 1}));
  }
  return open(append(std::move(loop)));
}

Id Builder::open(Id id) {
  outer_.push_back(block_);
  open_.push_back({id, std::make_unique<std::vector<Id>>()});
  known_.emplace_back();
  block_ = open_.back().body.get();
  return id;
}

void Builder::close(Id id) {
  if (open_.empty() || open_.back().id != id) throw_internal("", "loops must nest");
  p_.at(id).body = std::move(*open_.back().body);
  open_.pop_back();
  block_ = outer_.back();
  outer_.pop_back();
  known_.pop_back();
}

std::vector<Id> Builder::end_for(Id loop, std::vector<Id> yields) {
  close(loop);
  Inst& inst = p_.at(loop);
  inst.yields = std::move(yields);
  std::vector<Id> results;
  const std::size_t count = p_.at(loop).yields.size();
  for (std::size_t i = 0; i < count; ++i) {
    results.push_back(append({.op = Op::kForResult,
                              .type = type(p_.at(loop).body_args[i + 1]),
                              .args = {loop},
                              .index = static_cast<int>(i)}));
  }
  return results;
}

}  // namespace braid::tile
