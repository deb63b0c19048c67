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

/// How a kernel goes over what it reduces.
enum class Rows : std::uint8_t {
  kNone,    ///< it reduces nothing
  kHeld,    ///< trailing dims; a row fits in the registers of a block
  kWide,    ///< trailing dims; a loop over pieces of the row, once per reduction
  kStrided  ///< other dims; each thread loops over them for its own results
};

/// What the templates need to know of a body, found once.
struct BodyInfo {
  std::string refusal;  ///< not empty: the template cannot express the body, and why
  Shape space;          ///< the iteration space: what the kernel's full values are flat-equal to
  Rows rows = Rows::kNone;
  std::vector<bool> reduced;  ///< per dim of the space; empty without a reduction
  const Node* collective = nullptr;
  ValueId prologue = -1;  ///< the operand of the collective, where the kernel computes it
  ValueId gathered = -1;  ///< the collective's result, where the kernel itself puts it in memory
  bool packets = false;   ///< the collective's operand goes to the peers as packets
  bool reduces_product = false;      ///< the prologue is what the kernel's matmul computes
  bool multimem = false;             ///< it is reduced, and the sum stored, on all ranks at once
  std::vector<const Node*> matmuls;  ///< one, or a pair that shares its first operand
  std::vector<bool> per_row;         ///< per value: one element per row, not one per point
  bool narrow = false;               ///< 32-bit indices reach everything

  /// Which output the prologue is; a number past them all where it is none.
  [[nodiscard]] std::size_t prologue_output(const Graph& body) const;
  [[nodiscard]] Shape kept_dims() const;
  [[nodiscard]] Shape reduced_dims() const;
};

/// Every value is asked for at one place (docs/architecture.md, Tile programs): the rule that makes
/// a body one kernel without computing anything twice. An input may be read at several.
[[nodiscard]] BodyInfo analyze(const Graph& body);

/// For each value whether `value` is computed from it; of itself, too.
[[nodiscard]] std::vector<bool> computed_from(const Graph& body, ValueId value);
/// Why a kernel whose collective has a prologue would compute something twice, for that one is
/// over before what comes after the collective begins; else empty.
[[nodiscard]] std::string refuse_recomputed(const Graph& body, const Node& collective);

/// A reduction or a norm.
[[nodiscard]] bool is_reduction(const Node& node);

/// Which operand of a matmul is the left one.
[[nodiscard]] std::size_t first_matrix(const Node& matmul);

/// Whether the value is an input, or one seen through views and other movements alone.
[[nodiscard]] bool is_moved_input(const Graph& body, ValueId value);

/// The widest row a block holds in registers.
inline constexpr std::int64_t kMaxRow = 16384;

/// Smallest power of two that is not below n.
[[nodiscard]] std::int64_t round_up_to_power_of_two(std::int64_t n);

/// The conditions under which an element exists: predicates, tiles [rows, cols] or [rows, 1].
using Mask = std::vector<tile::Id>;

/// How packets lie in the scratch of each rank: in two halves, of a slot for each rank, of rows (or
/// one row, where the body has none) of so many elements.
struct PacketSlots {
  std::int64_t pitch = 0;
  std::int64_t slot_bytes = 0;
  int together = 1;  ///< ranks whose packets a thread waits for at one time
};

/// Emits the values of a body for tiles of `rows` rows: each is asked for at coordinates, and asks
/// for its operands in turn; what was computed in this scope is used again.
class BodyEmitter {
 public:
  BodyEmitter(tile::Builder& builder, const Graph& body, const BodyInfo& info, int rows)
      : b_(builder), body_(body), info_(info), rows_(rows), coords_(builder, body.symbols()) {}

  [[nodiscard]] tile::Id value(ValueId value, const Coords& at, const Mask& mask);
  /// Elements of a dense tensor at `pointer`.
  [[nodiscard]] tile::Id load(tile::Id pointer, const Coords& at, DType dtype, const Mask& mask);
  void store(std::size_t output, const Coords& at, const Mask& mask);
  /// Elements of a dense tensor at `pointer`.
  void store(tile::Id pointer, const TensorType& type, tile::Id id, const Coords& at,
             const Mask& mask);
  /// Writes the sum of the collective over this rank's own operand, in its arena, or over that of
  /// every rank.
  void store_sum(const Coords& at, const Mask& mask);
  /// From here on the collective's result is read from the operand of `rank`, a scalar, where that
  /// one has put it.
  void read_sum_of(tile::Id rank) { owner_ = rank; }
  /// Where the packet of an element lies that the template works on.
  using Place = std::function<tile::Id()>;
  void use_packets(const PacketSlots& slots, Place place) {
    slots_ = slots;
    place_ = std::move(place);
  }
  /// Sends the collective's operand to all ranks.
  void send(const Coords& at, const Mask& mask);

