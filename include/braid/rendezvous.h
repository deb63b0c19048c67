#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/export.h"

namespace braid {

/// Where the ranks of a world meet before they share memory. This is one end of it: that of the
/// ranks that live together in one World; the others live in other worlds, of this process or of
/// another one. Every end makes the same calls in the same order.
class BRAID_API Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  [[nodiscard]] virtual int world() const = 0;                      ///< ranks of all ends
  [[nodiscard]] virtual const std::vector<int>& ranks() const = 0;  ///< of this end, ascending
  /// Gives the bytes of each of this end's ranks, waits for those of the other ends, and returns
  /// all of them by rank. Throws kTimeout where an end does not come, kEnvironment where it is
  /// gone.
  [[nodiscard]] virtual std::vector<std::string> all_gather(std::vector<std::string> mine) = 0;
  /// Returns once every end has come here.
  void barrier() { (void)all_gather(std::vector<std::string>(ranks().size())); }
};

/// The ends of a rendezvous within this process, one for each element of `parties`: the ranks that
/// live together there. Every rank below their number is in one of them. Each end may be used from
/// a thread of its own; a call waits for the others for at most `timeout_s`.
[[nodiscard]] BRAID_API std::vector<std::shared_ptr<Rendezvous>> meet_in_process(
    const std::vector<std::vector<int>>& parties, double timeout_s = 30);

}  // namespace braid
