#pragma once

#include <braid/text_stream.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine.h"
#include "text.h"

namespace server {

/// What is wrong with the body of a request.
struct BadRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a body of OpenAI's protocol asks for.
struct Completion {
  Request request;
  std::vector<std::string> stops;  ///< texts
  bool stream = false;
};

/// Reads the body of a request of completions. Throws BadRequest.
Completion parse_completion(const std::string& body, const Tokenizer& tokenizer);

/// The answer to a request in OpenAI's form, whole or as it grows.
class Reply {
 public:
  Reply(const Completion& completion, const Tokenizer& tokenizer, std::string id,
        std::string model);

  /// Appends a token; true where the text ends in front of a stop.
  bool add(const Token& token);
  /// What was added since the last call.
  [[nodiscard]] nlohmann::json take(Finish finish);
  [[nodiscard]] nlohmann::json usage() const;

 private:
  [[nodiscard]] std::string text(const Token& token) const;

  const Tokenizer& tokenizer_;
  const std::string id_, model_;
  const std::int64_t created_, prompt_;
  const bool logprobs_;
  braid::TextStream text_;
  std::int64_t count_ = 0;
  std::vector<Token> tokens_;  ///< since the last take()
};

}  // namespace server
