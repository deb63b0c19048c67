#pragma once

#include <braid/exported_model.h>
#include <braid/page_pool.h>
#include <braid/sampling.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace server {

struct Request {
  std::vector<std::int32_t> prompt;  ///< at least one token
  std::int64_t max_tokens = 16;
  braid::Sampling sampling;        ///< a request with the same seed gets the same tokens
  std::vector<std::int32_t> stop;  ///< ends the answer, and is no part of it
  bool logprobs = false;           ///< whether Token::logprob is wanted
};

/// A token of an answer.
struct Token {
  std::int32_t id = 0;
  double logprob = 0;  ///< logarithm of its probability at temperature 1, where it is wanted
};

enum class Finish { kNone, kStop, kLength, kFailed };

/// A request on its way. The engine adds tokens, a thread of HTTP takes them.
class Ticket {
 public:
  explicit Ticket(Request request) : request_(std::move(request)) {}
  [[nodiscard]] const Request& request() const { return request_; }

  struct News {
    std::vector<Token> tokens;
    Finish finish = Finish::kNone;
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
  void begin(std::int64_t reused) { reused_ = reused_ < 0 ? reused : reused_.load(); }
  [[nodiscard]] std::int64_t reused() const { return std::max<std::int64_t>(0, reused_); }
  void add(Token token);
  void finish(Finish how);

 private:
  const Request request_;
  std::atomic<bool> cancelled_ = false, stopped_ = false;
  std::atomic<std::int64_t> reused_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  News news_;
};

/// Counters since the start, and what is there at the moment.
struct EngineMetrics {
  std::int64_t requests = 0, cancelled = 0, failed = 0, preempted = 0;
  std::int64_t steps = 0;
  std::int64_t computed_tokens = 0;  ///< that went through the model, prompts included
  std::int64_t reused_tokens = 0;    ///< that the cache had when their sequence began
  std::int64_t tokens = 0;           ///< that were chosen
  std::int64_t running = 0, waiting = 0, pages = 0, free_pages = 0;
};

/// Continuous batching over a paged cache. A thread of its own runs the model: in each step one
/// token of each sequence that decodes, and parts of prompts in what is left of
/// ModelLimits::max_tokens. Pages are taken as sequences grow, and those of equal begins are
/// shared. When none is free, the youngest sequence loses its own, and is computed again later; its
/// tokens stay the same, as those of any request do, whatever runs beside it or was in the cache.
class Engine {
 public:
  explicit Engine(braid::ExportedModel& model);
  ~Engine();  ///< ends once the current step is done; what still runs fails
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const braid::ModelLimits& limits() const { return model_.limits(); }
  /// The most tokens of a sequence.
  [[nodiscard]] std::int64_t room() const;
  /// Why a request can never run, on one line; empty if it can.
  [[nodiscard]] std::string refusal(const Request& request) const;
  /// Takes a request that nothing speaks against.
  std::shared_ptr<Ticket> submit(Request request);
  [[nodiscard]] EngineMetrics metrics() const;

 private:
  struct Sequence {
    std::shared_ptr<Ticket> ticket;
    std::vector<std::int32_t> tokens;  ///< the prompt and what was chosen
    braid::SequencePages pages;
    std::int64_t cached = 0;  ///< tokens that the cache has
    std::int64_t taken = 0;   ///< tokens of the step at hand, behind those
    Finish finish = Finish::kNone;
    [[nodiscard]] std::int64_t pending() const { return std::ssize(tokens) - cached; }
  };

  // The engine's thread calls these.
  void work();
  void drop_ended();
  void admit();
  void schedule();
  bool grow(std::size_t index, std::int64_t count);
  void give_back(Sequence& sequence);
  void step();
  [[nodiscard]] Finish choose(Sequence& sequence, std::span<const double> logits);

  braid::ExportedModel& model_;
  braid::PagePool pool_;
  /// Oldest first. All of them are older than those that wait.
  std::vector<Sequence> running_;

  mutable std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  std::deque<Sequence> waiting_;
  EngineMetrics metrics_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace server
