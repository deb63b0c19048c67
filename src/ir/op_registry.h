#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// The type an attribute must have, which is also how its JSON is read.
enum class AttrType : std::uint8_t {
  kBool,
  kInt,
  kDouble,
  kString,
  kDType,
  kInts,
  kShape,
  kConfig,
  kGraph,
  kGroup,
  kNumber,   ///< an integer or a float, told apart; a float may be an infinity or NaN
  kExtent,   ///< a bound: an integer, or a Dim's text
  kExtents,  ///< a Shape of sizes
};

struct AttrDef {
  std::string name;
  AttrType type;
  std::optional<AttrValue> fallback;           ///< required when empty, unless optional
  bool optional = false;                       ///< may be absent, which means something
  std::string_view about{};                    ///< for people, in the schema
  std::vector<std::string_view> choices = {};  ///< of a string: what it may be; empty: anything
};

/// How codegen and the fuser see an op.
enum class OpClass : std::uint8_t {
  kPointwise,  ///< element by element, operands broadcast; arithmetic in pointwise.h
  kReduction,  ///< sum, prod, mean, amax, amin, argmax: over `dim`, with `keepdim`; in row.h
  kNorm,    ///< softmax and the norms: a row reduction with pointwise around it, over the last dim
            ///< (softmax, until it is canonical, over any); in row.h
  kMatmul,  ///< mm, addmm, bmm, matmul, scaled_mm
  kView,    ///< view, transpose, permute, expand, slice, split, cat, shard, ...: no arithmetic
  kGather,  ///< embedding, index_select, rotary_embedding: elements from elsewhere
  kOpaque,  ///< opaque: a declared cost, for scheduling only; and what a pass must take apart
  kCollective,   ///< all_reduce, all_gather_into_tensor, ...: collective.h
  kFusedMatmul,  ///< fused_all_gather_matmul, ...: a collective with its matmuls, fused.h
  kWait,         ///< wait_tensor
  kCopy,         ///< copy: the identity, into a new buffer (made by lowering)
  kChunk,        ///< chunk_by_rank, join_by_rank: places in memory (made by lowering)
  kPeerCopy,     ///< copy_from_peer and the like: by a copy step (made by lowering)
  kMutation,     ///< copy_, resize_storage_bytes_: writes memory that outlives the node
  kKernel,       ///< kernel: a body graph run as one launch (made by lowering)
};

/// What a view does with the elements of its operand.
enum class View : std::uint8_t {
  kNone,     ///< the op is no view
  kFlat,     ///< their order stays: view, reshape, _unsafe_view, getitem
  kBytes,    ///< view_dtype: so do their bytes
  kMark,     ///< nothing: the markers of regions
  kPermute,  ///< transpose, permute
  kExpand,   ///< repeats them
  kPart,     ///< slice, split, chunk
  kCat,      ///< appends those of the others
  kShard     ///< this rank's chunk
};

/// How a matmul differs from a product of its two operands.
enum class Matmul : std::uint8_t {
  kPlain,
  kAdd,    ///< addmm: a term in front of them, beta and alpha
  kScaled  ///< scaled_mm: scales behind them, and a bias if there is one
};

/// What a collective does (collective.h), in any form: in place, `_out`, `_coalesced`. `shard` is a
/// view of the same arithmetic.
enum class CollectiveKind : std::uint8_t {
  kNone,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kShardDimAllToAll,
  kShard
};

/// The operands whose memory an op overwrites, each with one of its last results, in order. Who
/// reads such an operand later reads the result.
enum class Mutates : std::uint8_t { kNothing, kFirst, kLast, kAll };

/// What operands of several dtypes become, as in ATen, where a graph is read; shape inference wants
/// them so.
enum class Promotes : std::uint8_t {
  kNothing,     ///< they stay: a matmul, a collective
  kResultType,  ///< all of them their common dtype
  kBranches,    ///< all but the first, which is a condition
  kFloats,      ///< that, or f32 where it is none of floats
  kTruths,      ///< bool, where they differ
  kToFirst,     ///< that of the first one, which is written
};

