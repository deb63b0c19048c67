#pragma once

#include <braid/batch_scheduler.h>
#include <braid/exported_model.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace server {

struct Request {
  std::vector<std::int32_t> prompt;  ///< at least one token
  std::int64_t max_tokens = 16;
  braid::Sampling sampling;        ///< a request with the same seed gets the same tokens
  std::vector<std::int32_t> stop;  ///< ends the answer, and is no part of it
};

enum class Finish { kNone, kStop, kLength, kFailed };

/// A request on its way. The engine tells of tokens, a thread of HTTP takes them.
class Ticket {
 public:
  explicit Ticket(Request request) : request_(std::move(request)) {}
  [[nodiscard]] const Request& request() const { return request_; }

  struct News {
    std::vector<braid::ChosenToken> tokens;
    Finish finish = Finish::kNone;
    std::string error;  ///< why it failed
  };
  /// What is new since the last call; waits for it, but no longer than `limit`.
  News wait(std::chrono::milliseconds limit);
  /// Nobody takes the answer any more.
  void cancel() { cancelled_ = true; }
  [[nodiscard]] bool cancelled() const { return cancelled_; }
  /// The answer has all tokens that it needs.
  void stop() { stopped_ = true; }
  [[nodiscard]] bool stopped() const { return stopped_; }

  /// The request runs; so many tokens of its prompt were in the cache. Later calls change nothing.
  void begin(std::int64_t reused) {
    if (reused_ < 0) reused_ = reused;
  }
  [[nodiscard]] std::int64_t reused() const { return std::max<std::int64_t>(0, reused_); }
  /// Another token, and whether the answer ends with it.
  void tell(const std::optional<braid::ChosenToken>& token, Finish finish,
            const std::string& error);

 private:
  const Request request_;
  std::atomic<bool> cancelled_ = false, stopped_ = false;
  std::atomic<std::int64_t> reused_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  News news_;
};

/// Answers requests by continuous batching (braid::BatchScheduler). A thread of its own runs the
/// model, and another one wakes those that take its tokens: with many clients that takes longer
/// than to prepare a run. The tokens of a request are the same whatever runs beside it or was in
/// the cache.
class Engine {
 public:
  explicit Engine(braid::ExportedModel& model);
  ~Engine();  ///< ends once the current step is done; what still runs fails
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const braid::ModelLimits& limits() const { return model_.limits(); }
  /// Takes a request that nothing speaks against (ModelLimits::refusal).
  std::shared_ptr<Ticket> submit(Request request);
  /// What is there at the moment, and counters since the start, whose names end in `_total`.
  [[nodiscard]] std::map<std::string, std::int64_t> metrics() const;

 private:
  struct Sequence {
    std::shared_ptr<Ticket> ticket;
    std::int64_t tokens;  ///< the prompt's, and those that were chosen
  };

  struct Message {
    std::shared_ptr<Ticket> ticket;
    std::optional<braid::ChosenToken> token;
    Finish finish = Finish::kNone;
    std::string error = {};
  };

  /// Gives messages to their tickets, on a thread of its own.
  void deliver();
  // The engine's thread calls these.
  void work();
  void step();
  /// Appends a token to a sequence; whether that goes on.
  bool append(Sequence& sequence, std::uint64_t number, braid::ChosenToken token);
  /// Takes a sequence out.
  void end(std::uint64_t number);
  /// Hands the messages of this step to deliver(), which ends after the last ones.
  void post(bool is_last = false);
  /// Notes the scheduler's numbers for metrics().
  void note();
  void count(const std::string& what, std::int64_t more = 1);

  braid::ExportedModel& model_;
  braid::BatchScheduler scheduler_;
  std::map<std::uint64_t, Sequence> sequences_;  ///< by number
  std::vector<Message> messages_;                ///< of this step

  mutable std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Ticket>> arrived_;
  std::map<std::string, std::int64_t> metrics_ = {
      {"requests_total", 0},
      {"requests_cancelled_total", 0},
      {"requests_failed_total", 0},
      {"preemptions_total", 0},
      {"steps_total", 0},
      {"host_microseconds_total", 0},  ///< processor time of steps, outside of runs
      {"computed_tokens_total", 0},    ///< that went through the model, prompts included
      {"reused_tokens_total", 0},      ///< that the cache had when their sequence began
      {"tokens_total", 0}};            ///< that were chosen
  bool stopping_ = false, last_posted_ = false;
  std::vector<Message> posted_;
  std::condition_variable mail_;
  std::thread thread_, postman_;
};

}  // namespace server
