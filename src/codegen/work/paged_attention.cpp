// Attention whose keys lie in pages. A tile has rows of one sequence: its queries, each with all
// heads that share a head of the keys. Only the query starts, which lie on the device, say where a
// sequence begins: its tiles are numbered from start · heads / BLOCK_M + sequence on, rounded down,
// which leaves each sequence room for its tiles, and a tile finds its sequence by halving.
//
// Of the keys, a tile goes over those that one of its rows sees. The tiles of keys are those of all
// attention, so what a row adds up depends on its position and its keys alone: a tile of keys that
// another row of the block sees, and it does not, adds nothing.
//
// Of parts (ir/attention.h) a tile goes over one segment of keys, and stores what it carries.

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
    if (form_.segment) part_ = b_.map(Fn::kRem, {number, integer(parts)});
    const Id of_part = divided(number, parts);
    key_head_ = wide(b_.map(Fn::kRem, {of_part, heads}));
    Id tile = b_.map(Fn::kDiv, {of_part, heads});
    if (form_.causal) {
      tile = minus(minus(narrow(extent(extents_.tiles(block_))), integer(1)), tile);
    }
    find_rows(tile);
    find_keys();
  }

 private:
  Id integer(std::int64_t value) { return b_.integer(value, Kind::kI32); }
  Id plus(Id a, Id b) { return b_.map(Fn::kAdd, {a, b}); }
  Id minus(Id a, Id b) { return b_.map(Fn::kSub, {a, b}); }
  Id divided(Id a, std::int64_t by) { return by == 1 ? a : b_.map(Fn::kDiv, {a, integer(by)}); }
  Id least(Id a, Id b) { return b_.map(Fn::kMin, {a, b}); }
  Id most(Id a, Id b) { return b_.map(Fn::kMax, {a, b}); }
  Id less(Id a, Id b) { return b_.map(Fn::kLt, {a, b}); }

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
    const Id exists = less(number, sequences_);
    const Id next = plus(number, integer(1));
    const Id first = element(kQueryStarts, number, {exists});
    const Id end = element(kQueryStarts, next, {exists});
    const Id keys = element(kKvLengths, number, {exists});
    const Id count = minus(end, first);
    const Id past = plus(tokens_, integer(1));
    const Id is_last = b_.map(Fn::kEq, {next, sequences_});
    check(kQueryStarts, first, integer(1), less(number, integer(1)));
    check(kQueryStarts, end, past, exists);
    check(kQueryStarts, count, past, exists);
    check(kQueryStarts, minus(tokens_, end), integer(1), is_last);
    check(kKvLengths, keys, plus(most_keys_, integer(1)), exists);
    check(kQueryStarts, count, plus(keys, integer(1)), exists);
  }

  /// The first query of a sequence, within all of them whatever the operand says.
  Id start_of(Id sequence) {
    return least(most(element(kQueryStarts, sequence), integer(0)), tokens_);
  }
  /// The tiles in front of a sequence that begins there.
  Id tiles_before(Id sequence, Id start) {
    return plus(divided(b_.map(Fn::kMul, {start, integer(extents_.group)}), block_), sequence);
  }

  /// The last sequence that does not begin behind the tile, and the rows of the tile.
  void find_rows(Id tile) {
    const std::int64_t most_sequences = extents_.sequences.max(body_.symbols());
    const auto halvings = std::bit_width(static_cast<std::uint64_t>(most_sequences));
    const Id loop =
        b_.begin_for(b_.integer(0), b_.integer(halvings), b_.integer(1), {integer(0), sequences_});
    rows_.open_scope();
    const Id low = b_.carried(loop, 0), high = b_.carried(loop, 1);
    const Id middle = divided(plus(low, high), 2);
    const Id is_behind = less(tile, tiles_before(middle, start_of(middle)));
    rows_.close_scope();
    sequence_ = b_.end_for(loop, {b_.map(Fn::kSelect, {is_behind, low, middle}),
                                  b_.map(Fn::kSelect, {is_behind, middle, high})})[0];
    start_ = start_of(sequence_);
    const Id end = most(start_, start_of(plus(sequence_, integer(1))));
    queries_ = minus(end, start_);
    row_end_ = b_.map(Fn::kMul, {queries_, integer(extents_.group)});
    const Id own = minus(tile, tiles_before(sequence_, start_));
    first_row_ = b_.map(Fn::kMul, {most(own, integer(0)), integer(block_)});
  }

  /// The keys that the rows of the tile see; none where it has no row.
  void find_keys() {
    const Id given = element(kKvLengths, sequence_);
    const Id fits =
        b_.map(Fn::kAnd, {less(integer(-1), given), less(given, plus(most_keys_, integer(1)))});
    const Id length = b_.map(Fn::kSelect, {fits, given, integer(0)});
    first_position_ = minus(length, queries_);
    const Id last_row = minus(least(plus(first_row_, integer(block_)), row_end_), integer(1));
    Id end = length;
    if (form_.causal) {
      end = plus(plus(first_position_, divided(last_row, extents_.group)), integer(1));
    }
    end_key_ = b_.map(Fn::kSelect, {less(first_row_, row_end_), end, integer(0)});
    if (form_.window) {
      const Id position = plus(first_position_, divided(first_row_, extents_.group));
      first_key_ = most(minus(position, integer(*form_.window - 1)), integer(0));
    }
    if (!form_.segment) return;
    const Id first = b_.map(Fn::kMul, {part_, integer(*form_.segment)});
    end_key_ = least(end_key_, plus(first, integer(*form_.segment)));
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
    Id query;  ///< among those of the sequence
    Mask mask;
  };
  Row row() {
    const Id index = plus(first_row_, b_.range(block_, 1, 0));
    const Id query = divided(index, extents_.group);
    Id head = wide(key_head_);
    if (extents_.group > 1) {
      const Id in_group = b_.map(Fn::kRem, {index, integer(extents_.group)});
      head = plus(fit(b_.map(Fn::kMul, {key_head_, b_.integer(extents_.group)})), fit(in_group));
    }
    return {{fit(plus(start_, query)), {extents_.tokens}},
            {head, {extents_.heads}},
            query,
            {less(index, row_end_)}};
  }

  Id queries() override {
    const Row row = this->row();
    Mask mask = row.mask;
    const Dim& width = type(0).shape[2];
    const Id col = column(width, block_, heads_.key_columns, mask);
    return rows_.value(node_.inputs[0], {row.token, row.head, {col, {width}}}, mask);
  }

  /// A sink's weight is 1 where it is the largest score.
  Start start() override {
    if (!form_.sinks) return AttentionTile::start();
    const Row row = this->row();
    const Id sink = rows_.value(node_.inputs[*form_.sinks], {row.head}, row.mask);
    return {times(sink, number(std::numbers::log2e / unit_)), column_of(1)};
  }

  /// Where a tile of keys lies. A number that is out of range is an error of the run, and nothing
  /// is read there.
  void begin_keys(Id first) override {
    const std::int64_t page = extents_.keys_of_page();
    const int tile = heads_.key_tile();
    const Id position = plus(narrow(first), b_.range(tile, 1, 0));
    is_seen_ = {less(position, end_key_)};
    if (form_.window) is_seen_.push_back(b_.map(Fn::kNot, {less(position, first_key_)}));
    const Axis sequence{wide(sequence_), {extents_.sequences}};
    Id number, exists;
    if (page >= tile) {  // one for all
      exists = less(narrow(first), end_key_);
      const Axis slot{wide(divided(narrow(first), page)), {extents_.most_pages}};
      number = rows_.scalar(node_.inputs[kPageTable], {sequence, slot}, {exists});
      // Only scalars vary from tile to tile.
      const Id inside = b_.map(Fn::kRem, {narrow(first), integer(page)});
      keys_at_ = {{wide(divided(inside, tile)), {page / tile}}, {b_.range(tile, 1, 0), {tile}}};
    } else {
      exists = keys_.conjunction(is_seen_, 1);
      const Axis slot{fit(divided(position, page)), {extents_.most_pages}};
      number = keys_.value(node_.inputs[kPageTable], {sequence, slot}, is_seen_);
      keys_at_ = {{fit(b_.map(Fn::kRem, {position, integer(page)})), {extents_.page}}};
    }
    number = narrow(number);  // as in memory
    const Id pages = extent(Expr(extents_.pages));
    const int node = facts_.number_of(node_);
    b_.check_index(number, pages, exists, protocol::check_of(node, kPageTable));
    is_seen_.push_back(b_.map(Fn::kLt, {b_.integer(-1), number}));
    is_seen_.push_back(b_.map(Fn::kLt, {number, pages}));
    keys_at_.insert(keys_at_.begin(), {fit(number), {extents_.pages}});
  }

  Id operand_of_keys(std::size_t input, Id /*first*/) override {
    const Dim& width = type(input).shape[3];
    Mask mask = is_seen_;
    const Id col = column(width, heads_.key_tile(),
                          input == 1 ? heads_.key_columns : heads_.value_columns, mask);
    Coords at = keys_at_;
    at.push_back({key_head_, {extents_.key_heads}});
    at.push_back({col, {width}});
    return keys_.value(node_.inputs[input], at, mask);
  }

  Id scores(Id products, Id first) override {
    Id scores = products;
    if (form_.softcap) {
      scores = b_.map(Fn::kTanh, {times(products, number(form_.scale / *form_.softcap))});
    }
    const Id key = plus(narrow(first), b_.range(block_, heads_.key_tile(), 1));
    if (!form_.causal) return hidden_unless({less(key, end_key_)}, scores);
    const Id position = plus(first_position_, row().query);
    Mask seen{b_.map(Fn::kNot, {less(position, key)})};
    if (form_.window) seen.push_back(less(minus(position, integer(*form_.window)), key));
    return hidden_unless(seen, scores);
  }

  Place place() override {
    Row row = this->row();
    const Dim& width = facts_.space.back();
    const Id col = column(width, block_, heads_.value_columns, row.mask);
    return {{row.token, row.head, {col, {width}}}, row.mask};
  }

  void finish(Id most, Id sum, Id output) override {
    if (!form_.segment) return AttentionTile::finish(most, sum, output);
    const Row row = this->row();
    const TensorType& type = body_.type(node_.outputs[0]);
    const auto store = [&](Id value, Id col, const Mask& mask) {
      const Axis part{part_, {facts_.space[0]}};
      rows_.store(output_pointer(b_, 0), type, value,
                  {part, row.token, row.head, {col, {facts_.space[3]}}}, mask);
    };
    // Without a key in the segment nobody reads the values.
    Mask mask = row.mask;
    mask.push_back(less(first_key_, end_key_));
    const Dim columns = this->type(2).shape[3];
    const Id col = column(columns, block_, heads_.value_columns, mask);
    store(output, col, mask);
    const std::int64_t behind = columns.evaluate({});
    store(times(most, number(unit_ * std::numbers::ln2)), b_.integer(behind), row.mask);
    store(sum, b_.integer(behind + 1), row.mask);
  }

  Extents extents_;
  // Scalars, of 32 bits but for the head.
  Id tokens_, sequences_, most_keys_;
  Id key_head_;
  Id part_ = kNone;
  Id sequence_, start_, queries_;  ///< of the tile; its first query, and how many it has
  Id first_row_, row_end_;         ///< of the tile, and of the sequence
  Id first_position_;              ///< of the sequence's first query
  Id first_key_ = kNone, end_key_;
  // The tile of keys at hand.
  Coords keys_at_;
  Mask is_seen_;
};

/// Rows of one sequence in a tile: at most those of one token where each sequence has one.
std::vector<Config> configs(const BodyFacts& facts, const Target& target) {
  constexpr std::int64_t kBlocks[] = {64, 128, 32, 16};
  const Extents extents(facts.body);
  const bool decodes = extents.tokens == extents.sequences;
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
