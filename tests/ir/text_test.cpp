#include "ir/text.h"

#include "support.h"

namespace braid {
namespace {

TEST(Text, PrintableIsShortAsciiOnOneLine) {
  EXPECT_EQ(printable("a b\n\x01\xC3\xA9"), "a b\\n\\x01\\xc3\\xa9");
  EXPECT_EQ(printable(std::string(1000, 'x')), std::string(60, 'x') + "...");
  EXPECT_EQ(quote("T"), "\"T\"");
}

TEST(Text, Identifiers) {
  for (const char* good : {"T", "_x9", "seq_len"}) EXPECT_TRUE(is_identifier(good)) << good;
  for (const char* bad : {"", "9x", "a-b", "a b", "\xC3\xA9"})
    EXPECT_FALSE(is_identifier(bad)) << bad;
}

TEST(Text, Utf8) {
  for (const char* good :
       {"", "abc", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  // A lone continuation, cut off, overlong, a surrogate, past the last code point.
  for (const char* bad : {"\x80", "\xC3", "\xC3(", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "\xFF"}) {
    EXPECT_FALSE(is_utf8(bad)) << printable(bad);
  }
}

TEST(Text, MessageIsWithoutThePlace) {
  const Error error(ErrorCode::kInternal, "here", "it: broke");
  EXPECT_EQ(message_of(error), "it: broke");
  EXPECT_EQ(message_of(Error(ErrorCode::kInternal, "", "x: y")), "x: y");
}

TEST(Nearest, GivesTheNamesThatDifferLeast) {
  const std::vector<std::string_view> names = {"all_reduce", "silu", "sigmoid", "sum"};
  EXPECT_EQ(nearest("sillu", names, 2), (std::vector<std::string_view>{"silu", "sum"}));
  EXPECT_EQ(nearest("allreduce", names, 1), (std::vector<std::string_view>{"all_reduce"}));
  EXPECT_EQ(nearest("", names, 9).size(), 4U);
  EXPECT_EQ(nearest("sillu", names, 9, 1), (std::vector<std::string_view>{"silu"}));
}

}  // namespace
}  // namespace braid
