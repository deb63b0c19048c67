#include "braid/batch_scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/fail.h"

namespace braid {

BatchScheduler::BatchScheduler(ModelLimits limits)
    : limits_(std::move(limits)), pool_(limits_.pages, limits_.page_size) {}

void BatchScheduler::add(std::uint64_t sequence, std::vector<std::int32_t> tokens) {
  if (tokens.empty()) throw_invalid("tokens", "found none; expected one at least");
  if (const std::string why = limits_.refusal(tokens, 0); !why.empty()) {
    throw_invalid("tokens", "{}", why);
  }
  const auto has = [&](const auto& list) {
    return std::ranges::find(list, sequence, &Sequence::number) != list.end();
  };
  if (has(running_) || has(waiting_)) throw_invalid("sequence", "{} is there already", sequence);
  waiting_.push_back({.number = sequence, .tokens = std::move(tokens), .pages = {}});
}

void BatchScheduler::append(std::uint64_t sequence, std::int32_t token) {
  const auto it = std::ranges::find(running_, sequence, &Sequence::number);
  if (it == running_.end()) throw_invalid("sequence", "{} does not run", sequence);
  if (const std::string why = limits_.refusal({&token, 1}, std::ssize(it->tokens)); !why.empty()) {
    throw_invalid("token", "{}", why);
  }
  it->tokens.push_back(token);
}

void BatchScheduler::remove(std::uint64_t sequence) {
  const auto is_it = [&](Sequence& each) {
    if (each.number != sequence) return false;
    pool_.release(each.pages);
    return true;
  };
  std::erase_if(running_, is_it);
  std::erase_if(waiting_, is_it);
}

ScheduledStep BatchScheduler::next(std::int64_t max_tokens) {
  admit();
  take(std::min(max_tokens, limits_.max_tokens));
  ScheduledStep step;
  for (Sequence& each : running_) {
    if (each.taken == 0) continue;
    step.batch.append(limits_, each.tokens, each.cached, each.taken, each.pages.pages);
    each.cached += each.taken;
    step.rows.push_back({each.number, each.pending() == 0, each.reused});
  }
  return step;
}

void BatchScheduler::done() {
  for (Sequence& each : running_) {
    if (each.taken == 0) continue;
    pool_.keep(each.pages, std::span(each.tokens).first(each.cached));
    each.taken = 0;
  }
}

std::vector<std::uint64_t> BatchScheduler::failed() {
  pool_.forget();
  std::vector<std::uint64_t> ran;
  for (Sequence& each : running_) {
    pool_.release(each.pages);
    ran.push_back(each.number);
  }
  running_.clear();
  return ran;
}

/// Lets sequences in whose tokens the free pages can take, with a page for each to grow. One that
/// is alone always fits.
void BatchScheduler::admit() {
  const auto wanted = [&](const Sequence& sequence) {
    return pool_.pages_for(std::ssize(sequence.tokens)) + 1 - std::ssize(sequence.pages.pages);
  };
  std::int64_t left = pool_.free_pages();
  for (const Sequence& sequence : running_) left -= wanted(sequence);
  while (!waiting_.empty() && running() < limits_.max_sequences) {
    if (left <= 0 && !running_.empty()) break;
    Sequence& next = waiting_.front();
    left -= pool_.free_pages();
    next.cached = pool_.reuse(next.pages, next.tokens);
    left += pool_.free_pages() - wanted(next);
    if (left < 0 && !running_.empty()) {
      pool_.release(next.pages);
      break;
    }
    if (next.reused < 0) next.reused = next.cached;
    reused_ += next.cached;
    running_.push_back(std::move(next));
    waiting_.pop_front();
  }
}

/// Chooses the tokens of the next run, and gives their sequences pages.
void BatchScheduler::take(std::int64_t budget) {
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
bool BatchScheduler::grow(std::size_t index, std::int64_t count) {
  while (!pool_.grow(running_[index].pages, running_[index].cached + count)) {
    Sequence youngest = std::move(running_.back());
    running_.pop_back();
    pool_.release(youngest.pages);
    waiting_.push_front(std::move(youngest));
    ++preempted_;
    if (index == running_.size()) return false;
  }
  return true;
}

}  // namespace braid
