#include "ir/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/attributes.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/ops.h"

namespace braid {

std::vector<std::size_t> permutation(std::string_view op, const Attrs& attrs, std::size_t rank) {
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (op == "transpose") {
    std::swap(order[axis_of(attrs, "dim0", rank)], order[axis_of(attrs, "dim1", rank)]);
    return order;
  }
  const auto& dims = get_attr<std::vector<std::int64_t>>(attrs, "dims");
  if (dims.size() != rank) {
    fail("/attrs/dims", "{} dims; expected {}, each once", dims.size(), rank);
  }
  std::vector<bool> seen(rank, false);
  for (std::size_t i = 0; i < rank; ++i) {
    order[i] = normalize_axis(dims[i], rank, "/attrs/dims");
    if (seen[order[i]]) fail("/attrs/dims", "dim {} stands there twice", dims[i]);
    seen[order[i]] = true;
  }
  return order;
}

SliceRange slice_range(const Attrs& attrs, const Shape& shape, const SymbolTable& symbols) {
  const std::size_t axis = axis_of(attrs, "dim", shape.size());
  const Dim& extent = shape[axis];
  const std::int64_t step = get_attr<std::int64_t>(attrs, "step");
  if (step < 1) fail("/attrs/step", "found {}; expected at least 1", step);
  // As in Python: counted from the end where negative, and moved into the dim.
  const auto bound = [&](const char* key) -> Dim {
    const Dim given = bound_of(attrs.find(key)->second);
    if (given.min(symbols) >= 0 && (extent - given).max(symbols) <= 0) return extent;
    if (given.max(symbols) < 0 && (extent + given).max(symbols) <= 0) return 0;
    const Dim at = given.max(symbols) < 0 ? extent + given : given;
    if (at.min(symbols) >= 0 && (extent - at).min(symbols) >= 0) return at;
    fail(fmt::format("/attrs/{}", key),
         "{} is inside of the {} elements for some values of the symbols and outside for others; "
         "expected a bound that is one or the other for all",
         given.str(), extent.str());
  };
  const Dim start = bound("start");
  Dim length = bound("end") - start;
  if (length.max(symbols) <= 0) length = 0;
  if (length.min(symbols) < 0) {
    fail("/attrs/end", "the slice has {} elements, below 0 for some values", length.str());
  }
  if (step > 1 && length.is_constant()) {
    length = (length.constant() + step - 1) / step;
  } else if (step > 1) {
    const auto steps = length.divide_exactly(step, symbols);
    if (!steps) fail("/attrs/step", "{} does not divide the {} elements", step, length.str());
    length = *steps;
  }
  return {axis, start, length, step};
}

std::optional<Dim> divide_up(const Dim& extent, std::int64_t parts, const SymbolTable& symbols) {
  const std::int64_t rest = extent.constant() % parts;
  const std::int64_t missing = rest > 0 ? parts - rest : -rest;
  return (extent + Dim(missing)).divide_exactly(parts, symbols);
}

namespace {

constexpr std::int64_t kMostParts = 65536;

/// The position that an attribute names, which counts from the end of the dim where it is negative;
/// at least `behind` elements follow.
Dim position(const Attrs& attrs, const std::string& key, const Dim& extent, std::int64_t behind,
             const SymbolTable& symbols) {
  const Dim given = bound_of(attrs.find(key)->second);
  const Dim at = given.max(symbols) < 0 ? extent + given : given;
  if (at.min(symbols) >= 0 && (extent - at).min(symbols) >= behind) return at;
  fail("/attrs/" + key, "{} is not among the {} elements for all values of the symbols",
       given.str(), extent.str());
}

/// The range of a `narrow`. Unlike a slice it must lie in the dim as a whole.
SliceRange narrow_range(const Attrs& attrs, const Shape& shape, const SymbolTable& symbols) {
  const std::size_t axis = axis_of(attrs, "dim", shape.size());
  const Dim& extent = shape[axis];
  const Dim start = position(attrs, "start", extent, 0, symbols);
  const Dim length = bound_of(attrs.find("length")->second);
  if (length.min(symbols) < 0 || (extent - start - length).min(symbols) < 0) {
    fail("/attrs/length", "{} from {} on is more than the {} elements", length.str(), start.str(),
         extent.str());
  }
  return {axis, start, length, 1};
}

SliceRange select_range(const Attrs& attrs, const Shape& shape, const SymbolTable& symbols) {
  const std::size_t axis = axis_of(attrs, "dim", shape.size());
  return {axis, position(attrs, "index", shape[axis], 1, symbols), 1, 1};
}

/// The size of `chunks` parts as in PyTorch: all but the last have it, and there may be fewer
/// parts.
Dim chunk_size(const Attrs& attrs, std::size_t axis, const Dim& extent,
               const SymbolTable& symbols) {
  const auto chunks = get_attr<std::int64_t>(attrs, "chunks");
  if (chunks < 1 || chunks > kMostParts) {
    fail("/attrs/chunks", "found {}; expected 1 to {}", chunks, kMostParts);
  }
  const std::optional<Dim> size = divide_up(extent, chunks, symbols);
  if (!size) {
    fail("/attrs/chunks",
         "dim {} is {}, and how large {} chunks are is no affine expression; expected a symbol "
         "with a multiple_of that they divide",
         axis, extent.str(), chunks);
  }
  return *size;
}

void check_size(const Dim& size, const SymbolTable& symbols) {
  if (size.min(symbols) >= 1) return;
  fail("/attrs/split_size", "found {}; expected positive sizes", size.str());
}

/// Parts of `size`, the last of which may be smaller. Their number must not depend on symbols.
std::vector<Dim> equal_parts(const std::string& place, std::size_t axis, const Dim& extent,
                             const Dim& size, const SymbolTable& symbols) {
  check_size(size, symbols);
  const std::int64_t whole = (extent.max(symbols) - 1) / size.max(symbols);
  if (whole >= kMostParts) fail(place, "more than {} parts", kMostParts);
  const Dim last = extent - size * whole;
  if (last.min(symbols) < 1 || (size - last).min(symbols) < 0) {
    fail(place,
         "how many parts of {} dim {} has, which is {}, depends on its symbols; expected one "
         "number of them",
         size.str(), axis, extent.str());
  }
  std::vector<Dim> sizes(whole, size);
  sizes.push_back(last);
  return sizes;
}

}  // namespace

std::vector<SliceRange> split_ranges(const Attrs& attrs, const Shape& shape,
                                     const SymbolTable& symbols) {
  const std::size_t axis = axis_of(attrs, "dim", shape.size());
  const Dim& extent = shape[axis];
  std::vector<Dim> sizes;
  if (attrs.contains("chunks")) {
    sizes = equal_parts("/attrs/chunks", axis, extent, chunk_size(attrs, axis, extent, symbols),
                        symbols);
  } else {
    sizes = get_attr<Shape>(attrs, "split_size");
    if (sizes.size() == 1) {
      sizes = equal_parts("/attrs/split_size", axis, extent, sizes[0], symbols);
    }
  }
  std::vector<SliceRange> ranges;
  Dim at = 0;
  for (const Dim& size : sizes) {
    check_size(size, symbols);
    ranges.push_back({axis, at, size, 1});
    at = at + size;
  }
  if (at != extent) {
    fail("/attrs/split_size", "the sizes sum to {}; expected {}, the extent of dim {}", at.str(),
         extent.str(), axis);
  }
  return ranges;
}

std::vector<SliceRange> part_ranges(const Attrs& attrs, const Shape& shape,
                                    const SymbolTable& symbols) {
  if (attrs.contains("length")) return {narrow_range(attrs, shape, symbols)};
  if (attrs.contains("start")) return {slice_range(attrs, shape, symbols)};
  if (attrs.contains("index")) return {select_range(attrs, shape, symbols)};
  return split_ranges(attrs, shape, symbols);
}

std::size_t axis_of(const Attrs& attrs, std::string_view key, std::size_t rank) {
  return normalize_axis(get_attr<std::int64_t>(attrs, key), rank, fmt::format("/attrs/{}", key));
}

std::vector<std::size_t> reduced_axes(const Attrs& attrs, std::size_t rank) {
  std::vector<std::size_t> axes;
  for (std::int64_t dim : get_attr<std::vector<std::int64_t>>(attrs, "dim")) {
    axes.push_back(normalize_axis(dim, rank, "/attrs/dim"));
  }
  std::ranges::sort(axes);
  const auto twice = std::ranges::adjacent_find(axes);
  if (twice != axes.end()) fail("/attrs/dim", "dim {} stands there twice", *twice);
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

std::optional<std::size_t> dim_of_operand(const Graph& graph, const Node& node, ValueId operand,
                                          std::size_t dim) {
  const Shape& result = graph.type(node.outputs[0]).shape;
  const Shape& shape = graph.type(operand).shape;
  switch (node.op->view) {
    case View::kPermute:
      return permutation(node.op_name(), node.attrs, result.size())[dim];
    case View::kFlat: {
      // As many elements follow it.
      const auto after = [](const Shape& of, std::size_t d) {
        return Shape(of.begin() + static_cast<std::ptrdiff_t>(d) + 1, of.end());
      };
      const Shape rest = after(result, dim);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] != Dim(1) && same_numel(after(shape, d), rest)) return d;
      }
      return std::nullopt;
    }
    default:
      break;
  }
  const std::size_t lead = result.size() - std::min(result.size(), shape.size());
  return dim < lead ? std::nullopt : std::optional(dim - lead);
}

bool names_bytes(std::string_view op) { return op == "view" || op == "view_dtype"; }

}  // namespace braid
