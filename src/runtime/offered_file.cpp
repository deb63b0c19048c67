#include "runtime/offered_file.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "runtime/bytes.h"

namespace braid {
namespace {

constexpr const char* kPlace = "memory";
constexpr int kBacklog = 128;
constexpr timeval kQuestionTime{1, 0};  // limit for a client to send its request
constexpr timeval kAnswerTime{5, 0};    // limit for an answer: a stopped process sends none

struct UnixAddress {
  sockaddr_un storage{};
  socklen_t bytes = 0;
};

/// An address in the abstract namespace, not in a directory; it vanishes with its socket.
UnixAddress address_of(std::string_view name) {
  UnixAddress address;
  address.storage.sun_family = AF_UNIX;
  std::memcpy(address.storage.sun_path + 1, name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

const sockaddr* pointer(const UnixAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

/// Clients must know the name, which nobody can guess.
std::string random_name() {
  std::array<std::uint64_t, 2> random{};
  if (::getrandom(random.data(), sizeof random, 0) != sizeof random) {
    throw_environment(kPlace, "no random numbers: {}", std::strerror(errno));
  }
  return fmt::format("braid-{:016x}{:016x}", random[0], random[1]);
}

/// Abstract names have no permissions, so the peer's user is checked.
bool is_same_user(const File& socket) {
  ucred other{};
  socklen_t bytes = sizeof other;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 &&
         other.uid == ::geteuid();
}

/// A one-byte message, with or without a descriptor.
struct Message {
  Message() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  void attach(int descriptor) {
    cmsghdr* extra = CMSG_FIRSTHDR(&header);
    extra->cmsg_level = SOL_SOCKET;
    extra->cmsg_type = SCM_RIGHTS;
    extra->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(extra), &descriptor, sizeof descriptor);
  }
  [[nodiscard]] File attached() {
    const cmsghdr* extra = CMSG_FIRSTHDR(&header);
    int descriptor = -1;
    if (extra != nullptr && extra->cmsg_level == SOL_SOCKET && extra->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&descriptor, CMSG_DATA(extra), sizeof descriptor);
    }
    return File(descriptor);
  }

  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

[[noreturn]] void throw_unreachable(std::int64_t process, const char* why) {
  throw_environment(kPlace, "process {}{}", process, why);
}

}  // namespace

/// The thread that answers requests for all files that this process offers; it ends with the last
/// one.
class FileServer : NonCopyable {
 public:
  static std::shared_ptr<FileServer> get() {
    static std::mutex mutex;
    static std::weak_ptr<FileServer> current;
    const std::lock_guard lock(mutex);
    std::shared_ptr<FileServer> server = current.lock();
    // A forked child does not have the thread.
    if (server == nullptr || server->process_ != ::getpid()) {
      current = server = std::make_shared<FileServer>();
    }
    return server;
  }

  FileServer()
      : process_(::getpid()),
        name_(random_name()),
        listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    const UnixAddress address = address_of(name_);
    if (!listener_.is_open() || !wake_.is_open() ||
        ::bind(listener_.get(), pointer(address), address.bytes) != 0 ||
        ::listen(listener_.get(), kBacklog) != 0) {
      throw_environment(kPlace, "nothing can be handed to other processes: {}",
                        std::strerror(errno));
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~FileServer() {
    if (process_ != ::getpid()) {
      thread_.detach();
      return;
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }

  std::uint64_t offer(int descriptor) {
    const std::lock_guard lock(mutex_);
    files_[++last_] = descriptor;
    return last_;
  }
  void withdraw(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    files_.erase(number);
  }
  [[nodiscard]] std::string handle(std::uint64_t number) const {
    ByteWriter out;
    out.value<std::int64_t>(process_);
    out.value(number);
    out.string(name_);
    return out.take();
  }

 private:
  void serve() {
    std::array<pollfd, 2> files{{{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    while (files[1].revents == 0) {
      (void)::poll(files.data(), files.size(), -1);
      const File guest(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (guest.is_open() && is_same_user(guest)) answer(guest);
    }
  }

  /// Sends the requested descriptor, or nothing.
  void answer(const File& guest) {
    (void)::setsockopt(guest.get(), SOL_SOCKET, SO_RCVTIMEO, &kQuestionTime, sizeof kQuestionTime);
    std::uint64_t number = 0;
    if (::recv(guest.get(), &number, sizeof number, 0) != sizeof number) return;
    const std::lock_guard lock(mutex_);  // keeps the file open until it is sent
    const auto found = files_.find(number);
    if (found == files_.end()) return;
    Message message;
    message.attach(found->second);
    (void)::sendmsg(guest.get(), &message.header, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  const pid_t process_;
  const std::string name_;
  const File listener_, wake_;
  std::mutex mutex_;
  std::map<std::uint64_t, int> files_;
  std::uint64_t last_ = 0;
  std::thread thread_;
};

OfferedFile::OfferedFile(int descriptor)
    : server_(FileServer::get()), number_(server_->offer(descriptor)) {}

OfferedFile::~OfferedFile() {
  if (server_ != nullptr) server_->withdraw(number_);
}

std::string OfferedFile::handle() const { return server_->handle(number_); }

File take_file(std::string_view handle) {
  ByteReader in(handle);
  const auto process = in.value<std::int64_t>();
  const auto number = in.value<std::uint64_t>();
  const std::string_view name = in.string();
  if (!in.done() || name.size() > sizeof(sockaddr_un::sun_path) - 1) {
    throw_invalid(kPlace, "the bytes are no handle of shared memory");
  }
  constexpr const char* kGone =
      " does not have it (any more) on this machine; expected ranks that run together on one "
      "machine";
  const File socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) {
    throw_environment(kPlace, "no socket for it: {}", std::strerror(errno));
  }
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    (void)::setsockopt(socket.get(), SOL_SOCKET, which, &kAnswerTime, sizeof kAnswerTime);
  }
  const UnixAddress address = address_of(name);
  if (::connect(socket.get(), pointer(address), address.bytes) != 0) {
    throw_unreachable(process, kGone);
  }
  if (!is_same_user(socket)) {
    throw_unreachable(process, ", which has it, is another user's; expected ranks of one user");
  }
  Message message;
  const bool asked = ::send(socket.get(), &number, sizeof number, MSG_NOSIGNAL) == sizeof number;
  const ssize_t came =
      asked ? ::recvmsg(socket.get(), &message.header, MSG_CMSG_CLOEXEC) : ssize_t{0};
  if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    throw_unreachable(process, ", which has it, does not answer");
  }
  File file;
  if (came == 1) file = message.attached();
  if (!file.is_open()) throw_unreachable(process, kGone);
  return file;
}

}  // namespace braid
