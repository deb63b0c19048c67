#include "runtime/disk_cache.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/bytes.h"
#include "runtime/dynamic_library.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// An entry: magic, format, key material, payload, then the hash of all bytes before it.
constexpr std::uint64_t kMagic = 0x3143'4449'4152'42ULL;  // "BRAIDC1"
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kChecksumBytes = 16;
constexpr std::string_view kEntrySuffix = ".entry";
constexpr std::string_view kLockSuffix = ".lock";
constexpr std::string_view kTemporaryMark = ".tmp.";
constexpr auto kLockPatience = std::chrono::minutes(2);
constexpr auto kLeftoverAge = std::chrono::hours(1);

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }
  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] int get() const { return descriptor_; }
  // False when the last write failed late (a full disk on some file systems).
  bool close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

std::optional<std::string> read_all(const File& file) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

bool write_all(const File& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::string hash_bytes(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return {reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest};
}

std::string encode(std::string_view key_material, std::string_view payload) {
  ByteWriter out;
  out.value(kMagic);
  out.value(kFormat);
  out.string(key_material);
  out.string(payload);
  std::string entry = out.take();
  entry += hash_bytes(entry);
  return entry;
}

struct Decoded {
  std::string_view key_material, payload;
};

/// Nothing when the bytes are no intact entry of this format.
std::optional<Decoded> decode(std::string_view entry) {
  if (entry.size() < kChecksumBytes) return {};
  const std::string_view body = entry.substr(0, entry.size() - kChecksumBytes);
  if (hash_bytes(body) != entry.substr(body.size())) return {};
  ByteReader in(body);
  if (in.value<std::uint64_t>() != kMagic || in.value<std::uint32_t>() != kFormat) return {};
  Decoded decoded;
  decoded.key_material = in.string();
  decoded.payload = in.string();
  if (!in.done()) return {};
  return decoded;
}

// An exclusive lock that ends with its holder, whatever ends it. The file is removed on release, so
// a lock counts only while the path still names the file that is locked.
class FileLock {
 public:
  FileLock(fs::path path, std::chrono::steady_clock::duration patience) : path_(std::move(path)) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    auto pause = std::chrono::milliseconds(1);
    while (!try_lock() && wanted_ && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(20));
    }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (descriptor_ < 0) return;
    ::unlink(path_.c_str());
    // Unlocks even where a forked child has inherited the descriptor.
    ::flock(descriptor_, LOCK_UN);
    ::close(descriptor_);
  }

 private:
  bool try_lock() {
    const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) {
      wanted_ = false;  // a directory that cannot be written: nobody else stores either
      return false;
    }
    struct stat locked {
    }, named{};
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      if (fstat(descriptor, &locked) == 0 && stat(path_.c_str(), &named) == 0 &&
          locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
        descriptor_ = descriptor;
        return true;
      }
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      wanted_ = false;  // a file system without locks
    }
    ::close(descriptor);
    return false;
  }

  fs::path path_;
  int descriptor_ = -1;
  bool wanted_ = true;
};

bool has_suffix(const fs::path& path, std::string_view suffix) {
  return path.native().size() >= suffix.size() && path.native().ends_with(suffix);
}

void make_private_directory(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory, error)) return;
  fs::create_directories(directory.parent_path(), error);
  ::mkdir(directory.c_str(), 0700);
}

}  // namespace

DiskCache::DiskCache(fs::path directory, std::uint64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes), unchecked_bytes_(max_bytes) {}

fs::path DiskCache::default_directory() {
  if (std::string path = environment("BRAID_CACHE_DIR"); !path.empty()) return path;
  if (std::string path = environment("XDG_CACHE_HOME"); !path.empty()) return path + "/braid";
  if (std::string path = environment("HOME"); !path.empty()) return path + "/.cache/braid";
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  return (error ? fs::path("/tmp") : temporary) / fmt::format("braid-cache-{}", ::getuid());
}

