// A tile of attention: BLOCK_M queries of one head go over the keys, a tile of them at a time, with
// the maximum of the scores, the sum of the weights and the output so far carried along (online
// softmax: Milakov and Gimelshein 2018; FlashAttention: Dao et al. 2022). No score goes to memory.
//
//     scores = queries keysᵀ · scale + mask
//     most'  = max(most, scores)            per row, in each tile
//     weight = e^(scores - most')           rounded to the operands' dtype for the second product
//     sum    = sum · e^(most - most') + weights
//     output = output · e^(most - most') + weights · values
//
// Powers are of 2, and the factor log2(e), with the scale where nothing is added to the scores, is
// part of the multiply-add in front of them.
//
// What a row adds up, and in which order, depends on the keys, the extents of a head and the dtype
// alone: the tiles of keys begin at key 0 and have one width, and a warp has whole rows.

#include "ir/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numbers>

#include "codegen/body/emitter.h"
#include "codegen/device_model.h"
#include "codegen/work/rows.h"
#include "ir/numel.h"

namespace braid {
namespace {

using tile::Fn;
using tile::Id;
using tile::Kind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Of whose output a warp's registers hold 16 rows.
constexpr int kWidestHead = 256;

bool is_attention(const Node& node) { return node.op->op_class == OpClass::kAttention; }

const Node& attention_in(const Graph& body) {
  return *std::ranges::find_if(body.nodes(), is_attention);
}

bool has_attention(const Graph& body) { return std::ranges::any_of(body.nodes(), is_attention); }

/// The columns of a tile that holds a head.
int padded(const Dim& extent) {
  const auto columns = static_cast<std::uint64_t>(extent.evaluate({}));
  return static_cast<int>(std::max<std::uint64_t>(16, std::bit_ceil(columns)));
}

/// Extents of one attention.
struct Heads {
  Dim queries, keys;
  int key_columns, value_columns;  ///< of tiles
  std::int64_t bytes;              ///< of an element

