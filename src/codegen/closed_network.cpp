#include "codegen/closed_network.h"

namespace braid {

double closed_network_round(double customers, double service, double waiting) {
  double queue = 0, round = 0;
  for (double n = 1; n <= customers; ++n) {
    const double served = service * (1 + queue);
    round = served + waiting;
    if (round == 0) return 0;
    queue = n * served / round;
  }
  return round;
}

}  // namespace braid
