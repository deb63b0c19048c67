#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/reference.h"
#include "braid/world.h"
#include "runtime/tune/trial.h"

namespace braid {

/// Times kernels on a GPU.
class Stopwatch {
 public:
  /// `device` must have one rank.
  explicit Stopwatch(std::shared_ptr<Device> device);

  /// Times kernels with equal operands that are compiled already and in the cache of the first
  /// request. They run in turns, each time with a cold L2, and the median counts, so that the GPU's
  /// warming up affects all alike.
  [[nodiscard]] std::vector<Trial> time(std::span<const TrialRequest> requests);

 private:
  void fill_inputs(const TrialRequest& request);

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Memory> flush_;  ///< larger than any L2
  std::string inputs_of_;          ///< the interface that `inputs_` were made for
  RankTensors inputs_;
};

}  // namespace braid
