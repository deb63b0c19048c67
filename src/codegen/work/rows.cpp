// Rows, or flat chunks, of a body without a matmul. A body that reduces nothing works on the
// flattened space in chunks of eight elements per thread. A body that reduces trailing dims works
// row by row: a row is held in registers, several in one tile when they are short. A row too long
// for a block is swept in pieces, once for each reduction and once for the results. A body that
// reduces other dims gives each thread its own results and loops over the reduced elements; so does
// one with a cumsum, along any dim, which stores on the way.

#include "codegen/work/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/device_model.h"
#include "ir/collective.h"
#include "ir/numel.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

namespace {
/// Adjacent elements of a row in a thread.
constexpr int kTogether = 8;

/// Smallest power of two that is not below n.
std::int64_t round_up_to_power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

/// What adds a row in the same order as by default, beginning with so many warps.
std::vector<Config> row_configs(const BodyFacts& facts, std::int64_t by_default) {
  const std::int64_t own = row_warps(facts);
  const Config base{{"num_warps", by_default}};
  std::vector<Config> all{{{"num_warps", own}}};
  // Other numbers of warps add a row in another order.
  if (facts.rows == Rows::kWide) return {base};
  std::int64_t least = 1;
  if (facts.rows == Rows::kHeld) {
    // A thread holds eight elements of a row, so that many rows are on their way; where it must
    // agree with others on the number of warps, more. Its sum is the same (tile::ReductionParts).
    const std::int64_t width = max_numel(facts.reduced_dims(), facts.body.symbols());
    const std::int64_t elements = kTogether * (facts.resident ? 4 : 1);
    least = std::max<std::int64_t>(1, round_up_to_power_of_two(width) / (32 * elements));
    if (least > own) return {base};
  }
  for (const std::int64_t warps : {1, 2, 4, 8, 16}) {
    if (warps >= least && warps != own) all.push_back({{"num_warps", warps}});
  }
  for (const std::int64_t elements : {4, 16}) {
    if (facts.rows == Rows::kHeld && elements < kTogether) continue;  // a row in another order
    for (const std::int64_t warps : {1, 2, 4, 8, 16}) {
      if (warps < least) continue;
      all.push_back({{"num_warps", warps}, {std::string(kElementsSetting.name), elements}});
    }
  }
  std::iter_swap(all.begin(), std::find(all.begin(), all.end(), base));
  return all;
}

}  // namespace

/// Eight elements per thread: a function of the extent alone, so that a reduction's order never
/// depends on what is fused.
std::int64_t row_warps(const BodyFacts& facts) {
  if (facts.rows == Rows::kNone || facts.rows == Rows::kStrided) return 4;
  const std::int64_t width = max_numel(facts.reduced_dims(), facts.body.symbols());
  const std::int64_t threads = round_up_to_power_of_two(std::min(width, kMaxRow)) / kTogether;
  return std::clamp<std::int64_t>(threads / 32, 4, 32);
}

namespace {

/// Of how few elements a thread's sum is, where these are looked up by indices: a loop would wait
/// for an index, and then for its element, in each turn. 0 where there are many, or no indices.
std::int64_t looked_up(const BodyFacts& facts) {
  constexpr std::int64_t kMost = 16;
  if (facts.rows != Rows::kStrided || facts.scan != nullptr) return 0;
  const Expr count = numel(facts.reduced_dims());
  const bool few = count.is_constant() && count.evaluate({}) <= kMost;
  return few && std::ranges::any_of(facts.body.nodes(), takes_indices) ? count.evaluate({}) : 0;
}

/// Whether a piece is then a part of a row, so that all its threads look up the same.
bool has_parts_of_rows(const BodyFacts& facts, int chunk) {
  if (looked_up(facts) == 0) return false;
  const Shape kept = facts.kept_dims();
  return kept.size() > 1 && kept.back().is_constant() && kept.back().constant() >= chunk;
}

}  // namespace

