#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace server {

/// Between text and tokens, as the tokenizer.model (SentencePiece) of a folder says.
class Tokenizer {
 public:
  explicit Tokenizer(const std::string& folder);

  /// Why there is no text, as part of a sentence; empty where there is. Nothing else may be called
  /// without.
  [[nodiscard]] const std::string& missing() const { return missing_; }
  /// The tokens of a text, in which names of special tokens stand for these. `begin`: behind the
  /// token that begins texts, where the model wants one.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text, bool begin) const;
  /// The bytes of a token, which may be part of a character. Special tokens have none.
  [[nodiscard]] std::string text(std::int32_t token) const;

 private:
  void load(const std::string& folder);

  std::string missing_;
  /// The tokens of a piece of text, at whose begin a space may be added.
  std::function<std::vector<int>(std::string_view piece, bool add_space)> pieces_;
  std::optional<std::int32_t> begin_;
  std::vector<std::string> texts_;  ///< of each token
  std::map<std::string, std::int32_t, std::less<>> special_;
  std::size_t longest_ = 0;  ///< name of a special token
};

}  // namespace server
