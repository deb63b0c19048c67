#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/file_io.h"

namespace braid {

class FileServer;

/// An open file that other processes of this user on this machine may take by its handle, as long
/// as this object exists. A thread sends the descriptor over a Unix socket in the abstract
/// namespace. What a GPU's driver exports cannot be opened through /proc, and on many machines not
/// be taken with pidfd_getfd.
class OfferedFile {
 public:
  OfferedFile() = default;
  /// The caller keeps the descriptor, and keeps it open meanwhile. Throws kEnvironment.
  explicit OfferedFile(int descriptor);
  OfferedFile(OfferedFile&& other) noexcept
      : server_(std::move(other.server_)), number_(other.number_) {}
  OfferedFile& operator=(OfferedFile&& other) noexcept {
    std::swap(server_, other.server_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~OfferedFile();

  [[nodiscard]] bool is_open() const { return server_ != nullptr; }
  [[nodiscard]] std::string handle() const;

 private:
  std::shared_ptr<FileServer> server_;
  std::uint64_t number_ = 0;
};

/// A new descriptor for a file offered by this or another process. Throws kInvalidArgument for
/// malformed handles, kEnvironment if the file cannot be reached.
[[nodiscard]] File take_file(std::string_view handle);

}  // namespace braid