  explicit Heads(const Graph& body) {
    const Node& node = attention_in(body);
    const TensorType& query = body.type(node.inputs[0]);
    const Shape& value = body.type(node.inputs[2]).shape;
    queries = query.shape[query.shape.size() - 2];
    keys = value[value.size() - 2];
    key_columns = padded(query.shape.back());
    value_columns = padded(value.back());
    bytes = static_cast<std::int64_t>(dtype_size(query.dtype));
  }
  [[nodiscard]] int widest() const { return std::max(key_columns, value_columns); }
  /// So that a thread's part of the output leaves room for the scores.
  [[nodiscard]] int rows_of_warp() const { return bytes == 2 && widest() <= 128 ? 32 : 16; }
  /// Queries, keys and values, and the weights where products take no registers.
  [[nodiscard]] std::int64_t shared_bytes(std::int64_t block, std::int64_t stages) const {
    const std::int64_t weights = bytes == 4 ? block * key_tile() : 0;
    const std::int64_t ring = stages * key_tile() * (key_columns + value_columns);
    return bytes * (block * key_columns + ring + weights);
  }
  /// The keys of a tile: part of the order in which weights are added.
  [[nodiscard]] int key_tile() const { return bytes == 2 && widest() <= 64 ? 64 : 32; }
};

class AttentionTile {
 public:
  explicit AttentionTile(const Piece& piece)
      : b_(piece.b),
        facts_(piece.facts),
        body_(piece.facts.body),
        node_(attention_in(body_)),
        form_(attention_of(body_, node_)),
        heads_(body_),
        block_(static_cast<int>(piece.config.at("BLOCK_M"))),
        rows_(b_, facts_, block_),
        keys_(b_, facts_, heads_.key_tile()) {
    if (!adds_mask()) unit_ *= form_.scale;
    // 32-bit: a 64-bit division is a call.
    const Id blocks = narrow(extent(ceil_div(Expr(heads_.queries), Expr(block_))));
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

  void emit() {
    const Extent rows{heads_.queries, block_, first_};
    const Id queries = operand(rows_, 0, rows, heads_.key_columns);
    const Id loop = b_.begin_for(
        b_.integer(0), end_of_keys(), b_.integer(heads_.key_tile()),
        {column(-kInfinity), column(0), b_.splat(Kind::kF32, block_, heads_.value_columns, 0)});
    const Id most = b_.carried(loop, 0);
    const Extent keys{heads_.keys, heads_.key_tile(), b_.induction(loop)};
    rows_.open_scope();
    keys_.open_scope();
    const DType dtype = body_.type(node_.inputs[0]).dtype;
    const Id products = b_.dot(queries, operand(keys_, 1, keys, heads_.key_columns),
                               b_.splat(Kind::kF32, block_, heads_.key_tile(), 0),
                               /*trans_a=*/false, /*trans_b=*/true, dtype);
    const Id scores = masked(products, rows, keys);
    const Id new_most = b_.map(Fn::kMax, {most, b_.reduce(Fn::kMax, scores)});
    // A row that has seen nothing yet has no largest score.
    const Id none = b_.map(Fn::kEq, {new_most, number(-kInfinity)});
    const Id base = b_.map(Fn::kSelect, {none, number(0), new_most});
    const Id down = times(base, number(-unit_));
    const Id weights = power(scores, down);
    const Id factor = power(most, down);
    const Id sum =
        b_.map(Fn::kAdd, {times(b_.carried(loop, 1), factor), b_.reduce(Fn::kAdd, weights)});
    const Id output = b_.dot(weights, operand(keys_, 2, keys, heads_.value_columns),
                             times(b_.carried(loop, 2), factor), false, false, dtype);
    keys_.close_scope();
    rows_.close_scope();
    const std::vector<Id> results = b_.end_for(loop, {new_most, sum, output});
    finish(results[1], results[2], rows);
  }

 private:
  struct Extent {
    Dim dim;
    int block;
    Id first;  ///< index of the tile, a scalar
  };

  Id narrow(Id id) { return b_.map(Fn::kToI32, {id}); }
  Id wide(Id id) { return b_.map(Fn::kToI64, {id}); }
  Id times(Id a, Id b) { return b_.map(Fn::kMul, {a, b}); }
  /// 2^(score * unit + down)
  Id power(Id score, Id down) {
    return b_.map(Fn::kExp2, {b_.map(Fn::kFma, {score, number(unit_), down})});
  }
  Id number(double value) { return b_.constant(Kind::kF32, value); }
  Id column(double value) { return b_.splat(Kind::kF32, block_, 1, value); }
  Id extent(const Expr& expr) { return scalar_of(b_, expr, body_.symbols()); }

  /// Indices along an extent, on an axis of a tile of that shape; a condition where the extent cuts
  /// some tiles.
  Id index(const Extent& along, int rows, int cols, int axis, Mask& mask) {
    const auto fit = [&](Id id) { return facts_.narrow ? narrow(id) : wide(id); };
    const Id index = b_.map(Fn::kAdd, {fit(along.first), b_.range(rows, cols, axis)});
    if (along.dim.divisor(body_.symbols()) % along.block != 0) {
      mask.push_back(b_.map(Fn::kLt, {index, fit(extent(Expr(along.dim)))}));
    }
    return index;
  }

  /// A tile of rows of an operand, with all columns of a head.
  Id operand(BodyEmitter& emitter, std::size_t input, const Extent& rows, int columns) {
    const Shape& shape = body_.type(node_.inputs[input]).shape;
    const Dim width = shape.back();
    Mask mask;
    const Id row = index(rows, rows.block, columns, 0, mask);
    const Id col = index({width, columns, b_.integer(0)}, rows.block, columns, 1, mask);
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

  bool adds_mask() const {
    return form_.mask && is_float(body_.type(node_.inputs[*form_.mask]).dtype);
  }

  Id end_of_keys() {
    const Id all = extent(Expr(heads_.keys));
    if (!form_.causal) return all;
    return b_.map(Fn::kMin, {all, b_.map(Fn::kAdd, {first_, b_.integer(block_)})});
  }

  /// The scores in units of `unit_`; -inf where a key is hidden, or past the last one.
  Id masked(Id products, const Extent& rows, const Extent& keys) {
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
    for (const Id condition : inside) {
      scores = b_.map(Fn::kSelect, {condition, scores, number(-kInfinity)});
    }
    return scores;
  }

  /// A row that sees no key gives zeros.
  void finish(Id sum, Id output, const Extent& rows) {
    Mask mask;
    const Dim width = facts_.space.back();
    const Id row = index(rows, block_, 1, 0, mask);
    const Id col =
        index({width, heads_.value_columns, b_.integer(0)}, block_, heads_.value_columns, 1, mask);
    const Id nothing = b_.map(Fn::kEq, {sum, number(0)});
    const Id mean = b_.map(Fn::kDiv, {output, b_.map(Fn::kSelect, {nothing, number(1), sum})});
    const Id result = b_.round(body_.type(node_.outputs[0]).dtype, mean);
    rows_.define(node_.outputs[0], [result](const Coords&, const Mask&) { return result; });
    const Coords at{batch_, {row, {rows.dim}}, {col, {width}}};
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) rows_.store(i, at, mask);
  }

  tile::Builder& b_;
  const BodyFacts& facts_;
  const Graph& body_;
  const Node& node_;
  Attention form_;
  Heads heads_;
  int block_;
  BodyEmitter rows_;  ///< of tiles with a row for each query
  BodyEmitter keys_;  ///< with a row for each key
  Axis batch_;
  Id first_;                           ///< query of the tile, a scalar
  double unit_ = std::numbers::log2e;  ///< of scores, in powers of 2
};

/// By the rate of the unit that multiplies, and nothing else.
double rough_ns(const BodyFacts& facts, const Config&, const Bindings& bindings,
                const Target& target) {
  const DeviceModel& device = device_model(target);
  const Node& node = attention_in(facts.body);
  double flops = node_flops(facts.body, node, bindings);
  if (attention_of(facts.body, node).causal) flops /= 2;
  const bool is_f32 = facts.body.type(node.inputs[0]).dtype == DType::kF32;
  const double tflops =
      is_f32 ? device.f32_tflops : device.f16_tflops * architecture(device.sm).mma_sync_share;
  return flops / (tflops * 1e3);
}

/// Blocks of many queries first: these read keys and values less often.
std::vector<Config> configs(const BodyFacts& facts, const Target& target) {
  const Heads heads(facts.body);
  const std::int64_t queries = heads.queries.max(facts.body.symbols());
  std::vector<Config> all;
  for (const std::int64_t block : {128, 64, 32, 16}) {
    if (block > 16 && block >= 2 * queries) continue;
    for (const std::int64_t stages : {2, 3}) {
      const bool fits = heads.shared_bytes(block, stages) <= target.max_shared_bytes();
      const bool is_least = block == 16 && all.empty();  // which says what it lacks
      if (!fits && !is_least) continue;
      all.push_back({{"BLOCK_M", block},
                     {"num_warps", std::max<std::int64_t>(1, block / heads.rows_of_warp())},
                     {"num_stages", stages}});
    }
  }
  return all;
}

constexpr Setting kAttentionSettings[] = {
    kWarpsSetting,
    {"BLOCK_M", 16, 128, true},
    {"num_stages", 2, 8, false},
};

}  // namespace

/// Attention, with what comes after it at the same place.
extern const Work kAttentionTile{
    .settings = kAttentionSettings,
    .matches = has_attention,
    .refuse = [](const BodyFacts& facts) -> std::string {
      if (std::ranges::count_if(facts.body.nodes(), is_attention) > 1) {
        return "a kernel holds one attention";
      }
      if (Heads(facts.body).widest() > kWidestHead) {
        return fmt::format("a head has more than {} elements", kWidestHead);
      }
      for (const ValueId input : attention_in(facts.body).inputs) {
        if (!is_moved_input(facts.body, input)) return "attention reads its operands from memory";
      }
      return facts.refusal;
    },
    .configs = configs,
    .rough_ns = rough_ns,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      const Shape batch(facts.space.begin(), facts.space.end() - 2);
      const Expr count =
          numel(batch) * ceil_div(Expr(Heads(facts.body).queries), Expr(config.at("BLOCK_M")));
      return Pieces{.count = count,
                    .divisor = divisor_of(count, facts.body.symbols()),
                    .warps_m = static_cast<int>(config.at("num_warps"))};
    },
    .emit = [](const Piece& piece) { AttentionTile(piece).emit(); },
};

}  // namespace braid
