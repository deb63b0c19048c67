#include "http.h"

#include <httplib.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "protocol.h"

namespace server {
namespace {

using httplib::DataSink, httplib::Response, nlohmann::json;

constexpr const char* kJson = "application/json";
constexpr std::size_t kMaxBody = 16 << 20;
// How long a client that has gone may stay unnoticed.
constexpr std::chrono::milliseconds kLook{50};

/// One line of JSON, also where a name is no UTF-8.
std::string line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

json error_of(const std::string& type, const std::string& message) {
  return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}};
}

void answer_error(Response& response, int status, const std::string& type,
                  const std::string& message) {
  response.status = status;
  if (status == 503) response.set_header("Retry-After", "1");
  response.set_content(line(error_of(type, message)), kJson);
}

/// The socket of a request's client, which httplib does not tell; -1 where it has gone.
int socket_of(const httplib::Request& request) {
  const auto is_at = [](auto name_of, int file, const std::string& host, int port) {
    sockaddr_storage address{};
    socklen_t bytes = sizeof address;
    char name[NI_MAXHOST], number[NI_MAXSERV];
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    return name_of(file, generic, &bytes) == 0 &&
           ::getnameinfo(generic, bytes, name, sizeof name, number, sizeof number,
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0 &&
           host == name && std::to_string(port) == number;
  };
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int file = std::stoi(entry.path().filename());
    if (is_at(::getpeername, file, request.remote_addr, request.remote_port) &&
        is_at(::getsockname, file, request.local_addr, request.local_port)) {
      return file;
    }
  }
  return -1;
}

bool is_open(int socket) {
  char next = 0;
  const ssize_t count = ::recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && errno == EAGAIN);
}

}  // namespace

/// Why a request is not taken that could be later.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Lives until the last answer is written.
struct HttpState {
  Engine& engine;
  const std::string model;
  const Language& language;
  std::mutex mutex;
  std::condition_variable changed;
  int requests = 0;  ///< that run or wait
  std::string end;   ///< why no more are taken; empty while they are
  std::int64_t refused = 0, next = 0;

  /// Takes a request, whose number it returns.
  std::int64_t take() {
    const std::lock_guard lock(mutex);
    if (end.empty() && requests < kMaxRequests) return ++requests, next++;
    ++refused;
    if (!end.empty()) throw Refusal(end);
    throw Refusal("found " + std::to_string(kMaxRequests) +
                  " requests already; come back when one is over");
  }
};

namespace {

/// A request, from when it is taken until its answer is written or its client has gone.
class Answer {
 public:
  /// Throws Refusal where the server takes no more.
  Answer(std::shared_ptr<HttpState> state, const Completion& completion)
      : state_(std::move(state)),
        number_(state_->take()),
        stream_(completion.stream),
        stream_usage_(completion.stream_usage),
        reply_(completion, state_->language.tokenizer,
               (completion.chat ? "chatcmpl-" : "cmpl-") + std::to_string(number_), state_->model),
        ticket_(state_->engine.submit(completion.request)) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() {
    ticket_->cancel();  // means nothing to one that is over
    const std::lock_guard lock(state_->mutex);
    --state_->requests;
    state_->changed.notify_all();
  }

  /// Waits for all tokens, or for a stream the next ones. False where the client has gone or the
  /// run failed.
  bool wait(const std::function<bool()>& is_there) {
    do {
      news_ = ticket_->wait(kLook);
      if (news_.finish == Finish::kFailed || !is_there()) return false;
      for (const braid::ChosenToken& token : news_.tokens) {
        if (!reply_.add(token)) continue;
        news_.finish = Finish::kStop;
        ticket_->stop();
        break;
      }
    } while (news_.finish == Finish::kNone && (!stream_ || news_.tokens.empty()));
    return true;
  }
  /// Why wait() failed; empty where the client has gone.
  [[nodiscard]] const std::string& error() const { return news_.error; }
  /// Once all tokens are there.
  [[nodiscard]] json whole() {
    return reply_.with_usage(reply_.take(news_.finish)["choices"], ticket_->reused());
  }

  /// Writes a stream, of which the first tokens are there; where the run failed, its last event is
  /// the error. False, which cuts the connection, where the client has gone.
  bool write(DataSink& sink) {
    while (write_event(sink, reply_.take(news_.finish))) {
      if (news_.finish == Finish::kNone) {
        if (wait([&] { return sink.is_writable(); })) continue;
        if (error().empty() || !write_event(sink, error_of("server_error", error()))) return false;
        sink.done();
        return true;
      }
      const json usage = reply_.with_usage(json::array(), ticket_->reused());
      if (stream_usage_ && !write_event(sink, usage)) return false;
      const std::string done = "data: [DONE]\n\n";
      if (!sink.write(done.data(), done.size())) return false;
      sink.done();
      return true;
    }
    return false;
  }

 private:
  static bool write_event(DataSink& sink, const json& event) {
    const std::string text = "data: " + line(event) + "\n";
    return sink.write(text.data(), text.size());
  }

