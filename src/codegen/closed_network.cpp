#include "codegen/closed_network.h"

#include <vector>

namespace braid {

double closed_network_round(double customers, std::initializer_list<double> services,
                            double waiting) {
  std::vector<double> queues(services.size());
  double round = 0;
  for (double n = 1; n <= customers; ++n) {
    round = waiting;
    std::size_t i = 0;
    for (const double service : services) round += service * (1 + queues[i++]);
    if (round == 0) return 0;
    i = 0;
    for (const double service : services) {
      queues[i] = n * service * (1 + queues[i]) / round;
      ++i;
    }
  }
  return round;
}

}  // namespace braid