RowPieces row_pieces(const BodyFacts& facts, const Config& config) {
  const SymbolTable& symbols = facts.body.symbols();
  int elements = kTogether;
  if (const auto given = config.find(std::string(kElementsSetting.name));
      given != config.end() && facts.rows != Rows::kWide) {
    elements = static_cast<int>(given->second);
    if (facts.rows == Rows::kHeld) elements = std::max(elements, kTogether);
  }
  const int chunk = static_cast<int>(config.at("num_warps")) * 32 * elements;
  RowPieces work;
  work.cols = chunk;
  work.together = std::min(elements, kTogether);
  switch (facts.rows) {
    case Rows::kNone:
      work.count = ceil_div(numel(facts.space), Expr(chunk));
      break;
    case Rows::kStrided:
      work.count = ceil_div(numel(facts.kept_dims()), Expr(chunk));
      if (has_parts_of_rows(facts, chunk)) {
        Shape outer = facts.kept_dims();
        work.of_row = (outer.back().constant() + chunk - 1) / chunk;
        outer.pop_back();
        work.count = numel(outer) * Expr(work.of_row);
      }
      break;
    case Rows::kWide:
      work.count = numel(facts.kept_dims());
      break;
    case Rows::kHeld:
      work.cols =
          static_cast<int>(round_up_to_power_of_two(max_numel(facts.reduced_dims(), symbols)));
      // As many rows as there are elements left for the threads.
      work.rows = std::max(1, chunk / work.cols);
      work.count = ceil_div(numel(facts.kept_dims()), Expr(work.rows));
      break;
  }
  return work;
}

namespace {

class RowPiece {
 public:
  RowPiece(const Piece& piece, const Read& read)
      : b_(piece.b),
        body_(piece.facts.body),
        facts_(piece.facts),
        pieces_(row_pieces(piece.facts, piece.config)),
        number_(piece.number),
        emitter_(b_, facts_, pieces_.rows) {
    if (!read) return;
    emitter_.define(
        facts_.collective->outputs[0],
        [this, read](const Coords& at, const Mask& mask) { return read(place(at, mask)); });
  }

  void emit() {
    enter();
    if (facts_.scan != nullptr) {
      running_sum(*facts_.scan);
      return store_all(kept(), true);
    }
    if (facts_.rows != Rows::kNone) reduce_rows();
    if (has_full_output()) everywhere([this] { store_all(full(), false); });
    if (facts_.rows != Rows::kNone) store_all(kept(), true);
  }

  void for_all(const auto& store) {
    enter();
    if (facts_.scan != nullptr) reduce_rows();
    everywhere([&] { store(place(full(), mask())); });
  }

 private:
  void reduce_rows() {
    emitter_.reduce_all(
        [this](Fn fn, Kind kind, const BodyEmitter::Source& x) { return reduce(fn, kind, x); },
        [this] { return cols_.index; }, {{rows_}, mask_});
  }

  RowPlace place(Coords at, Mask mask) {
    return {emitter_, b_, facts_, rows_.index, cols_.index, std::move(at), std::move(mask)};
  }

  void enter() {
    if (facts_.rows != Rows::kNone) cols_.dims = facts_.reduced_dims();
    switch (facts_.rows) {
      case Rows::kNone:
      case Rows::kStrided:
        rows_.dims = facts_.rows == Rows::kNone ? facts_.space : facts_.kept_dims();
        if (pieces_.of_row > 0) enter_row();
        rows_.index = times_number(pieces_.cols);
        rows_.index = b_.map(Fn::kAdd, {rows_.index, b_.range(1, pieces_.cols, 1)});
        return limit_rows(pieces_.cols);
      case Rows::kHeld:
        rows();
        cols_.index = b_.range(pieces_.rows, pieces_.cols, 1);
        in_row_ = inside(cols_, pieces_.cols);
        return;
      case Rows::kWide:
        return rows();
    }
  }

  /// The piece's number becomes that within a row.
  void enter_row() {
    const Id of_row = b_.integer(pieces_.of_row);
    outer_ = Axis{b_.map(Fn::kDiv, {number_, of_row}), rows_.dims};
    outer_->dims.pop_back();
    rows_.dims = {rows_.dims.back()};
    number_ = b_.map(Fn::kRem, {number_, of_row});
  }

