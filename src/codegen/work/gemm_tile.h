#pragma once

#include <set>

#include "codegen/work/gemm_config.h"

namespace braid {

/// The position of one BLOCK_M x BLOCK_N tile of a matmul's result.
struct GemmPlace {
  Axis batch;         ///< batch index
  tile::Id row, col;  ///< first row and column, scalars
  /// The rows of one rank; `row` counts among these.
  struct Chunk {
    Dim rows;
    tile::Id first_row;  ///< in the result, a scalar
  };
  std::optional<Chunk> chunk;
  /// One of the weights that the right operand is a list of, and rows that are multiplied by it.
  struct Group {
    tile::Id weight;  ///< scalars
    tile::Id end;     ///< past the last of these rows
    tile::Id depth;   ///< so much of K is added up: all of it, or nothing
  };
  std::optional<Group> group;
  /// The chunk's rows of the left operand, of one that is gathered.
  struct Gathered {
    tile::Id from;  ///< pointer; for a ring a map of chunks, and which of these
    tile::Id chunk = tile::kNone;
  };
  std::optional<Gathered> gathered;
  /// Pointer to the chunk's rows, or all, of the one matmul's result, which goes there alone: what
  /// follows it, and the body's outputs, are another work's.
  tile::Id product = tile::kNone;
};

/// Emits the loop over K of one tile with a dot (two for a pair), whose loads the pipeliner turns
/// into an asynchronous ring, and what follows it. An operand is asked for at its tile like any
/// other value, so views and batches are strides; it is read in the order in which it lies in
/// memory.
void emit_gemm_tile(const Piece& piece, const GemmPlace& place);

// The same by a ring (work.h): tiles of operands lie in it as in memory.

/// Whether its matmuls can be made of what a ring brings, and end in the threads that multiply.
[[nodiscard]] bool can_use_ring(const BodyFacts& facts);
[[nodiscard]] std::string refuse_gemm_ring(const BodyFacts& facts, const Config& config,
                                           const Target& target);
[[nodiscard]] bool holds_gemm_sums(const BodyFacts& facts, const Target& target);
/// The ring, the tile of the left operand and those of the right ones; for a unit that has a memory
/// for sums a ring of these, and the sums; and a tile for results.
[[nodiscard]] std::vector<tile::Id> allocate_gemm_ring(tile::Builder& b, const BodyFacts& facts,
                                                       const Config& config);
[[nodiscard]] tile::Id compute_gemm_tile(const Piece& piece, const GemmPlace& place,
                                         std::span<const tile::Id> shared, tile::Id step);
[[nodiscard]] RingWork::Steps multiply_gemm_tile(const Piece& piece, const GemmPlace& place,
                                                 std::span<const tile::Id> shared,
                                                 const RingWork::Steps& steps);
[[nodiscard]] tile::Id fill_gemm_tile(const Piece& piece, const GemmPlace& place,
                                      std::span<const tile::Id> shared, tile::Id step);

/// Of a work whose pieces are at `kPlace`, which checks what it reads, and says where the product
/// goes, for the role that computes: one that fills cannot.
template <GemmPlace (*kPlace)(const Piece& piece, bool computes)>
inline constexpr RingWork kGemmByRing{
    .refuse = refuse_gemm_ring,
    .allocate = allocate_gemm_ring,
    .compute =
        [](const Piece& piece, std::span<const tile::Id> shared, tile::Id step) {
          return compute_gemm_tile(piece, kPlace(piece, true), shared, step);
        },
    .fill = [](const Piece& piece, std::span<const tile::Id> shared,
               tile::Id step) { return fill_gemm_tile(piece, kPlace(piece, false), shared, step); },
    .multiply =
        [](const Piece& piece, std::span<const tile::Id> shared, const RingWork::Steps& steps) {
          return multiply_gemm_tile(piece, kPlace(piece, false), shared, steps);
        },
    .holds_sums = holds_gemm_sums,
};

/// How the tiles of a result, or of one rank's rows of it, are numbered: down GROUP_M of them, then
/// the next ones across, so that tiles that are made at one time share panels of both operands.
struct Raster {
  Raster(const Config& config, const Dim& rows, const Dim& columns);
  /// How many tiles lie above that of a number, an i32, and beside it.
  struct Tile {
    tile::Id down, across;
  };
  [[nodiscard]] Tile tile(const Piece& piece, tile::Id number) const;
  [[nodiscard]] GemmPlace place(tile::Builder& b, const Tile& tile) const;
  /// Of a work of such tiles, of so many results.
  [[nodiscard]] Pieces pieces(const BodyFacts& facts, const Config& config,
                              const Expr& results = 1) const;

  std::int64_t block_m, block_n, group;
  Expr down, across;
};

/// One, or a pair that shares its first operand.
[[nodiscard]] std::vector<const Node*> matmuls_of(const Graph& body);
[[nodiscard]] bool has_matmul(const Graph& body);
/// The scales in blocks (scales.h) of its matmuls: values that movements make of them.
[[nodiscard]] std::set<ValueId> block_scales_of(const Graph& body);
/// Why the matmuls of a body cannot share a kernel; empty where they can.
[[nodiscard]] std::string refuse_matmuls(const Graph& body);
/// Whether its rows choose among several weights.
[[nodiscard]] bool is_grouped(const Graph& body);
/// Whether `value` is `base`, or its rows under another shape.
[[nodiscard]] bool is_reshaped(const Graph& body, ValueId value, ValueId base);

/// Whether neighbours along dim `dim` of a value are adjacent in memory, as far as views tell.
[[nodiscard]] bool is_contiguous(const Graph& body, ValueId value, std::size_t dim);

/// The index_select that the left operand is, where it is of whole rows of a matrix, which lie side
/// by side: they are copied from there, and looked up once for a tile. Else null.
[[nodiscard]] const Node* row_selection(const Graph& body, const Node& matmul);

}  // namespace braid
