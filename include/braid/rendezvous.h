#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/export.h"

namespace braid {

/// Where the ranks of a world meet before they share memory. This is one end of it: that of the
/// ranks that live together in one World; the others live in other worlds, of this process or of
/// another one. Every end makes the same calls in the same order. An end that goes away is lost to
/// the others: ranks that end well have a barrier() before that.
class BRAID_API Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  [[nodiscard]] virtual int world() const = 0;                      ///< ranks of all ends
  [[nodiscard]] virtual const std::vector<int>& ranks() const = 0;  ///< of this end, ascending
  /// Gives the bytes of each of this end's ranks, waits for those of the other ends, and returns
  /// all of them by rank. Throws kTimeout where an end does not come, kEnvironment where it is
  /// gone; no later call returns then.
  [[nodiscard]] virtual std::vector<std::string> all_gather(std::vector<std::string> mine) = 0;
  /// Who was lost and how, "rank 2 is gone"; empty while all is well, or where nobody watches. Any
  /// thread may ask, often.
  [[nodiscard]] virtual std::string lost() const { return {}; }
  /// Returns once every end has come here.
  void barrier() { (void)all_gather(std::vector<std::string>(ranks().size())); }
};

/// The ends of a rendezvous within this process, one for each element of `parties`: the ranks that
/// live together there. Every rank below their number is in one of them. Each end may be used from
/// a thread of its own; a call waits for the others for at most `timeout_s`.
[[nodiscard]] BRAID_API std::vector<std::shared_ptr<Rendezvous>> meet_in_process(
    const std::vector<std::vector<int>>& parties, double timeout_s = 30);

/// Brings the bytes of all ranks to each of them, by rank: what a caller has already to talk
/// between his processes.
using AllGather = std::function<std::vector<std::string>(const std::string& mine)>;
/// An end of one rank over the caller's own means, whose errors pass through. Nobody watches over
/// the others then.
[[nodiscard]] BRAID_API std::shared_ptr<Rendezvous> meet_by_callback(int rank, int world,
                                                                     AllGather all_gather);

/// How the processes of a job find each other.
struct SocketOptions {
  std::vector<int> ranks;             ///< that live in this process
  int world = 1;                      ///< ranks of all processes
  std::string address = "127.0.0.1";  ///< of the process of rank 0, which listens there
  /// Where somebody else has that port, rank 0 listens beside it, by a name of the port and the job
  /// that the others of its machine and user know. It takes no other port.
  int port = 29500;
  std::string job;  ///< tells this job's processes from others that meet at the same place
  /// How long the others may take to come, and then how long an end may say nothing (each tells by
  /// itself that it is there, whatever its ranks do) until it is lost.
  double timeout_s = 30;
  double patience_s = 1800;  ///< how long a call waits for an end that is there and does not call
};

/// The end of this process in a rendezvous over TCP; returns once all are there. Whoever exits, is
/// killed or stopped is noticed, and the others are told: see Rendezvous::lost. Throws kTimeout
/// naming a rank that does not come, kEnvironment one that is gone, kInvalidArgument where
/// processes disagree.
[[nodiscard]] BRAID_API std::shared_ptr<Rendezvous> meet_by_socket(const SocketOptions& options);

}  // namespace braid
