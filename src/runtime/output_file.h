#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace braid {

/// A file that a user asked for. It is written beside its place, under a name that nobody can
/// foresee, and takes its place as a whole when it is published. An ordinary file keeps its mode
/// and, where that is allowed, its owner. What `path` links to is what is written. Devices, pipes,
/// files with a second name and files in a folder that takes no new ones are written in place, and
/// so is the file behind standard output or error, where the stream stands.
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
  /// The name beside the place, removed with the object.
  struct Temporary {
    std::string path;
    ~Temporary();
  };
  /// Writes the temporary file, with the mode of the one that it replaces (null: none). False, with
  /// errno, when the folder takes no new file.
  bool stage(std::span<const std::string_view> parts, const struct stat* replaced);

  std::filesystem::path place_;
  Temporary temporary_;  ///< no path when it was written in place
};

/// The same for one file at once.
void write_output_file(const std::filesystem::path& path, std::span<const std::string_view> parts);
void write_output_file(const std::filesystem::path& path, std::string_view content);

}  // namespace braid