  std::shared_ptr<HttpState> state_;
  const std::int64_t number_;
  const bool stream_, stream_usage_;
  Reply reply_;
  std::shared_ptr<Ticket> ticket_;
  Ticket::News news_;  ///< of the last wait()
};

void complete(const std::shared_ptr<HttpState>& state, const httplib::Request& request,
              Response& response) {
  std::shared_ptr<Answer> answer;
  bool stream = false;
  try {
    const braid::ModelLimits& limits = state->engine.limits();
    const bool chat = request.matches[1].matched;
    const Completion completion =
        parse_completion(request.body, chat, state->language, limits.room());
    stream = completion.stream;
    const Request& asked = completion.request;
    std::string why = limits.refusal(asked.stop, 0);
    if (why.empty()) why = limits.refusal(asked.prompt, asked.max_tokens);
    if (!why.empty()) throw BadRequest(why);
    answer = std::make_shared<Answer>(state, completion);
    if (!answer->wait([socket = socket_of(request)] { return is_open(socket); })) {
      throw Refusal(answer->error());
    }
  } catch (const BadRequest& error) {
    return answer_error(response, 400, "invalid_request_error", error.what());
  } catch (const Refusal& error) {
    return answer_error(response, 503, "server_error", error.what());
  }
  if (stream) {
    response.set_chunked_content_provider(
        "text/event-stream", [answer](std::size_t, DataSink& sink) { return answer->write(sink); });
    return;
  }
  // Not set_content(): the answer must be there until it is written.
  const std::string text = line(answer->whole());
  response.set_content_provider(
      text.size(), kJson, [answer, text](std::size_t offset, std::size_t length, DataSink& sink) {
        return sink.write(text.data() + offset, length);
      });
}

std::string metrics_text(HttpState& state) {
  auto metrics = state.engine.metrics();
  {
    const std::lock_guard lock(state.mutex);
    metrics["requests_refused_total"] = state.refused;
  }
  std::string text;
  for (const auto& [name, value] : metrics) {
    const char* type = name.ends_with("_total") ? " counter" : " gauge";
    text.append("# TYPE braid_").append(name).append(type);
    text.append("\nbraid_").append(name).append(" ").append(std::to_string(value)).append("\n");
  }
  return text;
}

}  // namespace

HttpServer::HttpServer(Engine& engine, const Language& language, std::string model,
                       const std::string& host, int port)
    : state_(new HttpState{.engine = engine, .model = std::move(model), .language = language}),
      server_(std::make_unique<httplib::Server>()) {
  const std::time_t start = std::time(nullptr);
  // A thread writes one answer; the others refuse, and tell of health and metrics.
  server_->new_task_queue = [] { return new httplib::ThreadPool(kMaxRequests + 32); };
  server_->set_payload_max_length(kMaxBody);
  server_->set_keep_alive_timeout(1);
  server_->set_tcp_nodelay(true);
  // Not httplib's default, with which two servers share a port.
  int listening = -1;
  server_->set_socket_options([&listening](auto socket) {
    listening = socket;
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server_->Post("/v1/(chat/)?completions",
                [state = state_](const httplib::Request& request, Response& response) {
                  complete(state, request, response);
                });
  server_->Get("/health", [state = state_](const httplib::Request&, Response& response) {
    const std::lock_guard lock(state->mutex);
    response.status = state->end.empty() ? 200 : 503;
    response.set_content(line({{"status", state->end.empty() ? "ok" : state->end}}), kJson);
  });
  server_->Get("/v1/models", [state = state_, start](const httplib::Request&, Response& response) {
    const json model = {
        {"id", state->model}, {"object", "model"}, {"created", start}, {"owned_by", "braid"}};
    response.set_content(line({{"object", "list"}, {"data", json::array({model})}}), kJson);
  });
  server_->Get("/metrics", [state = state_](const httplib::Request&, Response& response) {
    response.set_content(metrics_text(*state), "text/plain; version=0.0.4");
  });
  server_->set_error_handler([](const httplib::Request& request, Response& response) {
    if (!response.body.empty()) return;
    answer_error(response, response.status, "invalid_request_error",
                 response.status == 404   ? "there is no " + request.method + " " + request.path
                 : response.status == 413 ? "the body is too long"
                                          : "this is no request that the server understands");
  });
  server_->set_exception_handler(
      [](const httplib::Request&, Response& response, const std::exception_ptr&) {
        answer_error(response, 500, "server_error", "the server could not handle this request");
      });
  port_ =
      port == 0 ? server_->bind_to_any_port(host) : (server_->bind_to_port(host, port) ? port : -1);
  if (port_ < 0) throw std::runtime_error(host + ":" + std::to_string(port) + ": is not free");
  // httplib lets five clients wait until it accepts them; Linux resets some of those that are more.
  ::listen(listening, 4 * kMaxRequests);
  server_->set_socket_options(nullptr);  // it has done its work
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

void HttpServer::drain(const std::string& why) {
  std::unique_lock lock(state_->mutex);
  state_->end = why;
  state_->changed.wait(lock, [&] { return state_->requests == 0; });
}

HttpServer::~HttpServer() {
  server_->stop();
  thread_.join();
}

}  // namespace server