/// The values of one operand on one rank, as the evaluator sees them: floats in double, integers
/// and bool (0 or 1) in int64.
struct EvalTensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<double> data;            ///< of a float dtype
  std::vector<std::int64_t> integers;  ///< of any other

  [[nodiscard]] std::size_t size() const { return is_float(dtype) ? data.size() : integers.size(); }
};
/// Calls move(elements of `to`, elements of `from`), two tensors of one dtype: what moves elements
/// does not look at them.
template <class To, class From, class Move>
void move_elements(To& to, From& from, const Move& move) {
  is_float(to.dtype) ? move(to.data, from.data) : move(to.integers, from.integers);
}
/// Calls visit(elements of `tensor`).
template <class Tensor, class Visit>
void visit_elements(Tensor& tensor, const Visit& visit) {
  is_float(tensor.dtype) ? visit(tensor.data) : visit(tensor.integers);
}
/// [rank][operand]
using EvalTensors = std::vector<std::vector<EvalTensor>>;

/// What shape inference sees. It throws kInvalidArgument with a place relative to the node ("",
/// "/inputs/1", "/attrs/dim"), which Graph::add_node completes.
struct InferContext {
  const Graph& graph;
  std::span<const TensorType> inputs;
  const Attrs& attrs;
};

struct EvalContext {
  const Graph& graph;
  const Node& node;
  const Bindings& bindings;
};

/// The first GPU architecture that braid compiles for.
inline constexpr int kLeastSm = 80;
/// The first one whose `mma` takes 8-bit floats (PTX ISA).
inline constexpr int kLeastSmOfFloat8Mma = 89;

/// One op: everything the system knows about it stands in its entry.
struct OpDef {
  std::string name;
  OpClass op_class;
  int min_inputs;
  int max_inputs;
  std::vector<AttrDef> attrs;
  /// Result types; the dims may be symbolic.
  std::function<std::vector<TensorType>(const InferContext&)> infer;
  /// Float operations at the symbols' values given (multiply and add count as two); 0 for a kernel,
  /// whose body node_flops counts.
  std::function<double(std::span<const TensorType> inputs, std::span<const TensorType> outputs,
                       const Bindings&)>
      flops;
  /// All ranks at once: inputs[rank][operand] -> outputs[rank][result], not yet rounded.
  std::function<EvalTensors(const EvalContext&, const EvalTensors&)> evaluate;
  Mutates mutates = Mutates::kNothing;
  /// The GPU architecture that can run it, or any later one: 89 is sm_89.
  int least_sm = kLeastSm;
  View view = View::kNone;
  Matmul matmul = Matmul::kPlain;
  Promotes promotes = Promotes::kNothing;
  /// The values of the second operand are indices into the first.
  bool takes_indices = false;
  CollectiveKind collective = CollectiveKind::kNone;
  /// Of a coalesced collective: the op of one operand.
  std::string of_one{};
  /// A collective that waits by itself.
  bool synchronous = false;
  /// Of an op with arithmetic: its place in the list of pointwise.h, or of row.h.
  int entry = -1;
};

/// What runs in the background until its wait_tensor: a collective that lowering has not given an
/// algorithm, or has left to a communicator (shard_dim_alltoall waits by itself), and a copy from a
/// peer.
[[nodiscard]] bool is_asynchronous(const Node& node);

/// The op that a name stands for: `view` with a dtype is ATen's other view, view_dtype here.
[[nodiscard]] std::string_view overload_of(std::string_view op, bool has_dtype);

/// Whether the values of an operand are indices (embedding, index_select), which may be out of
/// range.
[[nodiscard]] bool takes_indices(const Node& node);

/// The extents, sizes and bounds among a node's attributes.
[[nodiscard]] std::vector<Dim> dims_of_attributes(const Node& node);

/// Nothing when there is no such op.
[[nodiscard]] const OpDef* find_op(std::string_view name);
/// All ops, by name.
[[nodiscard]] std::span<const OpDef* const> all_ops();

/// Float operations of a node at the bindings; a kernel node counts its body's nodes.
[[nodiscard]] double node_flops(const Graph& graph, const Node& node, const Bindings& bindings);
/// Bytes a node reads and writes when it runs alone; 0 for views and waits.
[[nodiscard]] double node_bytes(const Graph& graph, const Node& node, const Bindings& bindings);

}  // namespace braid
