#include "ir/text_file.h"

#include "support.h"

namespace braid {
namespace {

std::string error_of_reading(const std::string& path) {
  return error_of([&] { (void)read_text(path, 4096); });
}

TEST(TextFile, ReadsWhatIsThereAndNoMore) {
  EXPECT_EQ(read_text("/dev/null", 0), "");
  EXPECT_FALSE(read_text("/proc/self/status", 1 << 20).empty());
  EXPECT_TRUE(is_error(error_of_reading("/dev/zero"), "/dev/zero",
                       "more than 4096 bytes; expected at most 4096"));
}

TEST(TextFile, SaysWhyItCannotBeRead) {
  EXPECT_TRUE(is_error(error_of_reading("/none"), "/none", "no such file"));
  EXPECT_TRUE(is_error(error_of_reading("/dev/null/x"), "/dev/null/x", "Not a directory"));
  EXPECT_TRUE(is_error(error_of_reading("/dev"), "/dev", "is a directory; expected a file"));
  try {
    (void)read_text("/proc/self/mem", 4096);  // may be opened; its first page is nobody's
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_STREQ(error.what(), "/proc/self/mem: cannot be read: Input/output error");
  }
}

}  // namespace
}  // namespace braid