  /// Over the whole piece: what a block holds of it at one time.
  void everywhere(const auto& body) {
    if (facts_.rows == Rows::kNone || facts_.rows == Rows::kHeld) return body();
    sweep({}, [&](Id) {
      body();
      return std::vector<Id>{};
    });
  }

  Id narrow(Id id) { return facts_.narrow ? b_.map(Fn::kToI32, {id}) : id; }
  Id times_number(int size) { return narrow(b_.map(Fn::kMul, {number_, b_.integer(size)})); }

  /// Whether an index exists; kNone where tiles of that size leave no rest.
  Id inside(const Axis& axis, int tile) {
    const Expr count = numel(axis.dims);
    if (count.is_constant() && count.evaluate({}) % tile == 0) return kNone;
    return b_.map(Fn::kLt, {axis.index, bounded(axis.dims)});
  }
  void limit_rows(int tile) {
    if (const Id exist = inside(rows_, tile); exist != kNone) mask_.push_back(exist);
  }

  Id bounded(const Shape& dims) {
    std::int64_t divisor = 1;
    for (const Dim& d : dims) divisor *= std::max<std::int64_t>(1, d.divisor(body_.symbols()));
    return b_.scalar(numel(dims), divisor);
  }

  void rows() {
    rows_ = {number_, facts_.kept_dims()};
    if (pieces_.rows == 1) return;
    const Id start = times_number(pieces_.rows);
    rows_.index = b_.map(Fn::kAdd, {start, b_.range(pieces_.rows, 1, 0)});
    limit_rows(pieces_.rows);
  }

  Mask mask() const {
    Mask all = mask_;
    if (in_row_ != kNone) all.push_back(in_row_);
    return all;
  }

  /// Those of what is kept.
  Coords kept() const { return outer_ ? Coords{*outer_, rows_} : Coords{rows_}; }
  /// The axes of the space in the order of its dims.
  Coords full() {
    if (facts_.rows == Rows::kNone) return {rows_};
    if (facts_.rows != Rows::kStrided) return {rows_, cols_};
    std::vector<std::optional<std::size_t>> picks;
    std::size_t kept = 0;
    std::size_t reduced = facts_.kept_dims().size();
    for (bool flag : facts_.reduced) picks.emplace_back(flag ? reduced++ : kept++);
    Coords all = this->kept();
    all.push_back(cols_);
    return emitter_.coords().pick(all, picks);
  }

  /// The operand on this tile, neutral past the end of the row.
  Id reducible(Fn fn, Kind kind, const BodyEmitter::Source& operand) {
    Id x = operand(full(), mask());
    if (in_row_ != kNone) {
      const Id neutral = kind == Kind::kF32 ? b_.constant(kind, tile::float_identity(fn))
                                            : b_.integer(tile::integer_identity(fn), kind);
      x = b_.map(Fn::kSelect, {in_row_, x, neutral});
    }
    // A value that is the same for the whole row (every operand was) is spread over it.
    if (b_.type(x).cols == pieces_.cols && b_.type(x).rows == pieces_.rows) return x;
    return b_.spread(x, pieces_.rows, pieces_.cols);
  }

  Id reduce(Fn fn, Kind kind, const BodyEmitter::Source& operand) {
    if (facts_.rows == Rows::kHeld) return b_.reduce(fn, reducible(fn, kind, operand));
    const Id start = kind == Kind::kF32
                         ? b_.splat(kind, 1, pieces_.cols, tile::float_identity(fn))
                         : b_.splat_integer(1, pieces_.cols, tile::integer_identity(fn));
    if (const std::int64_t count = looked_up(facts_); count > 0) {
      return reduce_in_a_row(fn, start, count, [&] { return reducible(fn, kind, operand); });
    }
    const Id sum = sweep({start}, [&](Id loop) {
      return std::vector{b_.map(fn, {b_.carried(loop, 0), reducible(fn, kind, operand)})};
    })[0];
    return facts_.rows == Rows::kWide ? b_.reduce(fn, sum) : sum;
  }

