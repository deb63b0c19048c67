#include "engine.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <utility>

namespace server {
namespace {

/// Of this thread, in microseconds.
std::int64_t processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1'000;
}

}  // namespace

Ticket::News Ticket::wait(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit,
                    [&] { return !news_.tokens.empty() || news_.finish != Finish::kNone; });
  return std::exchange(news_, {});
}

void Ticket::add(Token token) {
  const std::lock_guard lock(mutex_);
  news_.tokens.push_back(token);
  changed_.notify_one();
}

void Ticket::finish(Finish how, std::string error) {
  const std::lock_guard lock(mutex_);
  news_.finish = how;
  news_.error = std::move(error);
  changed_.notify_one();
}

Engine::Engine(braid::ExportedModel& model) : model_(model), scheduler_(limits()) {
  note();
  thread_ = std::thread([this] { work(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

std::shared_ptr<Ticket> Engine::submit(Request request) {
  auto ticket = std::make_shared<Ticket>(std::move(request));
  const std::lock_guard lock(mutex_);
  arrived_.push_back(ticket);
  ++metrics_["requests_total"];
  changed_.notify_one();
  return ticket;
}

std::map<std::string, std::int64_t> Engine::metrics() const {
  const std::lock_guard lock(mutex_);
  auto result = metrics_;
  result["waiting"] += std::ssize(arrived_);
  return result;
}

void Engine::work() {
  for (std::uint64_t next = 0;;) {
    note();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !arrived_.empty() || !sequences_.empty(); });
      if (stopping_) break;
      for (auto& ticket : std::exchange(arrived_, {})) {
        const std::vector<std::int32_t>& prompt = ticket->request().prompt;
        scheduler_.add(next, prompt);
        sequences_[next++] = {std::move(ticket), std::ssize(prompt)};
      }
    }
    step();
  }
  for (auto& [number, sequence] : sequences_) sequence.ticket->finish(Finish::kFailed);
  for (auto& ticket : arrived_) ticket->finish(Finish::kFailed);
}

void Engine::step() {
  std::int64_t begin = processor_time();
  for (auto it = sequences_.begin(); it != sequences_.end();) {
    const std::uint64_t number = it->first;
    const std::shared_ptr<Ticket> ticket = (it++)->second.ticket;
    if (!ticket->stopped() && !ticket->cancelled()) continue;
    if (!ticket->stopped()) count("requests_cancelled_total");
    end(number);
  }
  const braid::ScheduledStep step = scheduler_.next(model_.ready_tokens());
  if (step.rows.empty()) return;
  count("steps_total");
  count("computed_tokens_total", std::ssize(step.batch.tokens));
  note();
  try {
    const std::int64_t run = processor_time();
    const std::vector<double> logits = model_.run(step.batch);
    begin += processor_time() - run;
    scheduler_.done();
    count("tokens_total", std::ranges::count_if(step.rows, &braid::ScheduledStep::Row::whole));
    for (std::size_t row = 0; row < step.rows.size(); ++row) {
      const auto& [number, whole, reused] = step.rows[row];
      const auto ticket = sequences_.at(number).ticket;
      ticket->begin(reused);
      if (!whole) continue;  // part of a prompt
      const std::int64_t vocabulary = limits().vocabulary;
      const Finish finish = choose(number, std::span(logits).subspan(row * vocabulary, vocabulary));
      if (finish == Finish::kNone) continue;
      end(number);
      ticket->finish(finish);
    }
    count("host_microseconds_total", processor_time() - begin);
  } catch (const std::exception& error) {
    // What the cache holds is lost, so everything that runs has failed.
    std::string why = model_.lost();
    if (why.empty()) std::fprintf(stderr, "braid-server: error: %s\n", error.what());
    if (why.empty()) why = "the run failed";
    for (const std::uint64_t number : scheduler_.failed()) {
      count("requests_failed_total");
      sequences_.at(number).ticket->finish(Finish::kFailed, why);
      sequences_.erase(number);
    }
  }
}

/// Appends the next token to a sequence.
Finish Engine::choose(std::uint64_t number, std::span<const double> logits) {
  Sequence& sequence = sequences_.at(number);
  const Request& request = sequence.ticket->request();
  Token token{braid::choose_token(logits, request.sampling, sequence.tokens)};
  for (const auto* stops : {&limits().end_of_text, &request.stop}) {
    if (std::ranges::find(*stops, token.id) != stops->end()) return Finish::kStop;
  }
  if (request.logprobs) token.logprob = braid::log_probability(logits, token.id);
  scheduler_.append(number, token.id);
  sequence.ticket->add(token);
  ++sequence.tokens;
  return sequence.tokens - std::ssize(request.prompt) == request.max_tokens ? Finish::kLength
                                                                            : Finish::kNone;
}

void Engine::end(std::uint64_t number) {
  scheduler_.remove(number);
  sequences_.erase(number);
}

void Engine::note() {
  const std::lock_guard lock(mutex_);
  metrics_["running"] = scheduler_.running();
  metrics_["waiting"] = scheduler_.waiting();
  metrics_["pages"] = limits().pages;
  metrics_["pages_free"] = scheduler_.free_pages();
  metrics_["preemptions_total"] = scheduler_.preempted();
  metrics_["reused_tokens_total"] = scheduler_.reused();
}

void Engine::count(const std::string& what, std::int64_t more) {
  const std::lock_guard lock(mutex_);
  metrics_[what] += more;
}

}  // namespace server
