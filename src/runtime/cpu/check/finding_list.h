#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/finding.h"

namespace braid::cpu {

/// Findings grouped by cause: the many instructions of an unrolled line have one cause.
class FindingList {
 public:
  struct Cause {
    std::string kind;
    std::string what;  ///< without_numbers() of the message
    std::string buffer;
    std::uint16_t kernel = 0;
    std::uint64_t place = 0;  ///< equal for findings of one source line
    std::uint64_t other = 0;  ///< the same for the other side
    auto operator<=>(const Cause&) const = default;
  };

  /// Keeps the first finding of each cause, for at most 100 causes.
  void add(Cause cause, Finding finding);
  /// Each finding says how many more have the same cause.
  [[nodiscard]] std::vector<Finding> list() const;

  /// A message without addresses, sizes and registers.
  static std::string without_numbers(std::string_view message);

 private:
  static constexpr std::size_t kMost = 100;
  struct Group {
    Finding first;
    std::size_t more = 0;
  };
  std::map<Cause, std::size_t> places_;  ///< index in `groups_`
  std::vector<Group> groups_;
};

}  // namespace braid::cpu
