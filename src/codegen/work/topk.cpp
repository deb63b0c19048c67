// The first k elements of each row in order, one after the other: of the elements that come after
// the last one found, the best, and of those equal to it the one with the least index. A row is in
// registers, and nothing is moved or marked: what comes after is decided by comparing with the last
// one found. NaN is above all numbers. Equal elements keep their order, so that no result depends
// on threads.

#include <algorithm>
#include <limits>

#include "codegen/work/rows.h"
#include "ir/attributes.h"
#include "ir/op_registry.h"
#include "ir/scalar_functions.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

class Selection {
 public:
  explicit Selection(const RowPlace& place)
      : place_(place),
        b_(place.b),
        body_(place.facts.body),
        node_(*place.facts.scan),
        floats_(is_float(body_.type(node_.inputs[0]).dtype)),
        largest_(*node_.attr<bool>("largest")) {
    const tile::Type tile = b_.type(place.col);  // of a program that grows
    exists_ = place.emitter.conjunction(place.mask, tile.cols);
    column_ = b_.map(Fn::kToI64, {place.col});
    x_ = place.emitter.value(node_.inputs[0], place.at, place.mask);
    if (b_.type(x_).rows != tile.rows || b_.type(x_).cols != tile.cols) {
      x_ = b_.spread(x_, tile.rows, tile.cols);
    }
    is_nan_ = floats_ ? is_nan(x_) : kNone;
  }

  void emit() {
    store_others();
    const int rows = b_.type(x_).rows;
    const Dim k = bound_of(node_.attrs.at("k"));
    const Id loop =
        b_.begin_for(b_.integer(0), scalar_of(b_, Expr(k), body_.symbols()), b_.integer(1),
                     {floats_ ? b_.splat(Kind::kF32, rows, 1, largest_ ? kNan : -kInfinity)
                              : b_.splat_integer(rows, 1, largest_ ? kMost : kLeast),
                      b_.splat_integer(rows, 1, -1)});
    const Id left = comes_after(b_.carried(loop, 0), b_.carried(loop, 1));
    const Id best = best_of(left);
    const Id far = b_.integer(kMost);
    const Id found = b_.both(left, is_same(best));
    const Id index = b_.reduce(Fn::kMin, b_.map(Fn::kSelect, {found, column_, far}));
    // Its own bits: zeros of both signs are equal.
    const Id is_it = b_.map(Fn::kEq, {column_, index});
    const Id value = b_.reduce(Fn::kMax, b_.map(Fn::kSelect, {is_it, x_, below_all()}));
    const Coords at = {{place_.row, place_.facts.kept_dims()}, {b_.induction(loop), {k}}};
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      if (!is_found(i)) continue;
      const Value& output = body_.value(body_.outputs()[i]);
      place_.emitter.store(output_pointer(b_, i), output.type, output.result == 0 ? value : index,
                           at, place_.mask);
    }
    b_.end_for(loop, {best, index});
  }

 private:
  /// Whether an output is a result of the topk.
  bool is_found(std::size_t output) const {
    const NodeId producer = body_.value(body_.outputs()[output]).producer;
    return producer >= 0 && &body_.node(producer) == &node_;
  }
  /// What the kernel computes in front of the topk may be asked for elsewhere, too.
  void store_others() {
    const Coords row = {{place_.row, place_.facts.kept_dims()}};
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      const auto output = static_cast<std::size_t>(body_.outputs()[i]);
      if (is_found(i)) continue;
      place_.emitter.store(i, place_.facts.per_row[output] ? row : place_.at, place_.mask);
    }
  }

  Id either(Id a, Id b) { return b_.inverse(b_.both(b_.inverse(a), b_.inverse(b))); }
  Id is_nan(Id a) { return b_.inverse(b_.map(Fn::kEq, {a, a})); }
  Id below_all() { return floats_ ? b_.constant(Kind::kF32, -kInfinity) : b_.integer(kLeast); }

  /// Where an element equals the row's value.
  Id is_same(Id value) {
    const Id same = b_.map(Fn::kEq, {x_, value});
    return floats_ ? either(same, b_.both(is_nan_, is_nan(value))) : same;
  }

  /// Which elements come after this one in the order.
  Id comes_after(Id value, Id index) {
    Id after = largest_ ? b_.less(x_, value) : b_.less(value, x_);
    if (floats_) {
      const Id last = is_nan(value);
      after = either(after, largest_ ? b_.both(last, b_.inverse(is_nan_))
                                     : b_.both(is_nan_, b_.inverse(last)));
    }
    after = either(after, b_.both(is_same(value), b_.less(index, column_)));
    return exists_ == kNone ? after : b_.both(after, exists_);
  }

  Id best_of(Id left) {
    const auto best = [&](Fn fn, Id of, Id neutral) {
      return b_.reduce(fn, b_.map(Fn::kSelect, {of, x_, neutral}));
    };
    if (largest_) return best(Fn::kMax, left, below_all());
    if (!floats_) return best(Fn::kMin, left, b_.integer(kMost));
    // The least is a number as long as there is one.
    const Id numbers = b_.both(left, b_.inverse(is_nan_));
    const Id least = best(Fn::kMin, numbers, b_.constant(Kind::kF32, kInfinity));
    const Id count = b_.reduce(
        Fn::kMax,
        b_.map(Fn::kSelect, {numbers, b_.spread(b_.integer(1), b_.type(x_).rows, b_.type(x_).cols),
                             b_.integer(0)}));
    const Id none = b_.less(count, b_.integer(1));
    return b_.map(Fn::kSelect, {none, b_.constant(Kind::kF32, kNan), least});
  }

  const RowPlace& place_;
  tile::Builder& b_;
  const Graph& body_;
  const Node& node_;
  bool floats_, largest_;
  Id exists_ = kNone;  ///< which elements of the tile do
  Id column_ = kNone, x_ = kNone, is_nan_ = kNone;
};

}  // namespace

extern const Work kTopK{
    .settings = kRowSettings,
    .matches =
        [](const Graph& body) {
          return std::ranges::any_of(body.nodes(),
                                     [](const Node& node) { return node.op_name() == "topk"; });
        },
    .refuse = [](const BodyFacts& facts) { return facts.refusal; },
    .configs = [](const BodyFacts& facts, const Target&) -> std::vector<Config> {
      return {{{std::string(kWarpsSetting.name), row_warps(facts)}}};
    },
    .pieces = each_row,
    .emit =
        [](const Piece& piece) {
          for_row_places(piece, [](const RowPlace& place) { Selection(place).emit(); });
        },
};

}  // namespace braid
