#pragma once

#include <functional>
#include <optional>
#include <string>

#include "braid/graph.h"
#include "codegen/kernel/spec.h"

namespace braid {

/// What trials found for a body.
struct Tuned {
  std::optional<Config> config;      ///< the best one; nothing where the default is to be used
  std::string remark;                ///< what it gains, or why there is none; empty: no trials
  std::optional<double> default_ns;  ///< time of the default, where that was tried
  std::string measure;               ///< origin of these times, "estimated on H100 at T=128"
};

/// Looks up the body of a kernel.
using FindTuned = std::function<Tuned(const Graph& body)>;

}  // namespace braid
