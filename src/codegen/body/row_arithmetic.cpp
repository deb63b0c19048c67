// The arithmetic of row ops (ir/row.h) in tiles: a fold is a reduction by the work, a column a
// tile of them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codegen/body/emitter.h"
#include "ir/row.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;

/// A column of a row, as ir/row.h wants it.
struct BodyEmitter::At {
  tile::TileExpr operator[](std::size_t index) const {
    return {&emitter.b_, emitter.operand(node, index, shape(), at, mask)};
  }
  [[nodiscard]] tile::TileExpr rounded(tile::TileExpr x) const {
    return {x.builder, x.builder->round(emitter.body_.type(node.inputs[0]).dtype, x.id)};
  }
  [[nodiscard]] tile::TileExpr column() const {
    return {&emitter.b_,
            emitter.b_.map(Fn::kToI64, {emitter.coords_.index_of(at, shape().size() - 1)})};
  }
  [[nodiscard]] const Shape& shape() const { return emitter.body_.type(node.inputs[0]).shape; }

  BodyEmitter& emitter;
  const Node& node;
  Coords at;
  Mask mask;
};

/// The row of a node, as ir/row.h wants it.
struct BodyEmitter::Row {
  [[nodiscard]] std::size_t operands() const { return node.inputs.size(); }
  [[nodiscard]] tile::TileExpr count() const {
    Expr count = 1;
    const auto in_row = row_dims(*node.op, node.attrs, operand.shape.size());
    for (std::size_t d = 0; d < in_row.size(); ++d) {
      if (in_row[d]) count = count * Expr(operand.shape[d]);
    }
    return {&b, b.map(Fn::kToF32, {scalar_of(b, count, emitter.body_.symbols())})};
  }
  [[nodiscard]] tile::TileExpr sum(const auto& f) const {
    return fold(kind() == Kind::kF32 ? Fn::kAdd : Fn::kWrapAdd, kind(), f);
  }
  [[nodiscard]] tile::TileExpr product(const auto& f) const {
    return fold(kind() == Kind::kF32 ? Fn::kMul : Fn::kWrapMul, kind(), f);
  }
  [[nodiscard]] tile::TileExpr max(const auto& f) const { return fold(Fn::kMax, kind(), f); }
  [[nodiscard]] tile::TileExpr min(const auto& f) const { return fold(Fn::kMin, kind(), f); }
  [[nodiscard]] tile::TileExpr any(const auto& f) const { return fold(Fn::kMax, Kind::kI64, f); }
  [[nodiscard]] tile::TileExpr all(const auto& f) const { return fold(Fn::kMin, Kind::kI64, f); }
  /// The least index where they are equal; where the value is NaN, so is nothing else equal to it.
  [[nodiscard]] tile::TileExpr first_equal(const auto& f, tile::TileExpr value) const {
    const auto index = [&](const Coords& at, const Mask& mask) {
      const Id x = element(f, at, mask);
      Id missed = b.map(Fn::kNot, {b.map(Fn::kEq, {x, value.id})});
      if (kind() == Kind::kF32) missed = b.map(Fn::kAnd, {missed, b.map(Fn::kEq, {x, x})});
      const Id far = b.integer(std::numeric_limits<std::int64_t>::max());
      return b.map(Fn::kSelect, {missed, far, b.map(Fn::kToI64, {column()})});
    };
    return {&b, reduce(Fn::kMin, Kind::kI64, index)};
  }

