#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/body/coords.h"
#include "codegen/kernel_spec.h"
#include "codegen/tile/tile_expr.h"
#include "ir/collective.h"

namespace braid {

/// How a kernel iterates over a reduction.
enum class Rows : std::uint8_t {
  kNone,    ///< no reduction
  kHeld,    ///< trailing dims; a row fits in a block's registers
  kWide,    ///< trailing dims; a loop over pieces of the row for each reduction
  kStrided  ///< other dims; each thread loops for its own results
};

/// Facts about a body that templates need, computed once.
struct BodyInfo {
  std::string refusal;  ///< why the template cannot express the body; empty if it can
  Shape space;          ///< iteration space: the shape whose flat indices full values share
  Rows rows = Rows::kNone;
  std::vector<bool> reduced;  ///< per dim of the space; empty without a reduction
  const Node* collective = nullptr;
  ValueId prologue = -1;  ///< the operand of the collective, where the kernel computes it
  ValueId gathered = -1;  ///< the collective's result, if the kernel itself writes it to memory
  bool packets = false;   ///< the collective's operand is sent to peers as packets
  bool reduces_product = false;      ///< the prologue is the result of the kernel's matmul
  bool multimem = false;             ///< the sum is read and stored by multimem, on all ranks at
                                     ///< once
  std::vector<const Node*> matmuls;  ///< one, or a pair with the same first operand
  std::vector<bool> per_row;         ///< per value: has one element per row instead of one per
                                     ///< point
  bool narrow = false;               ///< 32-bit indices suffice

  /// The index of the output that is the prologue; past the last if none is.
  [[nodiscard]] std::size_t prologue_output(const Graph& body) const;
  [[nodiscard]] Shape kept_dims() const;
  [[nodiscard]] Shape reduced_dims() const;
};

/// Analyzes a body. Every value must be needed at one place only: this rule makes a body one kernel
/// that computes nothing twice (docs/architecture.md, Tile programs). Inputs may be read at several
/// places.
[[nodiscard]] BodyInfo analyze(const Graph& body);

/// For each value whether `value` depends on it, itself included.
[[nodiscard]] std::vector<bool> computed_from(const Graph& body, ValueId value);
/// Why a kernel whose collective has a prologue would compute something twice; else empty. The
/// prologue ends before anything behind the collective begins, so they share no values.
[[nodiscard]] std::string refuse_recomputed(const Graph& body, const Node& collective);

/// Whether the node is a reduction or a norm.
[[nodiscard]] bool is_reduction(const Node& node);

/// The index of a matmul's left operand.
[[nodiscard]] std::size_t first_matrix(const Node& matmul);

/// Whether the value is an input, possibly seen through views and other movements.
[[nodiscard]] bool is_moved_input(const Graph& body, ValueId value);

/// The widest row a block holds in registers.
inline constexpr std::int64_t kMaxRow = 16384;

/// n rounded up to a power of two.
[[nodiscard]] std::int64_t round_up_to_power_of_two(std::int64_t n);

/// The conditions under which an element exists: predicates as tiles [rows, cols] or [rows, 1].
using Mask = std::vector<tile::Id>;

/// The layout of packets in each rank's scratch: two halves, each with a slot per rank, which has
/// rows (one without a row reduction) of that many elements.
struct PacketSlots {
  std::int64_t pitch = 0;
  std::int64_t slot_bytes = 0;
  int together = 1;  ///< ranks for whose packets a thread waits at a time
};

/// Emits the values of a body for tiles of `rows` rows. Each value is asked for at coordinates and
/// asks for its operands in turn; values already computed in the scope are reused.
class BodyEmitter {
 public:
  BodyEmitter(tile::Builder& builder, const Graph& body, const BodyInfo& info, int rows)
      : b_(builder), body_(body), info_(info), rows_(rows), coords_(builder, body.symbols()) {}

  [[nodiscard]] tile::Id value(ValueId value, const Coords& at, const Mask& mask);
  /// Loads elements of a dense tensor.
  [[nodiscard]] tile::Id load(tile::Id pointer, const Coords& at, DType dtype, const Mask& mask);
  void store(std::size_t output, const Coords& at, const Mask& mask);
  /// Stores elements of a dense tensor.
  void store(tile::Id pointer, const TensorType& type, tile::Id id, const Coords& at,
             const Mask& mask);
  /// Stores the collective's sum over this rank's own operand in its arena, or over every rank's.
  void store_sum(const Coords& at, const Mask& mask);
  /// From here on the collective's result is read from the operand of `rank`, a scalar, which has
  /// stored it there.
  void read_sum_of(tile::Id rank) { owner_ = rank; }
  /// Gives the place of an element's packet, for the tile at hand.
  using Place = std::function<tile::Id()>;
  void use_packets(const PacketSlots& slots, Place place) {
    slots_ = slots;
    place_ = std::move(place);
  }
  /// Sends the collective's operand to all ranks.
  void send(const Coords& at, const Mask& mask);

  /// Defines a value that the template computed itself (a dot).
  void define(ValueId value, tile::Id id) { defined_[value] = id; }

  /// Gives a reduction's operand at the template's own coordinates.
  using Operand = std::function<tile::Id(const Coords& at, const Mask& mask)>;
  using Reduce = std::function<tile::Id(tile::Fn fn, tile::Kind kind, const Operand& operand)>;
  /// Gives the index within the row.
  using Column = std::function<tile::Id()>;
  /// Emits the reductions of the body's nodes, in order.
  void reduce_all(const Reduce& reduce, const Column& column);