fs::path DiskCache::entry_path(std::string_view key_material) const {
  std::string name;
  for (const char c : hash_bytes(key_material)) {
    name += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return directory_ / (name + std::string(kEntrySuffix));
}

std::optional<std::string> DiskCache::get(std::string_view key_material) const {
  const fs::path path = entry_path(key_material);
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return {};
  const std::optional<std::string> entry = read_all(file);
  const std::optional<Decoded> decoded = entry ? decode(*entry) : std::nullopt;
  if (!decoded) {
    ::unlink(path.c_str());
    return {};
  }
  if (decoded->key_material != key_material) return {};
  ::futimens(file.get(), nullptr);  // most recently used; may fail on a read-only disk
  return std::string(decoded->payload);
}

void DiskCache::put(std::string_view key_material, std::string_view payload) const {
  const std::string entry = encode(key_material, payload);
  if (entry.size() > max_bytes_) return;
  make_private_directory(directory_);
  if (!store(entry_path(key_material), entry)) return;
  // Looking at every entry costs a system call each, so it is done once per sixteenth of the bound.
  if ((unchecked_bytes_ += entry.size()) >= max_bytes_ / 16) {
    unchecked_bytes_ = 0;
    prune(max_bytes_);
  }
}

bool DiskCache::store(const fs::path& path, std::string_view entry) const {
  std::string temporary = path.native() + std::string(kTemporaryMark) + "XXXXXX";
  File file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.is_open()) return false;
  // Each step must run only when the one before it succeeded; the rename publishes the whole entry.
  const bool stored =
      write_all(file, entry) && file.close() && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (!stored) ::unlink(temporary.c_str());
  return stored;
}

std::string DiskCache::get_or_create(std::string_view key_material,
                                     const std::function<std::string()>& make, bool* hit) const {
  if (hit != nullptr) *hit = true;
  if (std::optional<std::string> payload = get(key_material)) return *std::move(payload);
  make_private_directory(directory_);
  const FileLock lock(entry_path(key_material).replace_extension(kLockSuffix), kLockPatience);
  // Another process may have stored it while this one waited.
  if (std::optional<std::string> payload = get(key_material)) return *std::move(payload);
  if (hit != nullptr) *hit = false;
  std::string payload = make();
  put(key_material, payload);
  return payload;
}

DiskCache::Usage DiskCache::usage() const {
  Usage usage;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    if (!has_suffix(it->path(), kEntrySuffix)) continue;
    std::error_code size_error;
    const auto size = it->file_size(size_error);
    if (size_error) continue;
    ++usage.entries;
    usage.bytes += size;
  }
  return usage;
}

std::vector<DiskCache::Entry> DiskCache::list() const {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    if (!has_suffix(it->path(), kEntrySuffix)) continue;
    std::error_code gone;
    Entry entry{.name = it->path().stem().string(), .used = it->last_write_time(gone)};
    const File file(::open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (gone || !file.is_open()) continue;
    if (const std::optional<std::string> bytes = read_all(file)) {
      entry.bytes = bytes->size();
      if (const std::optional<Decoded> decoded = decode(*bytes)) {
        entry.intact = true;
        entry.kind = decoded->key_material.substr(0, decoded->key_material.find('\n'));
      }
    }
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used > b.used; });
  return entries;
}

bool DiskCache::remove(std::string_view name) const {
  std::error_code error;
  return fs::remove(directory_ / (std::string(name) + std::string(kEntrySuffix)), error);
}

DiskCache::Usage DiskCache::prune(std::uint64_t max_bytes) const {
  struct Found {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Found> entries;
  std::uint64_t total = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    // Entries may vanish under our eyes: another process evicts too.
    std::error_code gone;
    const auto used = it->last_write_time(gone);
    if (gone) continue;
    if (has_suffix(it->path(), kEntrySuffix)) {
      const auto bytes = it->file_size(gone);
      if (gone) continue;
      entries.push_back({used, bytes, it->path()});
      total += bytes;
    } else if (now - used > kLeftoverAge &&
               (has_suffix(it->path(), kLockSuffix) ||
                it->path().native().find(kTemporaryMark) != std::string::npos)) {
      fs::remove(it->path(), gone);  // left by a process that was killed
    }
  }
  Usage removed;
  if (total <= max_bytes) return removed;
  // To nine tenths, so that the next store does not prune again.
  const std::uint64_t goal = max_bytes - max_bytes / 10;
  std::sort(entries.begin(), entries.end(),
            [](const Found& a, const Found& b) { return a.used < b.used; });
  for (const Found& entry : entries) {
    if (total <= goal) break;
    std::error_code gone;
    if (!fs::remove(entry.path, gone)) continue;
    total -= entry.bytes;
    ++removed.entries;
    removed.bytes += entry.bytes;
  }
  return removed;
}

}  // namespace braid
