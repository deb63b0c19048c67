#include "braid/text_stream.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(TextStream, SendsWholeCharacters) {
  TextStream text;
  const std::string euro = "\u20ac", smile = "\U0001F600";
  text.add("a" + euro.substr(0, 2));
  EXPECT_EQ(text.take(false), "a");
  text.add(euro.substr(2) + smile.substr(0, 1));
  EXPECT_EQ(text.take(false), euro);
  text.add(smile.substr(1, 2));
  EXPECT_EQ(text.take(false), "");
  text.add(smile.substr(3) + "\u00e9");
  EXPECT_EQ(text.take(false), smile + "\u00e9");
}

TEST(TextStream, BytesThatAreNoTextAreKept) {
  TextStream text;
  text.add("\x80\x80\x80\x80");  // never the begin of a character
  EXPECT_EQ(text.take(false), "\x80\x80\x80\x80");
  text.add("\xe2");
  EXPECT_EQ(text.take(false), "");
  EXPECT_EQ(text.take(true), "\xe2");
}

TEST(TextStream, EndsInFrontOfAStopAcrossBorders) {
  TextStream text({"STOP", "\n\n"});
  EXPECT_FALSE(text.add("one S"));
  EXPECT_EQ(text.take(false), "one ");
  EXPECT_FALSE(text.add("TO"));
  EXPECT_EQ(text.take(false), "");
  EXPECT_TRUE(text.add("P two"));
  EXPECT_EQ(text.take(true), "");
}

TEST(TextStream, WhatOnlyBeganLikeAStopIsSent) {
  TextStream text({"aab"});
  EXPECT_FALSE(text.add("aa"));
  EXPECT_EQ(text.take(false), "");
  EXPECT_FALSE(text.add("a"));
  EXPECT_EQ(text.take(false), "a");  // the last two may still become one
  EXPECT_FALSE(text.add("c"));
  EXPECT_EQ(text.take(false), "aac");
  EXPECT_FALSE(text.add("a"));
  EXPECT_EQ(text.take(true), "a");
}

TEST(TextStream, TheStopThatIsCompleteFirstCounts) {
  TextStream text({"late", "a"});
  EXPECT_TRUE(text.add("xlate"));
  EXPECT_EQ(text.take(true), "xl");
  TextStream same_end({"b", "ab"});
  EXPECT_TRUE(same_end.add("xab"));
  EXPECT_EQ(same_end.take(true), "x");
}

}  // namespace
}  // namespace braid
