#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/file_io.h"

namespace braid {

class FileServer;

/// An open file that other processes of this user on this machine may take, by its handle, as long
/// as this object exists. A thread hands its descriptor over a Unix socket without a name in any
/// directory: what a GPU's driver exports can neither be opened through /proc nor, on many
/// machines, be taken with pidfd_getfd.
class OfferedFile {
 public:
  OfferedFile() = default;
  /// The descriptor stays the caller's, and open meanwhile. Throws kEnvironment.
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

/// A descriptor of its own for a file that is offered by this process or another one. Throws
/// kInvalidArgument for bytes that are no handle, kEnvironment where the file is not within reach.
[[nodiscard]] File take_file(std::string_view handle);

}  // namespace braid
