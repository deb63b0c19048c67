#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/file_io.h"

namespace braid {

/// A file that a user asked for. It is written beside its place and takes it as a whole when it is
/// published. Until then it has no name, where the file system offers that, so that nothing is left
/// behind whatever ends the process; else one that nobody can foresee. An ordinary file keeps its
/// mode, its group and, where that is allowed, its owner. What `path` links to is what is written.
/// Devices, pipes, files with a second name, files whose group a new one cannot have, files in a
/// folder that takes no new ones and files that may be written but not replaced are written in
/// place, and so is the file behind standard output or error, where the stream stands.
class OutputFile {
 public:
  /// Writes all parts. Throws kInvalidArgument for a directory, else kEnvironment, and leaves
  /// nothing behind.
  OutputFile(const std::filesystem::path& path, std::span<const std::string_view> parts);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() = default;

  /// Throws kEnvironment.
  void publish();

 private:
  /// The file beside the place: open while it has no name, else a name that is removed with the
  /// object.
  struct Temporary {
    File file;
    std::string path;
    ~Temporary();
  };
  /// Opens the temporary file; false, with errno.
  bool open_temporary();
  /// Writes it, with the mode and the owner of the one that it replaces (null: none). False, with
  /// errno, when the folder takes no new file, or none that belongs to that one's group.
  bool stage(std::span<const std::string_view> parts, const struct stat* replaced);
  /// Writes what was staged into the file that stands at the place; false, with errno, where there
  /// is none that may be written.
  [[nodiscard]] bool copy_into_place();

  std::filesystem::path place_;
  Temporary temporary_;  ///< neither open nor named when it was written in place
};

/// The same for one file at once.
void write_output_file(const std::filesystem::path& path, std::span<const std::string_view> parts);
void write_output_file(const std::filesystem::path& path, std::string_view content);

}  // namespace braid
