#pragma once

#include <string>

namespace braid {

/// The JSON Schema of the graph format, docs/graph.schema.json, with every op and its attributes
/// from the registry.
[[nodiscard]] std::string graph_schema();

}  // namespace braid
