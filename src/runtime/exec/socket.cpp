#include "runtime/exec/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "ir/fail.h"
#include "ir/text.h"

namespace braid {
namespace {

constexpr int kBacklog = 1024;

File open_socket(const SocketAddress& address) {
  return File(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set_option(const File& socket, int level, int name) {
  const int on = 1;
  (void)::setsockopt(socket.get(), level, name, &on, sizeof on);
}

const sockaddr* pointer(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

}  // namespace

SocketAddress SocketAddress::with_port(int port) const {
  SocketAddress result = *this;
  const auto number = htons(static_cast<std::uint16_t>(port));
  if (storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&result.storage)->sin6_port = number;
  } else {
    reinterpret_cast<sockaddr_in*>(&result.storage)->sin_port = number;
  }
  return result;
}

std::vector<SocketAddress> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = host.empty() ? EAI_NONAME : ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (code != 0) {
    throw_invalid("rendezvous", "the address {} of rank 0: {}", quote(host), ::gai_strerror(code));
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.bytes = entry->ai_addrlen;
  }
  ::freeaddrinfo(list);
  return addresses;
}

SocketAddress local_address(const std::string& name) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  // A name that begins with a zero byte is not a path.
  const std::size_t used = std::min(name.size(), sizeof local.sun_path - 1);
  std::memcpy(local.sun_path + 1, name.data(), used);
  SocketAddress address;
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + used);
  std::memcpy(&address.storage, &local, address.bytes);
  return address;
}

File listen_at(const SocketAddress& address) {
  File socket = open_socket(address);
  if (!socket.is_open()) return socket;
  set_option(socket, SOL_SOCKET, SO_REUSEADDR);  // a finished job's port stays occupied for a while
  if (::bind(socket.get(), pointer(address), address.bytes) == 0 &&
      ::listen(socket.get(), kBacklog) == 0) {
    return socket;
  }
  const int reason = errno;
  (void)socket.close();
  errno = reason;
  return socket;
}

int port_of(const File& listener) {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  (void)::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address.storage),
                      &address.bytes);
  const bool six = address.storage.ss_family == AF_INET6;
  return ntohs(six ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

File accept_from(const File& listener) {
  File socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) set_option(socket, IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

File connect_to(const SocketAddress& address, int timeout_ms) {
  File socket = open_socket(address);
  if (!socket.is_open()) return socket;
  int reason = 0;
  if (::connect(socket.get(), pointer(address), address.bytes) != 0) {
    reason = errno;
    pollfd ready{socket.get(), POLLOUT, 0};
    if (reason == EINPROGRESS) {
      socklen_t size = sizeof reason;
      reason = ETIMEDOUT;
      if (::poll(&ready, 1, timeout_ms) == 1) {
        (void)::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
      }
    }
  }
  if (reason == 0) {
    set_option(socket, IPPROTO_TCP, TCP_NODELAY);
    return socket;
  }
  (void)socket.close();
  errno = reason;
  return socket;
}

void linger(const File& socket) {
  for (int tries = 0; tries < 1000; ++tries) {
    int unsent = 0;
    if (::ioctl(socket.get(), SIOCOUTQ, &unsent) != 0 || unsent == 0) return;
    pollfd broken{socket.get(), 0, 0};  // polls only for errors
    if (::poll(&broken, 1, 1) != 0) return;
  }
}

}  // namespace braid