  /// In the order of the loop, with all indices looked up in front, and then all elements.
  Id reduce_in_a_row(Fn fn, Id sum, std::int64_t count, const auto& element) {
    const std::size_t from = b_.position();
    std::vector<Id> elements;
    for (std::int64_t i = 0; i < count; ++i) {
      cols_.index = b_.integer(i);
      elements.push_back(element());
    }
    b_.order_by_loads(from);
    for (const Id x : elements) sum = b_.map(fn, {sum, x});
    return sum;
  }

  /// Of a cumsum: each thread carries the sum along its lines, and stores what depends on it.
  void running_sum(const Node& node) {
    const ValueId x = node.inputs[0];
    const DType dtype = body_.type(node.outputs[0]).dtype;
    const Kind kind = is_float(dtype) ? Kind::kF32 : Kind::kI64;
    const Fn fn = kind == Kind::kF32 ? Fn::kAdd : Fn::kWrapAdd;
    const Id zero = kind == Kind::kF32 ? b_.splat(kind, 1, pieces_.cols, 0)
                                       : b_.splat_integer(1, pieces_.cols, 0);
    sweep({zero}, [&](Id loop) {
      const Id element = reducible(fn, kind, [&](const Coords& at, const Mask& mask) {
        return emitter_.value(x, at, mask);
      });
      const Id sum = b_.map(fn, {b_.carried(loop, 0), element});
      emitter_.define(node.outputs[0], [&b = b_, dtype, sum](const Coords&, const Mask&) {
        return b.round(dtype, sum);
      });
      store_all(full(), false);
      return std::vector{sum};
    });
  }

  /// A loop over what a row reduces: pieces of its columns, or one element of each thread's.
  std::vector<Id> sweep(std::vector<Id> initial, const auto& body) {
    const bool wide = facts_.rows == Rows::kWide;
    const Id loop = b_.begin_for(b_.integer(0), bounded(cols_.dims),
                                 b_.integer(wide ? pieces_.cols : 1), std::move(initial));
    emitter_.open_scope();
    cols_.index = b_.induction(loop);
    if (wide) {
      cols_.index = b_.map(Fn::kAdd, {narrow(cols_.index), b_.range(1, pieces_.cols, 1)});
      in_row_ = inside(cols_, pieces_.cols);
    }
    std::vector<Id> yields = body(loop);
    emitter_.close_scope();
    in_row_ = kNone;
    return b_.end_for(loop, std::move(yields));
  }

  bool per_row(std::size_t output) const { return facts_.per_row[body_.outputs()[output]]; }
  bool has_full_output() const {
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      if (!per_row(i) && i != facts_.output_apart()) return true;
    }
    return false;
  }
  void store_all(const Coords& at, bool rows) {
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      if (i == facts_.output_apart()) continue;
      if (per_row(i) == rows) emitter_.store(i, at, rows ? mask_ : mask());
    }
  }

  tile::Builder& b_;
  const Graph& body_;
  const BodyFacts& facts_;
  RowPieces pieces_;
  tile::Id number_;
  BodyEmitter emitter_;
  Axis rows_{}, cols_{};       ///< a flat chunk: in rows_
  std::optional<Axis> outer_;  ///< the row of a piece that is a part of one, which is in rows_
  Mask mask_;                  ///< which rows, or elements of the chunk, exist
  Id in_row_ = kNone;          ///< which columns of the tile do
};

}  // namespace

void emit_rows(const Piece& piece, const Read& read) { RowPiece(piece, read).emit(); }

void for_row_places(const Piece& piece, const std::function<void(const RowPlace& place)>& store,
                    const Read& read) {
  RowPiece(piece, read).for_all(store);
}

std::optional<Pieces> each_row(const BodyFacts& facts, const Config& config) {
  const RowPieces pieces = row_pieces(facts, config);
  return Pieces{.count = pieces.count, .columns = pieces.together};
}

