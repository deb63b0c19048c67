#pragma once

#include "codegen/work/gemm_config.h"

namespace braid {

/// Where one BLOCK_M x BLOCK_N tile of a matmul's result lies.
struct GemmPlace {
  Axis batch;         ///< which of the results
  tile::Id row, col;  ///< its first ones, scalars
  /// The rows of one rank, among which `row` counts.
  struct Chunk {
    Dim rows;
    tile::Id first_row;  ///< in the result, a scalar
  };
  std::optional<Chunk> chunk;
  tile::Id gathered = tile::kNone;  ///< pointer to the chunk's rows of the left operand
  /// Pointer to the chunk's rows, or all, of the one matmul's result, which goes there alone: what
  /// follows it, and the body's outputs, are the template's.
  tile::Id product = tile::kNone;
};

/// Emits the loop over K of one tile with a dot (two for a pair), whose loads the pipeliner turns
/// into an asynchronous ring, and what follows it. An operand is asked for at its tile like any
/// other value, so views and batches are strides; it is read in the order in which it lies in
/// memory.
void emit_gemm_tile(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                    const GemmPlace& place);

/// Tile number `number`, an i32, of those that so many tiles down and across make up: down GROUP_M
/// of them, then the next ones across, so that tiles that are made at one time share panels of both
/// operands.
struct TileNumber {
  tile::Id down, across;
};
[[nodiscard]] TileNumber tile_number(tile::Builder& builder, const KernelSpec& spec,
                                     tile::Id number, const Expr& down, const Expr& across);

/// Of those that wait, too.
inline constexpr Setting kLeaves{kLeavesSetting, 0, 256, false};
/// Blocks of one rank that a device has room for at one time, less those that the kernel leaves.
[[nodiscard]] std::int64_t most_blocks(const KernelSpec& spec, const Target& target,
                                       int ranks_per_device);
/// Why the matmuls of a body cannot share a kernel; empty where they can.
[[nodiscard]] std::string refuse_matmuls(const Graph& body, const BodyInfo& info);

[[nodiscard]] bool is_matmul(const Node& node);

/// Whether neighbours along dim `dim` of a value are neighbours in memory, as far as views tell.
[[nodiscard]] bool is_contiguous(const Graph& body, ValueId value, std::size_t dim);

}  // namespace braid
