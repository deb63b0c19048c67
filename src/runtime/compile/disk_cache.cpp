#include "runtime/compile/disk_cache.h"

#define XXH_INLINE_ALL
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "ir/non_copyable.h"
#include "runtime/bytes.h"
#include "runtime/dynamic_library.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// An entry has magic, format, key material and payload, then the hash of all bytes before it.
constexpr std::uint64_t kMagic = 0x3143'4449'4152'42ULL;  // "BRAIDC1"
constexpr std::uint32_t kFormat = 2;
constexpr std::size_t kChecksumBytes = 16;
constexpr std::string_view kEntrySuffix = ".entry";
constexpr std::string_view kLockSuffix = ".lock";
constexpr std::string_view kTemporaryMark = ".tmp.";
constexpr auto kLockPatience = std::chrono::minutes(2);
constexpr auto kLeftoverAge = std::chrono::hours(1);

// The cache holds code that is run, so it must be ours, and only we may write to it.
bool is_safe(const struct stat& info) {
  return info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string hash_bytes(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return {reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest};
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::string material_name(std::string_view material) { return hex(hash_bytes(material)) + "-"; }
std::string key_name(const CacheKey& key) {
  return material_name(key.material) + hex(hash_bytes(key.maker));
}
std::string entry_name(const CacheKey& key) { return key_name(key) + std::string(kEntrySuffix); }

std::string encode(const CacheKey& key, std::string_view payload) {
  ByteWriter out;
  out.value(kMagic);
  out.value(kFormat);
  out.string(key.material);
  out.string(key.maker);
  out.string(payload);
  std::string entry = out.take();
  entry += hash_bytes(entry);
  return entry;
}

struct Decoded {
  CacheKey key;
  std::string_view payload;
};

/// Nothing unless the bytes are an intact entry of this format.
std::optional<Decoded> decode(std::string_view entry) {
  if (entry.size() < kChecksumBytes) return {};
  const std::string_view body = entry.substr(0, entry.size() - kChecksumBytes);
  if (hash_bytes(body) != entry.substr(body.size())) return {};
  ByteReader in(body);
  if (in.value<std::uint64_t>() != kMagic || in.value<std::uint32_t>() != kFormat) return {};
  Decoded decoded;
  decoded.key.material = in.string();
  decoded.key.maker = in.string();
  decoded.payload = in.string();
  if (!in.done()) return {};
  return decoded;
}

// Opens without following links and without blocking on special files.
File open_entry(const File& directory, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  return File(::openat(directory.get(), name.c_str(), kFlags));
}

/// Reads a file that can be an entry: owner, size and first bytes are checked before the rest is
/// read. An entry of another format is not read, and sets `of_another_version`.
std::optional<std::string> read_entry(const File& file, std::uint64_t max_bytes,
                                      bool* of_another_version = nullptr) {
  struct stat info {};
  if (!file.is_open() || ::fstat(file.get(), &info) != 0) return {};
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || !is_safe(info) || size > max_bytes) return {};
  std::string bytes(std::min<std::uint64_t>(size, sizeof kMagic + sizeof kFormat), '\0');
  if (read_up_to(file, bytes.data(), bytes.size()) != bytes.size()) return {};
  ByteReader in(bytes);
  if (in.value<std::uint64_t>() != kMagic) return {};
  if (in.value<std::uint32_t>() != kFormat) {
    if (of_another_version != nullptr) *of_another_version = true;
    return {};
  }
  const std::size_t done = bytes.size();
  bytes.resize(size);
  if (read_up_to(file, bytes.data() + done, size - done) != size - done) return {};
  return bytes;
}

// An exclusive lock, released when its holder ends in any way. The file is removed on release, so a
// lock counts only while the path still names the locked file.
class FileLock : NonCopyable {
 public:
  FileLock(const File& directory, std::string name, std::chrono::steady_clock::duration patience)
      : directory_(directory), name_(std::move(name)) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    auto pause = std::chrono::milliseconds(1);
    while (!try_lock() && wanted_ && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(20));
    }
  }
  ~FileLock() {
    if (!file_.is_open()) return;
    ::unlinkat(directory_.get(), name_.c_str(), 0);
    // Unlocks even if a forked child inherited the descriptor.
    ::flock(file_.get(), LOCK_UN);
  }

 private:
  bool try_lock() {
    constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    File file(::openat(directory_.get(), name_.c_str(), kFlags, 0600));
    const bool link = !file.is_open() && errno == ELOOP;
    struct stat locked {
    }, named{};
    if (link ||
        (file.is_open() && (::fstat(file.get(), &locked) != 0 || !S_ISREG(locked.st_mode)))) {
      // Not a lock of ours: remove it.
      wanted_ = ::unlinkat(directory_.get(), name_.c_str(), 0) == 0;
      return false;
    }
    if (!file.is_open()) {
      wanted_ = false;  // the directory is not writable, so no process stores there
      return false;
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      if (::fstatat(directory_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
          same_file(locked, named)) {
        file_ = std::move(file);
        return true;
      }
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      wanted_ = false;  // a file system without locks
    }
    return false;
  }

  const File& directory_;
  std::string name_;
  File file_;
  bool wanted_ = true;
};

