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

/// What an entry is found by.
struct CacheKey {
  std::string_view material;    ///< the source, the options, the target, the format: all but
  std::string_view maker = {};  ///< the tool that makes the payload, with its version
};

/// A content-addressed store of compiled objects, shared by all processes of one user
/// (docs/architecture.md, Compile cache).
///
/// Strong hashes of the key's parts name the file, and the key itself is stored and compared on a
/// hit. One file per entry with a checksum, written to a temporary name and renamed. A corrupt
/// entry, and anything else that is no file of this user, is a miss and is removed. A directory
/// that cannot be read or written, or that is not safe (see `problem`), costs speed, never
/// correctness: no call throws for it. Thread safe.
class DiskCache final : public ObjectCache {
 public:
  /// `directory` is created with mode 0700 at the first write. Above `max_bytes` the least recently
  /// used entries are removed.
  explicit DiskCache(std::filesystem::path directory, std::uint64_t max_bytes = 1ULL << 30);

  /// `$BRAID_CACHE_DIR`, else `$XDG_CACHE_HOME/braid`, else `$HOME/.cache/braid`.
  static std::filesystem::path default_directory();

  /// Why the directory is not used, though it is there: it holds code that this process would run,
  /// so it must belong to the user and nobody else may write to it. Empty when it is safe.
  [[nodiscard]] std::string problem() const;

  /// The payload stored under this key; an intact entry counts as used now.
  [[nodiscard]] std::optional<std::string> get(const CacheKey& key) const;
  /// The most recently used of the payloads that any maker made of this material.
  [[nodiscard]] std::optional<std::string> get_of_any_maker(std::string_view material) const;
  /// Stores it, replacing an entry of the same key; silently does nothing where it cannot.
  void put(const CacheKey& key, std::string_view payload) const;

  /// The stored payload, or what `make` returns, stored. N processes (and threads) that ask for one
  /// key at the same time run `make` once: the others wait for a lock file (two minutes at most;
  /// a holder that dies lets go). `hit`, if given, tells. Throws what `make` throws.
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
    std::string name;  ///< of its file, without the suffix: the hash of its key
    std::string kind;  ///< the first line of its key material; empty when it is not intact
    std::uint64_t bytes = 0;
    std::chrono::system_clock::time_point used;
    bool intact = false;              ///< format and checksum hold
    bool of_another_version = false;  ///< the format is that of another version, which may read it
  };
  /// Reads and checks every entry, the most recently used first.
  [[nodiscard]] std::vector<Entry> list() const;
  /// Removes what cannot be an entry, then the least recently used entries until at most
  /// `max_bytes` are left, and what killed processes left behind. Returns what it removed.
  Usage prune(std::uint64_t max_bytes) const;
  /// Removes one entry; false when it is not there or cannot be removed.
  bool remove(std::string_view name) const;

 private:
  [[nodiscard]] File open_directory() const;
  [[nodiscard]] std::optional<std::string> read(const File& directory, const std::string& name,
                                                const CacheKey& key, bool any_maker) const;
  std::filesystem::path directory_;
  std::uint64_t max_bytes_;
  /// Bytes stored by this object since it last looked at the whole directory; it starts at the
  /// bound, so that the first store looks.
  mutable std::atomic<std::uint64_t> unchecked_bytes_;
};

}  // namespace braid
