#include "engine.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iterator>
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

void Ticket::tell(const std::optional<braid::ChosenToken>& token, Finish finish,
                  const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (token) news_.tokens.push_back(*token);
  news_.finish = finish;
  news_.error = error;
  changed_.notify_one();
}

Engine::Engine(braid::ExportedModel& model) : model_(model), scheduler_(limits()) {
  note();
  thread_ = std::thread([this] { work(); });
  postman_ = std::thread([this] { deliver(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
  postman_.join();
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
  for (auto& [number, sequence] : sequences_) {
    messages_.push_back({sequence.ticket, {}, Finish::kFailed});
  }
  for (auto& ticket : arrived_) messages_.push_back({ticket, {}, Finish::kFailed});
  post(true);
}

void Engine::deliver() {
  for (bool was_last = false; !was_last;) {
    std::vector<Message> messages;
    {
      std::unique_lock lock(mutex_);
      mail_.wait(lock, [&] { return last_posted_ || !posted_.empty(); });
      messages.swap(posted_);
      was_last = last_posted_;
    }
    for (const auto& [ticket, token, finish, error] : messages) ticket->tell(token, finish, error);
  }
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
  std::vector<braid::Sampling> sampling;
  std::vector<Sequence*> sequences;
  for (const auto& row : step.rows) {
    sequences.push_back(&sequences_.at(row.sequence));
    sampling.push_back(sequences.back()->ticket->request().sampling);
  }
  try {
    const std::int64_t run = processor_time();
    const std::vector<braid::ChosenToken> chosen = model_.choose(step.batch, sampling);
    begin += processor_time() - run;
    scheduler_.done();
    count("tokens_total", std::ranges::count_if(step.rows, &braid::ScheduledStep::Row::whole));
    for (std::size_t row = 0; row < step.rows.size(); ++row) {
      const auto& [number, whole, reused] = step.rows[row];
      Sequence& sequence = *sequences[row];
      sequence.ticket->begin(reused);
      if (whole && !append(sequence, number, chosen[row])) end(number);  // else a prompt goes on
    }
    post();
    count("host_microseconds_total", processor_time() - begin);
  } catch (const std::exception& error) {
    // What the cache holds is lost, so everything that runs has failed.
    std::string why = model_.lost();
    if (why.empty()) std::fprintf(stderr, "braid-server: error: %s\n", error.what());
    if (why.empty()) why = "the run failed";
    for (const std::uint64_t number : scheduler_.failed()) {
      count("requests_failed_total");
      messages_.push_back({sequences_.at(number).ticket, {}, Finish::kFailed, why});
      sequences_.erase(number);
    }
    post();
  }
}

bool Engine::append(Sequence& sequence, std::uint64_t number, braid::ChosenToken token) {
  const Request& request = sequence.ticket->request();
  for (const auto* stops : {&limits().end_of_text, &request.stop}) {
    if (std::ranges::find(*stops, token.id) == stops->end()) continue;
    messages_.push_back({sequence.ticket, {}, Finish::kStop});
    return false;
  }
  scheduler_.append(number, token.id);
  const bool is_full = ++sequence.tokens - std::ssize(request.prompt) == request.max_tokens;
  messages_.push_back({sequence.ticket, token, is_full ? Finish::kLength : Finish::kNone});
  return !is_full;
}

void Engine::post(bool is_last) {
  const std::lock_guard lock(mutex_);
  std::ranges::move(messages_, std::back_inserter(posted_));
  messages_.clear();
  last_posted_ = is_last;
  mail_.notify_one();
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
