#include "byte_pairs.h"

#include <algorithm>
#include <cstdio>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace text {
namespace {

using nlohmann::json;

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

std::string name_of_byte(unsigned char byte) {
  char name[7];
  std::snprintf(name, sizeof name, "<0x%02X>", byte);
  return name;
}

bool is_byte_level(const json& decoder) {
  if (decoder.is_null()) return false;
  const json parts = decoder.value("decoders", json::array());
  return decoder.at("type") == "ByteLevel" ||
         std::any_of(parts.begin(), parts.end(), is_byte_level);
}

}  // namespace

BytePairs::BytePairs(const json& tokenizer) : steps_(tokenizer) {
  const json& model = tokenizer.at("model");
  const auto type = model.value("type", std::string("BPE"));
  if (type != "BPE") {
    throw std::runtime_error("tokenizer.json has a model of the type " + type +
                             "; BPE is known here, and SentencePiece's tokenizer.model");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json affix = model.value(key, json());
    if (affix.is_null() || affix == "") continue;
    throw std::runtime_error(std::string("tokenizer.json has a ") + key +
                             ", which is not known here");
  }
  for (const auto& [name, id] : model.at("vocab").items()) {
    tokens_.emplace(name, token_number(id));
  }
  for (const json& merge : model.at("merges")) {
    std::string left, right;
    if (merge.is_array()) {
      left = merge.at(0), right = merge.at(1);
    } else {
      const auto both = merge.get<std::string>();
      const std::size_t space = both.find(' ');
      left = both.substr(0, space), right = both.substr(space + 1);
    }
    const auto rank = static_cast<std::int32_t>(merges_.size());
    merges_.emplace(pair_of(tokens_.at(left), tokens_.at(right)),
                    Merge{rank, tokens_.at(left + right)});
  }
  const json unknown = model.value("unk_token", json());
  if (unknown.is_string()) unknown_ = tokens_.at(unknown);
  fuses_unknown_ = model.value("fuse_unk", false);
  has_byte_tokens_ = model.value("byte_fallback", false);
  ignores_merges_ = model.value("ignore_merges", false);
  is_byte_level_ = is_byte_level(tokenizer.value("decoder", json()));
}

std::vector<int> BytePairs::encode(std::string_view text, bool is_first) const {
  std::vector<int> tokens;
  for (const std::string& piece : steps_.pieces(text, is_first)) encode_piece(piece, &tokens);
  return tokens;
}

void BytePairs::append_character(const std::string& character, std::vector<int>* tokens) const {
  if (const auto found = tokens_.find(character); found != tokens_.end()) {
    tokens->push_back(found->second);
    return;
  }
  if (has_byte_tokens_) {
    std::vector<int> bytes;
    for (const char byte : character) {
      const auto found = tokens_.find(name_of_byte(static_cast<unsigned char>(byte)));
      if (found != tokens_.end()) bytes.push_back(found->second);
    }
    if (bytes.size() == character.size()) {
      tokens->insert(tokens->end(), bytes.begin(), bytes.end());
      return;
    }
  }
  if (!unknown_ || (fuses_unknown_ && !tokens->empty() && tokens->back() == *unknown_)) return;
  tokens->push_back(*unknown_);
}

/// Merges the pair of the least rank, the leftmost of equal ones, until there is none.
void BytePairs::encode_piece(const std::string& piece, std::vector<int>* tokens) const {
  if (ignores_merges_) {
    if (const auto found = tokens_.find(piece); found != tokens_.end()) {
      tokens->push_back(found->second);
      return;
    }
  }
  std::vector<int> symbols;
  for (std::size_t at = 0, size = 0; at < piece.size(); at += size) {
    size = character_size(piece[at]);
    append_character(piece.substr(at, size), &symbols);
  }
  // A list of symbols; one that was merged into its left neighbour is -1.
  const auto count = static_cast<int>(symbols.size());
  std::vector<int> before(count), behind(count);
  for (int i = 0; i < count; ++i) before[i] = i - 1, behind[i] = i + 1;
  using Candidate = std::tuple<std::int32_t, int, std::int32_t>;  // rank, left place, token
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](int left) {
    if (left < 0 || behind[left] >= count) return;
    const auto found = merges_.find(pair_of(symbols[left], symbols[behind[left]]));
    if (found != merges_.end()) candidates.emplace(found->second.rank, left, found->second.token);
  };
  for (int i = 0; i + 1 < count; ++i) consider(i);
  while (!candidates.empty()) {
    const auto [rank, left, token] = candidates.top();
    candidates.pop();
    if (symbols[left] < 0 || behind[left] >= count) continue;
    const int right = behind[left];
    const auto found = merges_.find(pair_of(symbols[left], symbols[right]));
    if (found == merges_.end() || found->second.rank != rank) continue;  // it has changed since
    symbols[left] = token;
    symbols[right] = -1;
    behind[left] = behind[right];
    if (behind[left] < count) before[behind[left]] = left;
    consider(before[left]);
    consider(left);
  }
  std::copy_if(symbols.begin(), symbols.end(), std::back_inserter(*tokens),
               [](int symbol) { return symbol >= 0; });
}

std::vector<std::string> BytePairs::texts() const {
  std::vector<std::string> result;
  for (const auto& [name, id] : tokens_) {
    result.resize(std::max(result.size(), static_cast<std::size_t>(id) + 1));
    std::string text = name;
    if (is_byte_level_) {
      text = bytes_of_characters(name);
    } else if (unsigned byte = 0; has_byte_tokens_ && name.size() == 6 &&
                                  std::sscanf(name.c_str(), "<0x%2X>", &byte) == 1) {
      text = {static_cast<char>(byte)};
    } else {
      text = with_spaces(std::move(text));
    }
    result[id] = std::move(text);
  }
  return result;
}

}  // namespace text
