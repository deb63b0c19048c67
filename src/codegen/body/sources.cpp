#include "codegen/body/sources.h"

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/body/analysis.h"
#include "codegen/passes/pipeline.h"
#include "ir/op_registry.h"
#include "ir/views.h"

namespace braid {
namespace {

/// The number (index / stride) % size, of the matrix's index along a dim.
struct Digit {
  std::size_t dim;
  Dim size;
  std::int64_t stride = 1;
  bool operator==(const Digit&) const = default;
};
/// Of each dim of a tensor, the most significant first.
using Digits = std::vector<std::vector<Digit>>;

/// Takes the leading digits that make up a dim of that extent; nothing where they do not.
std::optional<std::vector<Digit>> take(std::vector<Digit>& from, const Dim& extent) {
  std::vector<Digit> taken;
  if (!extent.is_constant()) {
    if (from.empty() || from.front().size != extent) return std::nullopt;
    taken.push_back(from.front());
    from.erase(from.begin());
    return taken;
  }
  for (std::int64_t rest = extent.constant(); rest != 1;) {
    if (from.empty() || !from.front().size.is_constant()) return std::nullopt;
    Digit& next = from.front();
    const std::int64_t size = next.size.constant();
    if (size == 0 || rest == 0) return std::nullopt;
    if (rest % size == 0) {
      rest /= size;
      taken.push_back(next);
      from.erase(from.begin());
    } else if (size % rest == 0) {
      const std::int64_t inner = size / rest;
      taken.push_back({next.dim, Dim(rest), next.stride * inner});
      next.size = Dim(inner);
      rest = 1;
    } else {
      return std::nullopt;
    }
  }
  return taken;
}

std::optional<Digits> reshaped(const Digits& at, const Shape& shape) {
  std::vector<Digit> all;
  for (const auto& digits : at) all.insert(all.end(), digits.begin(), digits.end());
  Digits result;
  for (const Dim& extent : shape) {
    auto taken = take(all, extent);
    if (!taken) return std::nullopt;
    result.push_back(std::move(*taken));
  }
  return result;
}

/// Of an operand that is broadcast to what has these digits.
Digits broadcast(const Digits& at, const Shape& shape) {
  Digits result(at.end() - static_cast<std::ptrdiff_t>(shape.size()), at.end());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == Dim(1)) result[d].clear();
  }
  return result;
}

class Walk {
 public:
  Walk(const Graph& graph, const std::function<bool(NodeId)>& is_inside)
      : graph_(graph), is_inside_(is_inside) {}

  /// Whether the value, at these coordinates, is made of sources.
  bool add(ValueId value, const Digits& at, int depth = 0) {
    constexpr int kMostDepth = 128;  // more than a kernel has nodes
    if (depth++ > kMostDepth) return false;
    const NodeId producer = graph_.value(value).producer;
    const bool is_inside = producer >= 0 && is_inside_(producer);
    if (is_inside && graph_.node(producer).inputs.empty()) return true;
    constexpr std::size_t kMostPlaces = 4;  // of one value
    std::vector<Digits>& seen = seen_[value];
    if (std::ranges::count(seen, at) > 0) return true;
    if (seen.size() == kMostPlaces) return false;
    seen.push_back(at);
    if (!is_inside) {
      found_.emplace_back(value, at);
      return true;
    }
    const Node& node = graph_.node(producer);
    const auto shape = [&](std::size_t input) -> const Shape& {
      return graph_.type(node.inputs[input]).shape;
    };
    const OpClass kind = node.op->op_class;
    if (kind == OpClass::kPointwise || kind == OpClass::kCopy) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!add(node.inputs[i], broadcast(at, shape(i)), depth)) return false;
      }
      return true;
    }
    if (kind != OpClass::kView) return false;
    if (node.op->view == View::kFlat) {
      const auto from = reshaped(at, shape(0));
      return from && add(node.inputs[0], *from, depth);
    }
    if (node.op->view == View::kExpand) return add(node.inputs[0], broadcast(at, shape(0)), depth);
    if (node.op->view == View::kPermute) {
      const auto order = permutation(node.op_name(), node.attrs, shape(0).size());
      Digits from(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) from[order[i]] = at[i];
      return add(node.inputs[0], from, depth);
    }
    // A part begins anywhere: no view in front of it divides its fewer elements into whole digits.
    return node.op->view == View::kPart && shape(0).size() == at.size() &&
           add(node.inputs[0], at, depth);
  }

  [[nodiscard]] const std::vector<std::pair<ValueId, Digits>>& found() const { return found_; }

 private:
  const Graph& graph_;
  const std::function<bool(NodeId)>& is_inside_;
  std::map<ValueId, std::vector<Digits>> seen_;
  std::vector<std::pair<ValueId, Digits>> found_;
};

