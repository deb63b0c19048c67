#include "runtime/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "braid/error.h"
#include "runtime/file_io.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

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

// The descriptor of a standard stream that is the very file of this name, or -1. A second one would
// have an offset of its own, and both would write over each other; and the pipe of another user
// cannot be opened again.
int standard_stream(const fs::path& path) {
  struct stat file {
  }, info{};
  if (::stat(path.c_str(), &file) != 0) return -1;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::fstat(stream, &info) == 0 && same_file(info, file)) return stream;
  }
  return -1;
}

// Where a regular file may be replaced: its path without links, or nothing.
fs::path replaceable(const fs::path& path, const struct stat& file) {
  if (file.st_nlink != 1) return {};
  std::error_code error;
  fs::path place = fs::canonical(path, error);
  struct stat named {};
  // A link of /proc to a file that was removed names nothing, or something else.
  if (error || ::lstat(place.c_str(), &named) != 0 || !same_file(named, file)) return {};
  return place;
}

bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(path, error));
}

// What stands at the place already.
struct Existing {
  File file;  // not open when there is nothing
  struct stat info {};
  bool made = false;  // by this call: a link named a file that was not there

  [[nodiscard]] bool regular() const { return S_ISREG(info.st_mode); }
};

// Opened by its name as given: the kernel judges links and permissions as for any writer.
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

bool OutputFile::stage(std::span<const std::string_view> parts, const struct stat* replaced) {
  const std::string prefix = (place_.parent_path() / ".braid-").string();
  File file = create_temporary(AT_FDCWD, prefix, 0666, &temporary_.path);
  if (!file.is_open()) {
    const int code = errno;
    temporary_.path.clear();
    if (code != EACCES && code != EPERM && code != EROFS) fail(place_, code);
    errno = code;
    return false;
  }
  if (replaced != nullptr) {
    // The owner first: changing it drops bits of the mode. Not everybody may.
    [[maybe_unused]] const int kept = ::fchown(file.get(), replaced->st_uid, replaced->st_gid);
    if (::fchmod(file.get(), replaced->st_mode & 0777) != 0) fail(place_, errno);
  }
  if (!write_parts(file, parts) || !file.close()) fail(place_, errno);
  return true;
}

void OutputFile::publish() {
  if (temporary_.path.empty()) return;
  if (::rename(temporary_.path.c_str(), place_.c_str()) != 0) fail(place_, errno);
  temporary_.path.clear();
}

void write_output_file(const fs::path& path, std::span<const std::string_view> parts) {
  OutputFile(path, parts).publish();
}

void write_output_file(const fs::path& path, std::string_view content) {
  write_output_file(path, {&content, 1});
}

}  // namespace braid