  /// Values computed between open_scope and close_scope belong to a loop's body and are not reused
  /// after it.
  void open_scope() { known_.emplace_back(); }
  void close_scope() { known_.pop_back(); }

  [[nodiscard]] CoordsBuilder& coords() { return coords_; }

 private:
  class At;
  class Row;
  /// A result of a row op, at a column where it has columns.
  using RowResult = std::function<tile::TileExpr(const At&)>;

  tile::Id compute(const Node& node, std::size_t result, const Coords& at, const Mask& mask);
  tile::Id load_input(ValueId value, const Coords& at, const Mask& mask);
  tile::Id operand(const Node& node, std::size_t index, const Shape& whole, const Coords& at,
                   const Mask& mask);
  tile::Id moved(const Node& node, std::size_t result, const Coords& at, const Mask& mask);
  tile::Id cat(const Node& node, const Coords& at, const Mask& mask);
  tile::Id gathered(const Node& node, const Coords& at, const Mask& mask);
  tile::Id rotary(const Node& node, const Coords& at, const Mask& mask);
  /// The addresses of elements of a dense tensor: offsets of `rows_` by columns, or by one.
  struct Elements {
    tile::Id pointer, offset;
  };
  Elements elements(tile::Id pointer, const Coords& at, DType dtype);
  /// Makes the shapes of a stored value and its addresses equal.
  void match(Elements& to, tile::Id& id);
  tile::Id masked(const Mask& mask, const Elements& at) {
    return conjunction(mask, b_.type(at.offset).cols);
  }
  tile::Id multimem_sum(const Node& node, const Collective& form, const Coords& at,
                        const Mask& mask);
  tile::Id operand_offset(const Node& collective);
  tile::Id multicast_operand(const Node& collective);
  struct FromPeers;
  struct Gathering;
  tile::Id from_peers(const Node& node, const Coords& at, const Mask& mask);
  tile::Id pushed(const Node& node, const Collective& form, const Coords& at, const Mask& mask);
  tile::Id received(const Node& node, const Collective& form, const Mask& mask);
  tile::Id packet_slot(tile::Id from, tile::Id at);
  using Part = std::function<tile::Id(tile::Id rank)>;
  tile::Id sum_of(const Collective& form, DType dtype, const Part& part, int together = 1);
  std::optional<tile::Id> gather_even(const FromPeers& from, const Coords& at, std::size_t dim,
                                      const Dim& chunk);
  tile::Id gather_in_loop(const FromPeers& from, const Gathering& gathering);
  tile::Id gather_uneven(const FromPeers& from, const Gathering& gathering);
  tile::Id chosen(const std::vector<tile::Id>& conditions, std::vector<tile::Id> parts);
  tile::Id like_index(const Gathering& gathering, tile::Id scalar);
  Coords own_chunk(const Collective& form, const std::string& group, const Shape& operand,
                   const Coords& at);
  tile::Id by_rank(const std::string& group, const std::vector<std::int64_t>& values);
  tile::Id row_value(const Node& node, std::size_t result, const Coords& at, const Mask& mask);
  tile::Id pointwise_value(const Node& node, const Coords& at, const Mask& mask);
  tile::Id constant(DType dtype, const AttrValue& number);
  tile::Id conjunction(const Mask& mask, int cols);
  tile::Id spread_like(tile::Id narrow, tile::Id wide, bool is_stored);
  tile::Id to_kind(tile::Id id, DType dtype);

  tile::Builder& b_;
  const Graph& body_;
  const BodyInfo& info_;
  int rows_;
  CoordsBuilder coords_;
  tile::Id owner_ = tile::kNone;  ///< rank whose operand holds the collective's result
  PacketSlots slots_;
  Place place_;
  std::map<ValueId, tile::Id> defined_;
  std::map<const Node*, std::vector<RowResult>> row_results_;  ///< of row ops, once reduce_all ran
  std::vector<std::map<std::string, tile::Id>> known_{1};
};

/// Work on rows or flat chunks of a body without a matmul, shared by the elementwise and the
/// collective template. Counts the pieces of work, and emits piece number `piece`: all outputs
/// except the prologue, or only the prologue and packets.
struct PieceWork {
  Expr count = 1;
  int rows = 1;  ///< rows of a tile
  int cols = 0;
  int together = 8;   ///< adjacent columns per thread
  PacketSlots slots;  ///< for the collective's operand
};
inline constexpr Setting kWarpsSetting = {"num_warps", 1, 32, true};
inline constexpr Setting kPieceSettings[] = {kWarpsSetting};
[[nodiscard]] Config piece_config(const Graph& body, const BodyInfo& info);
/// Alternatives in the number of warps and of elements per thread, and so in rows per block, which
/// add up a row in the same order.
[[nodiscard]] std::vector<Config> piece_candidates(const Graph& body, const BodyInfo& info);
[[nodiscard]] PieceWork piece_work(const KernelSpec& spec, const BodyInfo& info);
[[nodiscard]] PacketSlots packet_slots(const KernelSpec& spec, const BodyInfo& info,
                                       const PieceWork& work);
void emit_piece(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                const PieceWork& work, tile::Id piece);
void emit_prologue(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                   const PieceWork& work, tile::Id piece);
/// The two halves of an all-reduce in two shots: emit_sum stores the sum of a piece over this
/// rank's operand, or every rank's; emit_piece then reads it from the operand of `owner`.
void emit_sum(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
              const PieceWork& work, tile::Id piece);
void emit_piece_of(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                   const PieceWork& work, tile::Id piece, tile::Id owner);

}  // namespace braid
