#pragma once

#include <optional>

#include "braid/dim.h"

namespace braid {

/// Whether the two shapes have equally many elements for all values of the symbols. Exact: both
/// products are split into an integer and affine factors without a common divisor, which is unique.
[[nodiscard]] bool same_numel(const Shape& a, const Shape& b);

/// The extent d with numel(whole) == numel(part) * d, or nothing when it is no affine expression.
/// It is whole where the shapes are of one value (Dim::is_whole else).
[[nodiscard]] std::optional<Dim> missing_extent(const Shape& whole, const Shape& part);

/// Whether the dims in front of this one have extent 1 only: chunks along it lie in memory one
/// after the other.
[[nodiscard]] bool lies_in_front(const Shape& shape, std::size_t dim);

}  // namespace braid
