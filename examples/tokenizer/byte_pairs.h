#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text_steps.h"

namespace text {

/// The model of a tokenizer.json: byte pair encoding (Sennrich, Haddow and Birch, "Neural Machine
/// Translation of Rare Words with Subword Units", ACL 2016).
class BytePairs {
 public:
  /// Throws std::runtime_error that names what it does not know, and json's for what is malformed.
  explicit BytePairs(const nlohmann::json& tokenizer);

  /// The tokens of a text without special ones. `is_first`: the text begins here.
  [[nodiscard]] std::vector<int> encode(std::string_view text, bool is_first) const;
  /// The bytes of each token.
  [[nodiscard]] std::vector<std::string> texts() const;

 private:
  struct Merge {
    std::int32_t rank, token;
  };
  void encode_piece(const std::string& piece, std::vector<int>* tokens) const;
  /// Appends the token of a character, or those of its bytes.
  void append_character(const std::string& character, std::vector<int>* tokens) const;

  TextSteps steps_;
  std::unordered_map<std::string, std::int32_t> tokens_;
  std::unordered_map<std::uint64_t, Merge> merges_;  ///< by the two tokens
  std::optional<std::int32_t> unknown_;
  bool fuses_unknown_, has_byte_tokens_, ignores_merges_;
  bool is_byte_level_;
};

}  // namespace text