/// What the digits of one dim of the matrix say.
Source::Along along(const Digits& at, std::size_t dim, const Dim& extent) {
  std::vector<Digit> of_dim;
  for (const auto& digits : at) {
    std::ranges::copy_if(digits, std::back_inserter(of_dim),
                         [&](const Digit& digit) { return digit.dim == dim; });
  }
  if (of_dim.empty()) return {.alike = 0};
  std::ranges::sort(of_dim, {}, &Digit::stride);
  Source::Along result{.alike = of_dim[0].stride};
  Dim end = result.alike;
  for (const Digit& digit : of_dim) {
    result.repeats = result.repeats || Dim(digit.stride) != end;
    end = digit.size * digit.stride;
  }
  result.repeats = result.repeats || end != extent;
  return result;
}

}  // namespace

std::optional<std::vector<Source>> sources_of(const Graph& graph, ValueId matrix,
                                              const std::function<bool(NodeId)>& is_inside) {
  const Shape& shape = graph.type(matrix).shape;
  const std::size_t rank = shape.size();
  Digits at(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (shape[d] != Dim(1)) at[d].push_back({d, shape[d]});
  }
  Walk walk(graph, is_inside);
  if (rank < 2 || !walk.add(matrix, at)) return std::nullopt;
  std::vector<Source> sources;
  for (const auto& [value, digits] : walk.found()) {
    const auto last = std::ranges::find_if(digits.rbegin(), digits.rend(),
                                           [](const auto& of_dim) { return !of_dim.empty(); });
    sources.push_back({.value = value,
                       .rows = along(digits, rank - 2, shape[rank - 2]),
                       .columns = along(digits, rank - 1, shape[rank - 1]),
                       .is_by_columns = last != digits.rend() && last->back().dim == rank - 1});
  }
  return sources;
}

std::optional<std::vector<Source>> copied_sources(const Graph& graph, const Node& matmul,
                                                  std::size_t input,
                                                  const std::function<bool(NodeId)>& is_inside) {
  auto sources = sources_of(graph, matmul.inputs[input], is_inside);
  if (!sources) return std::nullopt;
  const bool is_left = input == first_matrix(matmul);
  std::erase_if(*sources, [&](const Source& source) {
    return (is_left ? source.columns : source.rows).alike == 0;
  });
  const auto bytes_of = [&](ValueId value) {
    return static_cast<std::int64_t>(dtype_size(graph.type(value).dtype));
  };
  const std::int64_t element = bytes_of(matmul.inputs[input]);
  double all = 0;  // bytes for each element of the operand
  const auto is_copied = [&](const Source& source) {
    if (source.rows.alike == 0 || source.columns.alike == 0) return false;
    const std::int64_t bytes = bytes_of(source.value);
    // A row of a tile is copied asynchronously, or has one element. Along K it is 64 or 128 bytes
    // of the operand, else at least 16 elements.
    const std::int64_t run = (source.is_by_columns ? source.columns : source.rows).alike;
    const std::int64_t least = source.is_by_columns == is_left ? 64 / element : 16;
    const std::int64_t most = source.is_by_columns == is_left ? 2 * least : 16 * least;
    bool is_wide = true;
    for (std::int64_t extent = least; extent <= most; extent *= 2) {
      is_wide = is_wide && (extent <= run || extent * bytes >= tile::kLeastCopied * run);
    }
    all +=
        static_cast<double>(bytes) / static_cast<double>(source.rows.alike * source.columns.alike);
    return !source.rows.repeats && !source.columns.repeats &&
           source.is_by_columns == sources->front().is_by_columns && is_wide;
  };
  if (sources->empty() || !std::ranges::all_of(*sources, is_copied)) return std::nullopt;
  return all <= tile::kMostCopied * static_cast<double>(element) ? sources : std::nullopt;
}

std::optional<std::vector<Source>> copied_sources(const Graph& body, const Node& matmul,
                                                  std::size_t input) {
  return copied_sources(body, matmul, input, [](NodeId) { return true; });
}

}  // namespace braid
