#include "protocol.h"

#include <algorithm>
#include <climits>
#include <ctime>
#include <random>
#include <set>
#include <utility>

namespace server {
namespace {

using nlohmann::json;

/// A request is copied and printed by functions that call themselves for what it holds.
constexpr int kMostNesting = 16;

json parse_body(const std::string& text) {
  const auto deep = [](int depth, json::parse_event_t, json&) {
    if (depth <= kMostNesting) return true;
    throw BadRequest("the body nests deeper than " + std::to_string(kMostNesting));
  };
  try {
    return json::parse(text, deep);
  } catch (const json::exception&) {
    throw BadRequest("the body is no JSON");
  }
}

/// `value` as an error names it.
std::string found(const json& value) {
  constexpr std::size_t kMostText = 60;
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > kMostText) text = text.substr(0, kMostText) + "...";
  return ": found " + text;
}

/// The number that `body` has as `key`; `otherwise` where it has none, or null.
template <class Number>
Number number(const json& body, const char* key, Number otherwise, Number least, Number most,
              const char* expected) {
  const json value = body.value(key, json());
  if (value.is_null()) return otherwise;
  const bool fits = std::is_integral_v<Number> ? value.is_number_integer() : value.is_number();
  // An integer beyond int64 is unsigned and becomes negative.
  if (!fits || value.get<Number>() < least || value.get<Number>() > most) {
    throw BadRequest(key + found(value) + "; expected " + expected);
  }
  return value.get<Number>();
}

bool flag(const json& body, const char* key) {
  const json value = body.value(key, json());
  if (!value.is_null() && !value.is_boolean()) {
    throw BadRequest(key + found(value) + "; expected true or false");
  }
  return value.is_boolean() && value.get<bool>();
}

const char* reason(Finish finish) { return finish == Finish::kStop ? "stop" : "length"; }

/// What a prompt is expected to be.
std::string expected(const text::Tokenizer& tokenizer) {
  return tokenizer.missing().empty() ? "; expected one text, or token ids"
                                     : "; expected token ids, for " + tokenizer.missing();
}

std::int32_t token_id(const json& id, const char* key, const text::Tokenizer& tokenizer) {
  if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > INT_MAX) {
    throw BadRequest(std::string(key) + ": found " + id.type_name() + expected(tokenizer));
  }
  return id.get<std::int32_t>();
}

std::vector<std::int32_t> parse_prompt(json prompt, const text::Tokenizer& tokenizer) {
  if (prompt.is_array() && prompt.size() == 1 && !prompt[0].is_number()) prompt = json(prompt[0]);
  std::vector<std::int32_t> result;
  if (prompt.is_string() && tokenizer.missing().empty()) {
    result = tokenizer.encode(prompt.get<std::string>(), true);
  } else if (prompt.is_array()) {
    for (const json& id : prompt) result.push_back(token_id(id, "prompt", tokenizer));
  }
  if (result.empty()) {
    throw BadRequest("prompt: found " +
                     (prompt.empty() ? "nothing" : std::string(prompt.type_name())) +
                     expected(tokenizer));
  }
  return result;
}

/// Texts and tokens that end an answer.
void parse_stop(const json& stop, const text::Tokenizer& tokenizer, Completion* result) {
  if (stop.is_null()) return;
  for (const json& each : stop.is_array() ? stop : json::array({stop})) {
    if (each.is_string() && !each.get<std::string>().empty() && tokenizer.missing().empty()) {
      result->stops.push_back(each);
    } else {
      result->request.stop.push_back(token_id(each, "stop", tokenizer));
    }
  }
  // Each is looked for behind every token.
  const std::size_t count = stop.size();
  if (count > 16) throw BadRequest("stop: found " + std::to_string(count) + "; expected up to 16");
}

std::vector<std::int32_t> parse_messages(const json& messages, const Language& language) {
  if (const std::string& missing = language.tokenizer.missing(); !missing.empty()) {
    throw BadRequest("messages: " + missing + "; /v1/completions takes token ids");
  }
  if (!language.chat) {
    throw BadRequest("messages: the folder has no chat template; /v1/completions takes a prompt");
  }
  try {
    std::vector<braid::ChatMessage> result;
    for (const json& message : messages) {
      result.push_back({message.at("role"), {}});
      std::string& content = result.back().content;
      if (!message.at("content").is_array()) content = message.at("content");
      for (const json& part : message.at("content")) {
        if (part.is_object()) content += part.at("text").get<std::string>();
      }
    }
    return language.tokenizer.encode(language.chat->prompt(result), false);
  } catch (const json::exception&) {
    throw BadRequest("messages: expected an array of objects with role and content, which is text");
  } catch (const braid::Error& error) {
    throw BadRequest(error.what());
  }
}

}  // namespace

