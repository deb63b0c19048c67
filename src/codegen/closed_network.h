#pragma once

#include <initializer_list>

namespace braid {

/// Until each of so many has been served for each of `services`, one after the other, and has
/// waited for `waiting`: mean value analysis of a closed network of queues and a delay. In any unit
/// of time.
[[nodiscard]] double closed_network_round(double customers, std::initializer_list<double> services,
                                          double waiting);
[[nodiscard]] inline double closed_network_round(double customers, double service, double waiting) {
  return closed_network_round(customers, {service}, waiting);
}

}  // namespace braid
