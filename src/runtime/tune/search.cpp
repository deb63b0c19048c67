#include "runtime/tune/search.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

/// The distance of two configurations: doublings, summed over all settings.
double distance(const Config& a, const Config& b) {
  double sum = 0;
  for (const auto& [name, value] : a) {
    const auto other = b.find(name);
    if (other == b.end()) continue;
    // Settings that start at 0 are not searched.
    if (value <= 0 || other->second <= 0) continue;
    sum += std::abs(std::log2(static_cast<double>(value) / static_cast<double>(other->second)));
  }
  return sum;
}

/// Whether one setting differs, by at most a factor of two.
bool one_step(const Config& a, const Config& b) { return distance(a, b) <= 1; }

class Search {
 public:
  explicit Search(const SearchSpace& space)
      : space_(space), ns_(space.candidates.size()), tried_(space.candidates.size(), false) {}

  void note(std::size_t candidate, std::optional<double> ns) {
    tried_[candidate] = true;
    ns_[candidate] = ns;
    // A candidate that does not run counts as this much slower than estimated, so its neighbours do
    // too.
    constexpr double kFailed = 4;
    const double off = ns ? *ns / space_.rough_ns[candidate] : kFailed;
    seen_.push_back({candidate, std::log(off)});
  }

  /// At most `count` untried candidates: alternately the most promising of all, and of those one
  /// step from the best.
  [[nodiscard]] std::vector<std::size_t> next(std::size_t count) const {
    std::vector<std::pair<double, std::size_t>> left;
    for (std::size_t c = 0; c < tried_.size(); ++c) {
      if (!tried_[c]) left.emplace_back(promise(c), c);
    }
    std::ranges::sort(left);
    const std::optional<std::size_t> best = quickest(ns_);
    std::vector<std::size_t> chosen;
    while (chosen.size() < count && !left.empty()) {
      auto pick = left.begin();
      if (best && (seen_.size() + chosen.size()) % 2 == 0) {
        const auto near = std::ranges::find_if(left, [&](const auto& candidate) {
          return one_step(space_.candidates[candidate.second], space_.candidates[*best]);
        });
        if (near != left.end()) pick = near;
      }
      chosen.push_back(pick->second);
      left.erase(pick);
    }
    return chosen;
  }

  [[nodiscard]] std::vector<std::optional<double>> take() { return std::move(ns_); }

 private:
  struct Seen {
    std::size_t candidate;
    double off;  ///< logarithm of the correction of its rough time
  };

  [[nodiscard]] double promise(std::size_t candidate) const {
    double weights = 0, sum = 0;
    for (const Seen& seen : seen_) {
      const double weight =
          std::exp2(-2 * distance(space_.candidates[candidate], space_.candidates[seen.candidate]));
      weights += weight;
      sum += weight * seen.off;
    }
    return space_.rough_ns[candidate] * std::exp(weights > 0 ? sum / weights : 0);
  }

  const SearchSpace& space_;
  std::vector<std::optional<double>> ns_;
  std::vector<bool> tried_;
  std::vector<Seen> seen_;
};

}  // namespace

std::vector<std::optional<double>> search(const SearchSpace& space, std::size_t most,
                                          std::size_t together, const TryCandidates& attempt,
                                          const std::function<bool()>& stop) {
  Search state(space);
  std::size_t tried = 0;
  while (tried < most && !stop()) {
    const std::vector<std::size_t> which =
        tried == 0 ? std::vector<std::size_t>{0} : state.next(std::min(together, most - tried));
    if (which.empty()) break;
    const std::vector<std::optional<double>> ns = attempt(which);
    for (std::size_t i = 0; i < which.size(); ++i) state.note(which[i], ns[i]);
    tried += which.size();
  }
  return state.take();
}

std::optional<std::size_t> quickest(std::span<const std::optional<double>> ns) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < ns.size(); ++i) {
    if (ns[i] && (!best || *ns[i] < *ns[*best])) best = i;
  }
  return best;
}

}  // namespace braid
