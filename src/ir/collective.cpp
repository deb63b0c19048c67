#include "ir/collective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ir/checked.h"
#include "ir/groups.h"
#include "ir/ops.h"
#include "ir/views.h"

namespace braid {
namespace {

using Sizes = std::vector<std::int64_t>;

ReduceOp reduce_of(const Attrs& attrs, const TensorType& operand) {
  const auto& name = get_attr<std::string>(attrs, "reduce_op");
  const ReduceOp op = *parse_reduce_op(name);
  if (operand.dtype == DType::kBool || (op == ReduceOp::kAvg && !is_float(operand.dtype))) {
    fail("/inputs/0", "{} of {}; expected {}", name, operand.str(),
         operand.dtype == DType::kBool ? "a number: insert `to`" : "a floating-point dtype");
  }
  return op;
}

/// A list of sizes as [rank * n + peer]; empty where it is absent or even.
Sizes uneven_sizes(const Attrs& attrs, const std::string& name, const TensorType& operand,
                   std::int64_t ranks) {
  const auto it = attrs.find(name);
  if (it == attrs.end()) return {};
  const std::string place = "/attrs/" + name;
  const Sizes& sizes = std::get<Sizes>(it->second);
  const std::size_t n = ranks;
  if (sizes.size() != n && sizes.size() != n * n) {
    fail(place,
         "{} sizes; expected {}, one for each rank of the group, or {}, such a list for each rank",
         sizes.size(), n, n * n);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) fail(place, "size {} is {}; expected 0 or more", i, sizes[i]);
  }
  const Dim& extent = operand.shape[0];
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (extent.is_constant() && sizes[i] > extent.constant()) {
      fail(place, "size {} is {}; expected 0 to {}, the extent of dim 0 of {}", i, sizes[i],
           extent.str(), operand.str());
    }
  }
  const bool even = std::equal(sizes.begin() + 1, sizes.end(), sizes.begin());
  if (even) {
    const Dim sum(checked_mul(sizes[0], ranks));
    if (sum == operand.shape[0]) return {};
    fail(place, "the sizes sum to {}; expected {}, the extent of dim 0 of {}", sum.str(),
         operand.shape[0].str(), operand.str());
  }
  if (sizes.size() == n) {
    fail(place,
         "[{}] on every rank gives the ranks results of different extents, and they run one "
         "program; expected equal sizes, or {}, a list for each rank",
         fmt::join(sizes, ", "), n * n);
  }
  return sizes;
}

Sizes transposed(const Sizes& sizes, std::int64_t ranks) {
  Sizes result(sizes.size());
  for (std::int64_t i = 0; i < ranks && !sizes.empty(); ++i) {
    for (std::int64_t j = 0; j < ranks; ++j) result[j * ranks + i] = sizes[i * ranks + j];
  }
  return result;
}

/// The uneven splits given by the attributes; empty for even ones. As all ranks run one program,
/// all operands have one extent, and all results.
Sizes splits_of(const Attrs& attrs, const TensorType& operand, std::int64_t ranks) {
  const bool both = attrs.contains("input_split_sizes") && attrs.contains("output_split_sizes");
  const Sizes sent = uneven_sizes(attrs, "input_split_sizes", operand, ranks);
  const Sizes received =
      transposed(uneven_sizes(attrs, "output_split_sizes", operand, ranks), ranks);
  if (both && received != sent) {
    fail("/attrs/output_split_sizes",
         "the ranks do not receive what they send by input_split_sizes; expected the sizes [{}]",
         fmt::join(transposed(sent, ranks), ", "));
  }
  Sizes splits = sent.empty() ? received : sent;
  if (splits.empty()) return {};
  const std::string place =
      std::string("/attrs/") + (sent.empty() ? "output_split_sizes" : "input_split_sizes");
  const Sizes columns = transposed(splits, ranks);
  const auto sum = [&](const Sizes& sizes, std::int64_t rank) {
    const auto row = sizes.begin() + rank * ranks;
    return std::accumulate(row, row + ranks, std::int64_t{0}, checked_add);
  };
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (Dim(sum(splits, rank)) != operand.shape[0]) {
      fail(place, "rank {} sends {} rows in all; expected {}, the extent of dim 0 of {}", rank,
           sum(splits, rank), operand.shape[0].str(), operand.str());
    }
    if (sum(columns, rank) != sum(columns, 0)) {
      fail(place,
           "rank 0 receives {} rows and rank {} {}; expected equally many: all ranks run one "
           "program",
           sum(columns, 0), rank, sum(columns, rank));
    }
  }
  return splits;
}

}  // namespace

std::optional<ReduceOp> parse_reduce_op(std::string_view name) {
  const auto found = std::ranges::find(kReduceOpNames, name);
  if (found == kReduceOpNames.end()) return std::nullopt;
  return static_cast<ReduceOp>(found - kReduceOpNames.begin());
}

std::int64_t Collective::result_start(std::int64_t from, std::int64_t to) const {
  std::int64_t start = 0;
  for (std::int64_t r = 0; r < from; ++r) start += splits[r * ranks + to];
  return start;
}

