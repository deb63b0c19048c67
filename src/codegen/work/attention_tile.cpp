// A tile of attention: BLOCK_M rows of queries go over the keys, a tile of them at a time, with
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
// part of the multiply-add in front of them. Where a mask is added, the largest score is subtracted
// first.
//
// What a row adds up, and in which order, depends on the keys, the extents of a head and the dtype
// alone: the tiles of keys begin at key 0 and have one width, and a warp has whole rows.

#include "codegen/work/attention_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/device_model.h"
#include "ir/scalar_functions.h"

namespace braid {
namespace {

using tile::Fn;
using tile::Id;
using tile::Kind;

bool is_attention(const Node& node) { return node.op->op_class == OpClass::kAttention; }

}  // namespace

int padded_head(const Dim& extent) {
  const auto columns = static_cast<std::uint64_t>(extent.evaluate({}));
  return static_cast<int>(std::max<std::uint64_t>(16, std::bit_ceil(columns)));
}

const Node& attention_in(const Graph& body) {
  return *std::ranges::find_if(body.nodes(), is_attention);
}

bool has_attention(const Graph& body) { return std::ranges::any_of(body.nodes(), is_attention); }

HeadTiles::HeadTiles(const Graph& body, bool by_ring) : by_ring(by_ring) {
  const Node& node = attention_in(body);
  const TensorType& query = body.type(node.inputs[0]);
  key_columns = padded_head(query.shape.back());
  value_columns = padded_head(body.type(node.inputs[2]).shape.back());
  bytes = static_cast<std::int64_t>(dtype_size(query.dtype));
  key_bytes = static_cast<std::int64_t>(dtype_size(body.type(node.inputs[1]).dtype));
  const Attention form = attention_of(body, node);
  joins = form.segment && !form.makes_parts;
  masked = form.mask.has_value();
}

std::vector<Config> attention_configs(const BodyFacts& facts, const Target& target,
                                      std::span<const std::int64_t> blocks, std::int64_t rows) {
  const HeadTiles heads(facts.body);
  // A warp alone would keep the addresses of too many pieces of a wide head's keys in registers.
  const std::int64_t useful = heads.widest() > 128 ? std::max<std::int64_t>(rows, 17) : rows;
  std::vector<Config> all;
  for (const std::int64_t block : blocks) {
    if (block > 16 && block >= 2 * useful) continue;
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

double attention_rough_ns(const BodyFacts& facts, const Config& config, const Bindings& bindings,
                          const Target& target) {
  const DeviceModel& device = device_model(target);
  const Node& node = attention_in(facts.body);
  double flops = node_flops(facts.body, node, bindings);
  if (attention_of(facts.body, node).causal) flops /= 2;
  const bool is_f32 = facts.body.type(node.inputs[0]).dtype == DType::kF32;
  const Architecture& known = architecture(device.sm);
  const double share = has_ring(config) ? known.matrix_share : known.mma_sync_share;
  const double tflops = is_f32 ? device.f32_tflops : device.f16_tflops * share;
  return flops / (tflops * 1e3);
}

std::string refuse_operands(const BodyFacts& facts) {
  if (std::ranges::count_if(facts.body.nodes(), is_attention) > 1) {
    return "a kernel holds one attention";
  }
  // A block reads its queries once, and may compute them; keys and values are read by many.
  const std::span<const ValueId> inputs = attention_in(facts.body).inputs;
  for (const ValueId input : inputs.subspan(1)) {
    if (!is_moved_input(facts.body, input)) return "attention reads its operands from memory";
  }
  return facts.refusal;
}

std::string refuse_attention(const BodyFacts& facts) {
  if (HeadTiles(facts.body).widest() > kWidestHead) {
    return fmt::format("a head has more than {} elements", kWidestHead);
  }
  return refuse_operands(facts);
}

AttentionTile::AttentionTile(const Piece& piece)
    : b_(piece.b),
      facts_(piece.facts),
      body_(piece.facts.body),
      node_(attention_in(body_)),
      form_(attention_of(body_, node_)),
      heads_(body_, has_ring(piece.config)),
      block_(static_cast<int>(piece.config.at("BLOCK_M"))),
      rows_(b_, facts_, block_),
      keys_(b_, facts_, heads_.key_tile()) {}

Carried joined(tile::Builder& b, const Carried& carried, const Carried& part) {
  const auto number = [&](double value) { return b.constant(Kind::kF32, value); };
  const Id most = b.map(Fn::kMax, {carried.most, part.most});
  const Id none = b.map(Fn::kEq, {most, number(-kInfinity)});
  const Id base = b.map(Fn::kSelect, {none, number(0), most});
  const auto factor = [&](Id own) {
    const Id above = b.map(Fn::kSub, {own, base});
    return b.map(Fn::kExp2, {b.map(Fn::kMul, {above, number(std::numbers::log2e)})});
  };
  const Id before = factor(carried.most), its = factor(part.most);
  const auto sum = [&](Id so_far, Id more) {
    return b.map(Fn::kFma, {more, its, b.map(Fn::kMul, {so_far, before})});
  };
  // The values of a part in which a row sees nothing may not have been written.
  const Id is_empty = b.map(Fn::kEq, {part.most, number(-kInfinity)});
  const Id output = b.map(Fn::kSelect, {is_empty, number(0), part.output});
  return {most, sum(carried.sum, part.sum), sum(carried.output, output)};
}

void AttentionTile::emit() {
  const Id queries = this->queries();
  if (heads_.joins) {
    finish(over_segments(queries, keys()));
  } else {
    Carried all = this->start();
    Keys keys = this->keys();
    if (const Id end = end_of_whole_tiles(); end != tile::kNone) {
      are_whole_ = true;
      all = over(queries, {keys.first, end}, all);
      are_whole_ = false;
      keys.first = end;
    }
    finish(over(queries, keys, all));
  }
}

Carried AttentionTile::over_segments(Id queries, const Keys& keys) {
  const Carried start = this->start();
  const Id segment = b_.integer(*form_.segment);
  const Id first = b_.map(Fn::kMul, {b_.map(Fn::kDiv, {keys.first, segment}), segment});
  const Id loop = b_.begin_for(first, keys.end, segment, {start.most, start.sum, start.output});
  const Id begin = b_.induction(loop);
  const Keys own{b_.map(Fn::kMax, {begin, keys.first}),
                 b_.map(Fn::kMin, {b_.map(Fn::kAdd, {begin, segment}), keys.end})};
  rows_.open_scope();
  keys_.open_scope();
  Carried part = over(queries, own, nothing());
  part.most = in_powers_of_e(part.most);
  const Carried all =
      joined(b_, {b_.carried(loop, 0), b_.carried(loop, 1), b_.carried(loop, 2)}, part);
  keys_.close_scope();
  rows_.close_scope();
  const std::vector<Id> results = b_.end_for(loop, {all.most, all.sum, all.output});
  return {results[0], results[1], results[2]};
}

Carried AttentionTile::over(Id queries, const Keys& keys, const Carried& start) {
  const Id loop = b_.begin_for(keys.first, keys.end, b_.integer(heads_.key_tile()),
                               {start.most, start.sum, start.output});
  const Id most = b_.carried(loop, 0);
  const Id first = b_.induction(loop);
  rows_.open_scope();
  keys_.open_scope();
  begin_keys(first);
  const Id scores = this->scores(by_keys(queries, first), first);
  const Id new_most = b_.map(Fn::kMax, {most, b_.reduce(Fn::kMax, scores)});
  // A row that has seen nothing yet has no largest score.
  const Id none = b_.map(Fn::kEq, {new_most, number(-kInfinity)});
  const Id base = b_.map(Fn::kSelect, {none, number(0), new_most});
  const auto by_one_fma = [&] {
    const Id down = b_.times(base, number(-unit_));
    return b_.map(Fn::kExp2, {b_.map(Fn::kFma, {scores, number(unit_), down})});
  };
  const Id weights = are_far_ ? power(scores, base) : by_one_fma();
  // Exactly 1 where a tile leaves the largest score as it is, as one that the row does not see
  // does.
  const Id factor = power(most, base);
  const Id sum =
      b_.map(Fn::kAdd, {b_.times(b_.carried(loop, 1), factor), b_.reduce(Fn::kAdd, weights)});
  const Id output = by_values(weights, first, b_.times(b_.carried(loop, 2), factor));
  keys_.close_scope();
  rows_.close_scope();
  const std::vector<Id> results = b_.end_for(loop, {new_most, sum, output});
  return {results[0], results[1], this->output(results[2])};
}

Id AttentionTile::by_keys(Id queries, Id first) {
  return b_.dot(queries, operand_of_keys(1, first),
                b_.splat(Kind::kF32, block_, heads_.key_tile(), 0), /*trans_a=*/false,
                /*trans_b=*/true, type(0).dtype);
}

Id AttentionTile::by_values(Id weights, Id first, Id sums) {
  return b_.dot(weights, operand_of_keys(2, first), sums, false, false, type(0).dtype);
}

Id AttentionTile::index(const Extent& along, int rows, int cols, int axis, Mask& mask) {
  const Id index = b_.map(Fn::kAdd, {fit(along.first), b_.range(rows, cols, axis)});
  if (along.dim.divisor(body_.symbols()) % along.block != 0) {
    mask.push_back(b_.map(Fn::kLt, {index, fit(extent(Expr(along.dim)))}));
  }
  return index;
}

void AttentionTile::finish(const Carried& all) {
  const Place place = this->place();
  const Id nothing = b_.map(Fn::kEq, {all.sum, number(0)});
  // One division for a row: a weight of 1 is part of each sum.
  const Id by = b_.map(Fn::kSelect, {nothing, number(1), all.sum});
  const Id share = b_.map(Fn::kDiv, {number(1), by});
  const Id result = b_.round(body_.type(node_.outputs[0]).dtype, b_.times(all.output, share));
  rows_.define(node_.outputs[0], [result](const Coords&, const Mask&) { return result; });
  for (std::size_t i = 0; i < body_.outputs().size(); ++i) rows_.store(i, place.at, place.mask);
}

}  // namespace braid
