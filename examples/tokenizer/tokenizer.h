#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// Between text and tokens, as a model's folder says: by its tokenizer.model, which SentencePiece
/// reads, or else by its tokenizer.json.
class Tokenizer {
 public:
  explicit Tokenizer(const std::string& folder);

  /// Why there is no text, as part of a sentence; empty where there is. Nothing else may be called
  /// without.
  [[nodiscard]] const std::string& missing() const { return missing_; }
  /// The tokens of a text, in which names of special tokens stand for these. `begin`: behind the
  /// tokens that begin texts, where the model wants some.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text, bool begin) const;
  /// The bytes of a token, which may be part of a character. Special tokens have none.
  [[nodiscard]] std::string text(std::int32_t token) const;

 private:
  /// A token with a name that is found before all else.
  struct Added {
    std::int32_t id = 0;
    bool takes_left = false, takes_right = false;  ///< spaces beside it
  };

  void load_pieces(const std::string& folder);
  void load_json(const std::string& folder);
  /// Notes a token that was added to those of the model.
  void add(const std::string& name, std::int64_t number, bool is_special);

  std::string missing_;
  /// The tokens of a piece of text; `is_first`: the text begins there.
  std::function<std::vector<int>(std::string_view piece, bool is_first)> pieces_;
  std::vector<std::int32_t> begin_;
  std::vector<std::string> texts_;  ///< of each token
  std::map<std::string, Added, std::less<>> added_;
  std::size_t longest_ = 0;  ///< name of an added token
};

}  // namespace text
