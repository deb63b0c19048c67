#include "codegen/target.h"

#include <gtest/gtest.h>

#include "braid/error.h"

namespace braid {
namespace {

TEST(Target, ReadsWhatItPrints) {
  for (const char* text : {"sm_80", "sm_86", "sm_90a", "sm_100a", "sm_120"}) {
    EXPECT_EQ(Target::parse(text).str(), text);
  }
}

TEST(Target, RefusesOthers) {
  for (const char* text : {"", "sm_", "sm_a", "sm_75", "80", "sm_80b", "sm_9999", "compute_80"}) {
    EXPECT_THROW(static_cast<void>(Target::parse(text)), Error) << text;
  }
}

}  // namespace
}  // namespace braid
