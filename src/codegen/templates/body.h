#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.h"
#include "codegen/tile.h"

namespace braid {

/// How a value of a body lies in its kernel's iteration space.
enum class Place : std::uint8_t {
  kFull,        ///< one element per point of the space
  kRowKept,     ///< one per row, reduced dims kept as 1
  kRowDropped,  ///< one per row, reduced dims dropped
};

/// What the templates need to know of a body, found once.
struct BodyInfo {
  std::string refusal;  ///< not empty: the template cannot express the body, and why
  Shape space;          ///< the iteration space
  int col_dims = 0;     ///< how many trailing dims of it are reduced over (0: none)
  const Node* all_reduce = nullptr;
  const Node* mm = nullptr;
  const Node* loop_reduction = nullptr;  ///< the only node, a reduction that no row can hold
  std::vector<Place> places;             ///< per value; of inputs meaningless
};

[[nodiscard]] BodyInfo analyze(const Graph& body, std::string_view template_name);

/// The widest row a block holds in registers.
inline constexpr std::int64_t kMaxRow = 16384;

/// Smallest power of two that is not below n.
[[nodiscard]] std::int64_t round_up_to_power_of_two(std::int64_t n);

/// Part of the iteration space: `index` counts through `dims` in row-major order.
struct Axis {
  tile::Id index;  ///< a scalar, or a tile
  std::vector<Dim> dims;
};

/// Emits the nodes of a body for one tile of the iteration space: loads what they read, computes,
/// stores what leaves the kernel.
class BodyEmitter {
 public:
  /// `axes` cover the space's dims in order; scalar axes go into the pointer, tile axes into the
  /// offset. `rows` and `cols` are the tile's. `mask` may be kNone.
  BodyEmitter(tile::Builder& builder, const Graph& body, const BodyInfo& info,
              std::vector<Axis> axes, int rows, int cols, tile::Id mask);

  /// Gives a value that the template computed itself (a dot).
  void define(ValueId value, tile::Id id) { values_[value] = id; }
  void emit();

 private:
  struct Address {
    tile::Id pointer, offset;
  };

  Address address(tile::Id pointer, DType dtype, const std::vector<Expr>& strides, bool whole_row);
  tile::Id operand(ValueId value, const Node& node);
  tile::Id load_input(ValueId value, const std::vector<Expr>& strides, bool whole_row);
  tile::Id peers_sum(const Node& node);
  tile::Id masked(tile::Id value, double fill);
  tile::Id norm(const Node& node, tile::Id x, std::size_t weight);
  void node(const Node& node);
  void store(std::size_t output);

  tile::Builder& b_;
  const Graph& body_;
  const BodyInfo& info_;
  std::vector<Axis> axes_;
  int rows_, cols_;
  tile::Id mask_;
  std::map<ValueId, tile::Id> values_;
};

/// Row-major strides of a dense tensor, in elements.
[[nodiscard]] std::vector<Expr> dense_strides(const Shape& shape);

/// The offset of the element that `index` counts to in `dims`, where one step in dim i moves by
/// strides[i].
[[nodiscard]] tile::Id linear_offset(tile::Builder& builder, tile::Id index, std::vector<Dim> dims,
                                     std::vector<Expr> strides, const SymbolTable& symbols);

/// An expression over symbols as a scalar, with what is known of its divisors.
[[nodiscard]] tile::Id scalar_of(tile::Builder& builder, const Expr& expr,
                                 const SymbolTable& symbols);

// The templates. Each builds the tile program of a spec, before the tile passes.
void build_pointwise(const KernelSpec& spec, const BodyInfo& info, tile::Program& program);
void build_row(const KernelSpec& spec, const BodyInfo& info, tile::Program& program);
void build_gemm(const KernelSpec& spec, const BodyInfo& info, tile::Program& program);
void build_all_reduce(const KernelSpec& spec, const BodyInfo& info, int ranks_per_device,
                      tile::Program& program);

/// Rows, or flat chunks, of a body without a matmul: what build_row, build_pointwise and
/// build_all_reduce share. Counts the pieces of work and emits the one numbered `piece`.
struct PieceWork {
  Expr count = 1;
  bool flat = false;
  int cols = 0;
};
[[nodiscard]] PieceWork piece_work(const KernelSpec& spec, const BodyInfo& info);
void emit_piece(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                const PieceWork& work, tile::Id piece);

}  // namespace braid
