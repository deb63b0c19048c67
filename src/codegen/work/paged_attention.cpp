// Attention whose keys lie in pages. A tile has rows of one sequence: its queries, each with all
// heads that share a head of the keys. Only the query starts, which lie on the device, say where a
// sequence begins: its tiles are numbered from start · heads / BLOCK_M + sequence on, rounded down,
// which leaves each sequence room for its tiles, and a tile finds its sequence by halving.
//
// Of the keys, a tile goes over those that one of its rows sees. The tiles of keys are those of all
// attention, so what a row adds up depends on its position and its keys alone: a tile of keys that
// another row of the block sees, and it does not, adds nothing.
//
// Of parts (ir/attention.h) a tile goes over one segment of keys, and stores what it carries; in
// parts, over one after the other, and joins what it carries.

#include <algorithm>
#include <bit>

#include "codegen/protocol.h"
#include "codegen/work/attention_tile.h"

namespace braid {
namespace {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

bool has_paged_attention(const Graph& body) {
  return has_attention(body) && attention_of(body, attention_in(body)).paged;
}

/// Extents of the operands.
struct Extents {
  Dim tokens, heads, pages, page, key_heads, sequences, most_pages;
  std::int64_t group;  ///< heads of a query that share a head of the keys

  explicit Extents(const Graph& body) {
    const Node& node = attention_in(body);
    const auto shape = [&](std::size_t input) { return body.type(node.inputs[input]).shape; };
    tokens = shape(0)[0];
    heads = shape(0)[1];
    pages = shape(1)[0];
    page = shape(1)[1];
    key_heads = shape(1)[2];
    sequences = shape(kPageTable)[0];
    most_pages = shape(kPageTable)[1];
    group = static_cast<std::int64_t>(attention_of(body, node).groups);
  }
  /// Segments of keys; 1 where there are none.
  [[nodiscard]] static Dim segments(const BodyFacts& facts) {
    return facts.space.size() == 4 ? facts.space[0] : Dim(1);
  }
  /// The most tiles that one head of the keys can have.
  [[nodiscard]] Expr tiles(std::int64_t block) const {
    return ceil_div(Expr(tokens) * Expr(group), Expr(block)) + Expr(sequences);
  }
  [[nodiscard]] std::int64_t keys_of_page() const { return page.evaluate({}); }
};

class PagedTile : public AttentionTile {
 public:
  explicit PagedTile(const Piece& piece) : AttentionTile(piece), extents_(body_) {
    unit_ *= form_.softcap ? *form_.softcap : form_.scale;
    tokens_ = narrow(extent(Expr(extents_.tokens)));
    sequences_ = narrow(extent(Expr(extents_.sequences)));
    most_keys_ = narrow(extent(Expr(extents_.most_pages) * Expr(extents_.page)));
    const Id number = narrow(piece.number);
    check_sequence(number);
    // The heads of a tile come one after the other, and the last queries, which see the most keys,
    // first.
    const Id heads = narrow(extent(Expr(extents_.key_heads)));
    const std::int64_t parts = Extents::segments(facts_).evaluate({});
    if (form_.makes_parts) part_ = b_.map(Fn::kRem, {number, integer(parts)});
    const Id of_part = divided(number, parts);
    key_head_ = wide(b_.map(Fn::kRem, {of_part, heads}));
    Id tile = b_.map(Fn::kDiv, {of_part, heads});
    if (form_.causal) {
      tile = b_.minus(b_.minus(narrow(extent(extents_.tiles(block_))), integer(1)), tile);
    }
    find_rows(tile);
    find_keys();
  }

 private:
  /// At most all keys.
  [[nodiscard]] std::int64_t window() const {
    const std::int64_t pages = extents_.most_pages.evaluate({});
    return std::min(*form_.window, pages * extents_.keys_of_page());
  }
  Id integer(std::int64_t value) { return b_.integer(value, Kind::kI32); }
  Id divided(Id a, std::int64_t by) { return by == 1 ? a : b_.map(Fn::kDiv, {a, integer(by)}); }
  Id least(Id a, Id b) { return b_.map(Fn::kMin, {a, b}); }
  Id most(Id a, Id b) { return b_.map(Fn::kMax, {a, b}); }

  /// An element of one of the operands of one dim, at a scalar index.
  Id element(PagedOperand operand, Id at, const Mask& mask = {}) {
    return narrow(
        rows_.scalar(node_.inputs[operand], {{wide(at), {type(operand).shape[0]}}}, mask));
  }
  void check(PagedOperand operand, Id found, Id end, Id mask) {
    const int node = facts_.number_of(node_);
    b_.check_index(found, wide(end), mask, protocol::check_of(node, operand));
  }

