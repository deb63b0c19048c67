#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/cpu/run/guarded_memory.h"

namespace braid::cpu {

/// The memory of a device's ranks: pieces of the device's addresses. Addresses outside of these are
/// memory of the process, which each rank takes for its own. Thread safe.
class RankMemory {
 public:
  explicit RankMemory(const AddressRange& range) : range_(range) {}
  struct Piece {
    std::uint64_t begin = 0, end = 0;
    int rank = -1;
    [[nodiscard]] bool holds(std::uint64_t address) const {
      return begin <= address && address < end;
    }
  };
  void add(int rank, std::uint64_t address, std::size_t bytes);
  void remove(std::uint64_t address);
  /// The piece with bytes in [begin, end), a range of at most a page, as a kernel of `rank` sees
  /// it; pieces are pages apart.
  [[nodiscard]] Piece find(std::uint64_t begin, std::uint64_t end, int rank) const;

 private:
  const AddressRange& range_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Piece> pieces_;
};

/// For one launch, the bytes of memory that it read before it wrote them, and those that it wrote.
/// Thread safe; the order of accesses is that of the kernel's own barriers and flags.
class TouchedBytes {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;
  struct Effect {
    bool reads = false, writes = false;
  };
  /// Bytes, and the sectors that these are in, which memory moves as a whole.
  struct Amount {
    std::uint64_t bytes = 0, sectors = 0;
    bool operator==(const Amount&) const = default;
    void operator+=(const Amount& other) {
      bytes += other.bytes;
      sectors += other.sectors;
    }
    Amount operator-(const Amount& other) const {
      return {bytes - other.bytes, sectors - other.sectors};
    }
  };
  struct Traffic {
    Amount read, written;
    bool operator==(const Traffic&) const = default;
  };
  class Page {
   public:
    /// Resets to an untouched page.
    void reset(std::uint64_t number, RankMemory::Piece piece);
    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] const RankMemory::Piece& piece() const { return piece_; }
    /// Touches bytes from `offset` on; those beyond the page are ignored.
    void touch(std::uint64_t offset, std::uint64_t bytes, Effect effect);
    /// Touches the bytes of a 64-byte word whose bits are set.
    void touch_word(std::size_t word, std::uint64_t bits, Effect effect) {
      const std::uint64_t fresh = bits & ~written_[word].load(std::memory_order_relaxed);
      if (fresh == 0) return;
      if (effect.reads) add(read_[word], fresh);
      if (effect.writes) add(written_[word], fresh);
    }
    [[nodiscard]] Traffic traffic() const { return {count(read_), count(written_)}; }

   private:
    using Bits = std::array<std::atomic<std::uint64_t>, kPageBytes / 64>;
    static Amount count(const Bits& bits);
    static void add(std::atomic<std::uint64_t>& word, std::uint64_t bits) {
      if ((bits & ~word.load(std::memory_order_relaxed)) == 0) return;
      if (bits == ~std::uint64_t{0}) {
        word.store(bits, std::memory_order_relaxed);  // all bits are set, whatever others add
                                                      // meanwhile
      } else {
        word.fetch_or(bits, std::memory_order_relaxed);
      }
    }

    std::uint64_t number_ = 0;
    RankMemory::Piece piece_;
    Bits read_{}, written_{};
  };

  /// Pages that no launch uses, kept because allocating them takes longer than a launch takes to
  /// fill them.
  class Pool {
   public:
    std::unique_ptr<Page> take();
    void give(std::unique_ptr<Page> page);

   private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Page>> pages_;
  };

  TouchedBytes(const RankMemory& memory, Pool& pool, int rank)
      : memory_(memory), pool_(pool), rank_(rank) {}
  ~TouchedBytes();
  TouchedBytes(const TouchedBytes&) = delete;
  TouchedBytes& operator=(const TouchedBytes&) = delete;
  /// The page's address does not change.
  Page& page(std::uint64_t number);
  void for_each(const std::function<void(const Page&)>& body) const;

 private:
  const RankMemory& memory_;
  Pool& pool_;
  int rank_;  ///< that runs the kernel
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
};

inline void TouchedBytes::Page::touch(std::uint64_t offset, std::uint64_t bytes, Effect effect) {
  const std::uint64_t end = offset + bytes < kPageBytes ? offset + bytes : kPageBytes;
  while (offset < end) {
    const std::uint64_t low = offset % 64;
    const std::uint64_t here = end - offset < 64 - low ? end - offset : 64 - low;
    touch_word(offset / 64, ~std::uint64_t{0} >> (64 - here) << low, effect);
    offset += here;
  }
}

}  // namespace braid::cpu
