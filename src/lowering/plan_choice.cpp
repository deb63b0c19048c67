#include "lowering/plan_choice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lowering/fuse/kernel_body.h"

namespace braid {
namespace {

constexpr ReasonCode kTuned{
    "tuned.taken", "{option}: {us:.1f} us {measure}{others}; by the cost model it is {model}"};
constexpr ReasonCode kOther{"tuned.other", " ({option}: {us:.1f} us)"};
constexpr ReasonCode kWhy{"tuned.why", "{why}"};
constexpr ReasonCode kNoTime{"tuned.no_time", "the database has no time of {option}"};
constexpr ReasonCode kOtherMeasure{"tuned.other_measure",
                                   "the database has {option} {measure}, {other} {other_measure}"};

}  // namespace

ChooseTuned::Answer ChooseTuned::operator()(PlanChoice choice) {
  Answer found = answer(choice);
  choice.taken = found.taken;
  if (context_.choices != nullptr) context_.choices->push_back(std::move(choice));
  return found;
}

ChooseTuned::Answer ChooseTuned::answer(const PlanChoice& choice) {
  Answer answer{choice.by_model, {}, false};
  if (!context_.tuned) return answer;
  const std::vector<PlanOption>& options = choice.options;
  std::vector<std::optional<double>> ns;
  const PlanOption* first = nullptr;  // the first with a known time
  std::string measure;
  Reason why_not;
  for (const PlanOption& option : options) {
    std::optional<double> sum = 0;
    for (const std::shared_ptr<const Graph>& kernel : option.kernels) {
      const Tuned& known = tuned(*kernel);
      if (!known.config && !known.remark.empty() && !why_not) why_not = Reason(kWhy, known.remark);
      if (!known.default_ns) {
        sum.reset();
        break;
      }
      *sum += *known.default_ns;
      if (first == nullptr) {
        first = &option;
        measure = known.measure;
      } else if (known.measure != measure && !why_not) {
        why_not = Reason(kOtherMeasure, first->name, measure, option.name, known.measure);
      }
    }
    ns.push_back(sum);
  }
  const auto missing = std::find(ns.begin(), ns.end(), std::nullopt);
  if (!why_not && first != nullptr && missing != ns.end()) {
    why_not = Reason(kNoTime, options[missing - ns.begin()].name);
  }
  if (why_not || first == nullptr) {
    answer.why = why_not;
    return answer;
  }
  answer.taken = std::ranges::min_element(ns) - ns.begin();
  answer.is_tuned = true;
  std::vector<Reason> others;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (i != answer.taken) others.emplace_back(kOther, options[i].name, *ns[i] / 1e3);
  }
  answer.why = Reason(kTuned, options[answer.taken].name, *ns[answer.taken] / 1e3, measure,
                      std::move(others), options[choice.by_model].name);
  return answer;
}

const Tuned& ChooseTuned::tuned(const Graph& body) {
  const auto [entry, is_new] = known_.try_emplace(body_key(body));
  if (is_new) entry->second = context_.tuned(body);
  return entry->second;
}

}  // namespace braid
