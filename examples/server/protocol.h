#pragma once

#include <braid/text_stream.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine.h"
#include "tokenizer/tokenizer.h"

namespace server {

/// What is wrong with the body of a request.
struct BadRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How a model's texts and conversations are made.
struct Language {
  text::Tokenizer tokenizer;
  std::optional<braid::ChatFormat> chat;
};

/// What a body of OpenAI's protocol asks for.
struct Completion {
  bool chat = false;  ///< its prompt is messages, and so is the answer
  Request request;
  std::vector<std::string> stops;  ///< texts
  bool stream = false, stream_usage = false, logprobs = false;
};

/// Reads the body of a request. `room`: the most tokens of a sequence. Throws BadRequest.
Completion parse_completion(const std::string& body, bool chat, const Language& language,
                            std::int64_t room);

/// The answer to a request in OpenAI's form, whole or as it grows.
class Reply {
 public:
  Reply(const Completion& completion, const text::Tokenizer& tokenizer, std::string id,
        std::string model);

  /// Appends a token; true where the text ends in front of a stop.
  bool add(const braid::ChosenToken& token);
  /// What was added since the last call.
  [[nodiscard]] nlohmann::json take(Finish finish);
  /// An object around these choices, with the usage until now.
  [[nodiscard]] nlohmann::json with_usage(nlohmann::json choices, std::int64_t reused) const;

 private:
  [[nodiscard]] nlohmann::json object(nlohmann::json choices) const;
  [[nodiscard]] nlohmann::json logprobs(const std::vector<braid::ChosenToken>& tokens) const;
  [[nodiscard]] std::string text(const braid::ChosenToken& token) const;

  const text::Tokenizer& tokenizer_;
  const std::string id_, model_;
  const std::int64_t created_, prompt_;
  const bool chat_, stream_, logprobs_;
  braid::TextStream text_;
  std::int64_t count_ = 0;
  bool begun_ = false;
  std::vector<braid::ChosenToken> tokens_;  ///< since the last take()
};

}  // namespace server
