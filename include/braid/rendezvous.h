#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/export.h"

namespace braid {

/// Where the ranks of a world exchange bytes before they share memory. This object is one end: it
/// stands for the ranks of one World; the other ends belong to other worlds, in this process or
/// others. All ends make the same calls in the same order. An end that goes away counts as lost, so
/// ranks that finish normally call barrier() first.
class BRAID_API Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  [[nodiscard]] virtual int world() const = 0;                      ///< number of ranks, over all
                                                                    ///< ends
  [[nodiscard]] virtual const std::vector<int>& ranks() const = 0;  ///< ranks of this end,
                                                                    ///< ascending
  /// Contributes the bytes of each rank of this end, waits for the other ends, and returns the
  /// bytes of all ranks, indexed by rank. Throws kTimeout when an end does not arrive and
  /// kEnvironment when it is gone; after that no later call succeeds.
  [[nodiscard]] virtual std::vector<std::string> all_gather(std::vector<std::string> mine) = 0;
  /// Rank 0's end gives bytes, and every other end, whose own are ignored, waits for them as long
  /// as it takes. Each call returns what rank 0's end gave. That end does not wait for the others,
  /// nor do these calls have an order with those of all_gather(). Throws kEnvironment once a rank
  /// is lost; what was given before is returned first. By default it is an all_gather().
  [[nodiscard]] virtual std::string broadcast(std::string bytes);
  /// Which rank was lost and how, such as "rank 2 is gone". Empty while all is well, or where
  /// nobody watches. Thread safe and cheap.
  [[nodiscard]] virtual std::string lost() const { return {}; }
  /// States something for the ranks of this end among `ranks`, all of which state it under this key
  /// once, whenever they come to it. Never waits. If two of them state different texts, all ends
  /// learn it: disagreement() names both, and no later all_gather() succeeds. Thread safe. Nothing
  /// is compared by default.
  virtual void state(const std::string& key, const std::vector<int>& ranks,
                     const std::string& text) {
    (void)key, (void)ranks, (void)text;
  }
  /// "rank 0 has T = 4, rank 1 has T = 8; expected the same on all ranks", or empty. Thread safe
  /// and cheap.
  [[nodiscard]] virtual std::string disagreement() const { return {}; }
  /// Returns once every end has called it.
  void barrier() { (void)all_gather(std::vector<std::string>(ranks().size())); }
};

/// Makes the ends of a rendezvous within this process. `parties[i]` lists the ranks of end i;
/// together they must be 0, 1, ... without gaps. Each end may be used from its own thread. A call
/// waits for the others for at most `timeout_s`.
[[nodiscard]] BRAID_API std::vector<std::shared_ptr<Rendezvous>> meet_in_process(
    const std::vector<std::vector<int>>& parties, double timeout_s = 30);

/// The caller's all-gather: sends this rank's bytes, returns those of all ranks, by rank.
using AllGather = std::function<std::vector<std::string>(const std::string& mine)>;
/// An end for one rank over the caller's own all-gather, whose exceptions pass through. Lost ranks
/// are not detected, and statements are not compared.
[[nodiscard]] BRAID_API std::shared_ptr<Rendezvous> meet_by_callback(int rank, int world,
                                                                     AllGather all_gather);

/// How the processes of a job find each other.
struct SocketOptions {
  std::vector<int> ranks;             ///< ranks that live in this process
  int world = 1;                      ///< ranks of all processes
  std::string address = "127.0.0.1";  ///< host of rank 0, which listens there
  /// The port of rank 0. Where another program has it, rank 0 listens on a local socket named by
  /// the port and the job, which processes of the same machine and user find. It takes no other
  /// port.
  int port = 29500;
  std::string job;  ///< tells this job's processes from others at the same address
  /// How long to wait for the others to arrive. Later, the longest silence of an end before it
  /// counts as lost; each end sends heartbeats whatever its ranks do.
  double timeout_s = 30;
  double patience_s = 1800;  ///< how long a call waits for an end that is alive but does not call
};

/// Joins a rendezvous over TCP and returns once all processes are there. A process that exits, is
/// killed or is stopped is noticed, and the others are told: see Rendezvous::lost. Throws kTimeout
/// naming a rank that does not arrive, kEnvironment naming one that is gone, and kInvalidArgument
/// where processes disagree.
[[nodiscard]] BRAID_API std::shared_ptr<Rendezvous> meet_by_socket(const SocketOptions& options);

}  // namespace braid