bool is_entry(std::string_view name) { return name.ends_with(kEntrySuffix); }

// The names in a directory; nothing when it is not open.
std::vector<std::string> names_in(const File& directory) {
  std::vector<std::string> names;
  const int own = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = own < 0 ? nullptr : ::fdopendir(own);
  if (stream == nullptr) {
    if (own >= 0) ::close(own);
    return names;
  }
  while (const dirent* entry = ::readdir(stream)) names.emplace_back(entry->d_name);
  ::closedir(stream);
  return names;
}

// Nothing when the name is gone, since other processes evict too.
std::optional<struct stat> status_of(const File& directory, const std::string& name) {
  struct stat info {};
  if (::fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return info;
}

std::chrono::system_clock::time_point used_at(const struct stat& info) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(info.st_mtim.tv_sec) +
                                               std::chrono::nanoseconds(info.st_mtim.tv_nsec));
}

bool remove_at(const File& directory, const std::string& name) {
  return ::unlinkat(directory.get(), name.c_str(), 0) == 0 ||
         ::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0;
}

void make_private_directory(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory, error)) return;
  fs::create_directories(directory.parent_path(), error);
  ::mkdir(directory.c_str(), 0700);
}

// Publishes a complete entry or nothing.
bool store(const File& directory, const std::string& name, std::string_view entry) {
  std::string temporary;
  File file =
      create_temporary(directory.get(), name + std::string(kTemporaryMark), 0600, &temporary);
  if (!file.is_open()) return false;
  // Each step runs only if the one before succeeded; the rename publishes the complete entry.
  const bool stored =
      write_all(file, entry) && file.close() &&
      ::renameat(directory.get(), temporary.c_str(), directory.get(), name.c_str()) == 0;
  if (!stored) ::unlinkat(directory.get(), temporary.c_str(), 0);
  return stored;
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

std::string DiskCache::problem() const {
  struct stat info {};
  if (::stat(directory_.c_str(), &info) != 0) {
    if (errno != ENOENT) {
      return fmt::format("the cache {} is not used: {}", directory_.string(), std::strerror(errno));
    }
    // Created at the first write: its nearest existing parent decides.
    std::error_code error;
    fs::path existing = fs::absolute(directory_, error);
    while (existing.has_relative_path() && !fs::exists(existing, error)) {
      existing = existing.parent_path();
    }
    if (::access(existing.c_str(), W_OK | X_OK) == 0) return {};
    return fmt::format("the cache {} is not used: {} cannot be written", directory_.string(),
                       existing.string());
  }
  if (!S_ISDIR(info.st_mode)) {
    return fmt::format("the cache {} is not used: it is no directory", directory_.string());
  }
  if (is_safe(info)) return {};
  if (info.st_uid != ::geteuid()) {
    return fmt::format("the cache {} is not used: it belongs to user {}, not to user {}",
                       directory_.string(), info.st_uid, ::geteuid());
  }
  return fmt::format(
      "the cache {} is not used: others may write to it (mode {:04o}; expected 0700)",
      directory_.string(), info.st_mode & 07777);
}

// All accesses use this descriptor, so the directory that was checked is the one that is used. Not
// open if there is no directory, or an unsafe one.
File DiskCache::open_directory() const {
  File directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  if (!directory.is_open() || ::fstat(directory.get(), &info) != 0 || !is_safe(info)) return {};
  return directory;
}

std::optional<std::string> DiskCache::read(const File& directory, const std::string& name,
                                           const CacheKey& key, bool any_maker) const {
  const File file = open_entry(directory, name);
  if (!file.is_open() && errno != ELOOP) return {};
  const std::optional<std::string> entry = read_entry(file, max_bytes_);
  const std::optional<Decoded> decoded = entry ? decode(*entry) : std::nullopt;
  if (!decoded) {
    ::unlinkat(directory.get(), name.c_str(), 0);
    return {};
  }
  if (decoded->key.material != key.material) return {};
  if (!any_maker && decoded->key.maker != key.maker) return {};
  ::futimens(file.get(), nullptr);  // marks it as most recently used; may fail on a read-only disk
  return std::string(decoded->payload);
}

std::optional<std::string> DiskCache::get(const CacheKey& key) const {
  const File directory = open_directory();
  if (!directory.is_open()) return {};
  return read(directory, entry_name(key), key, /*any_maker=*/false);
}

std::optional<std::string> DiskCache::get_of_any_maker(std::string_view material) const {
  const File directory = open_directory();
  const std::string prefix = material_name(material);
  std::vector<std::pair<std::chrono::system_clock::time_point, std::string>> found;
  for (std::string& name : names_in(directory)) {
    if (!name.starts_with(prefix) || !is_entry(name)) continue;
    if (const auto info = status_of(directory, name)) {
      found.emplace_back(used_at(*info), std::move(name));
    }
  }
  std::sort(found.rbegin(), found.rend());
  for (const auto& [used, name] : found) {
    if (auto payload = read(directory, name, {material}, /*any_maker=*/true)) return payload;
  }
  return {};
}

void DiskCache::put(const CacheKey& key, std::string_view payload) const {
  const std::string entry = encode(key, payload);
  if (entry.size() > max_bytes_) return;
  make_private_directory(directory_);
  const File directory = open_directory();
  if (!directory.is_open() || !store(directory, entry_name(key), entry)) return;
  // Each entry costs a system call to inspect, so this happens once per sixteenth of the bound.
  if ((unchecked_bytes_ += entry.size()) >= max_bytes_ / 16) {
    unchecked_bytes_ = 0;
    prune(max_bytes_);
  }
}

std::string DiskCache::get_or_create(const CacheKey& key, const std::function<std::string()>& make,
                                     bool* hit) const {
  if (hit != nullptr) *hit = true;
  if (std::optional<std::string> payload = get(key)) return *std::move(payload);
  make_private_directory(directory_);
  const File directory = open_directory();
  const FileLock lock(directory, key_name(key) + std::string(kLockSuffix), kLockPatience);
  // Another process may have stored it in the meantime.
  if (std::optional<std::string> payload = get(key)) return *std::move(payload);
  if (hit != nullptr) *hit = false;
  std::string payload = make();
  put(key, payload);
  return payload;
}

DiskCache::Usage DiskCache::usage() const {
  Usage usage;
  const File directory = open_directory();
  for (const std::string& name : names_in(directory)) {
    if (!is_entry(name)) continue;
    const auto info = status_of(directory, name);
    if (!info) continue;
    ++usage.entries;
    usage.bytes += static_cast<std::uint64_t>(info->st_size);
  }
  return usage;
}

std::vector<DiskCache::Entry> DiskCache::list() const {
  std::vector<Entry> entries;
  const File directory = open_directory();
  for (const std::string& name : names_in(directory)) {
    if (!is_entry(name)) continue;
    const auto info = status_of(directory, name);
    if (!info) continue;
    Entry entry{.name = name.substr(0, name.size() - kEntrySuffix.size()),
                .bytes = static_cast<std::uint64_t>(info->st_size),
                .used = used_at(*info)};
    if (const auto bytes =
            read_entry(open_entry(directory, name), max_bytes_, &entry.of_another_version)) {
      if (const std::optional<Decoded> decoded = decode(*bytes)) {
        const std::string_view material = decoded->key.material;
        entry.intact = true;
        entry.kind = material.substr(0, material.find('\n'));
      }
    }
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) { return a.used > b.used; });
  return entries;
}

