#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/finding.h"

namespace braid::cpu {

/// Findings by their causes: a line that is unrolled has many instructions, and is one.
class FindingList {
 public:
  struct Cause {
    std::string kind;
    std::string what;  ///< without_numbers() of a message
    std::string buffer;
    std::uint16_t kernel = 0;
    std::uint64_t place = 0;  ///< that both have who come from one line of a source
    std::uint64_t other = 0;  ///< the same of the other side
    // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that <=> is compared with
    auto operator<=>(const Cause&) const = default;
  };

  /// Keeps the first of its cause, of 100 causes at most.
  void add(Cause cause, Finding finding);
  /// Each says how many more there are of its cause.
  [[nodiscard]] std::vector<Finding> list() const;

  /// A message but for addresses, sizes and registers.
  static std::string without_numbers(std::string_view message);

 private:
  static constexpr std::size_t kMost = 100;
  struct Group {
    Finding first;
    std::size_t more = 0;
  };
  std::map<Cause, std::size_t> places_;  ///< in `groups_`
  std::vector<Group> groups_;
};

}  // namespace braid::cpu
