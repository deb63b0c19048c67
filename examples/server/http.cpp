#include "http.h"

#include <httplib.h>

#include <climits>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <stdexcept>

namespace server {
namespace {

using httplib::DataSink, httplib::Response, nlohmann::json;

constexpr std::size_t kMaxBody = 16 << 20;
// How long a client that has gone may stay unnoticed.
constexpr std::chrono::milliseconds kLook{50};

/// What is wrong with the body of a request.
struct BadRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One line of JSON, also where a name is no UTF-8.
std::string line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

void answer_error(Response& response, int status, const std::string& type,
                  const std::string& message) {
  response.status = status;
  const json error = {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}};
  response.set_content(line({{"error", error}}), "application/json");
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

std::vector<std::int32_t> token_ids(const json& ids, const char* key) {
  std::vector<std::int32_t> result;
  for (const json& id : ids.is_array() ? ids : json::array({ids})) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > INT_MAX) {
      throw BadRequest(std::string(key) + ": found " + id.type_name() +
                       "; expected token ids, for this server has no tokenizer");
    }
    result.push_back(id.get<std::int32_t>());
  }
  return result;
}

struct Completion {
  Request request;
  bool stream = false;
};

Completion parse_completion(const std::string& text) {
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
  json prompt = body.value("prompt", json());
  if (prompt.is_array() && prompt.size() == 1 && prompt[0].is_array()) prompt = json(prompt[0]);
  if (!prompt.is_array() || prompt.empty()) {
    throw BadRequest("prompt: expected an array of token ids, for this server has no tokenizer");
  }
  request.prompt = token_ids(prompt, "prompt");
  const json stop = body.value("stop", json());
  if (!stop.is_null()) request.stop = token_ids(stop, "stop");
  request.max_tokens =
      number<std::int64_t>(body, "max_tokens", 16, 1, INT_MAX, "a number from 1 on");
  request.temperature = number(body, "temperature", 1.0, 0.0, 100.0, "a number from 0 to 100");
  request.top_p = number(body, "top_p", 1.0, 1e-9, 1.0, "a number above 0, at most 1");
  const auto seed = number<std::int64_t>(body, "seed", -1, LLONG_MIN, LLONG_MAX, "an integer");
  request.seed = seed == -1 ? std::random_device{}() : static_cast<std::uint64_t>(seed);
  number<std::int64_t>(body, "n", 1, 1, 1, "1");
  result.stream = flag(body, "stream");
  request.logprobs =
      number<std::int64_t>(body, "logprobs", -1, 0, 0, "0: those of the chosen tokens alone") == 0;
  return result;
}

const char* reason(Finish finish) { return finish == Finish::kStop ? "stop" : "length"; }

}  // namespace

/// Lives until the last answer is written.
struct HttpState {
  Engine& engine;
  const std::string model;
  std::mutex mutex;
  std::condition_variable changed;
  int requests = 0;  ///< that run or wait
  bool draining = false;
  std::int64_t refused = 0, next_id = 0;
};

namespace {

/// A request, from when it is taken until its answer is written or its client has gone.
class Answer {
 public:
  /// Null where the server takes no more; `why` says the reason.
  static std::shared_ptr<Answer> begin(std::shared_ptr<HttpState> state,
                                       const Completion& completion, std::string* why) {
    const std::lock_guard lock(state->mutex);
    if (state->draining || state->requests == kMaxRequests) {
      ++state->refused;
      *why = state->draining ? "the server ends"
                             : "found " + std::to_string(kMaxRequests) +
                                   " requests already; come back when one is over";
      return nullptr;
    }
    ++state->requests;
    return std::shared_ptr<Answer>(new Answer(std::move(state), completion));
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() {
    ticket_->cancel();  // means nothing to one that is over
    const std::lock_guard lock(state_->mutex);
    --state_->requests;
    state_->changed.notify_all();
  }

  /// Writes the whole answer. False, which cuts the connection, where the client has gone or the
  /// engine failed: the status was sent before.
  bool write(DataSink& sink) {
    std::vector<Token> all;
    while (true) {
      const Ticket::News news = ticket_->wait(kLook);
      if (news.finish == Finish::kFailed || !sink.is_writable()) return false;
      all.insert(all.end(), news.tokens.begin(), news.tokens.end());
      const bool over = news.finish != Finish::kNone;
      if (stream_ && (over || !news.tokens.empty())) {
        if (!write(sink, "data: " + line(object(news.tokens, news.finish)) + "\n")) return false;
      }
      if (!over) continue;
      json whole = object(all, news.finish);
      const std::size_t prompt = ticket_->request().prompt.size();
      whole["usage"] = {{"prompt_tokens", prompt},
                        {"completion_tokens", all.size()},
                        {"total_tokens", prompt + all.size()}};
      if (!write(sink, stream_ ? "data: [DONE]\n\n" : line(whole))) return false;
      sink.done();
      return true;
    }
  }

 private:
  Answer(std::shared_ptr<HttpState> state, const Completion& completion)
      : state_(std::move(state)),
        stream_(completion.stream),
        id_("cmpl-" + std::to_string(state_->next_id++)),
        created_(std::time(nullptr)),
        ticket_(state_->engine.submit(completion.request)) {}

  static bool write(DataSink& sink, const std::string& text) {
    return sink.write(text.data(), text.size());
  }

  [[nodiscard]] json object(const std::vector<Token>& tokens, Finish finish) const {
    std::string text;
    json ids = json::array(), logprobs = json::array();
    for (const Token& token : tokens) {
      text += std::to_string(token.id) + " ";
      ids.push_back(token.id);
      logprobs.push_back(token.logprob);
    }
    json choice = {{"index", 0},
                   {"text", text},
                   {"tokens", ids},
                   {"logprobs", nullptr},
                   {"finish_reason", nullptr}};
    if (finish != Finish::kNone) choice["finish_reason"] = reason(finish);
    if (ticket_->request().logprobs)
      choice["logprobs"] = {{"tokens", ids}, {"token_logprobs", logprobs}};
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", state_->model},
            {"choices", json::array({choice})}};
  }

