#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace braid {

/// An open file descriptor, closed with the object.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() { close(); }

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] int get() const { return descriptor_; }
  /// Returns false if the last write failed late (a full disk on some file systems).
  bool close();

 private:
  int descriptor_ = -1;
};

/// Whether both describe one file, under whatever names.
[[nodiscard]] inline bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Returns false, with errno, if not everything could be written.
[[nodiscard]] bool write_all(const File& file, std::string_view bytes);

/// Reads until `bytes` are read or the file ends, and returns how many; nothing, with errno, on an
/// error.
[[nodiscard]] std::optional<std::size_t> read_up_to(const File& file, void* data,
                                                    std::size_t bytes);

/// Gives an open file without a name (O_TMPFILE) a name as create_temporary does, and sets `path`.
/// Returns false, with errno, if it cannot.
[[nodiscard]] bool name_temporary(const File& file, std::string_view prefix, std::string* path);

/// Creates a file, open for writing, with the path `prefix` plus an unpredictable suffix. It never
/// opens or follows anything existing. The path is relative to a directory's descriptor, or
/// AT_FDCWD. Sets `path`; the result is not open, with errno, on failure.
[[nodiscard]] File create_temporary(int directory, std::string_view prefix, mode_t mode,
                                    std::string* path);

}  // namespace braid
