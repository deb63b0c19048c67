#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lowering/pass.h"

namespace braid {

/// One way in which a plan can compute something: its kernels, without what would be fused with
/// them.
struct PlanOption {
  std::string name;  ///< "two_shot", "4 parts"
  std::vector<std::shared_ptr<const Graph>> kernels;
};

/// A decision for which trials can replace the cost model.
struct PlanChoice {
  std::string op;        ///< "all_reduce", "mm"
  std::string operands;  ///< their types, "bf16[T, 2048]"
  std::int64_t ranks = 1;
  std::vector<PlanOption> options;
  std::size_t by_model = 0;
  std::size_t taken = 0;
};

/// Takes the fastest option by known times of its kernels, each in its default configuration.
class ChooseTuned {
 public:
  explicit ChooseTuned(PassContext& context) : context_(context) {}

  /// Whether anyone answers or listens.
  [[nodiscard]] bool is_asked() const { return context_.tuned || context_.choices != nullptr; }

  struct Answer {
    std::size_t taken = 0;  ///< the model's option where not all times are known, or the measures
                            ///< differ
    Reason why;             ///< empty where nothing is known of any option
    bool is_tuned = false;  ///< if false, `why` says why not
  };
  /// Decides, and records the choice in PassContext::choices.
  [[nodiscard]] Answer operator()(PlanChoice choice);

 private:
  [[nodiscard]] Answer answer(const PlanChoice& choice);
  [[nodiscard]] const Tuned& tuned(const Graph& body);

  PassContext& context_;
  std::map<std::string, Tuned> known_;  ///< answers so far, by body
};

}  // namespace braid