  std::shared_ptr<HttpState> state_;
  bool stream_;
  std::string id_;
  std::time_t created_;
  std::shared_ptr<Ticket> ticket_;
};

void complete(const std::shared_ptr<HttpState>& state, const std::string& body,
              Response& response) {
  Completion completion;
  try {
    completion = parse_completion(body);
    const std::string refusal = state->engine.refusal(completion.request);
    if (!refusal.empty()) throw BadRequest(refusal);
  } catch (const BadRequest& error) {
    answer_error(response, 400, "invalid_request_error", error.what());
    return;
  }
  std::string why;
  const auto answer = Answer::begin(state, completion, &why);
  if (!answer) {
    response.set_header("Retry-After", "1");
    answer_error(response, 503, "server_error", why);
    return;
  }
  // Not written at once in either case, so that a client that goes is seen.
  response.set_chunked_content_provider(
      completion.stream ? "text/event-stream" : "application/json",
      [answer](std::size_t, DataSink& sink) { return answer->write(sink); });
}

std::string metrics_text(HttpState& state) {
  const EngineMetrics metrics = state.engine.metrics();
  std::int64_t refused = 0;
  {
    const std::lock_guard lock(state.mutex);
    refused = state.refused;
  }
  std::string text;
  const auto add = [&](const char* name, const char* type, std::int64_t value) {
    text += std::string("# TYPE braid_") + name + " " + type + "\nbraid_" + name + " " +
            std::to_string(value) + "\n";
  };
  add("requests_total", "counter", metrics.requests);
  add("requests_refused_total", "counter", refused);
  add("requests_cancelled_total", "counter", metrics.cancelled);
  add("requests_failed_total", "counter", metrics.failed);
  add("preemptions_total", "counter", metrics.preempted);
  add("steps_total", "counter", metrics.steps);
  add("computed_tokens_total", "counter", metrics.computed_tokens);
  add("tokens_total", "counter", metrics.tokens);
  add("running", "gauge", metrics.running);
  add("waiting", "gauge", metrics.waiting);
  add("pages", "gauge", metrics.pages);
  add("pages_free", "gauge", metrics.free_pages);
  return text;
}

}  // namespace

HttpServer::HttpServer(Engine& engine, std::string model, const std::string& host, int port)
    : state_(new HttpState{.engine = engine, .model = std::move(model)}),
      server_(std::make_unique<httplib::Server>()) {
  using httplib::Request;
  const std::time_t start = std::time(nullptr);
  // A thread writes one answer; the others refuse, and tell of health and metrics.
  server_->new_task_queue = [] { return new httplib::ThreadPool(kMaxRequests + 32); };
  server_->set_payload_max_length(kMaxBody);
  server_->set_keep_alive_timeout(1);
  server_->set_tcp_nodelay(true);
  // Not httplib's default, with which two servers share a port.
  server_->set_socket_options([](auto socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server_->Post("/v1/completions", [state = state_](const Request& request, Response& response) {
    complete(state, request.body, response);
  });
  server_->Get("/health", [state = state_](const Request&, Response& response) {
    const std::lock_guard lock(state->mutex);
    response.status = state->draining ? 503 : 200;
    response.set_content(line({{"status", state->draining ? "ends" : "ok"}}), "application/json");
  });
  server_->Get("/v1/models", [state = state_, start](const Request&, Response& response) {
    const json model = {
        {"id", state->model}, {"object", "model"}, {"created", start}, {"owned_by", "braid"}};
    response.set_content(line({{"object", "list"}, {"data", json::array({model})}}),
                         "application/json");
  });
  server_->Get("/metrics", [state = state_](const Request&, Response& response) {
    response.set_content(metrics_text(*state), "text/plain; version=0.0.4");
  });
  server_->set_error_handler([](const Request& request, Response& response) {
    if (!response.body.empty()) return;
    answer_error(response, response.status, "invalid_request_error",
                 response.status == 404   ? "there is no " + request.method + " " + request.path
                 : response.status == 413 ? "the body is too long"
                                          : "this is no request that the server understands");
  });
  server_->set_exception_handler([](const Request&, Response& response, std::exception_ptr) {
    answer_error(response, 500, "server_error", "the server could not handle this request");
  });
  port_ =
      port == 0 ? server_->bind_to_any_port(host) : (server_->bind_to_port(host, port) ? port : -1);
  if (port_ < 0) throw std::runtime_error(host + ":" + std::to_string(port) + ": is not free");
  thread_ = std::thread([this] {
    server_->listen_after_bind();
    ended_ = true;
  });
  // A server that does not run yet cannot be stopped.
  while (!server_->is_running() && !ended_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!ended_) return;
  thread_.join();
  throw std::runtime_error(host + ": cannot listen there");
}

void HttpServer::drain() {
  std::unique_lock lock(state_->mutex);
  state_->draining = true;
  state_->changed.wait(lock, [&] { return state_->requests == 0; });
}

HttpServer::~HttpServer() {
  server_->stop();
  thread_.join();
}

}  // namespace server
