// Rows, or flat chunks, of a body without a matmul. A body that reduces nothing works on the
// flattened space in chunks of eight elements per thread. A body that reduces trailing dims works
// row by row: a row is held in registers, several in one tile when they are short. A row too long
// for a block is swept in pieces, once for each reduction and once for the results. A body that
// reduces other dims gives each thread its own results and loops over the reduced elements.

#include <algorithm>
#include <cmath>

#include "codegen/body/emitter.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

namespace {
/// Adjacent elements of a row in a thread.
constexpr int kTogether = 8;
}  // namespace

/// Eight elements per thread. It depends on the extent alone, so that a reduction's order never
/// depends on what is fused.
Config piece_config(const Graph& body, const BodyInfo& info) {
  if (info.rows == Rows::kNone || info.rows == Rows::kStrided) return {{"num_warps", 4}};
  const std::int64_t width = max_numel(info.reduced_dims(), body.symbols());
  const std::int64_t threads = round_up_to_power_of_two(std::min(width, kMaxRow)) / kTogether;
  return {{"num_warps", std::clamp<std::int64_t>(threads / 32, 4, 32)}};
}

std::vector<Config> piece_candidates(const Graph& body, const BodyInfo& info) {
  const Config base = piece_config(body, info);
  std::vector<Config> all{base};
  if (info.rows == Rows::kWide) return all;  // another number of warps sums a row in another order
  std::int64_t least = 1;
  if (info.rows == Rows::kHeld) {
    // As long as eight elements per thread hold a row, its threads and their order do not change:
    // more threads, or more elements per thread, hold more rows.
    const std::int64_t width = max_numel(info.reduced_dims(), body.symbols());
    least = std::max<std::int64_t>(1, round_up_to_power_of_two(width) / (32 * kTogether));
    if (least > base.at("num_warps")) return all;
  }
  for (const std::int64_t warps : {1, 2, 4, 8, 16}) {
    if (warps >= least && warps != base.at("num_warps")) all.push_back({{"num_warps", warps}});
  }
  for (const std::int64_t elements : {4, 16}) {
    if (info.rows == Rows::kHeld && elements < kTogether) continue;  // sums a row in another order
    for (const std::int64_t warps : {1, 2, 4, 8, 16}) {
      if (warps < least) continue;
      all.push_back({{"num_warps", warps}, {std::string(kElementsSetting.name), elements}});
    }
  }
  return all;
}

PieceWork piece_work(const KernelSpec& spec, const BodyInfo& info) {
  const SymbolTable& symbols = spec.body->symbols();
  int elements = kTogether;
  if (const auto given = spec.config.find(std::string(kElementsSetting.name));
      given != spec.config.end() && info.rows != Rows::kWide) {
    elements = static_cast<int>(given->second);
    if (info.rows == Rows::kHeld) elements = std::max(elements, kTogether);
  }
  const int chunk = static_cast<int>(spec.config.at("num_warps")) * 32 * elements;
  PieceWork work;
  work.cols = chunk;
  work.together = std::min(elements, kTogether);
  switch (info.rows) {
    case Rows::kNone:
      work.count = ceil_div(numel(info.space), Expr(chunk));
      break;
    case Rows::kStrided:
      work.count = ceil_div(numel(info.kept_dims()), Expr(chunk));
      break;
    case Rows::kWide:
      work.count = numel(info.kept_dims());
      break;
    case Rows::kHeld:
      work.cols =
          static_cast<int>(round_up_to_power_of_two(max_numel(info.reduced_dims(), symbols)));
      // As many rows as leave elements for all threads.
      work.rows = std::max(1, chunk / work.cols);
      work.count = ceil_div(numel(info.kept_dims()), Expr(work.rows));
      break;
  }
  if (info.packets) work.slots = packet_slots(spec, info, work);
  return work;
}

namespace {

class Piece {
 public:
  Piece(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info, const PieceWork& work,
        Id number)
      : b_(b),
        body_(*spec.body),
        info_(info),
        work_(work),
        number_(number),
        emitter_(b, body_, info, work.rows) {
    if (info.packets) emitter_.use_packets(work.slots, [this] { return packet_place(); });
  }

