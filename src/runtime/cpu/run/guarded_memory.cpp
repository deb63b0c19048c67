#include "runtime/cpu/run/guarded_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "braid/error.h"
#include "runtime/cpu/align.h"

namespace braid::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{1} << 21;
constexpr std::size_t kAlign = 256;
constexpr std::size_t kLeastWindow = std::size_t{1} << 18;
constexpr std::size_t kMostAddresses = std::size_t{1} << 40;
constexpr std::size_t kLeastAddresses = std::size_t{1} << 28;

void* reserve(void* where, std::size_t bytes, int fixed) {
  return mmap(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

/// Zeros, or what the file holds.
bool map_pages(std::uint64_t at, std::size_t span, const MemoryFile& file) {
  const int kind = file.is_open() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const where = reinterpret_cast<void*>(at);
  if (mmap(where, span, PROT_READ | PROT_WRITE, kind | MAP_FIXED, file.descriptor(), 0) ==
      MAP_FAILED) {
    return false;
  }
  // A wish: rows that are pages cost a walk through the page tables each. Kernels without huge
  // pages refuse it.
  if (span >= kHugePage) madvise(where, span, MADV_HUGEPAGE);
  return true;
}

/// Copies what is not zero: the rest takes no memory in the file.
bool copy_pages(std::uint64_t from, std::size_t span, const MemoryFile& to) {
  constexpr std::array<char, kPage> kZeros{};
  for (std::size_t at = 0; at < span; at += kPage) {
    const void* const page = reinterpret_cast<const void*>(from + at);
    if (std::memcmp(page, kZeros.data(), kPage) == 0) continue;
    if (pwrite(to.descriptor(), page, kPage, static_cast<off_t>(at)) != ssize_t{kPage}) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string mapping_error(int code) {
  std::string text = std::strerror(code);
  if (code == ENOMEM) {
    text += "; where memory is left, the process has as many mappings as vm.max_map_count allows";
  }
  return text;
}

AddressRange::AddressRange() {
  // A limit on the addresses of the process leaves room for fewer; others need some, too.
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  for (size_ = kMostAddresses; size_ >= kLeastAddresses; size_ /= 2) {
    if (size_ > kLeastAddresses && size_ > limit.rlim_cur / 2) continue;
    void* const range = reserve(nullptr, size_, 0);
    if (range == MAP_FAILED) continue;
    base_ = reinterpret_cast<std::uint64_t>(range);
    gap_ = std::max(size_ >> 16, kPage);
    first_ = next_ = base_ + size_ / 8;
    return;
  }
  throw_environment("cpu", "cannot reserve " + std::to_string(kLeastAddresses >> 20) +
                               " MiB of addresses: " + std::strerror(errno));
}

AddressRange::~AddressRange() { munmap(reinterpret_cast<void*>(base_), size_); }

/// The address of `span` bytes with a gap behind them, or 0.
std::uint64_t AddressRange::find_room(std::size_t span, std::size_t align) {
  const std::uint64_t limit = base_ + size_;
  if (span > size_ - gap_) return 0;
  align =
      std::max(std::min(align, std::max(gap_, kLeastWindow)), span < kHugePage ? kPage : kHugePage);
  for (const std::uint64_t from : {next_, first_}) {
    std::uint64_t at = align_up(from, align);
    auto piece = pieces_.upper_bound(from);
    if (piece != pieces_.begin()) {
      const auto before = std::prev(piece);
      at = std::max(at, align_up(before->first + before->second.span + gap_, align));
    }
    for (; piece != pieces_.end() && at + span + gap_ > piece->first; ++piece) {
      at = align_up(piece->first + piece->second.span + gap_, align);
    }
    if (at <= limit && span + gap_ <= limit - at) return at;
  }
  return 0;
}

std::uint64_t AddressRange::take(std::size_t bytes, std::size_t align, const MemoryFile& file) {
  const std::size_t whole = align_up(std::max<std::size_t>(bytes, 1), kAlign);
  if (bytes > size_) throw_environment("cpu", "allocation is too large");
  const std::size_t span = align_up(whole, kPage);
  if (file.is_open() && file.size() != span) {
    throw_invalid("memory", std::to_string(bytes) + " bytes in a file of " +
                                std::to_string(file.size()) + "; expected " + std::to_string(span));
  }
  const std::lock_guard lock(mutex_);
  const std::uint64_t at = find_room(span, align);
  errno = ENOMEM;
  if (at == 0 || !map_pages(at, span, file)) {
    throw_environment(
        "cpu", "cannot allocate " + std::to_string(bytes) + " bytes: " + mapping_error(errno));
  }
  next_ = at + span + gap_;
  const std::uint64_t data = at + span - whole;
  pieces_.emplace(at, Piece{span, data, bytes});
  return data;
}

void AddressRange::give(std::uint64_t data) {
  const std::lock_guard lock(mutex_);
  const auto piece = std::prev(pieces_.upper_bound(data));
  reserve(reinterpret_cast<void*>(piece->first), piece->second.span, MAP_FIXED);
  pieces_.erase(piece);
}

MemoryFile AddressRange::share(std::uint64_t data) {
  const std::lock_guard lock(mutex_);
  const auto piece = std::prev(pieces_.upper_bound(data));
  const std::size_t span = piece->second.span;
  MemoryFile file(span);
  if (!copy_pages(piece->first, span, file) || !map_pages(piece->first, span, file)) {
    throw_environment("cpu", "cannot share " + std::to_string(span) +
                                 " bytes with other processes: " + mapping_error(errno));
  }
  return file;
}

void AddressRange::forbid(std::uint64_t data) {
  const std::lock_guard lock(mutex_);
  const auto piece = std::prev(pieces_.upper_bound(data));
  reserve(reinterpret_cast<void*>(piece->first), piece->second.span, MAP_FIXED);
  piece->second.forbidden = true;
}

std::optional<std::size_t> AddressRange::left(std::uint64_t address) {
  if (address - base_ >= size_) return {};
  const std::lock_guard lock(mutex_);
  const auto next = pieces_.upper_bound(address);
  if (next == pieces_.begin()) return 0;
  const Piece& piece = std::prev(next)->second;
  const std::uint64_t offset = address - piece.data;  // large when it lies before
  return offset >= piece.bytes || piece.forbidden ? 0 : piece.bytes - offset;
}

std::string AddressRange::describe(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (address - base_ >= size_) return {};
  std::string text;
  std::uint64_t nearest = ~0ULL;
  const auto consider = [&](const Piece& piece, std::uint64_t distance, const char* side) {
    if (distance >= nearest) return;
    nearest = distance;
    text = std::to_string(distance) + " bytes " + side + " " + std::to_string(piece.bytes) +
           " bytes of memory";
  };
  const auto end = pieces_.upper_bound(address);
  // Skips allocations of zero bytes.
  const auto some = [](const auto& piece) { return piece.second.bytes != 0; };
  const auto above = std::find_if(end, pieces_.end(), some);
  if (above != pieces_.end()) consider(above->second, above->second.data - address, "before");
  const auto found = std::find_if(std::make_reverse_iterator(end), pieces_.rend(), some);
  if (found != pieces_.rend()) {
    const Piece& below = found->second;
    if (below.forbidden && address - below.data < below.bytes) {
      return "a multicast address, which takes multimem instructions alone";
    }
    if (address < below.data) {
      consider(below, below.data - address, "before");
    } else if (address >= below.data + below.bytes) {
      consider(below, address - below.data - below.bytes, "after");
    }
  }
  return text;
}

GuardedMemory::GuardedMemory(AddressRange& range, std::size_t bytes, std::size_t align,
                             const MemoryFile& file)
    : range_(&range), data_(range.take(bytes, align, file)), bytes_(bytes) {}

GuardedMemory::~GuardedMemory() {
  if (range_ != nullptr) range_->give(data_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : range_(std::exchange(other.range_, nullptr)), data_(other.data_), bytes_(other.bytes_) {}

GuardedMemory& GuardedMemory::operator=(GuardedMemory&& other) noexcept {
  std::swap(range_, other.range_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

std::uint8_t* GuardedMemory::first() const {
  return reinterpret_cast<std::uint8_t*>(data_ / kPage * kPage);
}

std::uint8_t* GuardedMemory::last(std::size_t bytes) const {
  return data() + align_up(bytes_, kAlign) - align_up(bytes, kAlign);
}

}  // namespace braid::cpu
