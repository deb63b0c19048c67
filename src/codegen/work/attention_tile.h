#pragma once

#include <algorithm>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "codegen/body/emitter.h"
#include "codegen/work/rows.h"
#include "codegen/work/work.h"
#include "ir/attention.h"

namespace braid {

[[nodiscard]] bool has_attention(const Graph& body);
/// That of a body that has one.
[[nodiscard]] const Node& attention_in(const Graph& body);

/// Of whose output a warp's registers hold 16 rows.
inline constexpr int kWidestHead = 256;
/// The columns of a tile that holds a head.
[[nodiscard]] int padded_head(const Dim& extent);

/// What rows have once they have seen some keys: the largest score, the sum of the weights, and the
/// values by their weights.
struct Carried {
  tile::Id most, sum, output;
};
/// The same after a segment of keys more, of which `part` says it; scores in powers of e.
[[nodiscard]] Carried joined(tile::Builder& b, const Carried& carried, const Carried& part);

/// The extents of a head, and what tiles of it take.
struct HeadTiles {
  int key_columns, value_columns;  ///< of tiles
  std::int64_t bytes;              ///< of an element of the query
  std::int64_t key_bytes;          ///< of one of keys and values
  bool joins;                      ///< a row has the output of a segment beside its own
  bool by_ring;                    ///< products beside the threads, of what a ring brings
  bool masked;                     ///< a thread has parts of a mask beside its scores

  explicit HeadTiles(const Graph& body, bool by_ring = false);
  [[nodiscard]] int widest() const { return std::max(key_columns, value_columns); }
  /// So that a thread's part of the output leaves room for the scores.
  [[nodiscard]] int rows_of_warp() const {
    return bytes == 2 && widest() <= 128 && !joins ? 32 : 16;
  }
  /// Queries, keys and values, and the weights where products take no registers.
  [[nodiscard]] std::int64_t shared_bytes(std::int64_t block, std::int64_t stages) const {
    const std::int64_t weights = bytes == 4 ? block * key_tile() : 0;
    const std::int64_t tiles = key_tile() * (key_columns + value_columns);
    const std::int64_t cast = key_bytes == bytes ? 0 : tiles;
    return bytes * (block * key_columns + cast + weights) + key_bytes * stages * tiles;
  }
  /// The keys of a tile: part of the order in which weights are added.
  [[nodiscard]] int key_tile() const {
    if (by_ring) return masked ? 64 : 128;
    return bytes == 2 && widest() <= 64 ? 64 : 32;
  }
};

inline constexpr Setting kAttentionSettings[] = {
    kWarpsSetting,
    {"BLOCK_M", 16, 128, true},
    {"num_stages", 2, 8, false},
};
/// Configurations of the blocks' rows, the best first, as far as they fit; `rows`: the most that a
/// tile could have.
[[nodiscard]] std::vector<Config> attention_configs(const BodyFacts& facts, const Target& target,
                                                    std::span<const std::int64_t> blocks,
                                                    std::int64_t rows);
/// By the rate of the unit that multiplies, and nothing else.
[[nodiscard]] double attention_rough_ns(const BodyFacts& facts, const Config& config,
                                        const Bindings& bindings, const Target& target);
/// Why no kernel computes the body; else empty. Of operands: heads may have any width.
[[nodiscard]] std::string refuse_attention(const BodyFacts& facts);
[[nodiscard]] std::string refuse_operands(const BodyFacts& facts);

/// A tile of attention: BLOCK_M rows go over the keys, a tile of them at a time. A form of
/// attention says which rows these are, and where keys and values come from.
class AttentionTile {
 public:
  explicit AttentionTile(const Piece& piece);
  virtual ~AttentionTile() = default;
  AttentionTile(const AttentionTile&) = delete;
  AttentionTile& operator=(const AttentionTile&) = delete;

  void emit();

 protected:
  // What a form has.

