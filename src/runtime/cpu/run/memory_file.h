#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/file_io.h"
#include "runtime/offered_file.h"

namespace braid::cpu {

inline constexpr std::size_t kPage = 4096;  ///< bytes of a page of the system

/// Memory shared by processes: a file in no directory, so that nothing is left when the last of
/// them ends in any way.
class MemoryFile {
 public:
  MemoryFile() = default;
  /// Zeroed; its size is fixed. Throws kEnvironment.
  explicit MemoryFile(std::size_t bytes);
  /// Opens the file of another process of this machine by its handle(). Throws kInvalidArgument for
  /// malformed bytes, kEnvironment if the file cannot be reached.
  static MemoryFile open(std::string_view handle);

  [[nodiscard]] bool is_open() const { return file_.is_open(); }
  [[nodiscard]] int descriptor() const { return file_.get(); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  /// A handle with which others open it while this process has it open. Throws kEnvironment.
  [[nodiscard]] std::string handle();

 private:
  File file_;
  OfferedFile offer_;  ///< set once a handle was requested
  std::size_t bytes_ = 0;
};

}  // namespace braid::cpu