  /// Emits the prologue's output at the places where the rest of the piece reads it; and packets.
  void emit_prologue() {
    const std::size_t output = info_.prologue_output(body_);
    for_all([&](const Coords& at) {
      if (info_.packets) emitter_.send(at, mask());
      if (output < body_.outputs().size()) emitter_.store(output, at, mask());
    });
  }
  /// Emits the collective's sum at those places.
  void emit_sum() {
    for_all([&](const Coords& at) { emitter_.store_sum(at, mask()); });
  }

  void emit(Id owner) {
    emitter_.read_sum_of(owner);
    switch (info_.rows) {
      case Rows::kNone:
        rows_ = chunk(info_.space);
        store_all({rows_}, false);
        return;
      case Rows::kHeld:
        rows();
        columns();
        break;
      case Rows::kWide:
        rows();
        break;
      case Rows::kStrided:
        rows_ = chunk(info_.kept_dims());
        break;
    }
    cols_.dims = info_.reduced_dims();
    emitter_.reduce_all(
        [this](Fn fn, Kind kind, const BodyEmitter::Operand& x) { return reduce(fn, kind, x); },
        [this] { return cols_.index; });
    if (info_.rows == Rows::kHeld) {
      store_all(full(), false);
    } else if (has_full_output()) {
      sweep({}, [this](Id) {
        store_all(full(), false);
        return std::vector<Id>{};
      });
    }
    store_all({rows_}, true);
  }

 private:
  const SymbolTable& symbols() const { return body_.symbols(); }

  /// Calls store(coordinates) for the whole space of this piece.
  template <class Store>
  void for_all(const Store& store) {
    switch (info_.rows) {
      case Rows::kHeld:
        rows();
        columns();
        return store(full());
      case Rows::kWide:
        rows();
        cols_.dims = info_.reduced_dims();
        sweep({}, [&](Id) {
          store(full());
          return std::vector<Id>{};
        });
        return;
      default:
        rows_ = chunk(info_.space);
        return store(Coords{rows_});
    }
  }

  /// The place of each element's packet in its slot.
  Id packet_place() {
    if (info_.rows == Rows::kNone) return rows_.index;
    const Id row = b_.map(Fn::kMul, {rows_.index, b_.integer(work_.slots.pitch)});
    return b_.map(Fn::kAdd, {row, cols_.index});
  }

  /// The flat chunk of this piece over `dims`; adds its bound to the mask.
  Axis chunk(const Shape& dims) {
    Id start = b_.map(Fn::kMul, {number_, b_.integer(work_.cols)});
    if (info_.narrow) start = b_.map(Fn::kToI32, {start});
    const Id index = b_.map(Fn::kAdd, {start, b_.range(1, work_.cols, 1)});
    const Expr count = numel(dims);
    if (!count.is_constant() || count.evaluate({}) % work_.cols != 0) {
      mask_.push_back(b_.map(Fn::kLt, {index, bounded(count, dims)}));
    }
    return {index, dims};
  }

  Id bounded(const Expr& count, const Shape& dims) {
    std::int64_t divisor = 1;
    for (const Dim& d : dims) divisor *= std::max<std::int64_t>(1, d.divisor(symbols()));
    return b_.scalar(count, divisor);
  }

  void rows() {
    rows_ = {number_, info_.kept_dims()};
    if (work_.rows == 1) return;
    Id start = b_.map(Fn::kMul, {number_, b_.integer(work_.rows)});
    if (info_.narrow) start = b_.map(Fn::kToI32, {start});
    rows_.index = b_.map(Fn::kAdd, {start, b_.range(work_.rows, 1, 0)});
    const Expr count = numel(rows_.dims);
    if (!count.is_constant() || count.evaluate({}) % work_.rows != 0) {
      mask_.push_back(b_.map(Fn::kLt, {rows_.index, bounded(count, rows_.dims)}));
    }
  }

  void columns() {
    cols_.dims = info_.reduced_dims();
    cols_.index = b_.range(work_.rows, work_.cols, 1);
    bound_columns();
  }

  void bound_columns() {
    const Shape dims = info_.reduced_dims();
    const Expr count = numel(dims);
    in_row_ = kNone;
    if (count.is_constant() && count.evaluate({}) % work_.cols == 0) return;
    in_row_ = b_.map(Fn::kLt, {cols_.index, bounded(count, dims)});
  }

  Mask mask() const {
    Mask all = mask_;
    if (in_row_ != kNone) all.push_back(in_row_);
    return all;
  }

