#pragma once

#include <optional>

#include "braid/dim.h"

namespace braid {

/// Whether two shapes have equally many elements for all values of the symbols. Exact: each product
/// has a unique form as an integer times primitive affine factors.
[[nodiscard]] bool same_numel(const Shape& a, const Shape& b);

/// The extent d with numel(whole) == numel(part) * d, or nothing when it is not affine. Where the
/// shapes are of one value it is an integer (check Dim::is_whole otherwise).
[[nodiscard]] std::optional<Dim> missing_extent(const Shape& whole, const Shape& part);

/// Whether all dims in front of `dim` have extent 1: then chunks along it are contiguous.
[[nodiscard]] bool lies_in_front(const Shape& shape, std::size_t dim);

}  // namespace braid
