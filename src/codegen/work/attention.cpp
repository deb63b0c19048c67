// Attention of dense operands: a tile has the queries of one head.
//
// Where the target multiplies beside the threads, a ring brings keys and values, and two groups of
// warps multiply in turn: while one of them weighs scores, the products of the other go on
// (FlashAttention-3: Shah et al. 2024). A tile has more keys there, so sums have another order.
// Whether it is so depends on the target, the extents of a head, the dtype, and on how keys and
// values lie in memory; never on how many queries or keys there are, nor on what a tuner chooses.

#include "codegen/body/in_memory.h"
#include "codegen/tile/fragments.h"
#include "codegen/units.h"
#include "codegen/work/attention_tile.h"
#include "ir/numel.h"

namespace braid {
namespace {

using tile::Fn;
using tile::Id;

/// Of a tile: as many as a product of a group of warps has.
constexpr std::int64_t kRowsOfGroup = 64;

const Dim& queries_of(const Graph& body) {
  const Shape& query = body.type(attention_in(body).inputs[0]).shape;
  return query[query.size() - 2];
}

/// Whether bulk copies can bring rows of it, each with the columns of a head: past the last row,
/// and the last column, they find nothing.
bool can_copy_rows(const Graph& body, ValueId value) {
  const std::optional<MatrixInMemory> matrix = matrix_in_memory(body, value);
  return matrix && !matrix->transposed && !matrix->rows().cut && !matrix->columns().cut;
}

/// Whether a ring can bring keys and values.
bool can_use_ring(const Graph& body) {
  const Node& node = attention_in(body);
  const HeadTiles heads(body);
  const auto is_of_panels = [](int columns) { return columns == 64 || columns == 128; };
  return heads.bytes == 2 && heads.key_bytes == 2 && !heads.joins &&
         !attention_of(body, node).makes_parts && is_of_panels(heads.key_columns) &&
         is_of_panels(heads.value_columns) && can_copy_rows(body, node.inputs[1]) &&
         can_copy_rows(body, node.inputs[2]);
}

class DenseTile : public AttentionTile {
 public:
  explicit DenseTile(const Piece& piece) : AttentionTile(piece), queries_(queries_of(body_)) {
    const Shape& value = type(2).shape;
    all_keys_ = value[value.size() - 2];
    if (!adds_mask()) unit_ *= form_.scale;
    are_far_ = adds_mask();
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

  // By a ring (work.h).

  /// One of keys and one of values, each with its tile.
  static std::vector<Id> allocate(tile::Builder& b, const BodyFacts& facts, const Config& config) {
    const HeadTiles heads(facts.body, /*by_ring=*/true);
    const auto stages = static_cast<int>(config.at("num_stages"));
    const DType dtype = facts.body.type(attention_in(facts.body).inputs[1]).dtype;
    std::vector<Id> shared;
    for (const int columns : {heads.key_columns, heads.value_columns}) {
      shared.push_back(b.alloc_ring(stages));
      shared.push_back(b.alloc_panels(dtype, heads.key_tile(), columns, stages));
    }
    return shared;
  }

  Id compute(std::span<const Id> shared, Id step) {
    shared_ = shared;
    begin_ = step;
    emit();
    return step_of(b_.plus(keys().end, b_.integer(heads_.key_tile() - 1)));
  }

  Id fill(std::span<const Id> shared, Id begin) {
    shared_ = shared;
    begin_ = begin;
    const Id loop = b_.begin_for(b_.integer(0), keys().end, b_.integer(heads_.key_tile()), {begin});
    const Id step = b_.carried(loop, 0);
    for (const std::size_t input : {1, 2}) {
      const Id ring = ring_of(input), tile = tile_of(input);
      const tile::Type& type = b_.type(tile);
      b_.acquire(ring, step,
                 type.rows * type.cols * static_cast<int>(dtype_size(b_.program().at(tile).dtype)));
      rows_.copy_tile({ring, step, tile}, node_.inputs[input], b_.induction(loop), b_.integer(0),
                      batch_of(input));
    }
    return b_.end_for(loop, {b_.plus(step, b_.integer(1, tile::Kind::kI32))})[0];
  }

 private:
  [[nodiscard]] bool by_ring() const { return !shared_.empty(); }
  [[nodiscard]] Id ring_of(std::size_t input) const { return shared_[2 * input - 2]; }
  [[nodiscard]] Id tile_of(std::size_t input) const { return shared_[2 * input - 1]; }
  /// That of the tile of keys from `first` on.
  Id step_of(Id first) {
    return b_.plus(begin_, narrow(b_.map(Fn::kDiv, {first, b_.integer(heads_.key_tile())})));
  }

  /// a x the tile of an input from key `first` on + sums, or without sums.
  Id product(Id a, std::size_t input, Id first, Id sums, bool adds) {
    const Id ring = ring_of(input);
    const Id step = step_of(first);
    b_.await(ring, step);
    const Id stages = b_.integer(b_.program().at(ring).stages, tile::Kind::kI32);
    const Id under_way = b_.async_dot(a, tile_of(input), sums, b_.map(Fn::kRem, {step, stages}),
                                      b_.less(b_.integer(0), b_.integer(adds ? 1 : 0)), false,
                                      /*trans_b=*/input == 1);
    const Id result = b_.settled(under_way);
    b_.release(ring, step);
    return result;
  }

  Id by_keys(Id queries, Id first) override {
    if (!by_ring()) return AttentionTile::by_keys(queries, first);
    return product(queries, 1, first, b_.undefined(block_, heads_.key_tile()), false);
  }
  Id by_values(Id weights, Id first, Id sums) override {
    if (!by_ring()) return AttentionTile::by_values(weights, first, sums);
    return product(weights, 2, first, sums, true);
  }

  Id queries() override {
    return operand(rows_, 0, {queries_, block_, first_}, heads_.key_columns);
  }

  Keys keys() override {
    const Id all = extent(Expr(all_keys_));
    if (!form_.causal) return {b_.integer(0), all};
    const Id end = b_.map(Fn::kAdd, {first_, b_.integer(block_)});
    return {b_.integer(0), b_.map(Fn::kMin, {all, end})};
  }

  /// A loop of its own for those, where instructions are what it would wait for.
  Id end_of_whole_tiles() override {
    if (!by_ring() || form_.mask) return tile::kNone;
    const Id tile = b_.integer(heads_.key_tile());
    const Id all = extent(Expr(all_keys_));
    const Id seen = form_.causal ? b_.map(Fn::kMin, {all, b_.plus(first_, b_.integer(1))}) : all;
    return b_.times(b_.map(Fn::kDiv, {seen, tile}), tile);
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
    Coords at = batch_of(input);
    at.push_back({row, {rows.dim}});
    at.push_back({col, {width}});
    return emitter.whole(emitter.value(node_.inputs[input], at, mask), rows.block, columns, mask);
  }

  Coords batch_of(std::size_t input) {
    return input == 0 || form_.groups == 1 ? Coords{batch_} : of_key_head(type(input).shape);
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
    if (are_whole_) return products;
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
  Id first_;                    ///< query of the tile, a scalar
  std::span<const Id> shared_;  ///< what allocate gave, of a ring
  Id begin_ = tile::kNone;      ///< the ring's step of key 0
};

/// What multiplies beside the threads, with weights of keys in registers; or null.
const Unit* unit_of(const BodyFacts& facts, const Target& target) {
  const DType dtype = facts.body.type(attention_in(facts.body).inputs[0]).dtype;
  const Unit* const unit = multiplier(target, dtype, /*asynchronous=*/true);
  return unit != nullptr && unit->multiplies->from_registers ? unit : nullptr;
}

/// Blocks of many queries first: these read keys and values less often.
std::vector<Config> configs(const BodyFacts& facts, const Target& target) {
  constexpr std::int64_t kBlocks[] = {128, 64, 32, 16};
  const std::int64_t most = queries_of(facts.body).max(facts.body.symbols());
  const bool by_ring = unit_of(facts, target) != nullptr && has(target, units::kBulkTensor) &&
                       can_use_ring(facts.body);
  if (!by_ring) return attention_configs(facts, target, kBlocks, most);
  std::vector<Config> all;
  for (const std::int64_t groups : {2, 1}) {
    const std::int64_t block = kRowsOfGroup * groups;
    if (groups > 1 && block >= 2 * most) continue;
    for (const std::int64_t stages : {2, 3}) {
      all.push_back({{"BLOCK_M", block},
                     {"num_warps", tile::kWarpsOfGroup * groups},
                     {"num_stages", stages},
                     {kRingSetting, 1}});
    }
  }
  return all;
}

std::string refuse_ring(const BodyFacts& facts, const Config& config, const Target& target) {
  if (unit_of(facts, target) == nullptr) {
    return fmt::format("no unit of {} multiplies what is in registers beside the threads",
                       target.str());
  }
  if (!can_use_ring(facts.body)) {
    return "bulk copies cannot move its keys and values as they lie in memory, or its heads have "
           "other than 33 to 128 elements of 16 bits";
  }
  const std::int64_t groups = config.at("num_warps") / tile::kWarpsOfGroup;
  if (config.at("num_warps") % tile::kWarpsOfGroup != 0 || groups < 1 || groups > 2 ||
      config.at("BLOCK_M") != kRowsOfGroup * groups) {
    return fmt::format("BLOCK_M {} by {} warps; expected 64 by 4 or 128 by 8", config.at("BLOCK_M"),
                       config.at("num_warps"));
  }
  return "";
}

constexpr RingWork kByRing{
    .refuse = refuse_ring,
    .allocate = DenseTile::allocate,
    .compute = [](const Piece& piece, std::span<const Id> shared,
                  Id step) { return DenseTile(piece).compute(shared, step); },
    .fill = [](const Piece& piece, std::span<const Id> shared,
               Id step) { return DenseTile(piece).fill(shared, step); },
};

constexpr auto kSettings = [] {
  std::array<Setting, std::size(kAttentionSettings) + 1> all{};
  std::ranges::copy(kAttentionSettings, all.begin());
  all.back() = {kRingSetting, 0, 1, false};
  return all;
}();

}  // namespace

/// Attention, with what comes after it at the same place.
extern const Work kAttentionTile{
    .settings = kSettings,
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
    .by_ring = &kByRing,
};

}  // namespace braid