bool DiskCache::remove(std::string_view name) const {
  return remove_at(open_directory(), std::string(name) + std::string(kEntrySuffix));
}

DiskCache::Usage DiskCache::prune(std::uint64_t max_bytes) const {
  struct Found {
    std::chrono::system_clock::time_point used;
    std::uint64_t bytes;
    std::string name;
  };
  std::vector<Found> entries;
  std::uint64_t total = 0;
  Usage removed;
  const File directory = open_directory();
  const auto remove = [&](const std::string& name, std::uint64_t bytes) {
    if (!remove_at(directory, name)) return false;
    ++removed.entries;
    removed.bytes += bytes;
    return true;
  };
  const auto now = std::chrono::system_clock::now();
  for (std::string& name : names_in(directory)) {
    const auto info = status_of(directory, name);
    if (!info) continue;
    const auto bytes = static_cast<std::uint64_t>(info->st_size);
    if (!is_entry(name)) {
      if (now - used_at(*info) > kLeftoverAge &&
          (name.ends_with(kLockSuffix) || name.find(kTemporaryMark) != std::string::npos)) {
        remove_at(directory, name);  // left over from a killed process
      }
    } else if (!S_ISREG(info->st_mode) || bytes > max_bytes_) {
      remove(name, bytes);  // not something that was stored here
    } else {
      entries.push_back({used_at(*info), bytes, std::move(name)});
      total += bytes;
    }
  }
  if (total <= max_bytes) return removed;
  // Prunes to nine tenths, so that the next store does not prune again.
  const std::uint64_t goal = max_bytes - max_bytes / 10;
  std::ranges::sort(entries, [](const Found& a, const Found& b) { return a.used < b.used; });
  for (const Found& entry : entries) {
    if (total <= goal) break;
    if (remove(entry.name, entry.bytes)) total -= entry.bytes;
  }
  return removed;
}

}  // namespace braid
