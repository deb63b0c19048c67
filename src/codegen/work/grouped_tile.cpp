// Tiles of matmuls whose rows choose among several weights: those of group e, which ends at row
// offsets[e], are multiplied by weight e. Each group has tiles of its own, from its first row on,
// one group after the other, and so have the rows past the last group, which are zeros. Only the
// offsets, which lie on the device, say where: each block counts the groups' tiles until its own,
// or halves the groups where there are many.
//
// The loop over K is that of any matmul, so a row has the same bits as by itself.

#include <bit>

#include "codegen/body/emitter.h"
#include "codegen/work/gemm_tile.h"

namespace braid {
namespace {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

const Node& matmul_of(const BodyFacts& facts) { return *matmuls_of(facts.body)[0]; }
const Dim& rows_of(const BodyFacts& facts) { return facts.space[0]; }
const Dim& groups_of(const BodyFacts& facts) {
  return facts.body.type(matmul_of(facts).inputs[1]).shape[0];
}

/// More groups are not counted one after the other, for a block would wait for each offset.
constexpr std::int64_t kMostCounted = 32;

bool finds_by_halving(const BodyFacts& facts) {
  return groups_of(facts).max(facts.body.symbols()) > kMostCounted;
}

/// Where tiles are found by halving: so many numbers have the groups, and the rest, if one that
/// begins at row r has those from r / BLOCK_M + its own number on, rounded down.
Expr numbers_of_groups(const BodyFacts& facts, std::int64_t block_m) {
  return ceil_div(Expr(rows_of(facts)), Expr(block_m)) + Expr(groups_of(facts)) + 1;
}

/// As many tiles, one below the other, as there can be: a group, or the rest, has at most one that
/// is not full, and no tile without a row.
Raster raster_of(const BodyFacts& facts, const Config& config) {
  const Expr rows = rows_of(facts);
  Raster raster(config, rows_of(facts), facts.space[1]);
  raster.down = finds_by_halving(facts) ? min(rows, numbers_of_groups(facts, raster.block_m))
                                        : raster.down + min(rows, groups_of(facts));
  return raster;
}

GemmUse use_of(const BodyFacts& facts, const Config&) {
  return {.rows = rows_of(facts), .groups = groups_of(facts), .rings = can_use_ring(facts)};
}

/// Finds the rows of a tile, and their weight, by the number of tiles above it. Counts fit in 32
/// bits, as the op's offsets do, and take half the instructions there.
class Finder {
 public:
  Finder(const Piece& piece, Id above, std::int64_t block_m, bool checks)
      : piece_(piece),
        b_(piece.b),
        emitter_(piece.b, piece.facts, static_cast<int>(block_m)),
        block_m_(piece.b.integer(block_m, Kind::kI32)),
        above_(above),
        checks_(checks),
        rows_(narrow(piece.scalar(rows_of(piece.facts)))) {}

  struct Found {
    Id row;
    GemmPlace::Group group;
  };

  /// Counts the tiles of group after group.
  Found count() {
    const Id none = b_.integer(0, Kind::kI32);
    const Dim& groups = groups_of(piece_.facts);
    const Id loop = b_.begin_for(b_.integer(0), piece_.scalar(groups), b_.integer(1),
                                 {none, none, none, none, b_.integer(-1, Kind::kI32)});
    emitter_.open_scope();
    const Id number = b_.induction(loop);
    const Rows before{b_.carried(loop, 0), b_.carried(loop, 1)};
    const Id end = end_of(number, groups, before.end);
    const Part part = part_of(before, end);
    emitter_.close_scope();
    const auto chosen = [&](Id value, int index) {
      return b_.map(Fn::kSelect, {part.is_here, value, b_.carried(loop, index)});
    };
    const std::vector<Id> found =
        b_.end_for(loop, {end, b_.plus(before.tiles, part.tiles), chosen(part.row, 2),
                          chosen(end, 3), chosen(narrow(number), 4)});
    // No tile is both among the groups' and past them.
    const Part rest = part_of({found[0], found[1]}, rows_);
    const auto or_rest = [&](Id value, Id otherwise) {
      return b_.map(Fn::kSelect, {rest.is_here, value, otherwise});
    };
    return result(or_rest(rest.row, found[2]), or_rest(rows_, found[3]), found[4]);
  }

