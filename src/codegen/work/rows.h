#pragma once

#include "codegen/body/emitter.h"
#include "codegen/work/work.h"

namespace braid {

/// Rows, or flat chunks, of a body.
struct RowPieces {
  Expr count = 1;
  int rows = 1;  ///< of the tile
  int cols = 0;
  int together = 8;         ///< columns, in a thread
  std::int64_t of_row = 0;  ///< so many pieces are the parts of one row; 0: rows are not told apart
};
[[nodiscard]] RowPieces row_pieces(const BodyFacts& facts, const Config& config);
/// Of a work that does something to each.
[[nodiscard]] std::optional<Pieces> each_row(const BodyFacts& facts, const Config& config);

inline constexpr Setting kWarpsSetting = {"num_warps", 1, 32, true};
inline constexpr Setting kRowSettings[] = {kWarpsSetting};
/// The warps that by default add a row.
[[nodiscard]] std::int64_t row_warps(const BodyFacts& facts);

/// Why the collective's operand cannot be computed in front of it, in the same kernel, each element
/// at its own place; empty where nothing is.
[[nodiscard]] std::string refuse_operand(const BodyFacts& facts);

/// Elements of a piece: where they lie in the body's space, and which exist.
struct RowPlace {
  BodyEmitter& emitter;
  tile::Builder& b;
  const BodyFacts& facts;
  tile::Id row, col;  ///< their numbers; of a flat chunk in `row`
  Coords at;
  Mask mask;
};
using Read = std::function<tile::Id(const RowPlace& place)>;
/// Stores all outputs but what is computed apart; `read` gives the collective's result.
void emit_rows(const Piece& piece, const Read& read = {});
/// Calls `store` at the places where `emit_rows` reads.
void for_row_places(const Piece& piece, const std::function<void(const RowPlace& place)>& store,
                    const Read& read = {});

/// A work that ends a collective's kernel.
[[nodiscard]] std::string refuse_rows_of_collective(const BodyFacts& facts);
[[nodiscard]] std::vector<Config> collective_row_configs(const BodyFacts& facts,
                                                         const Target& target);
[[nodiscard]] inline Work rows_of_collective(void (*emit)(const Piece& piece),
                                             bool (*matches)(const Graph& body) = nullptr) {
  return {.settings = kRowSettings,
          .matches = matches,
          .refuse = refuse_rows_of_collective,
          .configs = collective_row_configs,
          .pieces = each_row,
          .emit = emit};
}
/// Whether the body has a collective, and it runs so.
[[nodiscard]] bool has_collective(const Graph& body);
[[nodiscard]] bool runs_as(Algorithm algorithm, const Graph& body);

}  // namespace braid