  [[nodiscard]] tile::TileExpr least_column(const auto& f) const {
    const Dim& columns = operand.shape.back();
    const Id last =
        b.map(Fn::kSub, {scalar_of(b, Expr(columns), emitter.body_.symbols()), b.integer(1)});
    const std::int64_t most = columns.max(emitter.body_.symbols());
    return least(last, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most - 1))), f);
  }
  /// Among the values of the row's dtype, of which the f32 has so many bits at its end that are 0.
  [[nodiscard]] tile::TileExpr least_float(const auto& f) const {
    const int zeros = operand.dtype == DType::kBF16 ? 16 : operand.dtype == DType::kF16 ? 13 : 0;
    const auto at = [&](tile::TileExpr n) {
      return float_at(n * like(n, std::int64_t{1} << zeros));
    };
    return at(least(b.integer((kFloats - 1) >> zeros), 32 - zeros,
                    [&](tile::TileExpr n) { return f(at(n)); }));
  }
  [[nodiscard]] tile::TileExpr of_row(std::size_t index) const {
    const ValueId v = node.inputs[index];
    const Coords at = emitter.coords_.reshape(place.at, emitter.body_.type(v).shape);
    return {&b, emitter.to_kind(emitter.value(v, at, place.mask), DType::kF32)};
  }

  /// By halves: the first number up to `last` for which f holds, or the last.
  tile::TileExpr least(Id last, int halves, const auto& f) const {
    const auto number = [&](Id id) { return tile::TileExpr{&b, id}; };
    const Id loop =
        b.begin_for(b.integer(0), b.integer(halves), b.integer(1),
                    {b.splat_integer(emitter.rows_, 1, 0), b.spread(last, emitter.rows_, 1)});
    emitter.open_scope();
    const tile::TileExpr low = number(b.carried(loop, 0));
    const tile::TileExpr high = number(b.carried(loop, 1));
    const tile::TileExpr middle = (low + high) / like(low, std::int64_t{2});
    const tile::TileExpr holds = f(middle);
    const tile::TileExpr next = minimum(middle + like(low, std::int64_t{1}), high);
    const Id then_low = select(holds, low, next).id;
    const Id then_high = select(holds, middle, high).id;
    emitter.close_scope();
    return number(b.end_for(loop, {then_low, then_high})[1]);
  }
  /// The f32 with that place among all: its exponent's bits choose powers of two, which are exact.
  [[nodiscard]] tile::TileExpr float_at(tile::TileExpr n) const {
    constexpr std::int64_t kMantissas = std::int64_t{1} << 23;
    const auto whole = [&](std::int64_t value) { return like(n, value); };
    const tile::TileExpr place = n - whole(kInfinityBits);
    const tile::TileExpr exponent = truncated_quotient(abs(place), whole(kMantissas));
    const tile::TileExpr is_normal = less(whole(0), exponent);
    const tile::TileExpr mantissa =
        abs(place) - exponent * whole(kMantissas) + is_normal * whole(kMantissas);
    const tile::TileExpr steps = exponent - is_normal;
    tile::TileExpr x{&b, b.map(Fn::kToF32, {mantissa.id})};
    x = x * like(x, 0x1p-149);
    for (int bit = 0; bit < 8; ++bit) {
      const double power = std::ldexp(1.0, 1 << std::min(bit, 6));
      tile::TileExpr scaled = x * like(x, power);
      if (bit == 7) scaled = scaled * like(x, power);
      x = select(steps & whole(1 << bit), scaled, x);
    }
    return select(less(place, whole(0)), -x, x);
  }

  [[nodiscard]] Kind kind() const { return is_float(operand.dtype) ? Kind::kF32 : Kind::kI64; }
  Id element(const auto& f, const Coords& at, const Mask& mask) const {
    return f(At{emitter, node, emitter.coords_.reshape(at, operand.shape), mask}).id;
  }
  tile::TileExpr fold(Fn fn, Kind kind, const auto& f) const {
    const auto x = [&](const Coords& at, const Mask& mask) { return element(f, at, mask); };
    return {&b, reduce(fn, kind, x)};
  }

  BodyEmitter& emitter;
  tile::Builder& b;
  const Node& node;
  const Reduce& reduce;
  const Column& column;
  const RowPoint& place;
  const TensorType& operand;
};

void BodyEmitter::reduce_all(const Reduce& reduce, const Column& column, const RowPoint& place) {
  for (const Node& node : body_.nodes()) {
    if (!is_reduction(node)) continue;
    Row row{*this, b_, node, reduce, column, place, body_.type(node.inputs[0])};
    std::vector<RowResult>& results = row_results_[&node];
    visit_row_op(*node.op, [&](const auto& arithmetic) {
      std::apply([&](const auto&... result) { (results.emplace_back(result), ...); },
                 arithmetic(row, node.attrs));
    });
  }
}

Id BodyEmitter::row_value(const Node& node, std::size_t result, const Coords& at,
                          const Mask& mask) {
  const DType dtype = body_.type(node.outputs[result]).dtype;
  const Id id = to_kind(row_results_.at(&node)[result](At{*this, node, at, mask}).id, dtype);
  // The sum that a norm sees is rounded already.
  const tile::Inst& inst = b_.program().at(id);
  const bool is_rounded = inst.op == tile::Op::kMap && inst.fn == Fn::kRound && inst.dtype == dtype;
  return is_rounded ? id : b_.round(dtype, id);
}

}  // namespace braid
