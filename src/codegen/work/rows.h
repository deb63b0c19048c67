#pragma once

#include "codegen/body/emitter.h"
#include "codegen/work/work.h"

namespace braid {

/// Rows, or flat chunks, of a body.
struct RowPieces {
  Expr count = 1;
  int rows = 1;  ///< of the tile
  int cols = 0;
  int together = 8;  ///< columns, in a thread
};
[[nodiscard]] RowPieces row_pieces(const BodyFacts& facts, const Config& config);

inline constexpr Setting kWarpsSetting = {"num_warps", 1, 32, true};
inline constexpr Setting kRowSettings[] = {kWarpsSetting};
[[nodiscard]] Config row_config(const BodyFacts& facts, const Target& target = {});
/// Of a kernel of few blocks.
[[nodiscard]] Config collective_row_config(const BodyFacts& facts, const Target& target);
/// Other numbers of warps and of elements of a thread that add a row in the same order: so other
/// numbers of rows of a block, too.
[[nodiscard]] std::vector<Config> row_candidates(const BodyFacts& facts, const Target& target,
                                                 const Config& base);
inline constexpr Tuning kCollectiveRowTuning{.default_config = collective_row_config,
                                             .candidates = row_candidates};

/// Why rows cannot follow a collective.
[[nodiscard]] std::string refuse_rows_of_collective(const BodyFacts& facts);
/// Why the collective's operand cannot be computed in front of it, in the same kernel, each element
/// at its own place; empty where nothing is.
[[nodiscard]] std::string refuse_operand(const BodyFacts& facts);

/// The values of one piece.
class RowPiece {
 public:
  RowPiece(tile::Builder& builder, const BodyFacts& facts, const RowPieces& pieces, tile::Id number)
      : b_(builder),
        body_(facts.body),
        facts_(facts),
        pieces_(pieces),
        number_(number),
        emitter_(builder, facts, pieces.rows) {}

  /// Where the collective's result is found.
  using Read = std::function<tile::Id(BodyEmitter& emitter, const Coords& at, const Mask& mask)>;
  void read(const Read& read);
  /// Stores all outputs but what is computed apart.
  void emit();
  /// Calls `store` for the whole space of this piece, at the places where `emit` reads it.
  using Store = std::function<void(BodyEmitter& emitter, const Coords& at, const Mask& mask)>;
  void for_all(const Store& store);
  /// Of each element of the tile in a dense array of rows so long, or of one row.
  [[nodiscard]] tile::Id place(std::int64_t pitch);

 private:
  Axis chunk(const Shape& dims);
  tile::Id bounded(const Expr& count, const Shape& dims);
  void rows();
  void columns();
  void bound_columns();
  [[nodiscard]] Mask mask() const;
  Coords full();
  tile::Id reducible(tile::Fn fn, tile::Kind kind, const BodyEmitter::Source& operand);
  tile::Id reduce(tile::Fn fn, tile::Kind kind, const BodyEmitter::Source& operand);
  using LoopBody = std::function<std::vector<tile::Id>(tile::Id loop)>;
  std::vector<tile::Id> sweep(std::vector<tile::Id> initial, const LoopBody& body);
  [[nodiscard]] bool per_row(std::size_t output) const;
  [[nodiscard]] bool has_full_output() const;
  void store_all(const Coords& at, bool rows);

  tile::Builder& b_;
  const Graph& body_;
  const BodyFacts& facts_;
  const RowPieces& pieces_;
  tile::Id number_;
  BodyEmitter emitter_;
  Axis rows_, cols_;               ///< a flat chunk: in rows_
  Mask mask_;                      ///< which rows, or elements of the chunk, exist
  tile::Id in_row_ = tile::kNone;  ///< which columns of the tile do
};

/// A work that does `emit` to each piece.
[[nodiscard]] Pieces for_row_pieces(const BodyFacts& facts, const Config& config,
                                    std::function<void(RowPiece& rows, const Piece& piece)> emit);
/// A work that stores the outputs, and reads the collective's result so.
[[nodiscard]] Pieces rows_that_read(const BodyFacts& facts, const Config& config,
                                    const RowPiece::Read& read);

}  // namespace braid