std::int64_t Collective::operand_start(std::int64_t from, std::int64_t to) const {
  const auto row = splits.begin() + from * ranks;
  return std::accumulate(row, row + to, std::int64_t{0});
}

Shape Collective::result_shape(const Shape& operand, const SymbolTable& symbols) const {
  Shape shape = operand;
  if (!splits.empty()) {
    shape[0] = result_start(ranks, 0);
    return shape;
  }
  if (scatter_dim) {
    const std::optional<Dim> chunk = shape[*scatter_dim].divide_exactly(ranks, symbols);
    if (!chunk) {
      fail("/inputs/0", "dim {} is {}; expected a multiple of {}, the ranks of the group{}",
           *scatter_dim, shape[*scatter_dim].str(), ranks,
           shape[*scatter_dim].is_constant()
               ? ""
               : fmt::format(", such as {0}*T, or T with multiple_of {0}", ranks));
    }
    shape[*scatter_dim] = *chunk;
  }
  if (gather_dim) shape[*gather_dim] = shape[*gather_dim] * ranks;
  return shape;
}

Algorithm algorithm_of(const Node& node) {
  const auto* name = node.attr<std::string>("algorithm");
  if (name == nullptr) return Algorithm::kNone;
  return static_cast<Algorithm>(std::ranges::find(kAlgorithmNames, *name) -
                                kAlgorithmNames.begin());
}

void set_algorithm(Attrs& attrs, Algorithm algorithm) {
  attrs.insert_or_assign("algorithm", std::string(algorithm_name(algorithm)));
}

bool shares_operand(const Node& collective) {
  const Algorithm algorithm = algorithm_of(collective);
  return algorithm != Algorithm::kNone && algorithm != Algorithm::kPackets &&
         algorithm != Algorithm::kByCommunicator;
}

Collective collective_of(const Graph& graph, CollectiveKind kind, const Attrs& attrs,
                         const TensorType& operand) {
  Collective result;
  result.ranks = group_of(graph, attrs).size;
  using K = CollectiveKind;
  if (kind == K::kAllReduce) {
    result.reduce = reduce_of(attrs, operand);
  } else if (kind == K::kAllGather) {
    result.gather_dim = axis_of(attrs, "dim", operand.shape.size());
  } else if (kind == K::kReduceScatter) {
    result.scatter_dim = axis_of(attrs, "dim", operand.shape.size());
    result.reduce = reduce_of(attrs, operand);
  } else if (kind == K::kShard) {
    result.scatter_dim = axis_of(attrs, "dim", operand.shape.size());
  } else if (kind == K::kAllToAll) {
    if (operand.shape.empty()) fail("/inputs/0", "a scalar; expected at least one dim");
    result.gather_dim = result.scatter_dim = 0;
    result.splits = splits_of(attrs, operand, result.ranks);
  } else if (kind == K::kBroadcast) {
    result.src = get_attr<std::int64_t>(attrs, "src");
    if (*result.src < 0 || *result.src >= result.ranks) {
      fail("/attrs/src", "{}; expected a rank of the group, 0 to {}", *result.src,
           result.ranks - 1);
    }
  } else {  // shard_dim_alltoall
    result.gather_dim = axis_of(attrs, "gather_dim", operand.shape.size());
    result.scatter_dim = axis_of(attrs, "shard_dim", operand.shape.size());
    if (result.gather_dim == result.scatter_dim) {
      fail("/attrs/shard_dim", "{}, as gather_dim; expected another dim",
           get_attr<std::int64_t>(attrs, "shard_dim"));
    }
  }
  return result;
}

Collective collective_of(const Graph& graph, const Node& node, const TensorType& operand) {
  return collective_of(graph, node.op->collective, node.attrs, operand);
}

std::string cannot_send_packets(const TensorType& operand, const SymbolTable& symbols) {
  if (!fits_packet(operand.dtype)) {
    return fmt::format("a packet has no room for {}", dtype_name(operand.dtype));
  }
  for (const Dim& dim : operand.shape) {
    if (dim.min(symbols) < 1) return fmt::format("{} can be empty", operand.str());
  }
  return "";
}

std::string cannot_multimem(ReduceOp op, DType dtype) {
  if (!fits_multimem(dtype)) {
    return fmt::format("the hardware reduces f32, f16 and bf16, not {}", dtype_name(dtype));
  }
  if (op == ReduceOp::kSum || (op == ReduceOp::kAvg && dtype == DType::kF32)) return "";
  return fmt::format("the hardware has no {} of {}", kReduceOpNames[static_cast<std::size_t>(op)],
                     dtype_name(dtype));
}

bool is_in_kernel(const Node& collective) {
  return algorithm_of(collective) == Algorithm::kInKernel;
}

bool gathers_in_kernel(const Node& collective) {
  return is_in_kernel(collective) && !collective.attr<std::string>("reduce_op");
}

bool reduces_in_kernel(const Node& collective) {
  return is_in_kernel(collective) && collective.attr<std::string>("reduce_op");
}

}  // namespace braid
