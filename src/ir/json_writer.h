#pragma once

#include <string>
#include <string_view>

#include "braid/graph.h"

namespace braid {

/// A JSON string literal; the text must be UTF-8.
[[nodiscard]] std::string json_string(std::string_view text);
/// `[T, 2048]` as JSON: `["T", 2048]`.
[[nodiscard]] std::string json_shape(const Shape& shape);
/// An attribute's value as JSON on one line; not for graphs.
[[nodiscard]] std::string json_attribute(const AttrValue& value);

}  // namespace braid
