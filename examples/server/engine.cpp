#include "engine.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

namespace server {

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

void Ticket::finish(Finish how) {
  const std::lock_guard lock(mutex_);
  news_.finish = how;
  changed_.notify_one();
}

Engine::Engine(braid::ExportedModel& model)
    : model_(model), pool_(limits().pages, limits().page_size) {
  metrics_.pages = metrics_.free_pages = limits().pages;
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

std::int64_t Engine::room() const {
  return std::min(limits().context, limits().pages * limits().page_size);
}

std::string Engine::refusal(const Request& request) const {
  for (const auto* ids : {&request.prompt, &request.stop}) {
    for (const std::int32_t id : *ids) {
      if (id >= 0 && id < limits().vocabulary) continue;
      return "found the token " + std::to_string(id) + "; expected one from 0 to " +
             std::to_string(limits().vocabulary - 1);
    }
  }
  const std::int64_t prompt = std::ssize(request.prompt);
  if (prompt + request.max_tokens <= room()) return {};
  return "found " + std::to_string(prompt) + " tokens of a prompt and max_tokens " +
         std::to_string(request.max_tokens) + "; expected at most " + std::to_string(room()) +
         " together";
}

std::shared_ptr<Ticket> Engine::submit(Request request) {
  auto ticket = std::make_shared<Ticket>(std::move(request));
  const std::lock_guard lock(mutex_);
  waiting_.push_back({ticket, ticket->request().prompt, {}});
  ++metrics_.requests;
  changed_.notify_one();
  return ticket;
}

EngineMetrics Engine::metrics() const {
  const std::lock_guard lock(mutex_);
  EngineMetrics result = metrics_;
  result.waiting = std::ssize(waiting_);
  return result;
}

void Engine::work() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      metrics_.running = std::ssize(running_);
      metrics_.free_pages = pool_.free_pages();
      changed_.wait(lock, [&] { return stopping_ || !running_.empty() || !waiting_.empty(); });
      if (stopping_) break;
      drop_ended();
      admit();
      metrics_.running = std::ssize(running_);
    }
    schedule();
    if (!running_.empty()) step();
  }
  for (Sequence& sequence : running_) sequence.ticket->finish(Finish::kFailed);
  for (Sequence& sequence : waiting_) sequence.ticket->finish(Finish::kFailed);
}

void Engine::drop_ended() {
  const auto ended = [&](Sequence& sequence) {
    const bool stopped = sequence.ticket->stopped();
    if (!stopped && !sequence.ticket->cancelled()) return false;
    give_back(sequence);
    metrics_.cancelled += stopped ? 0 : 1;
    return true;
  };
  std::erase_if(running_, ended);
  std::erase_if(waiting_, ended);
}

/// Lets sequences in whose tokens the free pages can take, with a page for each to grow. One that
/// is alone always fits (refusal).
void Engine::admit() {
  const auto wanted = [&](const Sequence& sequence) {
    return pool_.pages_for(std::ssize(sequence.tokens)) + 1 - std::ssize(sequence.pages.pages);
  };
  std::int64_t left = pool_.free_pages();
  for (const Sequence& sequence : running_) left -= wanted(sequence);
  while (!waiting_.empty() && std::ssize(running_) < limits().max_sequences) {
    if (left <= 0 && !running_.empty()) break;
    Sequence& next = waiting_.front();
    left -= pool_.free_pages();
    next.cached = pool_.reuse(next.pages, next.tokens);
    left += pool_.free_pages() - wanted(next);
    if (left < 0 && !running_.empty()) {
      give_back(next);
      break;
    }
    next.ticket->begin(next.cached);
    metrics_.reused_tokens += next.cached;
    running_.push_back(std::move(next));
    waiting_.pop_front();
  }
}

/// Chooses the tokens of the next step, and gives their sequences pages.
void Engine::schedule() {
  std::int64_t budget = limits().max_tokens;
  for (Sequence& sequence : running_) sequence.taken = 0;
  for (const bool decode : {true, false}) {
    // The youngest may leave while others grow.
    for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
      if ((running_[i].pending() == 1) != decode) continue;
      const std::int64_t count = std::min(budget, running_[i].pending());
      if (!grow(i, count)) break;  // it was the youngest itself
      running_[i].taken = count;
      budget -= count;
    }
  }
}

/// Gives a sequence the pages of its next `count` tokens; while none is free, the youngest sequence
/// loses its own and waits again. False where that was this one.
bool Engine::grow(std::size_t index, std::int64_t count) {
  while (!pool_.grow(running_[index].pages, running_[index].cached + count)) {
    Sequence youngest = std::move(running_.back());
    running_.pop_back();
    give_back(youngest);
    const std::lock_guard lock(mutex_);
    waiting_.push_front(std::move(youngest));
    ++metrics_.preempted;
    if (index == running_.size()) return false;
  }
  return true;
}

void Engine::give_back(Sequence& sequence) {
  pool_.release(sequence.pages);
  sequence.cached = 0;
}

void Engine::step() {
  braid::ModelBatch batch;
  std::vector<std::size_t> rows;  // of the batch, as indices of running_
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = running_[i];
    if (sequence.taken == 0) continue;
    rows.push_back(i);
    batch.append(limits(), sequence.tokens, sequence.cached, sequence.taken, sequence.pages.pages);
    sequence.cached += sequence.taken;
  }
  std::int64_t chosen = 0;
  const std::int64_t vocabulary = limits().vocabulary;
  try {
    const std::vector<double> logits = model_.run(batch);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      Sequence& sequence = running_[rows[row]];
      pool_.keep(sequence.pages, std::span(sequence.tokens).first(sequence.cached));
      if (sequence.pending() > 0) continue;  // part of a prompt
      ++chosen;
      sequence.finish = choose(sequence, std::span(logits).subspan(row * vocabulary, vocabulary));
    }
  } catch (const std::exception& error) {
    // What the caches hold is lost, so everything that runs has failed. The next run starts afresh.
    std::fprintf(stderr, "braid-server: error: %s\n", error.what());
    pool_.forget();
    for (Sequence& sequence : running_) sequence.finish = Finish::kFailed;
  }
  const std::lock_guard lock(mutex_);
  ++metrics_.steps;
  metrics_.tokens += chosen;
  metrics_.computed_tokens += std::ssize(batch.tokens);
  std::erase_if(running_, [&](Sequence& sequence) {
    if (sequence.finish == Finish::kNone) return false;
    metrics_.failed += sequence.finish == Finish::kFailed ? 1 : 0;
    give_back(sequence);
    sequence.ticket->finish(sequence.finish);
    return true;
  });
}

/// Appends the next token to a sequence.
Finish Engine::choose(Sequence& sequence, std::span<const double> logits) {
  const Request& request = sequence.ticket->request();
  Token token{braid::choose_token(logits, request.sampling, sequence.cached)};
  for (const auto* stops : {&limits().end_of_text, &request.stop}) {
    if (std::ranges::find(*stops, token.id) != stops->end()) return Finish::kStop;
  }
  if (request.logprobs) token.logprob = braid::log_probability(logits, token.id);
  sequence.tokens.push_back(token.id);
  sequence.ticket->add(token);
  const std::int64_t count = std::ssize(sequence.tokens) - std::ssize(request.prompt);
  return count == request.max_tokens ? Finish::kLength : Finish::kNone;
}

}  // namespace server
