#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "ir/graph_schema.h"
#include "ir/op_registry.h"

namespace braid {
namespace {

bool made_by_lowering(const OpDef& op) {
  const OpClass op_class = op.op_class;
  return op.name.ends_with("_parts") || op_class == OpClass::kKernel ||
         op_class == OpClass::kFusedMatmul || op_class == OpClass::kChunk ||
         op_class == OpClass::kPeerCopy || op_class == OpClass::kCopy;
}

std::string operands(const OpDef& op) {
  const std::string least = std::to_string(op.min_inputs);
  if (op.min_inputs == op.max_inputs) return least;
  if (op.max_inputs == std::numeric_limits<int>::max()) return least + " or more";
  return least + " to " + std::to_string(op.max_inputs);
}

std::string attributes(const nlohmann::ordered_json& entry) {
  std::string text;
  if (!entry["then"]["properties"].contains("attrs")) return text;
  const auto& attrs = entry["then"]["properties"]["attrs"];
  const auto required = attrs.value("required", std::vector<std::string>{});
  for (const auto& [name, def] : attrs["properties"].items()) {
    std::string about = def.value("description", "");
    if (about.ends_with('.')) about.pop_back();
    if (about.rfind("Set by lowering", 0) == 0) continue;
    text += (text.empty() ? "`" : ", `") + name;
    if (def.contains("default")) text += " = " + def["default"].dump();
    text += "`";
    const bool is_required = std::find(required.begin(), required.end(), name) != required.end();
    if (!is_required && !def.contains("default")) text += " (or none)";
    if (def.contains("enum")) {
      std::string choice;
      for (const auto& one : def["enum"]) choice += (choice.empty() ? "" : ", ") + one.dump();
      text += " (" + choice + ")";
    }
    if (!about.empty()) text += ": " + about;
  }
  return text;
}

std::string table_of_ops() {
  std::string text = "| op | operands | attributes |\n|---|---|---|\n";
  const auto entries = nlohmann::ordered_json::parse(graph_schema())["$defs"]["node"]["allOf"];
  for (const auto& entry : entries) {
    const auto name = entry["if"]["properties"]["op"]["const"].get<std::string>();
    const OpDef& op = *find_op(name);
    if (made_by_lowering(op)) continue;
    text += "| `" + name + "` | " + operands(op) + " | " + attributes(entry) + " |\n";
  }
  return text;
}

// `BRAID_UPDATE_DOCS=1` rewrites the table.
TEST(GraphPage, ItsOpsAreThoseOfTheRegistry) {
  const std::string path = BRAID_SOURCE_DIR "/docs/graph.md";
  std::ostringstream page;
  page << std::ifstream(path).rdbuf();
  const std::string text = page.str();
  const std::size_t table = text.find("| op |");
  const std::string head = text.substr(0, table);
  ASSERT_NE(head.find("## Ops\n"), std::string::npos);
  if (std::getenv("BRAID_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << head << table_of_ops();
  } else {
    EXPECT_EQ(text, head + table_of_ops()) << "run with BRAID_UPDATE_DOCS=1";
  }
}

}  // namespace
}  // namespace braid
