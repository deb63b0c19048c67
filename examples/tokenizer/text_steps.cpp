#include "text_steps.h"

#include <pcre2.h>
#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

namespace text {
namespace {

using nlohmann::json;

// What GPT-2 splits texts by, as all whose pre-tokenizer is ByteLevel and says nothing else.
constexpr const char* kByteLevel =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// What Hugging Face's \w stands for.
constexpr const char* kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";
constexpr const char* kSpace = "\u2581";

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("tokenizer.json has " + what + ", which is not known here");
}

std::string type_of(const json& step) { return step.at("type").get<std::string>(); }

/// A part of a text, and whether it matched.
struct Part {
  std::size_t begin, end;
  bool matched;
};

class Pattern {
 public:
  explicit Pattern(const std::string& regex, bool is_literal = false) {
    // In these PCRE2 and Oniguruma, for which patterns are written, are not of one mind.
    for (const char* each : {"\\w", "\\W", "\\b", "\\B", "\\h", "\\H", "&&"}) {
      if (!is_literal && regex.find(each) != std::string::npos) refuse("the pattern " + regex);
    }
    int error = 0;
    PCRE2_SIZE at = 0;
    const std::uint32_t options =
        PCRE2_UTF | PCRE2_UCP | (is_literal ? PCRE2_LITERAL : std::uint32_t{0});
    auto* code = ::pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                                 is_literal ? options & ~PCRE2_UCP : options, &error, &at, nullptr);
    if (code == nullptr) refuse("the pattern " + regex);
    ::pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    code_ = {code, [](pcre2_code* each) { ::pcre2_code_free(each); }};
  }
  /// All of a text, in parts that matched and what lies between.
  [[nodiscard]] std::vector<Part> parts(const std::string& text) const {
    const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
        ::pcre2_match_data_create_from_pattern(code_.get(), nullptr),
        [](pcre2_match_data* each) { ::pcre2_match_data_free(each); });
    std::vector<Part> result;
    std::size_t done = 0;
    std::uint32_t checked = 0;  // the first match looks at all of the text, whether it is UTF-8
    for (std::size_t from = 0; from < text.size(); checked = PCRE2_NO_UTF_CHECK) {
      const int found = ::pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                      text.size(), from, checked, data.get(), nullptr);
      if (found < 0) break;  // none, or what is no UTF-8 or takes forever
      const PCRE2_SIZE* at = ::pcre2_get_ovector_pointer(data.get());
      if (at[1] == at[0]) {
        from += character_size(text[from]);
        continue;
      }
      if (at[0] > done) result.push_back({done, at[0], false});
      result.push_back({at[0], at[1], true});
      from = done = at[1];
    }
    if (done < text.size()) result.push_back({done, text.size(), false});
    return result;
  }

 private:
  std::shared_ptr<pcre2_code> code_;
};

/// {"String": ...} or {"Regex": ...}.
Pattern pattern_of(const json& pattern) {
  const bool is_literal = pattern.contains("String");
  return Pattern(pattern.at(is_literal ? "String" : "Regex").get<std::string>(), is_literal);
}

/// What becomes of the matches.
enum class Behavior { kIsolated, kRemoved, kWithPrevious, kWithNext, kContiguous };

Behavior behavior_of(const json& step) {
  static const std::map<std::string, Behavior> kNames = {
      {"Isolated", Behavior::kIsolated},
      {"Removed", Behavior::kRemoved},
      {"MergedWithPrevious", Behavior::kWithPrevious},
      {"MergedWithNext", Behavior::kWithNext},
      {"Contiguous", Behavior::kContiguous}};
  const auto name = step.at("behavior").get<std::string>();
  const auto found = kNames.find(name);
  if (found == kNames.end()) refuse("the behavior " + name);
  return found->second;
}

std::vector<std::string> split(const std::string& piece, const Pattern& pattern, Behavior behavior,
                               bool invert = false) {
  std::vector<Part> kept;
  bool after_match = false;
  for (Part part : pattern.parts(piece)) {
    part.matched = part.matched != invert;
    const bool is_new = kept.empty() || behavior == Behavior::kIsolated ||
                        behavior == Behavior::kRemoved ||
                        (behavior == Behavior::kContiguous && part.matched != after_match) ||
                        (behavior == Behavior::kWithPrevious && (!part.matched || after_match)) ||
                        (behavior == Behavior::kWithNext && (part.matched || !after_match));
    after_match = part.matched;
    if (behavior == Behavior::kRemoved && part.matched) continue;
    if (is_new) {
      kept.push_back(part);
    } else {
      kept.back().end = part.end;
    }
  }
  std::vector<std::string> result;
  result.reserve(kept.size());
  for (const Part& part : kept) result.push_back(piece.substr(part.begin, part.end - part.begin));
  return result;
}

std::string replaced(const std::string& text, const Pattern& pattern, const std::string& content) {
  std::string result;
  for (const Part& part : pattern.parts(text)) {
    result += part.matched ? content : text.substr(part.begin, part.end - part.begin);
  }
  return result;
}

std::string composed(const std::string& text, int options) {
  utf8proc_uint8_t* found = nullptr;
  const utf8proc_ssize_t bytes =
      ::utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &found,
                     static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  if (bytes < 0) return text;  // it is no UTF-8
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(found, std::free);
  return {reinterpret_cast<const char*>(found), static_cast<std::size_t>(bytes)};
}