  /// Halves the groups. Each has numbers, of which some have no tile: with few rows these are the
  /// rows, of which some begin a tile; else as many as there is room for (numbers_of_groups).
  Found halve(Id pieces) {
    if (checks_) check_all(pieces);
    const Expr room = numbers_of_groups(piece_.facts, piece_.config.at("BLOCK_M"));
    const Id by_rows = b_.less(rows_, narrow(b_.scalar(room)));
    const Dim& groups = groups_of(piece_.facts);
    const Id count = narrow(piece_.scalar(groups));
    const auto key = [&](Id group, Id first) {
      return select(by_rows, first, b_.plus(b_.map(Fn::kDiv, {first, block_m_}), group));
    };
    const auto most = static_cast<std::uint64_t>(groups.max(piece_.facts.body.symbols())) + 1;
    const Id loop = b_.begin_for(b_.integer(0), b_.integer(std::bit_width(most)), b_.integer(1),
                                 {integer(0), b_.plus(count, integer(1))});
    emitter_.open_scope();
    const Id low = b_.carried(loop, 0), high = b_.carried(loop, 1);
    const Id middle = b_.map(Fn::kDiv, {b_.plus(low, high), integer(2)});
    const Id is_behind = b_.less(above_, key(middle, first_of(middle)));
    emitter_.close_scope();
    const Id group =
        b_.end_for(loop, {select(is_behind, low, middle), select(is_behind, middle, high)})[0];
    const Id first = first_of(group);
    const Id has_weight = b_.less(group, count);
    const Id end = b_.map(Fn::kMax, {first, within(end_at(group, has_weight), has_weight)});
    const Id own = b_.minus(above_, key(group, first));
    const Id row = b_.plus(first, select(by_rows, own, b_.times(own, block_m_)));
    const Id begins = b_.map(Fn::kEq, {b_.map(Fn::kRem, {own, block_m_}), integer(0)});
    const Id is_tile = b_.both(b_.less(row, end), either(b_.inverse(by_rows), begins));
    return result(select(is_tile, row, integer(0)), select(is_tile, end, integer(0)),
                  select(b_.both(is_tile, has_weight), group, integer(-1)));
  }

 private:
  Id integer(std::int64_t value) { return b_.integer(value, Kind::kI32); }
  Id select(Id condition, Id a, Id b) { return b_.map(Fn::kSelect, {condition, a, b}); }
  Id either(Id a, Id b) { return b_.inverse(b_.both(b_.inverse(a), b_.inverse(b))); }

  /// A weight of -1: none.
  Found result(Id row, Id end, Id weight) {
    const Dim& depth = piece_.facts.body.type(matmul_of(piece_.facts).inputs[1]).shape[1];
    const Id has_weight = b_.less(b_.integer(-1), weight);
    return {row,
            {.weight = b_.map(Fn::kToI64, {b_.map(Fn::kMax, {weight, integer(0)})}),
             .end = end,
             .depth = select(has_weight, piece_.scalar(depth), b_.integer(0))}};
  }

  /// An offset, where there is one.
  Id end_at(Id group, Id exists) {
    const Axis at{b_.map(Fn::kToI64, {group}), {groups_of(piece_.facts)}};
    return narrow(emitter_.scalar(matmul_of(piece_.facts).inputs[2], {at}, {exists}));
  }
  /// As a row, whatever the operand says; past all rows where the condition does not hold.
  Id within(Id end, Id condition) {
    const Id row = b_.map(Fn::kMin, {b_.map(Fn::kMax, {end, integer(0)}), rows_});
    return select(condition, row, rows_);
  }
  Id first_of(Id group) {
    const Id exists = b_.less(integer(0), group);
    return select(exists, within(end_at(b_.minus(group, integer(1)), exists), exists), integer(0));
  }

