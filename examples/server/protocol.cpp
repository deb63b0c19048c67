#include "protocol.h"

#include <climits>
#include <ctime>
#include <random>
#include <set>
#include <utility>

namespace server {
namespace {

using nlohmann::json;

/// The number that `body` has as `key`; `otherwise` where it has none, or null.
template <class Number>
Number number(const json& body, const char* key, Number otherwise, Number least, Number most,
              const char* expected) {
  const json value = body.value(key, json());
  if (value.is_null()) return otherwise;
  const bool fits = std::is_integral_v<Number> ? value.is_number_integer() : value.is_number();
  // An integer beyond int64 is unsigned and becomes negative.
  if (!fits || value.get<Number>() < least || value.get<Number>() > most) {
    throw BadRequest(std::string(key) + ": found " + value.dump() + "; expected " + expected);
  }
  return value.get<Number>();
}

bool flag(const json& body, const char* key) {
  const json value = body.value(key, json());
  if (!value.is_null() && !value.is_boolean()) {
    throw BadRequest(std::string(key) + ": found " + value.dump() + "; expected true or false");
  }
  return value.is_boolean() && value.get<bool>();
}

const char* reason(Finish finish) { return finish == Finish::kStop ? "stop" : "length"; }

/// What a prompt is expected to be.
std::string expected(const Tokenizer& tokenizer) {
  return tokenizer.missing().empty() ? "; expected one text, or token ids"
                                     : "; expected token ids, for " + tokenizer.missing();
}

std::int32_t token_id(const json& id, const char* key, const Tokenizer& tokenizer) {
  if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > INT_MAX) {
    throw BadRequest(std::string(key) + ": found " + id.type_name() + expected(tokenizer));
  }
  return id.get<std::int32_t>();
}

std::vector<std::int32_t> parse_prompt(json prompt, const Tokenizer& tokenizer) {
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
void parse_stop(const json& stop, const Tokenizer& tokenizer, Completion* result) {
  if (stop.is_null()) return;
  for (const json& each : stop.is_array() ? stop : json::array({stop})) {
    if (each.is_string() && !each.get<std::string>().empty() && tokenizer.missing().empty()) {
      result->stops.push_back(each);
    } else {
      result->request.stop.push_back(token_id(each, "stop", tokenizer));
    }
  }
}

}  // namespace

Completion parse_completion(const std::string& text, const Tokenizer& tokenizer) {
  json body;
  try {
    body = json::parse(text);
  } catch (const json::exception&) {
    throw BadRequest("the body is no JSON");
  }
  if (!body.is_object()) throw BadRequest("the body is no JSON object");
  static const std::set<std::string> known = {
      "prompt", "max_tokens", "temperature", "top_p",    "seed", "stop",
      "stream", "model",      "user",        "logprobs", "n"};
  for (const auto& [key, value] : body.items()) {
    if (!known.contains(key)) throw BadRequest(key + ": this server does not know it");
  }
  Completion result;
  Request& request = result.request;
  request.prompt = parse_prompt(body.value("prompt", json()), tokenizer);
  parse_stop(body.value("stop", json()), tokenizer, &result);
  request.max_tokens =
      number<std::int64_t>(body, "max_tokens", 16, 1, INT_MAX, "a number from 1 on");
  request.sampling.temperature =
      number(body, "temperature", 1.0, 0.0, 100.0, "a number from 0 to 100");
  request.sampling.top_p = number(body, "top_p", 1.0, 1e-9, 1.0, "a number above 0, at most 1");
  const auto seed = number<std::int64_t>(body, "seed", -1, LLONG_MIN, LLONG_MAX, "an integer");
  request.sampling.seed = seed == -1 ? std::random_device{}() : static_cast<std::uint64_t>(seed);
  number<std::int64_t>(body, "n", 1, 1, 1, "1");
  result.stream = flag(body, "stream");
  request.logprobs =
      number<std::int64_t>(body, "logprobs", -1, 0, 0, "0: those of the chosen tokens alone") == 0;
  return result;
}

Reply::Reply(const Completion& completion, const Tokenizer& tokenizer, std::string id,
             std::string model)
    : tokenizer_(tokenizer),
      id_(std::move(id)),
      model_(std::move(model)),
      created_(std::time(nullptr)),
      prompt_(std::ssize(completion.request.prompt)),
      logprobs_(completion.request.logprobs),
      text_(completion.stops) {}

std::string Reply::text(const Token& token) const {
  return tokenizer_.missing().empty() ? tokenizer_.text(token.id) : std::to_string(token.id) + " ";
}

bool Reply::add(const Token& token) {
  tokens_.push_back(token);
  ++count_;
  return text_.add(text(token));
}

json Reply::take(Finish finish) {
  json ids = json::array(), names = json::array(), logprobs = json::array();
  for (const Token& token : std::exchange(tokens_, {})) {
    ids.push_back(token.id);
    if (tokenizer_.missing().empty()) {
      names.push_back(text(token));
    } else {
      names.push_back(token.id);
    }
    logprobs.push_back(token.logprob);
  }
  json choice = {{"index", 0},
                 {"text", text_.take(finish != Finish::kNone)},
                 {"tokens", ids},
                 {"logprobs", nullptr},
                 {"finish_reason", nullptr}};
  if (finish != Finish::kNone) choice["finish_reason"] = reason(finish);
  if (logprobs_) choice["logprobs"] = {{"tokens", names}, {"token_logprobs", logprobs}};
  return {{"id", id_},
          {"object", "text_completion"},
          {"created", created_},
          {"model", model_},
          {"choices", json::array({choice})}};
}

json Reply::usage() const {
  return {{"prompt_tokens", prompt_},
          {"completion_tokens", count_},
          {"total_tokens", prompt_ + count_}};
}

}  // namespace server
