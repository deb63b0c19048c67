#include "runtime/cpu/run/memory_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "braid/error.h"
#include "runtime/bytes.h"

namespace braid::cpu {
namespace {

constexpr const char* kPlace = "memory";
// Who maps a file that another process cuts off gets a signal.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string random_name() {
  std::array<std::uint64_t, 2> random{};
  if (::getrandom(random.data(), sizeof random, 0) != sizeof random) {
    throw_environment(kPlace, fmt::format("no random numbers: {}", std::strerror(errno)));
  }
  return fmt::format("braid-{:016x}{:016x}", random[0], random[1]);
}

/// What the descriptor's link says of a file of memory.
std::string link_of(const std::string& name) { return fmt::format("/memfd:{} (deleted)", name); }

[[noreturn]] void throw_unreachable(std::int64_t process, int code) {
  if (code == EACCES || code == EPERM) {
    throw_environment(kPlace, fmt::format("process {}, which has it, is another user's; expected "
                                          "ranks of one user",
                                          process));
  }
  throw_environment(kPlace, fmt::format("process {} does not have it (any more) on this machine; "
                                        "expected ranks that run together on one machine",
                                        process));
}

}  // namespace

MemoryFile::MemoryFile(std::size_t bytes) : name_(random_name()), bytes_(bytes) {
  file_ = File(::memfd_create(name_.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_.is_open() || ::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file_.get(), F_ADD_SEALS, kSeals) != 0) {
    throw_environment(kPlace, fmt::format("{} bytes cannot be shared with other processes: {}",
                                          bytes, std::strerror(errno)));
  }
}

std::string MemoryFile::handle() const {
  ByteWriter out;
  out.value<std::int64_t>(::getpid());
  out.value<std::int64_t>(file_.get());
  out.string(name_);
  return out.take();
}

MemoryFile MemoryFile::open(std::string_view handle) {
  ByteReader in(handle);
  const auto process = in.value<std::int64_t>();
  const auto descriptor = in.value<std::int64_t>();
  MemoryFile result;
  result.name_ = in.string();
  if (!in.done() || process <= 0 || descriptor < 0) {
    throw_invalid(kPlace, "the bytes are no handle of shared memory");
  }
  // Whose descriptor it is now is known by its name, before anything is opened.
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  std::array<char, 256> link{};
  const ssize_t length = ::readlink(path.c_str(), link.data(), link.size());
  if (length < 0) throw_unreachable(process, errno);
  if (std::string_view(link.data(), static_cast<std::size_t>(length)) != link_of(result.name_)) {
    throw_unreachable(process, ENOENT);
  }
  result.file_ = File(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!result.file_.is_open() || ::fstat(result.file_.get(), &status) != 0) {
    throw_unreachable(process, errno);
  }
  if ((::fcntl(result.file_.get(), F_GET_SEALS) & F_SEAL_SHRINK) == 0) {
    throw_unreachable(process, ENOENT);
  }
  result.bytes_ = static_cast<std::size_t>(status.st_size);
  return result;
}

}  // namespace braid::cpu
