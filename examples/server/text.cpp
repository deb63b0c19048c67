#include "text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#ifdef BRAID_SENTENCEPIECE
#include <sentencepiece_processor.h>
#endif

namespace server {

Tokenizer::Tokenizer(const std::string& folder) {
  const std::filesystem::path path(folder);
  if (std::filesystem::exists(path / "tokenizer.model")) {
    load(folder);
  } else if (std::filesystem::exists(path / "tokenizer.json")) {
    missing_ = "no library reads tokenizer.json, and the folder has no tokenizer.model";
  } else {
    missing_ = "the folder has no tokenizer";
  }
}

#ifdef BRAID_SENTENCEPIECE
static std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Tokenizer::load(const std::string& folder) {
  using sentencepiece::SentencePieceProcessor;
  const std::filesystem::path path(folder);
  const std::string model = read_file(path / "tokenizer.model");
  const auto first = std::make_shared<SentencePieceProcessor>();
  const auto later = std::make_shared<SentencePieceProcessor>();
  // The second one adds no space in front: later fields of a message replace earlier ones.
  const std::string no_space("\x1a\x02\x18\x00", 4);
  if (!first->LoadFromSerializedProto(model).ok() ||
      !later->LoadFromSerializedProto(model + no_space).ok()) {
    missing_ = "tokenizer.model is none of SentencePiece";
    return;
  }
  pieces_ = [first, later](std::string_view piece, bool add_space) {
    return (add_space ? first : later)->EncodeAsIds(piece);
  };
  for (int id = 0; id < first->GetPieceSize(); ++id) {
    std::string text = first->IdToPiece(id);
    if (first->IsControl(id) || first->IsUnknown(id)) {
      special_.emplace(std::exchange(text, {}), id);
    } else if (first->IsByte(id)) {
      text = static_cast<char>(std::stoi(text.substr(3, 2), nullptr, 16));  // <0xE2>
    }
    for (std::size_t at; (at = text.find("\u2581")) != std::string::npos;) text.replace(at, 3, " ");
    texts_.push_back(std::move(text));
  }
  auto config = nlohmann::json::parse(read_file(path / "tokenizer_config.json"), nullptr, false);
  if (!config.is_object()) config = nlohmann::json::object();
  if (first->bos_id() >= 0 && config.value("add_bos_token", true)) begin_ = first->bos_id();
  // Tokens that were added to those of SentencePiece.
  const auto added = config.value("added_tokens_decoder", nlohmann::json());
  for (const auto& [id, token] : added.items()) {
    const std::size_t number = std::stoul(id);
    const auto name = token.at("content").get<std::string>();
    special_.emplace(name, number);
    if (number < static_cast<std::size_t>(first->GetPieceSize())) continue;
    texts_.resize(std::max(texts_.size(), number + 1));
    if (!token.value("special", false)) texts_[number] = name;
  }
  for (const auto& [name, id] : special_) longest_ = std::max(longest_, name.size());
}
#else
void Tokenizer::load(const std::string&) { missing_ = "it was built without SentencePiece"; }
#endif

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool begin) const {
  std::vector<std::int32_t> result;
  if (begin && begin_) result.push_back(*begin_);
  std::size_t from = 0;
  const auto encode_to = [&](std::size_t end) {
    if (end == from) return;
    const std::vector<int> ids = pieces_(text.substr(from, end - from), from == 0);
    result.insert(result.end(), ids.begin(), ids.end());
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto near = special_.lower_bound(text.substr(at, 1));
    if (near == special_.end() || near->first[0] != text[at]) continue;  // as nearly everywhere
    for (std::size_t length = longest_; length > 0; --length) {
      const auto found = special_.find(text.substr(at, length));
      if (found == special_.end()) continue;
      encode_to(at);
      result.push_back(found->second);
      from = at + found->first.size();
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

}  // namespace server
