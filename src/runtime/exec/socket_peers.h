#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/error.h"
#include "braid/rendezvous.h"
#include "runtime/exec/connection.h"

namespace braid {

/// Another end of a rendezvous, as seen from this one.
struct Peer {
  Connection connection;
  std::vector<int> ranks;  ///< ranks there; of rank 0's end only rank 0 is known
  bool gone = false;       ///< nothing arrives from it any more
};

/// Finds the other ends, for rank 0 or for another rank. `options.ranks` is ascending. Rank 0 gets
/// all ends in order, the others that of rank 0. Throws as meet_by_socket.
[[nodiscard]] std::vector<Peer> await_others(const SocketOptions& options);
[[nodiscard]] std::vector<Peer> join_rank_0(const SocketOptions& options);

/// The payload of FrameKind::kLost.
struct Loss {
  ErrorCode code = ErrorCode::kEnvironment;
  std::string text;
};
[[noreturn]] void throw_loss(const Loss& loss);
[[nodiscard]] std::string encode(const Loss& loss);
[[nodiscard]] Loss decode_loss(std::string_view payload);

}  // namespace braid
