// Tiles of matmuls whose rows choose among several weights: those of group e, which ends at row
// offsets[e], are multiplied by weight e. Each group has tiles of its own, from its first row on,
// one group after the other, and so have the rows past the last group, which are zeros. Only the
// offsets, which lie on the device, say where: each block counts the groups' tiles until its own.
//
// The loop over K is that of any matmul, so a row has the same bits as by itself.

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

/// As many tiles, one below the other, as there can be: a group, or the rest, has at most one that
/// is not full, and no tile without a row.
Raster raster_of(const BodyFacts& facts, const Config& config) {
  const Expr rows = rows_of(facts);
  Raster raster(config, rows_of(facts), facts.space[1]);
  raster.down = raster.down + min(rows, groups_of(facts));
  return raster;
}

GemmUse use_of(const BodyFacts& facts, const Config&) {
  return {.rows = rows_of(facts), .groups = groups_of(facts)};
}

/// Finds the rows of a tile, and their weight, by the number of tiles above it. Counts fit in 32
/// bits, as the op's offsets do, and take half the instructions there.
class Finder {
 public:
  Finder(const Piece& piece, Id above, std::int64_t block_m)
      : piece_(piece),
        b_(piece.b),
        emitter_(piece.b, piece.facts, static_cast<int>(block_m)),
        block_m_(piece.b.integer(block_m, Kind::kI32)),
        above_(above),
        rows_(narrow(piece.scalar(rows_of(piece.facts)))) {}

  struct Found {
    Id row;
    GemmPlace::Group group;
  };

  Found run() {
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
        b_.end_for(loop, {end, plus(before.tiles, part.tiles), chosen(part.row, 2), chosen(end, 3),
                          chosen(narrow(number), 4)});
    // No tile is both among the groups' and past them.
    const Part rest = part_of({found[0], found[1]}, rows_);
    const auto or_rest = [&](Id value, Id otherwise) {
      return b_.map(Fn::kSelect, {rest.is_here, value, otherwise});
    };
    const Id weight = found[4];
    const Dim& depth = piece_.facts.body.type(matmul_of(piece_.facts).inputs[1]).shape[1];
    const Id has_weight = b_.map(Fn::kLt, {b_.integer(-1), weight});
    return {or_rest(rest.row, found[2]),
            {.weight = b_.map(Fn::kToI64, {b_.map(Fn::kMax, {weight, none})}),
             .end = or_rest(rows_, found[3]),
             .depth = b_.map(Fn::kSelect, {has_weight, piece_.scalar(depth), b_.integer(0)})}};
  }

 private:
  /// Those of the groups so far.
  struct Rows {
    Id end, tiles;
  };
  /// What the tile is among the next rows.
  struct Part {
    Id is_here, row, tiles;
  };

  Id narrow(Id a) { return b_.map(Fn::kToI32, {a}); }
  Id plus(Id a, Id b) { return b_.map(Fn::kAdd, {a, b}); }
  Id minus(Id a, Id b) { return b_.map(Fn::kSub, {a, b}); }

  /// Where a group ends; an end beyond all rows, or before its begin, is an error of the run, and
  /// the next row that is in order is taken.
  Id end_of(Id number, const Dim& groups, Id first) {
    const Node& matmul = matmul_of(piece_.facts);
    const auto node = static_cast<int>(&matmul - piece_.facts.body.nodes().data());
    const Id extent = plus(rows_, b_.integer(1));
    const Id given = narrow(emitter_.scalar(matmul.inputs[2], {{number, {groups}}}));
    b_.check_index(given, extent, kNone, node);
    // One that is negative has been told, and could overflow here.
    const Id end = b_.map(Fn::kMin, {b_.map(Fn::kMax, {given, b_.integer(0, Kind::kI32)}), rows_});
    b_.check_index(minus(end, first), extent, kNone, node);
    return b_.map(Fn::kMax, {first, end});
  }

  Part part_of(const Rows& before, Id end) {
    const Id rounded = plus(minus(end, before.end), minus(block_m_, b_.integer(1, Kind::kI32)));
    const Id tiles = b_.map(Fn::kDiv, {rounded, block_m_});
    const Id own = minus(above_, before.tiles);
    const Id is_here =
        b_.map(Fn::kAnd, {b_.map(Fn::kLt, {b_.integer(-1), own}), b_.map(Fn::kLt, {own, tiles})});
    return {is_here, plus(before.end, b_.map(Fn::kMul, {own, block_m_})), tiles};
  }

  const Piece& piece_;
  tile::Builder& b_;
  BodyEmitter emitter_;
  Id block_m_;
  Id above_;
  Id rows_;  ///< of all groups, and past them
};

void emit(const Piece& piece) {
  tile::Builder& b = piece.b;
  const Raster raster = raster_of(piece.facts, piece.config);
  const Raster::Tile tile = raster.tile(piece, b.map(Fn::kToI32, {piece.number}));
  const Finder::Found found = Finder(piece, tile.down, raster.block_m).run();
  GemmPlace place = raster.place(b, tile);
  place.row = found.row;
  place.group = found.group;
  emit_gemm_tile(piece, place);
}

}  // namespace

/// Grouped matmuls with what comes before and after them at the same place.
extern const Work kGroupedTile{
    .settings = kGemmSettings,
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
    .emit = emit,
};

}  // namespace braid