  /// The pieces share the checks of all offsets.
  void check_all(Id pieces) {
    const Id loop = b_.begin_for(piece_.number, piece_.scalar(groups_of(piece_.facts)), pieces, {});
    emitter_.open_scope();
    const Id group = narrow(b_.induction(loop));
    const Id all = b_.integer(1, Kind::kPred);
    const Id end = end_at(group, all);
    check(end);
    check(b_.minus(within(end, all), first_of(group)));
    emitter_.close_scope();
    b_.end_for(loop, {});
  }
  void check(Id found) {
    if (!checks_) return;
    const int node = piece_.facts.number_of(matmul_of(piece_.facts));
    b_.check_index(found, b_.plus(rows_, b_.integer(1)), kNone, node);
  }

  /// Those of the groups so far.
  struct Rows {
    Id end, tiles;
  };
  /// What the tile is among the next rows.
  struct Part {
    Id is_here, row, tiles;
  };

  Id narrow(Id a) { return b_.map(Fn::kToI32, {a}); }

  /// Where a group ends; an end beyond all rows, or before its begin, is an error of the run, and
  /// the next row that is in order is taken.
  Id end_of(Id number, const Dim& groups, Id first) {
    const Node& matmul = matmul_of(piece_.facts);
    const Id given = narrow(emitter_.scalar(matmul.inputs[2], {{number, {groups}}}));
    check(given);
    // One that is negative has been told, and could overflow here.
    const Id end = b_.map(Fn::kMin, {b_.map(Fn::kMax, {given, b_.integer(0, Kind::kI32)}), rows_});
    check(b_.minus(end, first));
    return b_.map(Fn::kMax, {first, end});
  }

  Part part_of(const Rows& before, Id end) {
    const Id rounded =
        b_.plus(b_.minus(end, before.end), b_.minus(block_m_, b_.integer(1, Kind::kI32)));
    const Id tiles = b_.map(Fn::kDiv, {rounded, block_m_});
    const Id own = b_.minus(above_, before.tiles);
    const Id is_here = b_.both(b_.less(b_.integer(-1), own), b_.less(own, tiles));
    return {is_here, b_.plus(before.end, b_.times(own, block_m_)), tiles};
  }

  const Piece& piece_;
  tile::Builder& b_;
  BodyEmitter emitter_;
  Id block_m_;
  Id above_;
  bool checks_;
  Id rows_;  ///< of all groups, and past them
};

GemmPlace place_of(const Piece& piece, bool checks) {
  tile::Builder& b = piece.b;
  const Raster raster = raster_of(piece.facts, piece.config);
  const Raster::Tile tile = raster.tile(piece, b.map(Fn::kToI32, {piece.number}));
  Finder finder(piece, tile.down, raster.block_m, checks);
  const Finder::Found found = finds_by_halving(piece.facts)
                                  ? finder.halve(b.scalar(raster.down * raster.across))
                                  : finder.count();
  GemmPlace place = raster.place(b, tile);
  place.row = found.row;
  place.group = found.group;
  return place;
}

}  // namespace

/// Grouped matmuls with what comes before and after them at the same place.
extern const Work kGroupedTile{
    .settings = kRingGemmSettings,
    .matches = is_grouped,
    .refuse = [](const BodyFacts& facts) -> std::string {
      const std::string reason = refuse_matmuls(facts.body);
      return reason.empty() ? facts.refusal : reason;
    },
    .configs = gemm_configs<use_of>,
    .rough_ns = gemm_rough_ns<use_of>,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      return raster_of(facts, config).pieces(facts, config);
    },
    .emit = [](const Piece& piece) { emit_gemm_tile(piece, place_of(piece, true)); },
    .by_ring = &kGemmByRing<place_of>,
};

}  // namespace braid
