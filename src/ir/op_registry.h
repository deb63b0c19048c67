#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// The type of an attribute; it also decides how its JSON is read.
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
  kNumber,   ///< integer or float, kept apart; a float may be infinite or NaN
  kExtent,   ///< a bound: an integer, or a Dim's text
  kExtents,  ///< a Shape of sizes
};

struct AttrDef {
  std::string name;
  AttrType type;
  std::optional<AttrValue> fallback;           ///< default; an attribute without one is required,
                                               ///< unless optional
  bool optional = false;                       ///< may be absent, which has a meaning of its own
  std::string_view about{};                    ///< description for the schema
  std::vector<std::string_view> choices = {};  ///< allowed strings; empty: any
};

/// The category of an op, as codegen and fuse see it.
enum class OpClass : std::uint8_t {
  kPointwise,  ///< elementwise with broadcast operands; arithmetic in pointwise.h
  kReduction,  ///< sum, amax, argmax, any, ...: over `dim`, with `keepdim`; in row.h
  kNorm,    ///< softmax and the norms: a row reduction with pointwise work around it, over the last
            ///< dim (before canonicalize a softmax may be over any); in row.h
  kScan,    ///< cumsum, topk, moe_routing: results depend on those before them
  kMatmul,  ///< mm, addmm, bmm, matmul, scaled_mm, _grouped_mm
  kAttention,  ///< scaled_dot_product_attention, paged_attention: attention.h
  kView,       ///< view, transpose, permute, expand, slice, split, cat, shard, ...: no arithmetic
  kGather,     ///< embedding, index_select, gather, rotary_embedding: reads at computed places
  kUpdate,  ///< index_copy, slice_scatter: the first operand, of which some elements are replaced
  kOpaque,  ///< opaque: a declared cost, for scheduling only; also ops that a pass must decompose
  kCollective,   ///< all_reduce, all_gather_into_tensor, ...: collective.h
  kFusedMatmul,  ///< fused_all_gather_matmul, ...: a collective with its matmuls, fused.h
  kWait,         ///< wait_tensor
  kCopy,         ///< copy: the identity into a new buffer (made by lowering)
  kChunk,        ///< chunk_by_rank, join_by_rank: places in memory (made by lowering)
  kPeerCopy,     ///< copy_from_peer and the like: done by a copy step (made by lowering)
  kMutation,     ///< copy_, index_copy_, append_kv: writes memory that outlives the node
  kKernel,       ///< kernel: a body graph run as one launch (made by lowering)
};

/// How a view maps the elements of its operand.
enum class View : std::uint8_t {
  kNone,     ///< the op is no view
  kFlat,     ///< keeps their order: view, reshape, squeeze, flatten, getitem, ...
  kBytes,    ///< view_dtype: keeps their bytes
  kMark,     ///< region markers: the identity
  kPermute,  ///< transpose, permute
  kExpand,   ///< repeats them
  kPart,     ///< slice, narrow, select (whose dim goes), split, chunk
  kCat,      ///< concatenates several operands
  kShard     ///< this rank's chunk
};

/// The form of a matmul besides the plain product of two operands.
enum class Matmul : std::uint8_t {
  kPlain,
  kAdd,     ///< addmm: a bias operand in front; beta and alpha
  kScaled,  ///< scaled_mm: scales behind, and an optional bias
  kGrouped  ///< _grouped_mm: a weight for each group of rows, and the groups' ends behind
};

/// The kind of a collective (collective.h), in any form: in place, `_out`, `_coalesced`, or fused
/// with matmuls. `shard` is a view with the same arithmetic.
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

/// Which operands an op overwrites. Each corresponds to one of its last results, in order; later
/// readers of the operand read the result.
enum class Mutates : std::uint8_t { kNothing, kFirst, kFirstTwo, kLast, kAll };

/// How the reader promotes operands of different dtypes, as ATen does, before shape inference.
enum class Promotes : std::uint8_t {
  kNothing,     ///< unchanged: a matmul, a collective
  kResultType,  ///< all become their common dtype
  kBranches,    ///< all but the first, a condition, become their common dtype
  kMasked,      ///< the last, a number, gets the dtype of the first; the second is a condition
  kFloats,      ///< the common dtype, or f32 where that is no float
  kTruths,      ///< bool, where they differ
  kToFirst,     ///< the dtype of the first, which is written
};

/// An operand's values on one rank: floats as double, integers and bool (0 or 1) as int64.
struct EvalTensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<double> data;            ///< for a float dtype
  std::vector<std::int64_t> integers;  ///< for other dtypes

  [[nodiscard]] std::size_t size() const { return is_float(dtype) ? data.size() : integers.size(); }
};
/// Calls move(elements of `to`, elements of `from`) for two tensors of one dtype.
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

/// Input of shape inference. It throws kInvalidArgument with a place relative to the node ("",
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
  std::size_t first_rank = 0;  ///< the rank of inputs[0]
};

/// Everything the system knows about one op.
struct OpDef {
  std::string name;
  OpClass op_class;
  int min_inputs;
  int max_inputs;
  std::vector<AttrDef> attrs;
  /// Infers the result types; dims may be symbolic.
  std::function<std::vector<TensorType>(const InferContext&)> infer;
  /// Float operations at given symbol values (multiply and add count as two); 0 for a kernel, whose
  /// body node_flops counts.
  std::function<double(std::span<const TensorType> inputs, std::span<const TensorType> outputs,
                       const Bindings&)>
      flops;
  /// Evaluates all ranks at once: inputs[rank][operand] -> outputs[rank][result], before rounding.
  std::function<EvalTensors(const EvalContext&, const EvalTensors&)> evaluate;
  Mutates mutates = Mutates::kNothing;
  View view = View::kNone;
  Matmul matmul = Matmul::kPlain;
  Promotes promotes = Promotes::kNothing;
  /// The values of the second operand are indices into the first.
  bool takes_indices = false;
  /// Operands whose values a run checks, where an error names the operand.
  std::vector<std::size_t> checked = {};
  CollectiveKind collective = CollectiveKind::kNone;
  /// For a coalesced collective: the op for one operand.
  std::string of_one{};
  /// A collective without a wait.
  bool synchronous = false;
  /// For ops with arithmetic: the index in the list of pointwise.h or row.h.
  int entry = -1;
};

/// Whether the node runs in the background until its wait_tensor: a collective without an
/// algorithm, or one left to a communicator (but not shard_dim_alltoall, which is synchronous), and
/// a copy from a peer.
[[nodiscard]] bool is_asynchronous(const Node& node);

/// Resolves overloads: `view` with a dtype is ATen's other view, called view_dtype here.
[[nodiscard]] std::string_view overload_of(std::string_view op, bool has_dtype);

/// Whether an operand has indices (embedding, index_select, gather), which may be out of range.
[[nodiscard]] bool takes_indices(const Node& node);
/// Whether a run checks an operand's values: indices, the offsets of a grouped matmul, or where
/// the keys of an attention are.
[[nodiscard]] bool checks_values(const Node& node);

/// The extents, sizes and bounds among a node's attributes.
[[nodiscard]] std::vector<Dim> dims_of_attributes(const Node& node);

/// The op of that name, or null.
[[nodiscard]] const OpDef* find_op(std::string_view name);
/// All ops, sorted by name.
[[nodiscard]] std::span<const OpDef* const> all_ops();

/// Float operations of a node at the bindings; a kernel node counts its body's nodes.
[[nodiscard]] double node_flops(const Graph& graph, const Node& node, const Bindings& bindings);

}  // namespace braid
