#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "braid/device_tensor.h"
#include "braid/executable.h"
#include "braid/sampling.h"
#include "ir/non_copyable.h"

namespace braid {

/// From 0 to below 1. It depends on nothing but these two: the position, by which the tokens of a
/// text differ, takes the place of a generator's state, so a text can be continued anywhere.
float random_number(std::uint64_t seed, std::uint64_t position);

/// Chooses tokens on the devices, where a model leaves its logits.
class TokenChooser : NonCopyable {
 public:
  /// `logits`: of each rank of the world here, [most sequences, vocabulary].
  TokenChooser(const World& world, std::span<const DeviceTensor> logits);

  /// Chooses a token for each of the first rows of the logits. `positions`: of these tokens.
  void enqueue(std::span<const Sampling> sampling, std::span<const std::int32_t> positions,
               std::span<Stream* const> streams);
  /// What enqueue() chose, once the stream of the first rank here is done.
  [[nodiscard]] std::vector<ChosenToken> chosen() const;

 private:
  /// The likeliest tokens take a small part of the time of others.
  struct Way {
    Executable executable;
    std::map<std::int64_t, Executable::Plan> plans;  ///< by the number of sequences
  };
  Way make(const World& world, std::span<const DeviceTensor> logits, bool likeliest);

  /// Of each rank here.
  struct Place {
    std::unique_ptr<Memory> numbers, top_k, tokens, logprobs;
  };
  std::vector<Place> places_;
  std::array<Way, 2> ways_;  ///< what `sample` does, and argmax
  // What copies read and write.
  std::vector<float> numbers_, logprobs_;
  std::vector<std::int32_t> top_k_, tokens_;
};

}  // namespace braid