  /// Each of the first pieces checks the sequence of its number, in the order of the evaluator (ir/
  /// ops_paged_attention.cpp).
  void check_sequence(Id number) {
    const Id exists = b_.less(number, sequences_);
    const Id next = b_.plus(number, integer(1));
    const Id first = element(kQueryStarts, number, {exists});
    const Id end = element(kQueryStarts, next, {exists});
    const Id keys = element(kKvLengths, number, {exists});
    const Id count = b_.minus(end, first);
    const Id past = b_.plus(tokens_, integer(1));
    const Id is_last = b_.map(Fn::kEq, {next, sequences_});
    check(kQueryStarts, first, integer(1), b_.less(number, integer(1)));
    check(kQueryStarts, end, past, exists);
    check(kQueryStarts, count, past, exists);
    check(kQueryStarts, b_.minus(tokens_, end), integer(1), is_last);
    check(kKvLengths, keys, b_.plus(most_keys_, integer(1)), exists);
    check(kQueryStarts, count, b_.plus(keys, integer(1)), exists);
  }

  /// The first query of a sequence, within all of them whatever the operand says.
  Id start_of(Id sequence) {
    return least(most(element(kQueryStarts, sequence), integer(0)), tokens_);
  }
  /// The tiles in front of a sequence that begins there.
  Id tiles_before(Id sequence, Id start) {
    return b_.plus(divided(b_.map(Fn::kMul, {start, integer(extents_.group)}), block_), sequence);
  }

  /// The last sequence that does not begin behind the tile, and the rows of the tile.
  void find_rows(Id tile) {
    const std::int64_t most_sequences = extents_.sequences.max(body_.symbols());
    const auto halvings = std::bit_width(static_cast<std::uint64_t>(most_sequences));
    const Id loop =
        b_.begin_for(b_.integer(0), b_.integer(halvings), b_.integer(1), {integer(0), sequences_});
    rows_.open_scope();
    const Id low = b_.carried(loop, 0), high = b_.carried(loop, 1);
    const Id middle = divided(b_.plus(low, high), 2);
    const Id is_behind = b_.less(tile, tiles_before(middle, start_of(middle)));
    rows_.close_scope();
    sequence_ = b_.end_for(loop, {b_.map(Fn::kSelect, {is_behind, low, middle}),
                                  b_.map(Fn::kSelect, {is_behind, middle, high})})[0];
    const Id start = start_of(sequence_);
    end_ = most(start, start_of(b_.plus(sequence_, integer(1))));
    const Id own = most(b_.minus(tile, tiles_before(sequence_, start)), integer(0));
    const auto rows = [&](Id count, std::int64_t of) {
      return b_.map(Fn::kMul, {count, integer(of)});
    };
    first_row_ = b_.plus(rows(start, extents_.group), rows(own, block_));
    row_end_ = rows(end_, extents_.group);
  }

  /// The keys that the rows of the tile see; none where it has no row.
  void find_keys() {
    const Id given = element(kKvLengths, sequence_);
    const Id fits = b_.map(
        Fn::kAnd, {b_.less(integer(-1), given), b_.less(given, b_.plus(most_keys_, integer(1)))});
    const Id length = b_.map(Fn::kSelect, {fits, given, integer(0)});
    past_ = b_.minus(length, end_);
    const Id last_row = b_.minus(least(b_.plus(first_row_, integer(block_)), row_end_), integer(1));
    Id end = length;
    if (form_.causal) {
      end = b_.plus(b_.plus(past_, divided(last_row, extents_.group)), integer(1));
    }
    end_key_ = b_.map(Fn::kSelect, {b_.less(first_row_, row_end_), end, integer(0)});
    if (form_.window) {
      const Id position = b_.plus(past_, divided(first_row_, extents_.group));
      first_key_ = most(b_.minus(position, integer(window() - 1)), integer(0));
    }
    if (!form_.makes_parts) return;
    const Id first = b_.map(Fn::kMul, {part_, integer(*form_.segment)});
    end_key_ = least(end_key_, b_.plus(first, integer(*form_.segment)));
    first_key_ = first_key_ == kNone ? first : most(first_key_, first);
  }

  Keys keys() override {
    Id first = b_.integer(0);
    if (first_key_ != kNone) {
      const Id tiles = divided(first_key_, heads_.key_tile());
      first = wide(b_.map(Fn::kMul, {tiles, integer(heads_.key_tile())}));
    }
    return {first, wide(end_key_)};
  }