Completion parse_completion(const std::string& text, bool chat, const Language& language,
                            std::int64_t room) {
  const json body = parse_body(text);
  if (!body.is_object()) throw BadRequest("the body is no JSON object");
  static const std::set<std::string> known = {
      "max_tokens", "temperature", "top_p",    "seed", "stop",  "stream", "stream_options",
      "model",      "user",        "logprobs", "n",    "top_k", "min_p"};
  static const std::set<std::string> of_chat = {"messages", "max_completion_tokens",
                                                "top_logprobs"};
  for (const auto& [key, value] : body.items()) {
    if (!known.contains(key) && !(chat ? of_chat.contains(key) : key == "prompt")) {
      throw BadRequest(key + ": this server does not know it");
    }
  }
  Completion result{.chat = chat};
  Request& request = result.request;
  request.prompt = chat ? parse_messages(body.value("messages", json()), language)
                        : parse_prompt(body.value("prompt", json()), language.tokenizer);
  parse_stop(body.value("stop", json()), language.tokenizer, &result);
  request.max_tokens = chat ? std::max<std::int64_t>(1, room - std::ssize(request.prompt)) : 16;
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    const auto chosen = number<std::int64_t>(body, key, 0, 1, INT_MAX, "a number from 1 on");
    if (chosen != 0) request.max_tokens = chosen;
  }
  request.sampling.temperature =
      number(body, "temperature", 1.0, 0.0, 100.0, "a number from 0 to 100");
  request.sampling.top_p = number(body, "top_p", 1.0, 1e-9, 1.0, "a number above 0, at most 1");
  request.sampling.top_k =
      number(body, "top_k", 0, -1, INT_MAX, "a number from 1 on, 0 or -1 for all tokens");
  request.sampling.min_p = number(body, "min_p", 0.0, 0.0, 1.0, "a number from 0 to 1");
  const auto seed = number<std::int64_t>(body, "seed", -1, LLONG_MIN, LLONG_MAX, "an integer");
  request.sampling.seed = seed == -1 ? std::random_device{}() : static_cast<std::uint64_t>(seed);
  number<std::int64_t>(body, "n", 1, 1, 1, "1");
  result.stream = flag(body, "stream");
  const json options = body.value("stream_options", json());
  result.stream_usage = options.is_object() && flag(options, "include_usage");
  const char* top = chat ? "top_logprobs" : "logprobs";
  const auto others =
      number<std::int64_t>(body, top, -1, 0, 0, "0: those of the chosen tokens alone");
  result.logprobs = chat ? flag(body, "logprobs") : others == 0;
  return result;
}

Reply::Reply(const Completion& completion, const text::Tokenizer& tokenizer, std::string id,
             std::string model)
    : tokenizer_(tokenizer),
      id_(std::move(id)),
      model_(std::move(model)),
      created_(std::time(nullptr)),
      prompt_(std::ssize(completion.request.prompt)),
      chat_(completion.chat),
      stream_(completion.stream),
      logprobs_(completion.logprobs),
      text_(completion.stops) {}

std::string Reply::text(const braid::ChosenToken& token) const {
  return tokenizer_.missing().empty() ? tokenizer_.text(token.id) : std::to_string(token.id) + " ";
}

bool Reply::add(const braid::ChosenToken& token) {
  tokens_.push_back(token);
  ++count_;
  return text_.add(text(token));
}

json Reply::logprobs(const std::vector<braid::ChosenToken>& tokens) const {
  json names = json::array(), logprobs = json::array(), content = json::array();
  for (const braid::ChosenToken& token : tokens) {
    const std::string name = text(token);
    names.push_back(tokenizer_.missing().empty() ? json(name) : json(token.id));
    logprobs.push_back(token.logprob);
    content.push_back({{"token", name},
                       {"logprob", token.logprob},
                       {"bytes", std::vector<std::uint8_t>(name.begin(), name.end())},
                       {"top_logprobs", json::array()}});
  }
  if (chat_) return {{"content", content}};
  return {{"tokens", names}, {"token_logprobs", logprobs}};
}

json Reply::take(Finish finish) {
  const bool end = finish != Finish::kNone;
  const std::vector<braid::ChosenToken> tokens = std::exchange(tokens_, {});
  json choice = {{"index", 0}, {"tokens", json::array()}, {"logprobs", nullptr}};
  for (const braid::ChosenToken& token : tokens) choice["tokens"].push_back(token.id);
  if (logprobs_) choice["logprobs"] = logprobs(tokens);
  choice["finish_reason"] = end ? json(reason(finish)) : json();
  if (chat_) {
    json& message = choice[stream_ ? "delta" : "message"] = {{"content", text_.take(end)}};
    if (!std::exchange(begun_, true)) message["role"] = "assistant";
  } else {
    choice["text"] = text_.take(end);
  }
  return object(json::array({choice}));
}

json Reply::object(json choices) const {
  const char* name = !chat_    ? "text_completion"
                     : stream_ ? "chat.completion.chunk"
                               : "chat.completion";
  return {{"id", id_},
          {"object", name},
          {"created", created_},
          {"model", model_},
          {"choices", std::move(choices)}};
}

json Reply::with_usage(json choices, std::int64_t reused) const {
  json result = object(std::move(choices));
  result["usage"] = {{"prompt_tokens", prompt_},
                     {"completion_tokens", count_},
                     {"total_tokens", prompt_ + count_},
                     {"prompt_tokens_details", {{"cached_tokens", reused}}}};
  return result;
}

}  // namespace server
