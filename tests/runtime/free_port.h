#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "runtime/file_io.h"

namespace braid {

/// A socket that listens at a port of this machine; 0 takes one that is free.
inline File listen_here(int port = 0) {
  File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 16) != 0) {
    (void)socket.close();
  }
  return socket;
}

inline int port_of(const File& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

/// One that nobody listens at.
inline int free_port() { return port_of(listen_here()); }

/// The name of a job that no other of this machine has. Jobs side by side may have ports side by
/// side, or one port, as nobody holds a free one.
inline std::string new_job_name() {
  static std::atomic<int> count{0};
  return fmt::format("test {} {}", ::getpid(), ++count);
}

/// Where the ranks of a job meet that nobody else has a part in.
struct Meeting {
  int port = free_port();
  std::string job = new_job_name();
};

/// A connection to a port of this machine; not open when nobody listens.
inline File connect_here(int port) {
  File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    (void)socket.close();
  }
  return socket;
}

}  // namespace braid
