#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/file_io.h"
#include "runtime/object_cache.h"

namespace braid {

/// The key of an entry.
struct CacheKey {
  std::string_view material;    ///< source, options, target, format: everything but the maker
  std::string_view maker = {};  ///< the tool that made the payload, with its version
};

/// A content-addressed store of compiled objects, shared by all processes of one user
/// (docs/architecture.md, Compile cache).
///
/// A file is named by strong hashes of the key's parts; the key itself is stored, and compared on a
/// hit. Each entry is a file with a checksum, written to a temporary name and renamed. A corrupt
/// entry, or anything else that is not this user's file, is a miss and is removed. A directory that
/// cannot be read or written, or is unsafe (see `problem`), costs speed, never correctness: no call
/// throws for it. Thread safe.
class DiskCache final : public ObjectCache {
 public:
  /// `directory` is created with mode 0700 at the first write. Beyond `max_bytes` the least
  /// recently used entries are removed.
  explicit DiskCache(std::filesystem::path directory, std::uint64_t max_bytes = 1ULL << 30);

  /// `$BRAID_CACHE_DIR`, else `$XDG_CACHE_HOME/braid`, else `$HOME/.cache/braid`.
  static std::filesystem::path default_directory();

  /// Why an existing directory is not used; empty if it is safe. It holds code that this process
  /// would run, so it must belong to the user, and nobody else may write to it.
  [[nodiscard]] std::string problem() const;

  /// The payload of this key. An intact entry becomes the most recently used.
  [[nodiscard]] std::optional<std::string> get(const CacheKey& key) const;
  /// The most recently used payload of this material from any maker.
  [[nodiscard]] std::optional<std::string> get_of_any_maker(std::string_view material) const;
  /// Stores a payload, replacing one of the same key; does nothing where it cannot.
  void put(const CacheKey& key, std::string_view payload) const;

  /// The stored payload, or the result of `make`, which is then stored. Processes and threads that
  /// ask for one key at the same time run `make` once: the others wait for a lock file (two minutes
  /// at most; it is released when its holder dies). `hit`, if given, reports which. Throws what
  /// `make` throws.
  std::string get_or_create(const CacheKey& key, const std::function<std::string()>& make,
                            bool* hit = nullptr) const;
  [[nodiscard]] std::string get_or_make(std::string_view key,
                                        const std::function<std::string()>& make) const override {
    return get_or_create({key}, make);
  }

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

  struct Usage {
    std::uint64_t entries = 0, bytes = 0;
  };
  [[nodiscard]] Usage usage() const;

  struct Entry {
    std::string name;  ///< hash of the key: the file name without suffix
    std::string kind;  ///< first line of the key material; empty when damaged
    std::uint64_t bytes = 0;
    std::chrono::system_clock::time_point used;
    bool intact = false;              ///< format and checksum are right
    bool of_another_version = false;  ///< written in a format of another version, which may read it
  };
  /// Reads and checks every entry; most recently used first.
  [[nodiscard]] std::vector<Entry> list() const;
  /// Removes files that cannot be entries, then the least recently used entries until at most
  /// `max_bytes` remain, and leftovers of killed processes. Returns what was removed.
  Usage prune(std::uint64_t max_bytes) const;
  /// Removes one entry; false when it is not there or cannot be removed.
  bool remove(std::string_view name) const;

 private:
  [[nodiscard]] File open_directory() const;
  [[nodiscard]] std::optional<std::string> read(const File& directory, const std::string& name,
                                                const CacheKey& key, bool any_maker) const;
  std::filesystem::path directory_;
  std::uint64_t max_bytes_;
  /// Bytes that this object stored since it last inspected the whole directory. It starts at the
  /// bound, so the first store inspects.
  mutable std::atomic<std::uint64_t> unchecked_bytes_;
};

}  // namespace braid
