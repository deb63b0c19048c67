#pragma once

namespace braid {

/// Until each of so many has been served for `service` and has waited for `waiting`: mean value
/// analysis of a closed network of a queue and a delay. In any unit of time.
[[nodiscard]] double closed_network_round(double customers, double service, double waiting);

}  // namespace braid
