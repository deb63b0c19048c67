#include "lowering/plan/step_order.h"

#include <algorithm>
#include <map>

namespace braid {

StepOrder::StepOrder(std::span<const Step> steps) {
  for (const Step& step : steps) streams_ = std::max(streams_, step.stream + 1);
  on_stream_.resize(streams_);
  std::vector<std::vector<int>> clock(streams_, std::vector<int>(streams_, 0));
  std::map<int, std::vector<int>> recorded;  // event -> what had come before, and the record itself
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    std::vector<int>& now = clock[step.stream];
    if (step.kind == Step::Kind::kEventWait) {
      if (const auto found = recorded.find(step.event); found != recorded.end()) {
        for (std::size_t i = 0; i < now.size(); ++i) now[i] = std::max(now[i], found->second[i]);
      }
    }
    std::vector<int>& order = on_stream_[step.stream];
    stream_.push_back(step.stream);
    position_.push_back(order.size());
    if (streams_ > 1) seen_.insert(seen_.end(), now.begin(), now.end());
    order.push_back(s);
    now[step.stream] = order.size();
    if (step.kind == Step::Kind::kEventRecord) recorded[step.event] = now;
  }
}

int StepOrder::end_of(std::span<const int> steps) const {
  int end = *std::ranges::max_element(steps);
  if (streams_ == 1) return end;
  for (const std::vector<int>& order : on_stream_) {
    // On each stream, the steps that follow them all are the last ones.
    const auto follows = [&](int step) {
      return std::ranges::all_of(steps, [&](int s) { return before(s, step); });
    };
    const auto first =
        std::ranges::partition_point(order, [&](int step) { return !follows(step); });
    if (first != order.begin()) end = std::max(end, *std::prev(first));
  }
  return end;
}

}  // namespace braid
