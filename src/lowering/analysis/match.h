#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "lowering/remark.h"

namespace braid {

/// The readers of each value of a graph, computed once.
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
  /// Whether all nodes that read it are such, and it is no graph output.
  [[nodiscard]] bool is_read_by(ValueId value, const auto& such) const {
    return !is_output(value) && std::ranges::all_of(of(value), such);
  }

 private:
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_output_;
};

/// A pattern of the graph above a value, written as the expression that it matches:
///
///     // norm(wait(all_reduce(x)), weight), where nothing else reads the sum
///     const Pattern sum = op("wait_tensor", op("all_reduce", any("x")).as("comm")).single();
///     const Pattern norm = op("rms_norm", sum, any());
///     if (const Match m = match(graph, uses, value, norm)) use(m.node("comm"));
///     else context.missed(kPass, name, m.reason());
///
/// `as` names a value. If a pattern gives operands, they must be all of the node's; without
/// operands it matches any. In an op's name '|' separates alternatives.
class Pattern {
 public:
  /// The matched value is in the Match under this name.
  [[nodiscard]] Pattern as(std::string name) const;
  /// Matches only a value that one node reads and that is no graph output.
  [[nodiscard]] Pattern single() const;
  /// Matches only result `index` of a node with several results.
  [[nodiscard]] Pattern result(int index) const;

 private:
  friend class Matcher;
  friend Pattern any(std::string name);
  friend Pattern either(Pattern a, Pattern b);
  friend Pattern op_pattern(std::string_view names, std::vector<Pattern> operands);

  std::vector<std::string> ops_;  ///< empty: any value
  std::vector<Pattern> operands_;
  std::vector<Pattern> choices_;  ///< if not empty, one of these must match
  std::string name_;
  bool single_ = false;
  int result_ = -1;
};

/// Matches any value.
[[nodiscard]] Pattern any(std::string name = "");
/// Matches what `a` matches, else what `b` matches.
[[nodiscard]] Pattern either(Pattern a, Pattern b);
[[nodiscard]] Pattern op_pattern(std::string_view names, std::vector<Pattern> operands);
/// Matches the result of an op with these operands.
template <class... Patterns>
[[nodiscard]] Pattern op(std::string_view names, Patterns... operands) {
  return op_pattern(names, {std::move(operands)...});
}

class Match {
 public:
  explicit operator bool() const { return reason_.empty(); }
  /// Why there is no match: the first difference from the choice that came closest.
  [[nodiscard]] const Reason& reason() const { return reason_; }
  /// The value bound to a name, which must be bound.
  [[nodiscard]] ValueId value(std::string_view name) const;
  [[nodiscard]] const Node& node(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return values_.contains(name); }

 private:
  friend class Matcher;
  const Graph* graph_ = nullptr;
  std::map<std::string, ValueId, std::less<>> values_;
  Reason reason_;
};

/// Matches the pattern at `value`. Linear in the size of the pattern.
[[nodiscard]] Match match(const Graph& graph, const Uses& uses, ValueId value,
                          const Pattern& pattern);

}  // namespace braid
