#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "engine.h"
#include "protocol.h"

namespace httplib {
class Server;
}

namespace server {

struct HttpState;

/// Requests that run or wait at once; more are told to come back.
inline constexpr int kMaxRequests = 64;

/// OpenAI's protocol of completions in front of an engine (docs/server.md).
class HttpServer {
 public:
  /// Listens at once; port 0 is any that is free. Throws std::runtime_error where the address
  /// cannot be had. `model` is the name that answers state.
  HttpServer(Engine& engine, const Language& language, std::string model, const std::string& host,
             int port);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  /// Refuses new requests, with `why`, and returns once those that are there have their answers.
  void drain(const std::string& why);

 private:
  std::shared_ptr<HttpState> state_;
  std::unique_ptr<httplib::Server> server_;
  int port_ = 0;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace server