// A collective has few blocks, so of flat chunks each takes as large ones as leave all blocks some
// (rows say themselves how many threads they have), up to threads of 128 registers, which load a
// piece ahead (passes/prefetch.cpp).
std::vector<Config> collective_row_configs(const BodyFacts& facts, const Target&) {
  std::int64_t warps = row_warps(facts);
  const auto chunks = [&] {
    return row_pieces(facts, {{"num_warps", warps}}).count.max(facts.body.symbols());
  };
  if (facts.rows == Rows::kNone) {
    while (warps < 16 && chunks() >= 2 * kMaxCollectiveBlocks) warps *= 2;
  }
  return row_configs(facts, warps);
}

std::string refuse_rows_of_collective(const BodyFacts& facts) {
  if (std::ranges::any_of(facts.body.nodes(), is_matmul) && !reduces_in_kernel(*facts.collective)) {
    return "a matmul and a collective are separate kernels";
  }
  if (facts.rows == Rows::kStrided) {
    return "a reduction over other than the last dims and a collective are separate kernels";
  }
  return facts.refusal;
}

std::string refuse_operand(const BodyFacts& facts) {
  const Graph& body = facts.body;
  const Node& collective = *facts.collective;
  const ValueId operand = collective.inputs[0];
  if (body.value(operand).producer < 0) return "";
  const Collective form = collective_of(body, collective, facts.operand());
  if (form.gather_dim || form.scatter_dim) {
    return fmt::format("a block of '{}' reads what other blocks would compute",
                       collective.op_name());
  }
  if (facts.output_apart() == body.outputs().size() && shares_operand(collective)) {
    return "the operand of a collective must be in memory";
  }
  // Each element is computed at its own place.
  const std::vector<bool> before = computed_from(body, operand);
  for (const Node& node : body.nodes()) {
    if (!before[node.outputs[0]]) continue;
    if (is_reduction(node) || is_matmul(node)) {
      return fmt::format("'{}' in front of a collective is a kernel of its own", node.op_name());
    }
  }
  return refuse_recomputed(body, collective);
}

bool has_collective(const Graph& body) {
  return std::ranges::any_of(
      body.nodes(), [](const Node& node) { return node.op->op_class == OpClass::kCollective; });
}

bool runs_as(Algorithm algorithm, const Graph& body) {
  // Most bodies have no collective, and attributes are looked up by name.
  return has_collective(body) && std::ranges::any_of(body.nodes(), [&](const Node& node) {
           return algorithm_of(node) == algorithm;
         });
}

namespace {

/// Each block waits for memory in front of each of its pieces.
double resident_ns(const BodyFacts& facts, const Config& config, const Bindings& bindings,
                   const Target& target) {
  const DeviceModel& device = device_model(target);
  const auto threads = static_cast<int>(32 * config.at("num_warps"));
  const auto blocks = static_cast<double>(device.sms * sure_blocks(device, threads, 0));
  const auto pieces = static_cast<double>(row_pieces(facts, config).count.evaluate(bindings));
  return std::ceil(pieces / blocks) * architecture(device.sm).memory_clocks / device.ghz;
}

}  // namespace

extern const Work kRows{
    .settings = kRowSettings,
    .refuse = [](const BodyFacts& facts) { return facts.refusal; },
    .configs = [](const BodyFacts& facts,
                  const Target&) { return row_configs(facts, row_warps(facts)); },
    .resident_ns = resident_ns,
    .pieces = each_row,
    .emit = [](const Piece& piece) { emit_rows(piece); },
};

/// The collective's operand into this rank's arena, where the kernel computes it.
extern const Work kOperand{
    .refuse = refuse_operand,
    .pieces =
        [](const BodyFacts& facts, const Config& config) {
          return facts.apart < 0 ? std::nullopt : each_row(facts, config);
        },
    .emit =
        [](const Piece& piece) {
          for_row_places(piece, [](const RowPlace& place) {
            place.emitter.store(place.facts.output_apart(), place.at, place.mask);
          });
        },
};

}  // namespace braid