  /// A row of the tile: a query with one of its heads.
  struct Row {
    Axis token, head;
    Mask mask;
  };
  Row row() {
    const Id index = b_.plus(first_row_, b_.range(block_, 1, 0));
    Id head = wide(key_head_);
    if (extents_.group > 1) {
      const Id in_group = b_.map(Fn::kRem, {index, integer(extents_.group)});
      head = b_.plus(fit(b_.map(Fn::kMul, {key_head_, b_.integer(extents_.group)})), fit(in_group));
    }
    return {{fit(divided(index, extents_.group)), {extents_.tokens}},
            {head, {extents_.heads}},
            {b_.less(index, row_end_)}};
  }

  Id queries() override {
    const Row row = this->row();
    Mask mask = row.mask;
    const Dim& width = type(0).shape[2];
    const Id col = column(width, block_, heads_.key_columns, mask);
    const Id tile = rows_.value(node_.inputs[0], {row.token, row.head, {col, {width}}}, mask);
    return rows_.whole(tile, block_, heads_.key_columns, mask);
  }

  /// A sink's weight is 1 where it is the largest score.
  Carried start() override {
    Carried start = nothing();
    if (!form_.sinks) return start;
    const Row row = this->row();
    const Id sink = rows_.value(node_.inputs[*form_.sinks], {row.head}, row.mask);
    start.most = heads_.joins ? sink : b_.times(sink, number(std::numbers::log2e / unit_));
    start.sum = column_of(1);
    return start;
  }

  /// Where a tile of keys lies. A number that is out of range is an error of the run, and nothing
  /// is read there.
  void begin_keys(Id first) override {
    const std::int64_t page = extents_.keys_of_page();
    const int tile = heads_.key_tile();
    const Id position = b_.plus(narrow(first), b_.range(tile, 1, 0));
    is_seen_ = {b_.less(position, end_key_)};
    if (form_.window) is_seen_.push_back(b_.map(Fn::kNot, {b_.less(position, first_key_)}));
    const Id local = b_.range(tile, 1, 0);
    Id number = page_at(narrow(first));
    if (page >= tile) {
      // Only scalars vary from tile to tile.
      const Id inside = b_.map(Fn::kRem, {narrow(first), integer(page)});
      keys_at_ = {{wide(divided(inside, tile)), {page / tile}}, {local, {tile}}};
    } else {
      for (std::int64_t key = page; key < tile; key += page) {
        const Id is_before = b_.less(local, integer(key));
        const Id here = page_at(b_.plus(narrow(first), integer(key)));
        number = b_.map(Fn::kSelect, {is_before, number, here});
      }
      keys_at_ = {{fit(b_.map(Fn::kRem, {local, integer(page)})), {extents_.page}}};
    }
    is_seen_.push_back(b_.map(Fn::kLt, {b_.integer(-1), number}));
    is_seen_.push_back(b_.map(Fn::kLt, {number, extent(Expr(extents_.pages))}));
    keys_at_.insert(keys_at_.begin(), {fit(number), {extents_.pages}});
  }

  /// The number of the page that holds a key, a scalar as in memory. It is read if a row sees the
  /// key, or one behind it in the page.
  Id page_at(Id key) {
    const std::int64_t page = extents_.keys_of_page();
    Id exists = b_.less(key, end_key_);
    if (form_.window) {
      exists = b_.map(Fn::kAnd, {exists, b_.less(first_key_, b_.plus(key, integer(page)))});
    }
    const Axis slot{wide(divided(key, page)), {extents_.most_pages}};
    const Id number = narrow(rows_.scalar(
        node_.inputs[kPageTable], {{wide(sequence_), {extents_.sequences}}, slot}, {exists}));
    const int node = facts_.number_of(node_);
    b_.check_index(number, extent(Expr(extents_.pages)), exists,
                   protocol::check_of(node, kPageTable));
    return number;
  }

  Id operand_of_keys(std::size_t input, Id /*first*/) override {
    const Dim& width = type(input).shape[3];
    Mask mask = is_seen_;
    const Id col = column(width, heads_.key_tile(),
                          input == 1 ? heads_.key_columns : heads_.value_columns, mask);
    // Beside numbers of pages that differ within a tile, 32 bits are enough.
    const bool differ = extents_.keys_of_page() < heads_.key_tile();
    const Id head = differ ? b_.spread(fit(key_head_), heads_.key_tile(), 1) : key_head_;
    Coords at = keys_at_;
    at.push_back({head, {extents_.key_heads}});
    at.push_back({col, {width}});
    return keys_.value(node_.inputs[input], at, mask);
  }

