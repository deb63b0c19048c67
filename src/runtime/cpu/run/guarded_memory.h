#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "ir/non_copyable.h"
#include "runtime/cpu/run/memory_file.h"

namespace braid::cpu {

/// The system's text for a refused mapping, with advice.
[[nodiscard]] std::string mapping_error(int code);

/// The addresses of a device's memory: a reserved range in which allocations lie far apart, so that
/// an access beyond one, or after its end, hits inaccessible pages.
class AddressRange : NonCopyable {
 public:
  /// Throws kEnvironment if the process may not reserve that many addresses.
  AddressRange();
  ~AddressRange();

  /// Whether it is one of these addresses; all others are of the process, which shares them.
  [[nodiscard]] bool holds(std::uint64_t address) const { return address - base_ < size_; }
  /// Bytes from an address to the end of its allocation, 0 if there is none; nothing for an address
  /// outside the range.
  std::optional<std::size_t> left(std::uint64_t address);
  /// Describes an address: "4 bytes after 400 bytes of memory"; "" if no allocation is near.
  std::string describe(std::uint64_t address);

 private:
  friend class GuardedMemory;
  struct Piece {
    std::size_t span;  ///< of its pages
    std::uint64_t data;
    std::size_t bytes;
    bool forbidden = false;
  };

  std::uint64_t take(std::size_t bytes, std::size_t align, const MemoryFile& file);
  void give(std::uint64_t data);
  MemoryFile share(std::uint64_t data);
  void forbid(std::uint64_t data);
  std::uint64_t find_room(std::size_t span, std::size_t align);

  std::mutex mutex_;
  std::size_t size_ = 0;
  std::size_t gap_ = 0;  ///< between allocations
  std::uint64_t base_ = 0;
  std::uint64_t first_ = 0;  ///< the space before it is for negative offsets
  std::uint64_t next_ = 0;   ///< where the search starts: old addresses are reused last
  std::map<std::uint64_t, Piece> pieces_;
};

/// Memory of a range, zeroed and 256-byte aligned. Its end, rounded up to 256 bytes, is followed by
/// an inaccessible page.
class GuardedMemory {
 public:
  GuardedMemory() = default;
  /// Throws kEnvironment if there is not enough memory.
  GuardedMemory(AddressRange& range, std::size_t bytes) : GuardedMemory(range, bytes, 1, {}) {}
  /// The first page is at a multiple of `align`; if addresses are scarce, at least at one of a
  /// block's shared memory size.
  GuardedMemory(AddressRange& range, std::size_t bytes, std::size_t align)
      : GuardedMemory(range, bytes, align, {}) {}
  /// Maps memory that another process shares, given the file of its share() and its size(). Throws
  /// kInvalidArgument if they do not match.
  GuardedMemory(AddressRange& range, std::size_t bytes, const MemoryFile& file)
      : GuardedMemory(range, bytes, 1, file) {}
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;

  [[nodiscard]] std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(data_); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  /// Start of its first page, at most a page before data().
  [[nodiscard]] std::uint8_t* first() const;
  /// The last `bytes` bytes (at most size(), a multiple of 256), which end at the guard page.
  [[nodiscard]] std::uint8_t* last(std::size_t bytes) const;
  /// Turns it into a file that others can map; address and contents stay. Nobody may write
  /// meanwhile.
  [[nodiscard]] MemoryFile share() { return range_->share(data_); }
  /// Forbids all loads and stores from now on: the addresses stand for memory elsewhere.
  void forbid() { range_->forbid(data_); }

 private:
  GuardedMemory(AddressRange& range, std::size_t bytes, std::size_t align, const MemoryFile& file);

  AddressRange* range_ = nullptr;
  std::uint64_t data_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace braid::cpu
