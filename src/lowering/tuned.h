#pragma once

#include <functional>
#include <optional>
#include <string>

#include "braid/graph.h"
#include "codegen/kernel_spec.h"

namespace braid {

/// What is known of a body from trials.
struct Tuned {
  std::optional<Config> config;  ///< the best; nothing where the default is to be taken
  std::string remark;            ///< what it gains, or why there is none; empty: nothing is known
  std::optional<double> default_ns;  ///< of the default, where that was tried
  std::string measure;               ///< of these times, "estimated on H100 at T=128"
};

/// Answers for the body of a kernel.
using FindTuned = std::function<Tuned(const Graph& body)>;

}  // namespace braid
