// Attention of dense operands: a tile has the queries of one head.

#include "codegen/work/attention_tile.h"
#include "ir/numel.h"

namespace braid {
namespace {

using tile::Fn;
using tile::Id;

const Dim& queries_of(const Graph& body) {
  const Shape& query = body.type(attention_in(body).inputs[0]).shape;
  return query[query.size() - 2];
}

class DenseTile : public AttentionTile {
 public:
  explicit DenseTile(const Piece& piece) : AttentionTile(piece), queries_(queries_of(body_)) {
    const Shape& value = type(2).shape;
    all_keys_ = value[value.size() - 2];
    if (!adds_mask()) unit_ *= form_.scale;
    // 32-bit: a 64-bit division is a call.
    const Id blocks = narrow(extent(ceil_div(Expr(queries_), Expr(block_))));
    const Id number = narrow(piece.number);
    const Shape batch(facts_.space.begin(), facts_.space.end() - 2);
    // Blocks begin in the order of their numbers. The last queries see the most keys: those of all
    // heads come first, so that no multiprocessor begins one of them when others have nothing left.
    const Id run = form_.causal ? narrow(extent(numel(batch))) : blocks;
    const Id inside = b_.map(Fn::kRem, {number, run});
    const Id outside = b_.map(Fn::kDiv, {number, run});
    batch_ = {wide(form_.causal ? inside : outside), batch};
    Id block = inside;
    if (form_.causal) {
      block = b_.map(Fn::kSub, {b_.map(Fn::kSub, {blocks, b_.integer(1)}), outside});
    }
    first_ = b_.map(Fn::kMul, {wide(block), b_.integer(block_)});
  }

 private:
  Id queries() override {
    return operand(rows_, 0, {queries_, block_, first_}, heads_.key_columns);
  }

  Keys keys() override {
    const Id all = extent(Expr(all_keys_));
    if (!form_.causal) return {b_.integer(0), all};
    const Id end = b_.map(Fn::kAdd, {first_, b_.integer(block_)});
    return {b_.integer(0), b_.map(Fn::kMin, {all, end})};
  }

  Id operand_of_keys(std::size_t input, Id first) override {
    return operand(keys_, input, {all_keys_, heads_.key_tile(), first},
                   input == 1 ? heads_.key_columns : heads_.value_columns);
  }

  /// A tile of rows of an operand, with all columns of a head.
  Id operand(BodyEmitter& emitter, std::size_t input, const Extent& rows, int columns) {
    const Shape& shape = type(input).shape;
    const Dim width = shape.back();
    Mask mask;
    const Id row = index(rows, rows.block, columns, 0, mask);
    const Id col = column(width, rows.block, columns, mask);
    Coords at = input == 0 || form_.groups == 1 ? Coords{batch_} : of_key_head(shape);
    at.push_back({row, {rows.dim}});
    at.push_back({col, {width}});
    return emitter.value(node_.inputs[input], at, mask);
  }

  /// The batch of a key or value whose head several heads of the query share.
  Coords of_key_head(const Shape& shape) {
    Shape dims(shape.begin(), shape.end() - 2);
    dims.emplace_back(static_cast<std::int64_t>(form_.groups));
    const Coords apart = rows_.coords().reshape({batch_}, dims);
    std::vector<std::optional<std::size_t>> picks;
    for (std::size_t d = 0; d + 1 < dims.size(); ++d) picks.emplace_back(d);
    return rows_.coords().pick(apart, picks);
  }

  bool adds_mask() const { return form_.mask && is_float(type(*form_.mask).dtype); }

  Id scores(Id products, Id first) override {
    const Extent rows{queries_, block_, first_};
    const Extent keys{all_keys_, heads_.key_tile(), first};
    Mask of_rows, inside;
    const Id row = index(rows, block_, keys.block, 0, of_rows);
    const Id key = index(keys, block_, keys.block, 1, inside);
    Mask exists = of_rows;
    exists.insert(exists.end(), inside.begin(), inside.end());
    // A query that exists sees no key past the last query.
    if (form_.causal && rows.dim == keys.dim) inside.clear();
    Id scores = products;
    if (form_.causal) {
      inside.push_back(b_.map(Fn::kNot, {b_.map(Fn::kLt, {row, key})}));
    }
    if (form_.mask) {
      const ValueId value = node_.inputs[*form_.mask];
      const Coords at{batch_, {row, {rows.dim}}, {key, {keys.dim}}};
      const TensorType& type = body_.type(value);
      const Id mask = rows_.value(value, rows_.coords().broadcast(at, type.shape), exists);
      if (is_float(type.dtype)) {
        scores = b_.map(Fn::kFma, {scores, number(form_.scale), mask});
      } else {
        inside.push_back(b_.map(Fn::kNot, {b_.map(Fn::kEq, {mask, b_.integer(0)})}));
      }
    }
    return hidden_unless(inside, scores);
  }

  Place place() override {
    Mask mask;
    const Dim width = facts_.space.back();
    const Id row = index({queries_, block_, first_}, block_, 1, 0, mask);
    const Id col = column(width, block_, heads_.value_columns, mask);
    return {{batch_, {row, {queries_}}, {col, {width}}}, mask};
  }

  Dim queries_, all_keys_;
  Axis batch_;
  Id first_;  ///< query of the tile, a scalar
};

/// Blocks of many queries first: these read keys and values less often.
std::vector<Config> configs(const BodyFacts& facts, const Target& target) {
  constexpr std::int64_t kBlocks[] = {128, 64, 32, 16};
  return attention_configs(facts, target, kBlocks,
                           queries_of(facts.body).max(facts.body.symbols()));
}

}  // namespace

/// Attention, with what comes after it at the same place.
extern const Work kAttentionTile{
    .settings = kAttentionSettings,
    .matches = has_attention,
    .refuse = refuse_attention,
    .configs = configs,
    .rough_ns = attention_rough_ns,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      const Shape batch(facts.space.begin(), facts.space.end() - 2);
      const Expr count =
          numel(batch) * ceil_div(Expr(queries_of(facts.body)), Expr(config.at("BLOCK_M")));
      return Pieces{.count = count,
                    .divisor = divisor_of(count, facts.body.symbols()),
                    .warps_m = static_cast<int>(config.at("num_warps"))};
    },
    .emit = [](const Piece& piece) { DenseTile(piece).emit(); },
};

}  // namespace braid
