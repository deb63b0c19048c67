#pragma once

#include <initializer_list>

namespace braid {

/// Mean value analysis of a closed queueing network: the time until each customer has been served
/// once by each of `services` in turn and has waited for `waiting` (a delay without a queue). Any
/// unit of time.
[[nodiscard]] double closed_network_round(double customers, std::initializer_list<double> services,
                                          double waiting);
[[nodiscard]] inline double closed_network_round(double customers, double service, double waiting) {
  return closed_network_round(customers, {service}, waiting);
}

}  // namespace braid
