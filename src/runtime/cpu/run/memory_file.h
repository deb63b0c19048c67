#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/file_io.h"
#include "runtime/offered_file.h"

namespace braid::cpu {

/// Memory that processes map together: a file that is in no directory, so that nothing of it is
/// left when the last of them has ended, in whatever way.
class MemoryFile {
 public:
  MemoryFile() = default;
  /// Zeros; nobody can change its size. Throws kEnvironment.
  explicit MemoryFile(std::size_t bytes);
  /// That of another process of this machine, by its handle(). Throws kInvalidArgument for bytes
  /// that are none, kEnvironment where the file is not within reach.
  static MemoryFile open(std::string_view handle);

  [[nodiscard]] bool is_open() const { return file_.is_open(); }
  [[nodiscard]] int descriptor() const { return file_.get(); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  /// Bytes by which others open it as long as this process has it open. Throws kEnvironment.
  [[nodiscard]] std::string handle();

 private:
  File file_;
  OfferedFile offer_;  ///< since somebody asked for the handle
  std::size_t bytes_ = 0;
};

}  // namespace braid::cpu
