#include "runtime/cpu/check/finding_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace braid::cpu {

void FindingList::add(Cause cause, Finding finding) {
  const auto known = places_.find(cause);
  if (known != places_.end()) {
    ++groups_[known->second].more;
  } else if (groups_.size() < kMost) {
    places_.emplace(std::move(cause), groups_.size());
    groups_.push_back({std::move(finding)});
  }
}

std::vector<Finding> FindingList::list() const {
  std::vector<Finding> findings;
  for (const Group& group : groups_) {
    Finding& finding = findings.emplace_back(group.first);
    if (group.more == 0) continue;
    if (!finding.other.empty()) finding.other += "; ";
    finding.other +=
        fmt::format("and {} more like it, of other instructions of the same source", group.more);
  }
  return findings;
}

std::string FindingList::without_numbers(std::string_view message) {
  std::string text;
  while (!message.empty()) {
    const std::string_view word = message.substr(0, message.find(' '));
    message.remove_prefix(std::min(message.size(), word.size() + 1));
    const bool number = word.find_first_of("0123456789") != word.npos;
    if (!number) text.append(word).append(" ");
  }
  return text;
}

}  // namespace braid::cpu
