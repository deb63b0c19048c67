#include "ir/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

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
    fail("/attrs/dims", fmt::format("{} dims; expected {}, each once", dims.size(), rank));
  }
  std::vector<bool> seen(rank, false);
  for (std::size_t i = 0; i < rank; ++i) {
    order[i] = normalize_axis(dims[i], rank, "/attrs/dims");
    if (seen[order[i]]) fail("/attrs/dims", fmt::format("dim {} stands there twice", dims[i]));
    seen[order[i]] = true;
  }
  return order;
}

SliceRange slice_range(const Attrs& attrs, const Shape& shape, const SymbolTable& symbols) {
  const std::size_t axis = axis_of(attrs, "dim", shape.size());
  const Dim& extent = shape[axis];
  const std::int64_t step = get_attr<std::int64_t>(attrs, "step");
  if (step < 1) fail("/attrs/step", fmt::format("found {}; expected at least 1", step));
  const std::int64_t low = extent.min(symbols);
  const auto bound = [&](const char* key) -> Dim {
    const std::int64_t at = get_attr<std::int64_t>(attrs, key);
    if (extent.is_constant()) {
      return std::clamp(at < 0 ? at + extent.constant() : at, std::int64_t{0}, extent.constant());
    }
    if (at == std::numeric_limits<std::int64_t>::max()) return extent;
    if (at < -low || at > low) {
      fail(fmt::format("/attrs/{}", key),
           fmt::format("{} is outside {} when that is {}; expected a bound that holds for all "
                       "values of its symbols",
                       at, extent.str(), low));
    }
    return at < 0 ? extent + Dim(at) : Dim(at);
  };
  const Dim start = bound("start");
  Dim length = bound("end") - start;
  if (length.max(symbols) <= 0) length = 0;
  if (length.min(symbols) < 0) {
    fail("/attrs/end",
         fmt::format("the slice has {} elements, below 0 for some values", length.str()));
  }
  if (step > 1 && length.is_constant()) {
    length = (length.constant() + step - 1) / step;
  } else if (step > 1) {
    const auto steps = length.divide_exactly(step, symbols);
    if (!steps) {
      fail("/attrs/step", fmt::format("{} does not divide the {} elements", step, length.str()));
    }
    length = *steps;
  }
  return {axis, start, length, step};
}

namespace {

constexpr std::int64_t kMostParts = 65536;

/// As many parts of one size as fit into what `chunks` asks for, as in PyTorch.
std::int64_t chunk_size(const Attrs& attrs, std::int64_t extent) {
  const auto chunks = get_attr<std::int64_t>(attrs, "chunks");
  if (chunks < 1 || chunks > kMostParts) {
    fail("/attrs/chunks", fmt::format("found {}; expected 1 to {}", chunks, kMostParts));
  }
  return (extent + chunks - 1) / chunks;
}

}  // namespace

std::vector<SliceRange> split_ranges(const Attrs& attrs, const Shape& shape) {
  const std::size_t axis = axis_of(attrs, "dim", shape.size());
  const Dim& extent = shape[axis];
  if (!extent.is_constant()) {
    fail("/attrs/dim",
         fmt::format("dim {} is {}; expected a constant extent to split", axis, extent.str()));
  }
  std::vector<std::int64_t> sizes = attrs.contains("chunks")
                                        ? std::vector{chunk_size(attrs, extent.constant())}
                                        : get_attr<std::vector<std::int64_t>>(attrs, "split_size");
  for (std::int64_t size : sizes) {
    if (size < 0 || (size == 0 && sizes.size() == 1)) {
      fail("/attrs/split_size", fmt::format("found {}; expected positive sizes", size));
    }
  }
  // One number is the size of every part; the last one may be smaller.
  if (sizes.size() == 1) {
    const std::int64_t size = sizes[0];
    if (extent.constant() / size > kMostParts) {
      fail("/attrs/split_size", fmt::format("more than {} parts", kMostParts));
    }
    for (std::int64_t at = size; at < extent.constant(); at += size) {
      sizes.push_back(std::min(size, extent.constant() - at));
    }
    sizes[0] = std::min(size, extent.constant());
  }
  std::vector<SliceRange> ranges;
  std::int64_t at = 0;
  for (std::int64_t size : sizes) {
    ranges.push_back({axis, at, size, 1});
    if (size > extent.constant() - at) at = extent.constant() + 1;
    if (at <= extent.constant()) at += size;
  }
  if (at != extent.constant()) {
    fail("/attrs/split_size", fmt::format("the sizes do not sum to {}", extent.constant()));
  }
  return ranges;
}

std::vector<SliceRange> part_ranges(const Attrs& attrs, const Shape& shape,
                                    const SymbolTable& symbols) {
  if (attrs.contains("start")) return {slice_range(attrs, shape, symbols)};
  return split_ranges(attrs, shape);
}

std::size_t axis_of(const Attrs& attrs, std::string_view key, std::size_t rank) {
  return normalize_axis(get_attr<std::int64_t>(attrs, key), rank, fmt::format("/attrs/{}", key));
}

std::vector<std::size_t> reduced_axes(const Attrs& attrs, std::size_t rank) {
  std::vector<std::size_t> axes;
  for (std::int64_t dim : get_attr<std::vector<std::int64_t>>(attrs, "dim")) {
    axes.push_back(normalize_axis(dim, rank, "/attrs/dim"));
  }
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) fail("/attrs/dim", fmt::format("dim {} stands there twice", *twice));
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

bool names_bytes(std::string_view op) { return op == "view" || op == "view_dtype"; }

}  // namespace braid
