#pragma once

#include <string>
#include <string_view>

#include "ir/op_registry.h"

namespace braid {

/// What a value of this type is, for error messages: "an integer", "a list of integers", ...
[[nodiscard]] std::string_view describe_attr_type(AttrType type);

/// A bound among the attributes (AttrType::kExtent), and as what it stands there.
[[nodiscard]] Dim bound_of(const AttrValue& value);
[[nodiscard]] AttrValue as_bound(const Dim& dim);

/// The op's attribute of that name. Throws kInvalidArgument at "/attrs/key" when it has none.
[[nodiscard]] const AttrDef& find_attribute(const OpDef& op, std::string_view key);

/// Checks that every attribute is known, has its type and names things that exist, and adds the
/// defaults. An integer is accepted where a number or a list of integers is wanted. Throws
/// kInvalidArgument at "/attrs/key".
[[nodiscard]] Attrs complete_attributes(const Graph& graph, const OpDef& op, Attrs attrs);

}  // namespace braid
