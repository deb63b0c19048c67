#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "ir/non_copyable.h"
#include "runtime/file_io.h"

namespace braid {

/// A file that a user asked for. It is written beside its place and renamed to it when published,
/// so it is always complete. Until then it has no name, if the file system allows that, so that
/// nothing is left behind however the process ends; else an unpredictable one. An existing regular
/// file keeps its mode, its group and, if permitted, its owner. Links are followed. Some files are
/// written in place: devices, pipes, files with several links, files whose group a new one cannot
/// have, files in folders that accept no new ones, files that may be written but not replaced, and
/// the file behind standard output or error, at the stream's position.
class OutputFile : NonCopyable {
 public:
  /// Writes all parts. Throws kInvalidArgument for a directory, else kEnvironment; it leaves
  /// nothing behind then.
  OutputFile(const std::filesystem::path& path, std::span<const std::string_view> parts);

  /// Throws kEnvironment.
  void publish();

 private:
  /// The temporary file: open while it has no name, else a name that is removed with the object.
  struct Temporary {
    File file;
    std::string path;
    ~Temporary();
  };
  /// Returns false, with errno, on failure.
  bool open_temporary();
  /// Writes it with the mode and owner of the file that it replaces (null: none). Returns false,
  /// with errno, if the folder accepts no new file, or none of that group.
  bool stage(std::span<const std::string_view> parts, const struct stat* replaced);
  /// Copies the staged bytes into the existing file; returns false, with errno, if none can be
  /// written.
  [[nodiscard]] bool copy_into_place();

  std::filesystem::path place_;
  Temporary temporary_;  ///< neither open nor named if written in place
};

void write_output_file(const std::filesystem::path& path, std::span<const std::string_view> parts);
void write_output_file(const std::filesystem::path& path, std::string_view content);

}  // namespace braid