/// The characters of the bytes: those that print stand for themselves, others for 256 and on.
const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> kAll = [] {
    std::array<std::string, 256> result;
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool prints =
          (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      const int code = prints ? byte : next++;
      if (code < 0x80) {
        result[byte] = {static_cast<char>(code)};
      } else {
        result[byte] = {static_cast<char>(0xc0 | code >> 6),
                        static_cast<char>(0x80 | (code & 0x3f))};
      }
    }
    return result;
  }();
  return kAll;
}

}  // namespace

std::string characters_of_bytes(std::string_view bytes) {
  std::string result;
  for (const char byte : bytes) result += byte_characters()[static_cast<unsigned char>(byte)];
  return result;
}

std::string bytes_of_characters(std::string_view text) {
  static const std::map<std::string, char, std::less<>> kBytes = [] {
    std::map<std::string, char, std::less<>> result;
    for (int byte = 0; byte < 256; ++byte)
      result[byte_characters()[byte]] = static_cast<char>(byte);
    return result;
  }();
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, character_size(text[at]));
    const auto found = kBytes.find(character);
    if (found == kBytes.end()) {
      result += character;
    } else {
      result += found->second;
    }
    at += character.size();
  }
  return result;
}

TextSteps::TextSteps(const json& tokenizer) {
  add_normalizer(tokenizer.value("normalizer", json()));
  add_splitter(tokenizer.value("pre_tokenizer", json()));
}

void TextSteps::add_normalizer(const json& step) {
  if (step.is_null()) return;
  static const std::map<std::string, int> kForms = {{"NFC", UTF8PROC_COMPOSE},
                                                    {"NFD", UTF8PROC_DECOMPOSE},
                                                    {"NFKC", UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
                                                    {"NFKD", UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};
  const std::string type = type_of(step);
  if (type == "Sequence") {
    for (const json& each : step.at("normalizers")) add_normalizer(each);
  } else if (const auto form = kForms.find(type); form != kForms.end()) {
    normalizers_.push_back(
        [options = form->second](const std::string& text) { return composed(text, options); });
  } else if (type == "Prepend") {
    normalizers_.push_back([more = step.at("prepend").get<std::string>()](const std::string& text) {
      return text.empty() ? text : more + text;
    });
  } else if (type == "Replace") {
    normalizers_.push_back(
        [pattern = pattern_of(step.at("pattern")), content = step.at("content").get<std::string>()](
            const std::string& text) { return replaced(text, pattern, content); });
  } else {
    refuse("the normalizer " + type);
  }
}

void TextSteps::add_splitter(const json& step) {
  if (step.is_null()) return;
  const std::string type = type_of(step);
  const auto add_split = [this](const Pattern& pattern, Behavior behavior, bool invert = false) {
    splitters_.push_back(
        [=](const std::string& piece, bool) { return split(piece, pattern, behavior, invert); });
  };
  if (type == "Sequence") {
    for (const json& each : step.at("pretokenizers")) add_splitter(each);
  } else if (type == "Split") {
    add_split(pattern_of(step.at("pattern")), behavior_of(step), step.at("invert"));
  } else if (type == "Digits") {
    add_split(Pattern("\\p{N}"),
              step.at("individual_digits") ? Behavior::kIsolated : Behavior::kContiguous);
  } else if (type == "Punctuation") {
    add_split(Pattern("[\\p{P}$+<=>^`|~]"), behavior_of(step));
  } else if (type == "Whitespace") {
    add_split(Pattern(std::string("[") + kWord + "]+|[^\\s" + kWord + "]+"), Behavior::kRemoved,
              true);
  } else if (type == "WhitespaceSplit") {
    add_split(Pattern("\\s"), Behavior::kRemoved);
  } else if (type == "ByteLevel") {
    if (step.value("add_prefix_space", true)) {
      splitters_.push_back([](const std::string& piece, bool) -> std::vector<std::string> {
        return {piece.starts_with(' ') ? piece : " " + piece};
      });
    }
    if (step.value("use_regex", true)) add_split(Pattern(kByteLevel), Behavior::kIsolated);
    splitters_.push_back([](const std::string& piece, bool) -> std::vector<std::string> {
      return {characters_of_bytes(piece)};
    });
  } else if (type == "Metaspace") {
    const auto space = step.value("replacement", std::string(kSpace));
    const auto scheme = step.value(
        "prepend_scheme", std::string(step.value("add_prefix_space", true) ? "always" : "never"));
    splitters_.push_back([=, pattern = Pattern(" ", true)](
                             const std::string& piece, bool is_first) -> std::vector<std::string> {
      std::string text = replaced(piece, pattern, space);
      const bool wanted = scheme == "always" || (scheme == "first" && is_first);
      if (wanted && !text.starts_with(space)) text = space + text;
      return {text};
    });
    if (step.value("split", true)) add_split(Pattern(space, true), Behavior::kWithNext);
  } else {
    refuse("the pre-tokenizer " + type);
  }
}

std::vector<std::string> TextSteps::pieces(std::string_view text, bool is_first) const {
  std::string whole(text);
  for (const Normalizer& normalize : normalizers_) whole = normalize(std::move(whole));
  std::vector<std::string> pieces;
  if (!whole.empty()) pieces.push_back(std::move(whole));
  for (const Splitter& split_of : splitters_) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (std::string& part : split_of(pieces[i], is_first && i == 0)) {
        if (!part.empty()) parts.push_back(std::move(part));
      }
    }
    pieces = std::move(parts);
  }
  return pieces;
}

}  // namespace text
