#include "tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "text_steps.h"

#ifdef BRAID_SENTENCEPIECE
#include <sentencepiece_processor.h>
#endif
#ifdef BRAID_BYTE_PAIRS
#include "byte_pairs.h"
#endif

namespace text {
namespace {

using nlohmann::json;

// Unicode's White_Space.
constexpr std::string_view kSpaces[] = {
    " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\u0085", "\u00a0", "\u1680",
    "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008",
    "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

/// Bytes of the space with which the text begins, or ends; 0 where it does not.
std::size_t space_in_front(std::string_view text) {
  const auto* found =
      std::ranges::find_if(kSpaces, [&](auto each) { return text.starts_with(each); });
  return found == std::end(kSpaces) ? 0 : found->size();
}
std::size_t space_behind(std::string_view text) {
  const auto* found =
      std::ranges::find_if(kSpaces, [&](auto each) { return text.ends_with(each); });
  return found == std::end(kSpaces) ? 0 : found->size();
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// tokenizer_config.json; an empty object without one.
json config_of(const std::filesystem::path& folder) {
  json config = json::parse(read_file(folder / "tokenizer_config.json"), nullptr, false);
  return config.is_object() ? config : json::object();
}

}  // namespace

Tokenizer::Tokenizer(const std::string& folder) {
  const std::filesystem::path path(folder);
  try {
    if (std::filesystem::exists(path / "tokenizer.model")) {
      load_pieces(folder);
    } else if (std::filesystem::exists(path / "tokenizer.json")) {
      load_json(folder);
    } else {
      missing_ = "the folder has no tokenizer";
    }
  } catch (const std::exception& error) {
    missing_ = error.what();
  }
  for (const auto& [name, token] : added_) longest_ = std::max(longest_, name.size());
}

void Tokenizer::add(const std::string& name, std::int64_t number, bool is_special) {
  const std::int32_t id = token_number(number);
  added_[name].id = id;
  texts_.resize(std::max(texts_.size(), static_cast<std::size_t>(id) + 1));
  texts_[id] = is_special ? std::string() : name;
}

#ifdef BRAID_SENTENCEPIECE
void Tokenizer::load_pieces(const std::string& folder) {
  using sentencepiece::SentencePieceProcessor;
  const std::string model = read_file(std::filesystem::path(folder) / "tokenizer.model");
  const auto first = std::make_shared<SentencePieceProcessor>();
  const auto later = std::make_shared<SentencePieceProcessor>();
  // The second one adds no space in front: later fields of a message replace earlier ones.
  const std::string no_space("\x1a\x02\x18\x00", 4);
  if (!first->LoadFromSerializedProto(model).ok() ||
      !later->LoadFromSerializedProto(model + no_space).ok()) {
    throw std::runtime_error("tokenizer.model is none of SentencePiece");
  }
  pieces_ = [first, later](std::string_view piece, bool is_first) {
    return (is_first ? first : later)->EncodeAsIds(piece);
  };
  for (int id = 0; id < first->GetPieceSize(); ++id) {
    std::string text = first->IdToPiece(id);
    if (first->IsControl(id) || first->IsUnknown(id)) {
      added_[std::exchange(text, {})].id = id;
    } else if (first->IsByte(id)) {
      text = static_cast<char>(std::stoi(text.substr(3, 2), nullptr, 16));  // <0xE2>
    }
    texts_.push_back(with_spaces(std::move(text)));
  }
  const json config = config_of(folder);
  if (first->bos_id() >= 0 && config.value("add_bos_token", true)) begin_ = {first->bos_id()};
  // Tokens that were added to those of SentencePiece.
  const json added = config.value("added_tokens_decoder", json());
  for (const auto& [id, token] : added.items()) {
    const int number = std::stoi(id);
    const auto name = token.at("content").get<std::string>();
    if (number < first->GetPieceSize()) {
      added_[name].id = number;
    } else {
      add(name, number, token.value("special", false));
    }
  }
}
#else
void Tokenizer::load_pieces(const std::string&) {
  throw std::runtime_error("it was built without SentencePiece");
}
#endif

#ifdef BRAID_BYTE_PAIRS
void Tokenizer::load_json(const std::string& folder) {
  const std::filesystem::path path(folder);
  const json tokenizer = json::parse(read_file(path / "tokenizer.json"), nullptr, false);
  try {
    const auto model = std::make_shared<const BytePairs>(tokenizer);
    pieces_ = [model](std::string_view piece, bool is_first) {
      return model->encode(piece, is_first);
    };
    texts_ = model->texts();
    for (const json& token : tokenizer.value("added_tokens", json::array())) {
      const auto name = token.at("content").get<std::string>();
      add(name, token.at("id"), token.at("special"));
      added_[name].takes_left = token.value("lstrip", false);
      added_[name].takes_right = token.value("rstrip", false);
    }
    // Those that the template has in front of a text.
    const auto look = [&](auto self, const json& processor) -> void {
      if (processor.is_null()) return;
      for (const json& each : processor.value("processors", json::array())) self(self, each);
      for (const json& part : processor.value("single", json::array())) {
        if (!part.is_object() || !part.contains("SpecialToken")) break;
        begin_.push_back(added_.at(part.at("SpecialToken").at("id")).id);
      }
    };
    look(look, tokenizer.value("post_processor", json()));
  } catch (const json::exception&) {
    throw std::runtime_error("tokenizer.json is none of a tokenizer");
  } catch (const std::out_of_range&) {
    throw std::runtime_error("tokenizer.json names a token that it does not have");
  }
  const json config = config_of(path);
  const json wanted = config.value("add_bos_token", json());
  if (!wanted.is_boolean()) return;
  begin_.clear();
  json name = config.value("bos_token", json());
  if (name.is_object()) name = name.value("content", json());
  const auto found = name.is_string() ? added_.find(name.get<std::string>()) : added_.end();
  if (wanted && found != added_.end()) begin_.push_back(found->second.id);
}
#else
void Tokenizer::load_json(const std::string&) {
  throw std::runtime_error("it was built without PCRE2 and utf8proc, which tokenizer.json needs");
}
#endif

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool begin) const {
  std::vector<std::int32_t> result;
  if (begin) result = begin_;
  std::size_t from = 0;
  const auto encode_to = [&](std::size_t end) {
    if (end <= from) return;
    const std::vector<int> ids = pieces_(text.substr(from, end - from), from == 0);
    result.insert(result.end(), ids.begin(), ids.end());
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto near = added_.lower_bound(text.substr(at, 1));
    if (near == added_.end() || near->first[0] != text[at]) continue;  // as nearly everywhere
    for (std::size_t length = longest_; length > 0; --length) {
      const auto found = added_.find(text.substr(at, length));
      if (found == added_.end()) continue;
      const auto& [name, token] = *found;
      std::string_view front = text.substr(from, at - from);
      while (token.takes_left && space_behind(front) > 0) front.remove_suffix(space_behind(front));
      encode_to(from + front.size());
      result.push_back(token.id);
      from = at + name.size();
      while (token.takes_right && space_in_front(text.substr(from)) > 0) {
        from += space_in_front(text.substr(from));
      }
      at = from - 1;
      break;
    }
  }
  encode_to(text.size());
  return result;
}

std::string Tokenizer::text(std::int32_t token) const {
  return static_cast<std::size_t>(token) < texts_.size() ? texts_[token] : std::string();
}

}  // namespace text
