#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "lowering/remark.h"

namespace braid {

/// Who reads each value of a graph, found once.
class Uses {
 public:
  explicit Uses(const Graph& graph) : users_(graph.users()), is_output_(graph.output_flags()) {}

  /// The nodes that read it, in order, each once.
  [[nodiscard]] const std::vector<NodeId>& of(ValueId value) const { return users_[value]; }
  [[nodiscard]] bool is_output(ValueId value) const { return is_output_[value]; }
  /// Whether one node reads it and it is no graph output.
  [[nodiscard]] bool is_single(ValueId value) const {
    return of(value).size() == 1 && !is_output(value);
  }

 private:
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_output_;
};

/// A drawing of the graph above a value. A pattern is written as the expression that it matches:
///
///     // norm(wait(all_reduce(x)), weight), where nothing else reads the sum
///     const Pattern sum = op("wait_tensor", op("all_reduce", any("x")).as("comm")).single();
///     const Pattern norm = op("rms_norm", sum, any());
///     if (const Match m = match(graph, uses, value, norm)) use(m.node("comm"));
///     else context.missed(kPass, name, m.reason());
///
/// Names are attached to values with `as`. The operands given must be all of the node's; an op
/// without any matches whatever the operands are. In the names of an op, '|' separates choices.
class Pattern {
 public:
  /// The matched value gets this name in the Match.
  [[nodiscard]] Pattern as(std::string name) const;
  /// Only a value that one node reads and that is no graph output.
  [[nodiscard]] Pattern single() const;
  /// Only this result of a node of several.
  [[nodiscard]] Pattern result(int index) const;

 private:
  friend class Matcher;
  friend Pattern any(std::string name);
  friend Pattern either(Pattern a, Pattern b);
  friend Pattern op_pattern(std::string_view names, std::vector<Pattern> operands);

  std::vector<std::string> ops_;  ///< none: any value
  std::vector<Pattern> operands_;
  std::vector<Pattern> choices_;  ///< not empty: either of these
  std::string name_;
  bool single_ = false;
  int result_ = -1;
};

/// Any value.
[[nodiscard]] Pattern any(std::string name = "");
/// The first one that matches.
[[nodiscard]] Pattern either(Pattern a, Pattern b);
[[nodiscard]] Pattern op_pattern(std::string_view names, std::vector<Pattern> operands);
/// The result of an op with these operands.
template <class... Patterns>
[[nodiscard]] Pattern op(std::string_view names, Patterns... operands) {
  return op_pattern(names, {std::move(operands)...});
}

class Match {
 public:
  explicit operator bool() const { return reason_.empty(); }
  /// Why there is no match, for people: the first difference from the pattern's first choice that
  /// came closest.
  [[nodiscard]] const Reason& reason() const { return reason_; }
  /// What a name of the pattern stands for; it must have one.
  [[nodiscard]] ValueId value(std::string_view name) const;
  [[nodiscard]] const Node& node(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return values_.contains(name); }

 private:
  friend class Matcher;
  const Graph* graph_ = nullptr;
  std::map<std::string, ValueId, std::less<>> values_;
  Reason reason_;
};

/// Whether `value` is the result of what the pattern draws. Linear in the pattern.
[[nodiscard]] Match match(const Graph& graph, const Uses& uses, ValueId value,
                          const Pattern& pattern);

}  // namespace braid
