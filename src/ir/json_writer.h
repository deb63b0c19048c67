#pragma once

#include <string>

#include "braid/graph.h"
#include "ir/json_value.h"

namespace braid {

/// `[T, 2048]` as JSON: `["T", 2048]`.
[[nodiscard]] std::string json_shape(const Shape& shape);
/// An attribute's value as JSON on one line; not for graphs.
[[nodiscard]] std::string json_attribute(const AttrValue& value);

}  // namespace braid
