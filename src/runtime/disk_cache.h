#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// A content-addressed store of compiled objects, shared by all processes of one user (DESIGN §9).
///
/// The key is the whole key material (source, options, target, tool versions, format); its strong
/// hash names the file and the material itself is stored and compared on a hit. One file per entry
/// with a checksum, written to a temporary name and renamed. A corrupt entry is a miss and is
/// removed. A directory that cannot be read or written costs speed, never correctness: no call
/// throws for it. Thread safe.
class DiskCache {
 public:
  /// `directory` is created with mode 0700 at the first write. Above `max_bytes` the least recently
  /// used entries are removed.
  explicit DiskCache(std::filesystem::path directory, std::uint64_t max_bytes = 1ULL << 30);

  /// `$BRAID_CACHE_DIR`, else `$XDG_CACHE_HOME/braid`, else `$HOME/.cache/braid`.
  static std::filesystem::path default_directory();

  /// The payload stored under this key; an intact entry counts as used now.
  [[nodiscard]] std::optional<std::string> get(std::string_view key_material) const;
  /// Stores it, replacing an entry of the same key; silently does nothing where it cannot.
  void put(std::string_view key_material, std::string_view payload) const;

  /// The stored payload, or what `make` returns, stored. N processes (and threads) that ask for one
  /// key at the same time run `make` once: the others wait for a lock file (two minutes at most;
  /// a holder that dies lets go). `hit`, if given, tells. Throws what `make` throws.
  std::string get_or_create(std::string_view key_material, const std::function<std::string()>& make,
                            bool* hit = nullptr) const;

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

  struct Usage {
    std::uint64_t entries = 0, bytes = 0;
  };
  [[nodiscard]] Usage usage() const;

  struct Entry {
    std::string name;  ///< of its file, without the suffix: the hash of its key
    std::string kind;  ///< the first line of its key material; empty when it is corrupt
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type used;
    bool intact = false;  ///< format and checksum hold
  };
  /// Reads and checks every entry, the most recently used first.
  [[nodiscard]] std::vector<Entry> list() const;
  /// Removes the least recently used entries until at most `max_bytes` are left, and what killed
  /// processes left behind. Returns what it removed.
  Usage prune(std::uint64_t max_bytes) const;
  /// Removes one entry; false when it is not there or cannot be removed.
  bool remove(std::string_view name) const;

 private:
  [[nodiscard]] std::filesystem::path entry_path(std::string_view key_material) const;
  [[nodiscard]] bool store(const std::filesystem::path& path, std::string_view entry) const;
  std::filesystem::path directory_;
  std::uint64_t max_bytes_;
  /// Bytes stored by this object since it last looked at the whole directory; it starts at the
  /// bound, so that the first store looks.
  mutable std::atomic<std::uint64_t> unchecked_bytes_;
};

}  // namespace braid
