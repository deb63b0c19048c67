#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// The steps by which a tokenizer.json makes a text into the pieces that its model sees, in the
/// terms of Hugging Face's tokenizers.
class TextSteps {
 public:
  /// Throws std::runtime_error that names what it does not know.
  explicit TextSteps(const nlohmann::json& tokenizer);

  /// `is_first`: the text begins here.
  [[nodiscard]] std::vector<std::string> pieces(std::string_view text, bool is_first) const;

 private:
  using Normalizer = std::function<std::string(std::string)>;
  using Splitter = std::function<std::vector<std::string>(const std::string& piece, bool is_first)>;

  void add_normalizer(const nlohmann::json& step);
  void add_splitter(const nlohmann::json& step);

  std::vector<Normalizer> normalizers_;
  std::vector<Splitter> splitters_;
};

/// Byte-level tokenizers write each byte as a character.
[[nodiscard]] std::string characters_of_bytes(std::string_view bytes);
/// The bytes of such characters; others stay as they are.
[[nodiscard]] std::string bytes_of_characters(std::string_view text);

/// With spaces for the sign that SentencePiece writes for them.
[[nodiscard]] inline std::string with_spaces(std::string text) {
  constexpr std::string_view kSign = "\u2581";
  for (std::size_t at; (at = text.find(kSign)) != std::string::npos;) {
    text.replace(at, kSign.size(), " ");
  }
  return text;
}

/// A token's number. Throws std::runtime_error for one that no tokenizer has.
[[nodiscard]] inline std::int32_t token_number(std::int64_t number) {
  if (number >= 0 && number < 1 << 24) return static_cast<std::int32_t>(number);
  throw std::runtime_error("the tokenizer has the token " + std::to_string(number) +
                           "; expected numbers from 0 to 16777215");
}

/// The length of the character that begins with this byte in UTF-8.
[[nodiscard]] inline std::size_t character_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

}  // namespace text
