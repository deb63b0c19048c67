#include "http.h"

#include <httplib.h>

#include <ctime>
#include <stdexcept>

#include "protocol.h"

namespace server {
namespace {

using httplib::DataSink, httplib::Response, nlohmann::json;

constexpr std::size_t kMaxBody = 16 << 20;
// How long a client that has gone may stay unnoticed.
constexpr std::chrono::milliseconds kLook{50};

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

}  // namespace

/// Lives until the last answer is written.
struct HttpState {
  Engine& engine;
  const std::string model;
  const Language& language;
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
    while (true) {
      const Ticket::News news = ticket_->wait(kLook);
      if (news.finish == Finish::kFailed || !sink.is_writable()) return false;
      Finish finish = news.finish;
      for (const Token& token : news.tokens) {
        if (!reply_.add(token)) continue;
        finish = Finish::kStop;
        ticket_->stop();
        break;
      }
      const bool over = finish != Finish::kNone;
      if (stream_ && (over || !news.tokens.empty()) && !write_event(sink, reply_.take(finish))) {
        return false;
      }
      if (!over) continue;
      json choices = stream_ ? json::array() : reply_.take(finish)["choices"];
      const json last = reply_.with_usage(std::move(choices), ticket_->reused());
      const bool written =
          stream_ ? (!stream_usage_ || write_event(sink, last)) && write(sink, "data: [DONE]\n\n")
                  : write(sink, line(last));
      if (!written) return false;
      sink.done();
      return true;
    }
  }

 private:
  Answer(std::shared_ptr<HttpState> state, const Completion& completion)
      : state_(std::move(state)),
        stream_(completion.stream),
        stream_usage_(completion.stream && completion.stream_usage),
        reply_(completion, state_->language.tokenizer,
               (completion.chat ? "chatcmpl-" : "cmpl-") + std::to_string(state_->next_id++),
               state_->model),
        ticket_(state_->engine.submit(completion.request)) {}

  static bool write(DataSink& sink, const std::string& text) {
    return sink.write(text.data(), text.size());
  }

  static bool write_event(DataSink& sink, const json& event) {
    return write(sink, "data: " + line(event) + "\n");
  }

  std::shared_ptr<HttpState> state_;
  bool stream_, stream_usage_;
  Reply reply_;
  std::shared_ptr<Ticket> ticket_;
};

void complete(const std::shared_ptr<HttpState>& state, bool chat, const std::string& body,
              Response& response) {
  Completion completion;
  try {
    completion = parse_completion(body, chat, state->language, state->engine.room());
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
  add("reused_tokens_total", "counter", metrics.reused_tokens);
  add("tokens_total", "counter", metrics.tokens);
  add("running", "gauge", metrics.running);
  add("waiting", "gauge", metrics.waiting);
  add("pages", "gauge", metrics.pages);
  add("pages_free", "gauge", metrics.free_pages);
  return text;
}

}  // namespace

HttpServer::HttpServer(Engine& engine, const Language& language, std::string model,
                       const std::string& host, int port)
    : state_(new HttpState{.engine = engine, .model = std::move(model), .language = language}),
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
  server_->Post("/v1/(chat/)?completions",
                [state = state_](const Request& request, Response& response) {
                  complete(state, request.matches[1].matched, request.body, response);
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
