#include "ir/graph_schema.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ir/op_registry.h"

namespace braid {
namespace {

// `BRAID_UPDATE_SCHEMA=1` rewrites the file.
TEST(GraphSchema, TheCheckedInOneIsThatOfTheRegistry) {
  const std::string path = BRAID_SOURCE_DIR "/docs/graph.schema.json";
  if (std::getenv("BRAID_UPDATE_SCHEMA") != nullptr) std::ofstream(path) << graph_schema();
  std::ostringstream have;
  have << std::ifstream(path).rdbuf();
  EXPECT_EQ(have.str(), graph_schema()) << "run with BRAID_UPDATE_SCHEMA=1";
}

TEST(GraphSchema, EachOpHasItsOwnOperandsAndAttributes) {
  const auto node = nlohmann::json::parse(graph_schema())["$defs"]["node"];
  EXPECT_EQ(node["properties"]["op"]["enum"].size(), all_ops().size());
  ASSERT_EQ(node["allOf"].size(), all_ops().size());
  for (std::size_t i = 0; i < all_ops().size(); ++i) {
    const OpDef& op = *all_ops()[i];
    EXPECT_EQ(node["allOf"][i]["if"]["properties"]["op"]["const"], op.name);
    const auto& attrs = node["allOf"][i]["then"]["properties"]["attrs"];
    for (const AttrDef& def : op.attrs) {
      EXPECT_TRUE(attrs["properties"].contains(def.name)) << op.name << " " << def.name;
    }
    if (op.name == "view") {
      EXPECT_TRUE(attrs["properties"].contains("dtype"));
      EXPECT_FALSE(attrs.contains("required"));
    }
    if (op.name == "broadcast") {
      EXPECT_EQ(attrs["required"], (std::vector<std::string>{"src", "group"}));
    }
  }
}

}  // namespace
}  // namespace braid
