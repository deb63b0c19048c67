#include "runtime/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "braid/error.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr int kMostUnnamed = 512;  // limit of descriptors: half of the usual limit of a process

[[noreturn]] void fail(const fs::path& path, int code) {
  if (code == EISDIR) throw_invalid(path.string(), "is a directory; expected a file");
  throw_environment(path.string(), std::strerror(code));
}

bool write_parts(const File& file, std::span<const std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (!write_all(file, part)) return false;
  }
  return true;
}

// The descriptor of a standard stream that is the file of this name, or -1. A second descriptor
// would have an offset of its own, and both would overwrite each other; and another user's pipe
// cannot be reopened.
int standard_stream(const fs::path& path) {
  struct stat file {
  }, info{};
  if (::stat(path.c_str(), &file) != 0) return -1;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::fstat(stream, &info) == 0 && same_file(info, file)) return stream;
  }
  return -1;
}

// If the path is a regular file that may be replaced: its path with links resolved, else empty.
fs::path replaceable(const fs::path& path, const struct stat& file) {
  if (file.st_nlink != 1) return {};
  std::error_code error;
  fs::path place = fs::canonical(path, error);
  struct stat named {};
  // A /proc link to a removed file names nothing, or something else.
  if (error || ::lstat(place.c_str(), &named) != 0 || !same_file(named, file)) return {};
  return place;
}

// The prefix of the temporary file's name.
std::string prefix(const fs::path& place) { return (place.parent_path() / ".braid-").string(); }

bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(path, error));
}

// The file that exists at the place.
struct Existing {
  File file;  // not open if nothing exists
  struct stat info {};
  bool made = false;  // created by this call: a link named a missing file

  [[nodiscard]] bool regular() const { return S_ISREG(info.st_mode); }
};

// Opened by the given name, so that the kernel checks links and permissions as usual.
Existing open_existing(const fs::path& path) {
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
  Existing existing{File(::open(path.c_str(), kFlags))};
  if (!existing.file.is_open() && errno == ENOENT) {
    if (!is_link(path)) return existing;
    existing.file = File(::open(path.c_str(), kFlags | O_CREAT, 0666));
    existing.made = true;
  }
  if (!existing.file.is_open() || ::fstat(existing.file.get(), &existing.info) != 0) {
    fail(path, errno);
  }
  return existing;
}

void write_in_place(const fs::path& path, const Existing& existing,
                    std::span<const std::string_view> parts) {
  const bool regular = existing.regular();
  const auto empty = [&] { return !regular || ::ftruncate(existing.file.get(), 0) == 0; };
  if (empty() && write_parts(existing.file, parts)) return;
  const int code = errno;
  if (empty() && existing.made) {
    std::error_code error;
    ::unlink(fs::canonical(path, error).c_str());
  }
  fail(path, code);
}

}  // namespace

OutputFile::Temporary::~Temporary() {
  if (!path.empty()) ::unlink(path.c_str());
}

OutputFile::OutputFile(const fs::path& path, std::span<const std::string_view> parts)
    : place_(path) {
  if (const int stream = standard_stream(path); stream >= 0) {
    const File same(::fcntl(stream, F_DUPFD_CLOEXEC, 0));
    if (!write_parts(same, parts)) fail(path, errno);
    return;
  }
  const Existing existing = open_existing(path);
  if (!existing.file.is_open()) {
    if (!stage(parts, nullptr)) fail(path, errno);
    return;
  }
  if (existing.regular() && !existing.made) {
    place_ = replaceable(path, existing.info);
    if (!place_.empty() && stage(parts, &existing.info)) return;
  }
  write_in_place(path, existing, parts);
}

bool OutputFile::open_temporary() {
  const fs::path folder = place_.has_parent_path() ? place_.parent_path() : fs::path(".");
  File file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  // It is named through /proc when published, and stays open until then; their number is limited.
  if (file.is_open() && file.get() < kMostUnnamed &&
      ::access(fmt::format("/proc/self/fd/{}", file.get()).c_str(), F_OK) == 0) {
    temporary_.file = std::move(file);
    return true;
  }
  file.close();
  temporary_.file = create_temporary(AT_FDCWD, prefix(place_), 0666, &temporary_.path);
  if (temporary_.file.is_open()) return true;
  temporary_.path.clear();
  return false;
}

bool OutputFile::stage(std::span<const std::string_view> parts, const struct stat* replaced) {
  if (!open_temporary()) {
    if (errno != EACCES && errno != EPERM && errno != EROFS) fail(place_, errno);
    return false;
  }
  const File& file = temporary_.file;
  if (replaced != nullptr) {
    // The owner is set first, because chown clears mode bits. It may not be permitted.
    if (::fchown(file.get(), replaced->st_uid, replaced->st_gid) != 0 &&
        ::fchown(file.get(), static_cast<uid_t>(-1), replaced->st_gid) != 0) {
      const int code = errno;
      if (!temporary_.path.empty()) ::unlink(temporary_.path.c_str());
      temporary_.path.clear();
      temporary_.file.close();
      errno = code;
      return false;
    }
    if (::fchmod(file.get(), replaced->st_mode & 0777) != 0) fail(place_, errno);
  }
  if (!write_parts(file, parts)) fail(place_, errno);
  if (!temporary_.path.empty() && !temporary_.file.close()) fail(place_, errno);
  return true;
}

bool OutputFile::copy_into_place() {
  if (!temporary_.file.is_open()) {
    temporary_.file = File(::open(temporary_.path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  File to(::open(place_.c_str(), kFlags));
  if (!to.is_open() || ::lseek(temporary_.file.get(), 0, SEEK_SET) != 0 ||
      ::ftruncate(to.get(), 0) != 0) {
    return false;
  }
  std::array<char, 1 << 16> piece;
  for (;;) {
    const std::optional<std::size_t> bytes =
        read_up_to(temporary_.file, piece.data(), piece.size());
    if (bytes == 0U) break;
    if (bytes && write_all(to, {piece.data(), *bytes})) continue;
    const int code = errno;
    if (::ftruncate(to.get(), 0) == 0) errno = code;
    return false;
  }
  return to.close();
}

void OutputFile::publish() {
  if (temporary_.path.empty()) {
    if (!temporary_.file.is_open()) return;
    if (!name_temporary(temporary_.file, prefix(place_), &temporary_.path)) {
      temporary_.path.clear();
      fail(place_, errno);
    }
  }
  if (::rename(temporary_.path.c_str(), place_.c_str()) == 0) {
    temporary_.path.clear();
    temporary_.file.close();
    return;
  }
  // A mount point, or another user's file in a sticky folder.
  const int code = errno;
  const bool kept = code == EBUSY || code == EPERM || code == EACCES;
  if (!kept || !copy_into_place()) fail(place_, kept ? errno : code);
}

void write_output_file(const fs::path& path, std::span<const std::string_view> parts) {
  OutputFile(path, parts).publish();
}

void write_output_file(const fs::path& path, std::string_view content) {
  write_output_file(path, {&content, 1});
}

}  // namespace braid
