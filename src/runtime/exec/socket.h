#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "runtime/file_io.h"

namespace braid {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  /// For a TCP address.
  [[nodiscard]] SocketAddress with_port(int port) const;
};

/// The addresses of a host, given by name or number. Throws kInvalidArgument if there is none.
[[nodiscard]] std::vector<SocketAddress> resolve(const std::string& host);
/// An address on this machine, of at most 100 characters, without a file.
[[nodiscard]] SocketAddress local_address(const std::string& name);

// All sockets here are non-blocking. On failure the result is not open and errno is set.

/// Listens, with room for many waiting connections.
[[nodiscard]] File listen_at(const SocketAddress& address);
[[nodiscard]] int port_of(const File& listener);
/// Not open if no connection waits.
[[nodiscard]] File accept_from(const File& listener);
/// Waits for at most `timeout_ms`.
[[nodiscard]] File connect_to(const SocketAddress& address, int timeout_ms);

/// Waits, for at most a second, until the peer has received everything: closing would discard data
/// in flight.
void linger(const File& socket);

}  // namespace braid