  /// [block, key columns]
  virtual tile::Id queries() = 0;
  /// The first and the end of the keys that a row of the block may see; the first is one that
  /// begins a tile, counted from key 0.
  struct Keys {
    tile::Id first, end;
  };
  virtual Keys keys() = 0;
  /// Up to here, from the first key on, tiles have keys that all rows of the block see, and none
  /// else; kNone where nobody asks. It ends a tile.
  virtual tile::Id end_of_whole_tiles() { return tile::kNone; }
  /// What each row has before its first key: [block, 1], [block, 1] and [block, value columns].
  /// Scores are in units of `unit_`, where segments are joined in powers of e.
  virtual Carried start() { return nothing(); }
  /// What the tile of keys from `first` on takes, at the head of the loop.
  virtual void begin_keys(tile::Id /*first*/) {}
  /// The tile of the key (1) or the value (2) from key `first` on.
  virtual tile::Id operand_of_keys(std::size_t input, tile::Id first) = 0;
  /// Queries by the tile of keys from `first` on.
  virtual tile::Id by_keys(tile::Id queries, tile::Id first);
  /// Weights by the tile of values from key `first` on, added to sums.
  virtual tile::Id by_values(tile::Id weights, tile::Id first, tile::Id sums);
  /// The scores in units of `unit_`; -inf where a key is hidden, or past the last one.
  virtual tile::Id scores(tile::Id products, tile::Id first) = 0;
  /// The values by their weights, of what the products of tiles add up to.
  virtual tile::Id output(tile::Id sums) { return sums; }
  /// Where the row of a block is in the output, with all columns of a value.
  struct Place {
    Coords at;
    Mask mask;
  };
  virtual Place place() = 0;
  /// Stores what a row has at the end: here the mean of the values by their weights. A row that
  /// sees no key gives zeros.
  virtual void finish(const Carried& all);

  // What it does so with.

  tile::Id narrow(tile::Id id) { return b_.map(tile::Fn::kToI32, {id}); }
  tile::Id wide(tile::Id id) { return b_.map(tile::Fn::kToI64, {id}); }
  tile::Id fit(tile::Id id) { return facts_.narrow ? narrow(id) : wide(id); }
  tile::Id number(double value) { return b_.constant(tile::Kind::kF32, value); }
  tile::Id extent(const Expr& expr) { return scalar_of(b_, expr, body_.symbols()); }
  [[nodiscard]] const TensorType& type(std::size_t input) const {
    return body_.type(node_.inputs[input]);
  }
  tile::Id column_of(double value) { return b_.splat(tile::Kind::kF32, block_, 1, value); }
  /// Of a row that has seen no key.
  Carried nothing() {
    return {column_of(-std::numeric_limits<double>::infinity()), column_of(0),
            b_.splat(tile::Kind::kF32, block_, heads_.value_columns, 0)};
  }
  /// A score in units of `unit_` in powers of e.
  tile::Id in_powers_of_e(tile::Id score) {
    return b_.times(score, number(unit_ * std::numbers::ln2));
  }
  tile::Id hidden_unless(const Mask& conditions, tile::Id scores) {
    for (const tile::Id condition : conditions) {
      scores = b_.map(tile::Fn::kSelect,
                      {condition, scores, number(-std::numeric_limits<double>::infinity())});
    }
    return scores;
  }
  struct Extent {
    Dim dim;
    int block;
    tile::Id first;  ///< index of the tile, a scalar
  };
  /// Indices along an extent, on an axis of a tile of that shape; a condition where the extent cuts
  /// some tiles.
  tile::Id index(const Extent& along, int rows, int cols, int axis, Mask& mask);
  /// Those of all columns of a head.
  tile::Id column(const Dim& width, int rows, int cols, Mask& mask) {
    return index({width, cols, b_.integer(0)}, rows, cols, 1, mask);
  }

  tile::Builder& b_;
  const BodyFacts& facts_;
  const Graph& body_;
  const Node& node_;
  Attention form_;
  HeadTiles heads_;
  int block_;
  BodyEmitter rows_;                   ///< of tiles with a row for each query
  BodyEmitter keys_;                   ///< with a row for each key
  double unit_ = std::numbers::log2e;  ///< of scores, in powers of 2
  /// Scores may be as large as floats are, as masks of the least float make them: a product with
  /// `unit_` is not exact enough to be subtracted from another one, or overflows.
  bool are_far_ = false;
  bool are_whole_ = false;  ///< the tiles of keys at hand

 private:
  /// What rows have after the keys, one tile of them after the other.
  Carried over(tile::Id queries, const Keys& keys, const Carried& start);
  /// The same, but segment by segment.
  Carried over_segments(tile::Id queries, const Keys& keys);
  /// 2^((score - base) * unit)
  tile::Id power(tile::Id score, tile::Id base) {
    return b_.map(tile::Fn::kExp2, {b_.times(b_.minus(score, base), number(unit_))});
  }
};

}  // namespace braid
