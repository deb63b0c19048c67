#include "ir/op_registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "ir/text_file.h"
#include "source_directory.h"

namespace braid {
namespace {

// A new op needs a test: its name must be in quotes in one.
TEST(OpRegistry, EachOpIsNamedInATestOrExample) {
  std::string text;
  for (const char* folder : {"/tests", "/examples"}) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(testing::source_directory() + folder)) {
      const auto extension = file.path().extension();
      if (extension == ".cpp" || extension == ".json") {
        text += read_text(file.path(), kMaxGraphBytes);
      }
    }
  }
  for (const OpDef* op : all_ops()) {
    EXPECT_NE(text.find('"' + op->name + '"'), std::string::npos) << "no test names " << op->name;
  }
}

}  // namespace
}  // namespace braid
