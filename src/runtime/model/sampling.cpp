#include "braid/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace braid {
namespace {

/// A number in [0, 1) that depends on nothing but these two (splitmix64).
double uniform(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t x = seed + (position + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

/// The first of the largest. Each of several maxima waits for itself alone, so that this takes a
/// fraction of std::max_element's time.
std::size_t likeliest_of(std::span<const double> logits) {
  std::array<double, 8> most{};
  most.fill(logits[0]);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    double& own = most[i % most.size()];
    own = logits[i] > own ? logits[i] : own;
  }
  const auto first = std::ranges::find(logits, *std::ranges::max_element(most));
  return first == logits.end() ? 0 : first - logits.begin();  // 0: it is no number
}

}  // namespace

std::int32_t choose_token(std::span<const double> logits, const Sampling& sampling,
                          std::uint64_t position) {
  const std::size_t likeliest = likeliest_of(logits);
  if (sampling.temperature == 0) return static_cast<std::int32_t>(likeliest);
  std::vector<double> weights;
  weights.reserve(logits.size());
  for (const double logit : logits) {
    weights.push_back(std::exp((logit - logits[likeliest]) / sampling.temperature));
  }
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sampling.top_p < 1) {
    std::ranges::stable_sort(order, std::greater{}, [&](std::int32_t i) { return weights[i]; });
    const double limit = sampling.top_p * total;
    std::size_t kept = 0;
    for (total = 0; kept < order.size() && (kept == 0 || total < limit); ++kept) {
      total += weights[order[kept]];
    }
    order.resize(kept);
  }
  double left = uniform(sampling.seed, position) * total;
  for (const std::int32_t id : order) {
    left -= weights[id];
    if (left < 0) return id;
  }
  return order.back();
}

double log_probability(std::span<const double> logits, std::int32_t token) {
  const double best = logits[likeliest_of(logits)];
  double total = 0;
  for (const double logit : logits) total += std::exp(logit - best);
  return logits[token] - best - std::log(total);
}

}  // namespace braid
