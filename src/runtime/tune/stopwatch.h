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
  /// `device` has one rank.
  explicit Stopwatch(std::shared_ptr<Device> device);

  /// Times of kernels with equal operands that were compiled before, and are in the cache of the
  /// first one. They take turns, each time with a cold L2, and the median counts: what changes as
  /// the GPU warms up changes all alike.
  [[nodiscard]] std::vector<Trial> time(std::span<const TrialRequest> requests);

 private:
  void fill_inputs(const TrialRequest& request);

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Memory> flush_;  ///< larger than any L2
  std::string inputs_of_;          ///< the interface that `inputs_` are for
  RankTensors inputs_;
};

}  // namespace braid