  Id scores(Id products, Id first) override {
    Id scores = products;
    if (form_.scales) scores = b_.times(scores, scale_of(0));
    if (form_.softcap) {
      scores = b_.map(Fn::kTanh, {b_.times(scores, number(form_.scale / *form_.softcap))});
    }
    const Id key = b_.plus(narrow(first), b_.range(block_, heads_.key_tile(), 1));
    if (!form_.causal) return hidden_unless({b_.less(key, end_key_)}, scores);
    // A row r is of the position past + r / group. It sees a key k if r / group >= k - past, which
    // is r >= (k - past) · group.
    const Id row = b_.plus(first_row_, b_.range(block_, 1, 0));
    const Id first_seen = b_.map(Fn::kMul, {b_.minus(key, past_), integer(extents_.group)});
    Mask seen{b_.map(Fn::kNot, {b_.less(row, first_seen)})};
    if (form_.window) {
      seen.push_back(b_.less(row, b_.plus(first_seen, integer(window() * extents_.group))));
    }
    return hidden_unless(seen, scores);
  }

  Id output(Id sums) override { return form_.scales ? b_.times(sums, scale_of(1)) : sums; }

  /// Of keys (0) or values (1).
  Id scale_of(std::size_t which) {
    const ValueId scale = node_.inputs[*form_.scales + which];
    return rows_.scalar(scale, Coords(body_.type(scale).shape.size(), {b_.integer(0), {Dim(1)}}));
  }

  Place place() override {
    Row row = this->row();
    const Dim& width = facts_.space.back();
    const Id col = column(width, block_, heads_.value_columns, row.mask);
    return {{row.token, row.head, {col, {width}}}, row.mask};
  }

  void finish(const Carried& all) override {
    if (!form_.makes_parts) return AttentionTile::finish(all);
    const Row row = this->row();
    const TensorType& type = body_.type(node_.outputs[0]);
    const auto store = [&](Id value, Id col, const Mask& mask) {
      const Axis part{part_, {facts_.space[0]}};
      rows_.store(output_pointer(b_, 0), type, value,
                  {part, row.token, row.head, {col, {facts_.space[3]}}}, mask);
    };
    // Without a key in the segment nobody reads the values.
    Mask mask = row.mask;
    mask.push_back(b_.less(first_key_, end_key_));
    const Dim columns = this->type(2).shape[3];
    const Id col = column(columns, block_, heads_.value_columns, mask);
    store(all.output, col, mask);
    const std::int64_t behind = columns.evaluate({});
    store(in_powers_of_e(all.most), b_.integer(behind), row.mask);
    store(all.sum, b_.integer(behind + 1), row.mask);
  }

  Extents extents_;
  // Scalars, of 32 bits but for the head.
  Id tokens_, sequences_, most_keys_;
  Id key_head_;
  Id part_ = kNone;
  Id sequence_, end_;       ///< of the tile; the end of its queries
  Id first_row_, row_end_;  ///< of the tile, and of the sequence, among those of all queries
  Id past_;                 ///< what a query's position has beyond its number
  Id first_key_ = kNone, end_key_;
  // The tile of keys at hand.
  Coords keys_at_;
  Mask is_seen_;
};

/// Rows of one sequence in a tile: at most those of one token where each sequence has one, by the
/// types or because parts are made for such runs.
std::vector<Config> configs(const BodyFacts& facts, const Target& target) {
  constexpr std::int64_t kBlocks[] = {64, 128, 32, 16};
  const Extents extents(facts.body);
  const bool decodes = extents.tokens == extents.sequences ||
                       attention_of(facts.body, attention_in(facts.body)).makes_parts;
  const std::int64_t queries = decodes ? 1 : extents.tokens.max(facts.body.symbols());
  return attention_configs(facts, target, kBlocks, queries * extents.group);
}

}  // namespace

/// Attention over pages, with what comes after it at the same place.
extern const Work kPagedAttention{
    .settings = kAttentionSettings,
    .matches = has_paged_attention,
    .refuse = refuse_attention,
    .configs = configs,
    .rough_ns = attention_rough_ns,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      const Extents extents(facts.body);
      const Expr count = Expr(Extents::segments(facts)) * Expr(extents.key_heads) *
                         extents.tiles(config.at("BLOCK_M"));
      return Pieces{.count = count,
                    .divisor = divisor_of(count, facts.body.symbols()),
                    .warps_m = static_cast<int>(config.at("num_warps"))};
    },
    .emit = [](const Piece& piece) { PagedTile(piece).emit(); },
};

}  // namespace braid
