#pragma once

#include <string_view>

#include "ir/op_registry.h"

namespace braid {

/// Describes the type in error messages: "an integer", "a list of integers", ...
[[nodiscard]] std::string_view describe_attr_type(AttrType type);
/// Its keys in a JSON schema: `"type": "integer"`.
[[nodiscard]] std::string_view schema_of(AttrType type);

/// The Dim of an extent attribute (AttrType::kExtent), whichever alternative holds it.
[[nodiscard]] Dim bound_of(const AttrValue& value);
[[nodiscard]] AttrValue as_bound(const Dim& dim);

/// The op's declaration of that attribute. Throws kInvalidArgument at "/attrs/key" when there is
/// none.
[[nodiscard]] const AttrDef& find_attribute(const OpDef& op, std::string_view key);

/// Checks that every attribute is known, has its type and refers to existing things, and adds the
/// defaults. An integer is accepted for a number or a list of integers. Throws kInvalidArgument at
/// "/attrs/key".
[[nodiscard]] Attrs complete_attributes(const Graph& graph, const OpDef& op, Attrs attrs);

}  // namespace braid
