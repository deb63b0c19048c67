#include "lowering/analysis/match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/fail.h"

namespace braid {
namespace {

constexpr ReasonCode kGraphOutput{"match.graph_output", "'{value}' is a graph output"};
constexpr ReasonCode kUsers{"match.users", "'{value}' has {users} users; expected one"};
constexpr ReasonCode kOtherOp{"match.other_op", "'{value}' is {found}; expected {expected}"};
constexpr ReasonCode kOtherResult{
    "match.other_result", "'{value}' is result {result} of {op}; expected result {expected}"};
constexpr ReasonCode kOperands{"match.operands",
                               "'{value}' has {operands} operands; expected {expected}"};

}  // namespace

Pattern Pattern::as(std::string name) const {
  Pattern copy = *this;
  copy.name_ = std::move(name);
  return copy;
}

Pattern Pattern::single() const {
  Pattern copy = *this;
  copy.single_ = true;
  return copy;
}

Pattern Pattern::result(int index) const {
  Pattern copy = *this;
  copy.result_ = index;
  return copy;
}

Pattern any(std::string name) { return Pattern().as(std::move(name)); }

Pattern either(Pattern a, Pattern b) {
  Pattern pattern;
  pattern.choices_ = {std::move(a), std::move(b)};
  return pattern;
}

Pattern op_pattern(std::string_view names, std::vector<Pattern> operands) {
  Pattern pattern;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('|'));
    pattern.ops_.emplace_back(name);
    names.remove_prefix(std::min(name.size() + 1, names.size()));
  }
  pattern.operands_ = std::move(operands);
  return pattern;
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Uses& uses) : graph_(graph), uses_(uses) {
    match_.graph_ = &graph;
  }

  Match run(ValueId value, const Pattern& pattern) {
    visit(value, pattern, 0);
    return std::move(match_);
  }

 private:
  bool refuse(int depth, Reason reason) {
    if (depth > depth_) {
      depth_ = depth;
      reason_ = std::move(reason);
    }
    match_.reason_ = reason_;
    return false;
  }

  const std::string& name(ValueId value) const { return graph_.value(value).name; }

  bool visit(ValueId value, const Pattern& pattern, int depth) {
    if (!pattern.choices_.empty()) {
      const bool found = std::ranges::any_of(pattern.choices_, [&](const Pattern& choice) {
        return visit_choice(value, choice, depth);
      });
      if (!found) return false;
    }
    if (pattern.single_ && !uses_.is_single(value)) {
      return refuse(depth, uses_.is_output(value)
                               ? Reason(kGraphOutput, name(value))
                               : Reason(kUsers, name(value), uses_.of(value).size()));
    }
    if (!pattern.ops_.empty() && !visit_node(value, pattern, depth)) return false;
    if (!pattern.name_.empty()) match_.values_.insert_or_assign(pattern.name_, value);
    match_.reason_ = {};
    return true;
  }

  /// Tries one choice, and drops the names that it bound if it does not match.
  bool visit_choice(ValueId value, const Pattern& choice, int depth) {
    auto before = match_.values_;
    if (visit(value, choice, depth)) return true;
    match_.values_ = std::move(before);
    return false;
  }

  bool visit_node(ValueId value, const Pattern& pattern, int depth) {
    const Value& v = graph_.value(value);
    const std::string_view found =
        v.producer < 0 ? "a graph input" : graph_.node(v.producer).op_name();
    if (std::ranges::find(pattern.ops_, found) == pattern.ops_.end()) {
      return refuse(depth, Reason(kOtherOp, name(value), found,
                                  fmt::format("{}", fmt::join(pattern.ops_, " or "))));
    }
    if (pattern.result_ >= 0 && v.result != pattern.result_) {
      return refuse(depth, Reason(kOtherResult, name(value), v.result, found, pattern.result_));
    }
    const std::vector<ValueId>& operands = graph_.node(v.producer).inputs;
    if (pattern.operands_.empty()) return true;
    if (pattern.operands_.size() != operands.size()) {
      return refuse(depth,
                    Reason(kOperands, name(value), operands.size(), pattern.operands_.size()));
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!visit(operands[i], pattern.operands_[i], depth + 1)) return false;
    }
    return true;
  }

  const Graph& graph_;
  const Uses& uses_;
  Match match_;
  int depth_ = -1;  ///< depth of the reported difference, the deepest one
  Reason reason_;
};

ValueId Match::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw_internal("match", "the pattern has no name '{}'", name);
  return found->second;
}

const Node& Match::node(std::string_view name) const {
  const NodeId producer = graph_->value(value(name)).producer;
  if (producer < 0) throw_internal("match", "'{}' stands for no node", name);
  return graph_->node(producer);
}

Match match(const Graph& graph, const Uses& uses, ValueId value, const Pattern& pattern) {
  return Matcher(graph, uses).run(value, pattern);
}

}  // namespace braid
