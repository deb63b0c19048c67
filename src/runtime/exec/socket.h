#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "runtime/file_io.h"

namespace braid {

/// Where a process can be reached.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  /// Of one over TCP.
  [[nodiscard]] SocketAddress with_port(int port) const;
};

/// The addresses of a host by its name or number. Throws kInvalidArgument where there is none.
[[nodiscard]] std::vector<SocketAddress> resolve(const std::string& host);
/// Of a name, on this machine alone; no file stands for it. At most 100 characters.
[[nodiscard]] SocketAddress local_address(const std::string& name);

// All sockets here are non-blocking; what fails is not open and leaves errno.

/// Listens; connections may wait at once from many others.
[[nodiscard]] File listen_at(const SocketAddress& address);
[[nodiscard]] int port_of(const File& listener);
/// Not open when nobody waits.
[[nodiscard]] File accept_from(const File& listener);
/// Waits for at most so long.
[[nodiscard]] File connect_to(const SocketAddress& address, int timeout_ms);

/// Waits until the other machine has all that was sent, for a second at most: closing would throw
/// away what is under way.
void linger(const File& socket);

}  // namespace braid
