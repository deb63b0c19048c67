#pragma once

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
  tile::Id gathered = tile::kNone;  ///< pointer to the chunk's rows of the left operand
  /// Pointer to the chunk's (or all) rows of the only matmul's result. If set, the tile is just
  /// stored there, and the epilogue and the outputs are the template's task.
  tile::Id product = tile::kNone;
};

/// Emits the loop over K of one tile, with one dot (two for a pair), and its epilogue; the
/// pipeliner turns the loads into an asynchronous ring. An operand is evaluated at its tile like
/// any other value, so views and batches are strides; it is read in the order in which it lies in
/// memory. This loop alone decides the order of summation along K.
void emit_gemm_tile(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                    const GemmPlace& place);

/// Maps tile number `number`, an i32, to a row and column of tiles: down GROUP_M of them, then the
/// next ones across, so that tiles computed at the same time share panels of both operands.
struct TileNumber {
  tile::Id down, across;
};
[[nodiscard]] TileNumber tile_number(tile::Builder& builder, const KernelSpec& spec,
                                     tile::Id number, const Expr& down, const Expr& across);

/// Also a setting of kernels that wait.
inline constexpr Setting kLeaves{kLeavesSetting, 0, 256, false};
/// The most blocks of one rank that are resident at a time, less those that the kernel leaves to
/// others.
[[nodiscard]] std::int64_t most_blocks(const KernelSpec& spec, const Target& target,
                                       int ranks_per_device);
/// Why the matmuls of a body cannot share a kernel; empty where they can.
[[nodiscard]] std::string refuse_matmuls(const Graph& body, const BodyInfo& info);

[[nodiscard]] bool is_matmul(const Node& node);

/// Whether neighbours along dim `dim` of a value are adjacent in memory, as far as views tell.
[[nodiscard]] bool is_contiguous(const Graph& body, ValueId value, std::size_t dim);

}  // namespace braid
