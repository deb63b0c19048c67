#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/pass.h"

namespace braid {

/// One way in which a plan can compute something, and the kernels that it then is, alone: without
/// what would be fused with them.
struct PlanOption {
  std::string name;  ///< "two_shot", "4 parts"
  std::vector<std::shared_ptr<const Graph>> kernels;
};

/// What trials can decide in place of a cost model.
struct PlanChoice {
  std::string op;        ///< "all_reduce", "mm"
  std::string operands;  ///< their types, "bf16[T, 2048]"
  std::int64_t ranks = 1;
  std::vector<PlanOption> options;
  std::size_t by_model = 0;
  std::size_t taken = 0;
};

/// Takes the quickest option by what is known of their kernels, each in its default configuration.
class ChooseTuned {
 public:
  explicit ChooseTuned(PassContext& context) : context_(context) {}

  /// Whether anybody would be told.
  [[nodiscard]] bool is_asked() const { return context_.tuned || context_.choices != nullptr; }

  struct Answer {
    std::size_t taken = 0;  ///< the model's where not all options are known, or in other ways
    Reason why;             ///< empty where nothing is known of any
    bool is_tuned = false;  ///< else why not
  };
  /// Notes the choice in PassContext::choices, too.
  [[nodiscard]] Answer operator()(PlanChoice choice);

 private:
  [[nodiscard]] Answer answer(const PlanChoice& choice);
  [[nodiscard]] const Tuned& tuned(const Graph& body);

  PassContext& context_;
  std::map<std::string, Tuned> known_;  ///< of what was asked for, by its body
};

}  // namespace braid
