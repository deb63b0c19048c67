// The parts of an attention joined: of each row the segments of keys in order, by the same steps as
// tiles of keys (attention_tile.cpp). A block loads several parts before it joins them.

#include <algorithm>

#include "codegen/body/emitter.h"
#include "codegen/work/attention_tile.h"
#include "ir/numel.h"
#include "ir/scalar_functions.h"

namespace braid {
namespace {

using tile::Fn;
using tile::Id;
using tile::Kind;

constexpr int kRows = 16;
constexpr std::int64_t kMostTogether = 8;

constexpr Setting kSettings[] = {kWarpsSetting};

class JoinTile {
 public:
  explicit JoinTile(const Piece& piece)
      : b_(piece.b),
        facts_(piece.facts),
        body_(piece.facts.body),
        node_(attention_in(body_)),
        form_(attention_of(body_, node_)),
        emitter_(b_, facts_, kRows),
        columns_(padded_head(facts_.space.back())) {
    const Id first = b_.map(Fn::kMul, {piece.number, b_.integer(kRows)});
    const auto fit = [&](Id id) { return b_.map(facts_.narrow ? Fn::kToI32 : Fn::kToI64, {id}); };
    const Shape rows(facts_.space.begin(), facts_.space.end() - 1);
    row_ = {b_.map(Fn::kAdd, {fit(first), b_.range(kRows, 1, 0)}), rows};
    const Id end = fit(scalar_of(b_, numel(rows), body_.symbols()));
    exists_ = {b_.map(Fn::kLt, {row_.index, end})};
    col_ = b_.range(kRows, columns_, 1);
    is_column_ = exists_;
    is_column_.push_back(b_.map(Fn::kLt, {col_, b_.integer(width())}));
  }

  void emit() {
    Carried carried{b_.splat(Kind::kF32, kRows, 1, -kInfinity), b_.splat(Kind::kF32, kRows, 1, 0),
                    b_.splat(Kind::kF32, kRows, columns_, 0)};
    if (form_.sinks) {
      const Coords head = emitter_.coords().pick({row_}, {1});
      carried.most = emitter_.value(node_.inputs[*form_.sinks], head, exists_);
      carried.sum = b_.splat(Kind::kF32, kRows, 1, 1);
    }
    const std::int64_t parts = body_.type(node_.inputs[0]).shape[0].evaluate({});
    const std::int64_t together =
        std::min<std::int64_t>(kMostTogether, 1024 / columns_);  // in registers
    const std::int64_t whole = parts / together * together;
    if (whole > 0) {
      const Id loop = b_.begin_for(b_.integer(0), b_.integer(whole), b_.integer(together),
                                   {carried.most, carried.sum, carried.output});
      emitter_.open_scope();
      carried = {b_.carried(loop, 0), b_.carried(loop, 1), b_.carried(loop, 2)};
      carried = joined_from(carried, b_.induction(loop), together);
      emitter_.close_scope();
      const std::vector<Id> ends = b_.end_for(loop, {carried.most, carried.sum, carried.output});
      carried = {ends[0], ends[1], ends[2]};
    }
    carried = joined_from(carried, b_.integer(whole), parts - whole);
    const Id nothing = b_.map(Fn::kEq, {carried.sum, number(0)});
    const Id by = b_.map(Fn::kSelect, {nothing, number(1), carried.sum});
    const Id share = b_.map(Fn::kDiv, {number(1), by});
    const Id result = b_.round(body_.type(node_.outputs[0]).dtype, b_.times(carried.output, share));
    emitter_.define(node_.outputs[0], [result](const Coords&, const Mask&) { return result; });
    const Coords at{row_, {col_, {facts_.space.back()}}};
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) emitter_.store(i, at, is_column_);
  }

 private:
  Id number(double value) { return b_.constant(Kind::kF32, value); }
  [[nodiscard]] std::int64_t width() const { return facts_.space.back().evaluate({}); }

  /// One column, or all values, of a part.
  Id load(Id part, Id col, const Mask& mask) {
    const Shape& shape = body_.type(node_.inputs[0]).shape;
    return emitter_.value(node_.inputs[0], {{part, {shape[0]}}, row_, {col, {shape[3]}}}, mask);
  }

  Carried joined_from(Carried carried, Id first, std::int64_t count) {
    std::vector<Carried> parts;
    for (std::int64_t i = 0; i < count; ++i) {
      const Id part = b_.map(Fn::kAdd, {first, b_.integer(i)});
      parts.push_back({load(part, b_.integer(width()), exists_),
                       load(part, b_.integer(width() + 1), exists_), load(part, col_, is_column_)});
    }
    for (const Carried& part : parts) carried = joined(b_, carried, part);
    return carried;
  }

  tile::Builder& b_;
  const BodyFacts& facts_;
  const Graph& body_;
  const Node& node_;
  Attention form_;
  BodyEmitter emitter_;
  int columns_;
  Axis row_;
  Id col_;
  Mask exists_, is_column_;
};

}  // namespace

/// Parts of an attention joined, with what comes after it at the same place.
extern const Work kJoinedParts{
    .settings = kSettings,
    .matches =
        [](const Graph& body) { return has_attention(body) && joins_parts(attention_in(body)); },
    .refuse = [](const BodyFacts& facts) { return refuse_operands(facts); },
    .configs = [](const BodyFacts&, const Target&) -> std::vector<Config> {
      return {{{"num_warps", 4}}};
    },
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      const Shape rows(facts.space.begin(), facts.space.end() - 1);
      const Expr count = ceil_div(numel(rows), Expr(kRows));
      return Pieces{.count = count,
                    .divisor = divisor_of(count, facts.body.symbols()),
                    .warps_m = static_cast<int>(config.at("num_warps"))};
    },
    .emit = [](const Piece& piece) { JoinTile(piece).emit(); },
};

}  // namespace braid
