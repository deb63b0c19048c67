#include "braid/chat_format.h"

#include <gtest/gtest.h>

#include "runtime/error_of.h"

namespace braid {
namespace {

ChatFormat format() {
  return {.between = {{{"", "user"}, "<s>[U] "},
                      {{"user", "assistant"}, " [/U] "},
                      {{"assistant", "user"}, "</s>[U] "},
                      {{"user", ""}, " [/U]"}}};
}

TEST(ChatFormat, TextBetweenMessagesDependsOnTheirRoles) {
  EXPECT_EQ(format().prompt({{"user", "a"}, {"assistant", "b"}, {"user", " c\n"}}),
            "<s>[U] a [/U] b</s>[U]  c\n [/U]");
}

TEST(ChatFormat, ContentsAreTrimmedWhereTheTemplateDoes) {
  ChatFormat trimming = format();
  trimming.trim = true;
  EXPECT_EQ(trimming.prompt({{"user", "\n a b\t"}}), "<s>[U] a b [/U]");
  EXPECT_EQ(trimming.prompt({{"user", " "}}), "<s>[U]  [/U]");
}

TEST(ChatFormat, WhatTheTemplateLacksIsAnError) {
  const auto error = [](const std::vector<ChatMessage>& messages) {
    return error_of([&] { (void)format().prompt(messages); }).second;
  };
  const std::string text = "messages: the model's chat template has no way from ";
  EXPECT_EQ(error({{"system", "a"}}), text + "the begin to a message of system");
  EXPECT_EQ(error({{"user", "a"}, {"user", "b"}}), text + "a message of user to a message of user");
  EXPECT_EQ(error({{"user", "a"}, {"assistant", "b"}}),
            text + "a message of assistant to the answer");
  EXPECT_EQ(error({}), text + "the begin to the answer");
}

}  // namespace
}  // namespace braid