  /// The axes of the space in the order of its dims.
  Coords full() {
    if (info_.rows != Rows::kStrided) return {rows_, cols_};
    std::vector<std::optional<std::size_t>> picks;
    std::size_t kept = 0;
    std::size_t reduced = rows_.dims.size();
    for (bool flag : info_.reduced) picks.emplace_back(flag ? reduced++ : kept++);
    return emitter_.coords().pick({rows_, cols_}, picks);
  }

  /// The operand on this tile, with the neutral element past the row's end.
  Id reducible(Fn fn, Kind kind, const BodyEmitter::Operand& operand) {
    Id x = operand(full(), mask());
    if (in_row_ != kNone) {
      const Id neutral = kind == Kind::kF32 ? b_.constant(kind, tile::float_identity(fn))
                                            : b_.integer(tile::integer_identity(fn), kind);
      x = b_.map(Fn::kSelect, {in_row_, x, neutral});
    }
    // A value that is equal for the whole row (as every operand was) is broadcast over it.
    if (b_.type(x).cols == work_.cols && b_.type(x).rows == work_.rows) return x;
    return b_.spread(x, work_.rows, work_.cols);
  }

  Id reduce(Fn fn, Kind kind, const BodyEmitter::Operand& operand) {
    if (info_.rows == Rows::kHeld) return b_.reduce(fn, reducible(fn, kind, operand));
    const Id start = kind == Kind::kF32
                         ? b_.splat(kind, 1, work_.cols, tile::float_identity(fn))
                         : b_.splat_integer(1, work_.cols, tile::integer_identity(fn));
    const Id sum = sweep({start}, [&](Id loop) {
      return std::vector{b_.map(fn, {b_.carried(loop, 0), reducible(fn, kind, operand)})};
    })[0];
    return info_.rows == Rows::kWide ? b_.reduce(fn, sum) : sum;
  }

  /// A loop over the reduced elements: pieces of a row's columns, or one element per thread and
  /// turn.
  template <class Body>
  std::vector<Id> sweep(std::vector<Id> initial, const Body& body) {
    const bool wide = info_.rows == Rows::kWide;
    const Id loop = b_.begin_for(b_.integer(0), bounded(numel(cols_.dims), cols_.dims),
                                 b_.integer(wide ? work_.cols : 1), std::move(initial));
    emitter_.open_scope();
    cols_.index = b_.induction(loop);
    if (wide) {
      const Id start = info_.narrow ? b_.map(Fn::kToI32, {cols_.index}) : cols_.index;
      cols_.index = b_.map(Fn::kAdd, {start, b_.range(1, work_.cols, 1)});
      bound_columns();
    }
    std::vector<Id> yields = body(loop);
    emitter_.close_scope();
    in_row_ = kNone;
    return b_.end_for(loop, std::move(yields));
  }

  [[nodiscard]] bool per_row(std::size_t output) const {
    return info_.per_row[static_cast<std::size_t>(body_.outputs()[output])];
  }
  [[nodiscard]] bool has_full_output() const {
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      if (!per_row(i) && i != info_.prologue_output(body_)) return true;
    }
    return false;
  }
  void store_all(const Coords& at, bool rows) {
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      if (i == info_.prologue_output(body_)) continue;
      if (per_row(i) == rows) emitter_.store(i, at, rows ? mask_ : mask());
    }
  }

  tile::Builder& b_;
  const Graph& body_;
  const BodyInfo& info_;
  const PieceWork& work_;
  Id number_;
  BodyEmitter emitter_;
  Axis rows_, cols_;   ///< a flat chunk uses rows_
  Mask mask_;          ///< which rows, or elements of the chunk, exist
  Id in_row_ = kNone;  ///< which columns of the tile exist
};

}  // namespace

void emit_piece(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info,
                const PieceWork& work, Id piece) {
  emit_piece_of(b, spec, info, work, piece, kNone);
}

void emit_piece_of(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info,
                   const PieceWork& work, Id piece, Id owner) {
  Piece(b, spec, info, work, piece).emit(owner);
}

void emit_sum(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info, const PieceWork& work,
              Id piece) {
  Piece(b, spec, info, work, piece).emit_sum();
}

void emit_prologue(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info,
                   const PieceWork& work, Id piece) {
  Piece(b, spec, info, work, piece).emit_prologue();
}

}  // namespace braid
