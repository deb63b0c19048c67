#include "runtime/file_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace braid {

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
    std::array<std::uint64_t, 2> random{};
    if (::getrandom(random.data(), sizeof random, 0) != sizeof random) return {};
    *path = fmt::format("{}{:016x}{:016x}", prefix, random[0], random[1]);
    File file(::openat(directory, path->c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.is_open() || errno != EEXIST) return file;
  }
}

}  // namespace braid
