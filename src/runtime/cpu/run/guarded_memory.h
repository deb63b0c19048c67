#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/cpu/run/memory_file.h"

namespace braid::cpu {

/// What the system says of a mapping that it refuses, with what may be done about it.
[[nodiscard]] std::string mapping_error(int code);

/// The addresses of a device's memory: a reserved range in which pieces lie far apart, so that what
/// reaches beyond one of them, or uses it after its end, meets pages that nobody may touch.
class AddressRange {
 public:
  /// Throws kEnvironment when the process may not have so many addresses.
  AddressRange();
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  /// How many bytes there are from an address to the end of the piece that holds it: 0 where none
  /// does; nothing for an address that is not of the range.
  std::optional<std::size_t> left(std::uint64_t address);
  /// Where an address is: "4 bytes after 400 bytes of memory"; "" when none of it is near.
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
  std::size_t gap_ = 0;  ///< between pieces
  std::uint64_t base_ = 0;
  std::uint64_t first_ = 0;  ///< before it is room for negative offsets
  std::uint64_t next_ = 0;   ///< where to look for room: old addresses are used again last
  std::map<std::uint64_t, Piece> pieces_;
};

/// Memory of a range: zeros at first, and 256-byte aligned. Rounded up to that it ends where a page
/// begins that nobody may touch.
class GuardedMemory {
 public:
  GuardedMemory() = default;
  /// Throws kEnvironment when there is not so much.
  GuardedMemory(AddressRange& range, std::size_t bytes) : GuardedMemory(range, bytes, 1, {}) {}
  /// Whose first page begins at a multiple of `align`; where the process may not have many
  /// addresses, at one of at least what a block has of shared memory.
  GuardedMemory(AddressRange& range, std::size_t bytes, std::size_t align)
      : GuardedMemory(range, bytes, align, {}) {}
  /// That which another process shares: the file of its share(), and its size(). Throws
  /// kInvalidArgument where they do not fit.
  GuardedMemory(AddressRange& range, std::size_t bytes, const MemoryFile& file)
      : GuardedMemory(range, bytes, 1, file) {}
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;

  [[nodiscard]] std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(data_); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  /// Where its first page begins, which is at most a page before data().
  [[nodiscard]] std::uint8_t* first() const;
  /// The last `bytes` (at most size(), a multiple of 256), which end at the guard.
  [[nodiscard]] std::uint8_t* last(std::size_t bytes) const;
  /// Makes a file of it that others can map; address and contents stay. Nobody may write to it
  /// meanwhile.
  [[nodiscard]] MemoryFile share() { return range_->share(data_); }
  /// From now on nobody can load or store there: it stands for memory elsewhere.
  void forbid() { range_->forbid(data_); }

 private:
  GuardedMemory(AddressRange& range, std::size_t bytes, std::size_t align, const MemoryFile& file);

  AddressRange* range_ = nullptr;
  std::uint64_t data_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace braid::cpu
