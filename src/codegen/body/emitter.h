#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/body/analysis.h"
#include "codegen/body/coords.h"
#include "codegen/tile/tile_expr.h"
#include "ir/collective.h"

namespace braid {

/// The conditions under which an element exists: predicates, tiles [rows, cols] or [rows, 1].
using Mask = std::vector<tile::Id>;

/// This rank's number in the group, a scalar.
[[nodiscard]] tile::Id own_rank(tile::Builder& builder, const std::string& group);

/// The body's output in memory.
[[nodiscard]] tile::Id output_pointer(tile::Builder& builder, std::size_t output);

/// Emits the values of a body for tiles of `rows` rows. Each value is asked for at coordinates and
/// asks for its operands in turn; values already computed in the scope are reused.
class BodyEmitter {
 public:
  BodyEmitter(tile::Builder& builder, const BodyFacts& facts, int rows)
      : b_(builder),
        body_(facts.body),
        facts_(facts),
        rows_(rows),
        coords_(builder, body_.symbols()) {}

  [[nodiscard]] tile::Id value(ValueId value, const Coords& at, const Mask& mask);
  /// The same for a tile of so many other rows, as constants have no coordinates that say so.
  [[nodiscard]] tile::Id value(ValueId value, const Coords& at, const Mask& mask, int rows);
  /// The tile as one of that shape: what has fewer rows or columns, for its elements are alike, is
  /// spread, and zero where a condition does not hold.
  [[nodiscard]] tile::Id whole(tile::Id tile, int rows, int cols, const Mask& mask);
  /// One element of an input, perhaps seen through movements, at coordinates that are scalars; it
  /// is the same for all threads. The conditions are scalars, too.
  [[nodiscard]] tile::Id scalar(ValueId value, const Coords& at, const Mask& mask = {});
  /// Loads elements of a dense tensor.
  [[nodiscard]] tile::Id load(tile::Id pointer, const Coords& at, DType dtype, const Mask& mask);
  /// Stores an output; of an update the elements that replace others, where these are.
  void store(std::size_t output, const Coords& at, const Mask& mask);
  /// Stores elements of a dense tensor.
  void store(tile::Id pointer, const TensorType& type, tile::Id id, const Coords& at,
             const Mask& mask);
  struct Slot {
    tile::Id ring, step, tile;
  };
  /// A bulk copy of the tile from (row, col) on of a value that is a matrix in memory, of several
  /// the one at `outer`. What is past the matrix, and not past a part of it, are zeros.
  void copy_tile(const Slot& to, ValueId value, tile::Id row, tile::Id col, const Coords& outer);
  /// What gives a value in its node's stead, wherever it is asked for.
  using Source = std::function<tile::Id(const Coords& at, const Mask& mask)>;
  void define(ValueId value, Source source) { defined_[value] = std::move(source); }

  /// Reduces what `operand` gives at the work's own coordinates.
  using Reduce = std::function<tile::Id(tile::Fn fn, tile::Kind kind, const Source& operand)>;
  /// The index within the row.
  using Column = std::function<tile::Id()>;
  /// Where a row's own elements are: of what has one for each row.
  struct RowPoint {
    Coords at;
    Mask mask;
  };
  /// Emits the reductions of the body's nodes, in order.
  void reduce_all(const Reduce& reduce, const Column& column, const RowPoint& place);

  /// Values computed between open_scope and close_scope belong to a loop's body and are not reused
  /// after it.
  void open_scope() { known_.emplace_back(); }
  void close_scope() { known_.pop_back(); }

  // For sources, and for what goes elsewhere than to an output.

  [[nodiscard]] tile::Builder& builder() { return b_; }
  [[nodiscard]] const BodyFacts& facts() const { return facts_; }
  [[nodiscard]] CoordsBuilder& coords() { return coords_; }
  /// Where the elements of a dense tensor are: at offsets of the tile's rows by columns, or by one.
  struct Elements {
    tile::Id pointer, offset;
  };
  [[nodiscard]] Elements elements(tile::Id pointer, const Coords& at, DType dtype);
  /// Where one of the two is the same for all columns, it is spread over them: of what is stored,
  /// and where.
  void match(Elements& to, tile::Id& id);
  [[nodiscard]] tile::Id spread_like(tile::Id narrow, tile::Id wide, bool is_stored);
  [[nodiscard]] tile::Id conjunction(const Mask& mask, int cols);
  [[nodiscard]] tile::Id masked(const Mask& mask, const Elements& at) {
    return conjunction(mask, b_.type(at.offset).cols);
  }
  /// The first part whose condition holds; the last has none to hold.
  [[nodiscard]] tile::Id chosen(const std::vector<tile::Id>& conditions,
                                std::vector<tile::Id> parts);
  /// A node's index, its second operand, into `extent` elements. One out of range fails the run;
  /// the mask leaves it out, and one that is another rank's.
  [[nodiscard]] tile::Id checked_index(const Node& node, const Dim& extent, const Coords& at,
                                       Mask& mask);
  /// The coordinates moved into this rank's chunk of an operand along the scatter dim.
  [[nodiscard]] Coords own_chunk(const Collective& form, const std::string& group,
                                 const Shape& operand, const Coords& at);

 private:
  struct At;
  struct Row;
  /// A result of a row op, at a column where it has any.
  using RowResult = std::function<tile::TileExpr(const At&)>;

  tile::Id compute(const Node& node, std::size_t result, const Coords& at, const Mask& mask);
  tile::Id operand(const Node& node, std::size_t index, const Shape& whole, const Coords& at,
                   const Mask& mask);
  tile::Id moved(const Node& node, std::size_t result, const Coords& at, const Mask& mask);
  tile::Id cat(const Node& node, const Coords& at, const Mask& mask);
  tile::Id gathered(const Node& node, const Coords& at, const Mask& mask);
  /// Where in the whole tensor an update puts an element.
  struct Target {
    Coords at;
    std::vector<tile::Id> indices;  ///< those that say so, counted from 0
  };
  Target target(const Node& update, const Coords& at, Mask& mask);
  tile::Id update_index(const Node& update, std::size_t operand, const Coords& at,
                        const Mask& mask);
  void store_sum(const Node& update, tile::Id pointer, const Coords& at, const Mask& mask);
  tile::Id rotary(const Node& node, const Coords& at, const Mask& mask);
  tile::Id row_value(const Node& node, std::size_t result, const Coords& at, const Mask& mask);
  tile::Id constant(DType dtype, const AttrValue& number);
  tile::Id counted(const Node& node, DType dtype, const Coords& at);
  tile::Id to_kind(tile::Id id, DType dtype);
  tile::Id in_32_bits(const Node& node, tile::Id id);

  tile::Builder& b_;
  const Graph& body_;
  const BodyFacts& facts_;
  int rows_;                 ///< of the tile that is asked for
  bool as_scalars_ = false;  ///< what is asked for are scalars
  CoordsBuilder coords_;
  std::map<ValueId, Source> defined_;
  std::map<const Node*, std::vector<RowResult>> row_results_;  ///< of row ops, once reduce_all ran
  std::vector<std::map<std::string, tile::Id>> known_{1};
};

}  // namespace braid
