#include "runtime/file_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace braid {
namespace {

/// `prefix` with an unpredictable suffix; nothing, with errno, if the system has no randomness.
std::optional<std::string> random_name(std::string_view prefix) {
  std::array<std::uint64_t, 2> random{};
  if (::getrandom(random.data(), sizeof random, 0) != sizeof random) return {};
  return fmt::format("{}{:016x}{:016x}", prefix, random[0], random[1]);
}

}  // namespace

bool File::close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

bool write_all(const File& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::optional<std::size_t> read_up_to(const File& file, void* data, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(file.get(), static_cast<char*>(data) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {};
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

File create_temporary(int directory, std::string_view prefix, mode_t mode, std::string* path) {
  for (;;) {
    std::optional<std::string> name = random_name(prefix);
    if (!name) return {};
    *path = *std::move(name);
    File file(::openat(directory, path->c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.is_open() || errno != EEXIST) return file;
  }
}

bool name_temporary(const File& file, std::string_view prefix, std::string* path) {
  const std::string source = fmt::format("/proc/self/fd/{}", file.get());
  for (;;) {
    std::optional<std::string> name = random_name(prefix);
    if (!name) return false;
    *path = *std::move(name);
    if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path->c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return true;
    }
    if (errno != EEXIST) return false;
  }
}

}  // namespace braid