  /// Gives a value that the template computed itself (a dot), wherever it is asked for.
  void define(ValueId value, tile::Id id) { defined_[value] = id; }

  /// Reduces what `operand` gives at the template's own coordinates.
  using Operand = std::function<tile::Id(const Coords& at, const Mask& mask)>;
  using Reduce = std::function<tile::Id(tile::Fn fn, tile::Kind kind, const Operand& operand)>;
  /// The index within the row.
  using Column = std::function<tile::Id()>;
  /// Runs the reductions of the body's nodes, in order.
  void reduce_all(const Reduce& reduce, const Column& column);

  /// What is computed between the two belongs to a loop's body and is forgotten after it.
  void open_scope() { known_.emplace_back(); }
  void close_scope() { known_.pop_back(); }

  [[nodiscard]] CoordsBuilder& coords() { return coords_; }

 private:
  class At;
  class Row;
  /// A result of a row op, at a column where it has any.
  using RowResult = std::function<tile::TileExpr(const At&)>;

  tile::Id compute(const Node& node, std::size_t result, const Coords& at, const Mask& mask);
  tile::Id load_input(ValueId value, const Coords& at, const Mask& mask);
  tile::Id operand(const Node& node, std::size_t index, const Shape& whole, const Coords& at,
                   const Mask& mask);
  tile::Id moved(const Node& node, std::size_t result, const Coords& at, const Mask& mask);
  tile::Id cat(const Node& node, const Coords& at, const Mask& mask);
  tile::Id gathered(const Node& node, const Coords& at, const Mask& mask);
  tile::Id rotary(const Node& node, const Coords& at, const Mask& mask);
  /// Where the elements of a dense tensor are: at offsets of `rows_` by columns, or by one.
  struct Elements {
    tile::Id pointer, offset;
  };
  Elements elements(tile::Id pointer, const Coords& at, DType dtype);
  /// What is stored, and where, of one shape.
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
  tile::Id owner_ = tile::kNone;  ///< whose operand holds the collective's result
  PacketSlots slots_;
  Place place_;
  std::map<ValueId, tile::Id> defined_;
  std::map<const Node*, std::vector<RowResult>> row_results_;  ///< of row ops, once reduce_all ran
  std::vector<std::map<std::string, tile::Id>> known_{1};
};

/// Rows, or flat chunks, of a body without a matmul: what the elementwise and the collective
/// template share. Counts the pieces of work and emits the one numbered `piece`: all outputs but
/// the prologue's, or that one and packets alone.
struct PieceWork {
  Expr count = 1;
  int rows = 1;  ///< of the tile
  int cols = 0;
  int together = 8;   ///< columns, in a thread
  PacketSlots slots;  ///< of the collective's operand
};
inline constexpr Setting kWarpsSetting = {"num_warps", 1, 32, true};
inline constexpr Setting kPieceSettings[] = {kWarpsSetting};
[[nodiscard]] Config piece_config(const Graph& body, const BodyInfo& info);
/// Other numbers of warps and of elements of a thread that add a row in the same order: so other
/// numbers of rows of a block, too.
[[nodiscard]] std::vector<Config> piece_candidates(const Graph& body, const BodyInfo& info);
[[nodiscard]] PieceWork piece_work(const KernelSpec& spec, const BodyInfo& info);
[[nodiscard]] PacketSlots packet_slots(const KernelSpec& spec, const BodyInfo& info,
                                       const PieceWork& work);
void emit_piece(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                const PieceWork& work, tile::Id piece);
void emit_prologue(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                   const PieceWork& work, tile::Id piece);
/// The two halves of an all-reduce in two shots: the sum at the piece's places into this rank's
/// operand, or every rank's, and `emit_piece` where it is read from the operand of `owner`.
void emit_sum(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
              const PieceWork& work, tile::Id piece);
void emit_piece_of(tile::Builder& builder, const KernelSpec& spec, const BodyInfo& info,
                   const PieceWork& work, tile::Id piece, tile::Id owner);

}  // namespace braid
