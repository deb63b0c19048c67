// Tokens of a tokenizer.json, as Hugging Face's library has them (tokenizers_test.py compares
// more).
#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/temporary_directory.h"
#include "tokenizer/text_steps.h"

namespace text {
namespace {

using nlohmann::json;
using Tokens = std::vector<std::int32_t>;

class Tokenizers : public ::testing::Test {
 protected:
  Tokenizer read(const json& tokenizer) {
    braid::write_file(directory_.path() / "tokenizer.json", tokenizer.dump());
    return Tokenizer(directory_.path().string());
  }
  void write_config(const json& config) {
    braid::write_file(directory_.path() / "tokenizer_config.json", config.dump());
  }

  /// 256 bytes, the token of byte b being b; then a token for each merge, and three that are added.
  static json byte_level() {
    json vocabulary, merges = json::array();
    for (int byte = 0; byte < 256; ++byte) {
      vocabulary[characters_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
    }
    int next = 256;
    for (const auto& [left, right] : {std::pair("t", "h"), std::pair("th", "e"),
                                      std::pair("\u0120", "the"), std::pair("1", "2")}) {
      vocabulary[std::string(left) + right] = next++;
      merges.push_back(std::string(left) + " " + right);
    }
    const auto added = [&](const char* name, bool special, bool left, bool right) {
      return json{{"id", next++},   {"content", name}, {"special", special}, {"single_word", false},
                  {"lstrip", left}, {"rstrip", right}, {"normalized", false}};
    };
    const json pattern = {{"Regex", R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+|.)"}};
    return {
        {"added_tokens",
         {added("<s>", true, false, false), added("<end>", true, true, true),
          added("<tool>", false, false, false)}},
        {"normalizer", {{"type", "NFC"}}},
        {"pre_tokenizer",
         {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}},
            {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}},
        {"post_processor",
         {{"type", "TemplateProcessing"},
          {"single",
           {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}}}},
        {"decoder", {{"type", "ByteLevel"}}},
        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
  }
  static constexpr int kTh = 256, kThe = 257, k_The = 258, k12 = 259;
  static constexpr int kBegin = 260, kEnd = 261, kTool = 262;

  braid::TemporaryDirectory directory_;
};

TEST_F(Tokenizers, MergeWithinPieces) {
  const Tokenizer tokenizer = read(byte_level());
  ASSERT_EQ(tokenizer.missing(), "");
  EXPECT_EQ(tokenizer.encode("the the", false), (Tokens{kThe, k_The}));
  EXPECT_EQ(tokenizer.encode("the the", true), (Tokens{kBegin, kThe, k_The}));
  EXPECT_EQ(tokenizer.encode("  thx", false), (Tokens{' ', ' ', kTh, 'x'}));
  EXPECT_EQ(tokenizer.encode("012123", false), (Tokens{'0', k12, k12, '3'}));
  EXPECT_EQ(tokenizer.encode("0112", false), (Tokens{'0', '1', '1', '2'}));  // 011 and 2
  EXPECT_EQ(tokenizer.encode("e\u0301", false), (Tokens{0xc3, 0xa9}));       // composed
  EXPECT_EQ(tokenizer.encode("", true), (Tokens{kBegin}));
}

TEST_F(Tokenizers, FindAddedTokensFirst) {
  const Tokenizer tokenizer = read(byte_level());
  EXPECT_EQ(tokenizer.encode("th<tool>e", false), (Tokens{kTh, kTool, 'e'}));
  EXPECT_EQ(tokenizer.encode("the\u3000 <end>\n the", false), (Tokens{kThe, kEnd, kThe}));
  EXPECT_EQ(tokenizer.encode("<end", false), (Tokens{'<', 'e', 'n', 'd'}));
  EXPECT_EQ(tokenizer.text(kTool), "<tool>");
  EXPECT_EQ(tokenizer.text(kEnd), "");
  EXPECT_EQ(tokenizer.text(k_The), " the");
  EXPECT_EQ(tokenizer.text(0xa9), "\xa9");
  EXPECT_EQ(tokenizer.text(1000), "");
}

TEST_F(Tokenizers, BeginAsTheConfigSays) {
  write_config({{"add_bos_token", false}, {"bos_token", "<s>"}});
  EXPECT_EQ(read(byte_level()).encode("th", true), (Tokens{kTh}));
  write_config({{"add_bos_token", true}, {"bos_token", {{"content", "<end>"}}}});
  EXPECT_EQ(read(byte_level()).encode("th", true), (Tokens{kEnd, kTh}));
}

TEST_F(Tokenizers, FallBackToBytes) {
  const json space = {{"type", "Metaspace"},
                      {"replacement", "\u2581"},
                      {"prepend_scheme", "first"},
                      {"split", false}};
  json vocabulary = {{"<unk>", 0},  {"\u2581", 1}, {"a", 2},
                     {"<0xC3>", 3}, {"<0xA9>", 4}, {"\u2581a", 5}};
  const json model = {
      {"type", "BPE"},         {"vocab", vocabulary},
      {"unk_token", "<unk>"},  {"fuse_unk", true},
      {"byte_fallback", true}, {"merges", json::array({json::array({"\u2581", "a"})})}};
  const Tokenizer tokenizer = read({{"pre_tokenizer", space}, {"model", model}});
  EXPECT_EQ(tokenizer.encode("a\u00e9xxa a", false), (Tokens{5, 3, 4, 0, 2, 5}));
  EXPECT_EQ(tokenizer.text(4), "\xa9");
  EXPECT_EQ(tokenizer.text(5), " a");
}

TEST_F(Tokenizers, SayWhatTheyDoNotKnow) {
  const auto missing = [&](const json::json_pointer& place, const json& value) {
    json tokenizer = byte_level();
    tokenizer[place] = value;
    return read(tokenizer).missing();
  };
  using Place = json::json_pointer;
  EXPECT_EQ(
      missing(Place("/model/type"), "Unigram"),
      "tokenizer.json has a model of the type Unigram; BPE is known here, and SentencePiece's "
      "tokenizer.model");
  EXPECT_EQ(missing(Place("/normalizer/type"), "Nmt"),
            "tokenizer.json has the normalizer Nmt, which is not known here");
  EXPECT_EQ(missing(Place("/pre_tokenizer"), {{"type", "UnicodeScripts"}}),
            "tokenizer.json has the pre-tokenizer UnicodeScripts, which is not known here");
  const Place regex("/pre_tokenizer/pretokenizers/0/pattern/Regex");
  for (const char* bad : {"(", "[a&&b]", "\\w+"}) {
    EXPECT_EQ(missing(regex, bad),
              std::string("tokenizer.json has the pattern ") + bad + ", which is not known here");
  }
  EXPECT_EQ(missing(Place("/model/end_of_word_suffix"), "</w>"),
            "tokenizer.json has a end_of_word_suffix, which is not known here");
  EXPECT_EQ(missing(Place("/model/merges/0"), "t nothing"),
            "tokenizer.json names a token that it does not have");
  const std::string range = "; expected numbers from 0 to 16777215";
  EXPECT_EQ(missing(Place("/model/vocab/t"), -1), "the tokenizer has the token -1" + range);
  EXPECT_EQ(missing(Place("/added_tokens/0/id"), 1 << 24),
            "the tokenizer has the token 16777216" + range);
  EXPECT_EQ(missing(Place("/pre_tokenizer/pretokenizers/0/pattern"), json::object()),
            "tokenizer.json is none of a tokenizer");
  EXPECT_EQ(missing(Place("/model/merges"), 3), "tokenizer.json is none of a tokenizer");
  EXPECT_EQ(read(json()).missing(), "tokenizer.json is none of a tokenizer");
}

}  // namespace
}  // namespace text
