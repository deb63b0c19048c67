#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// A content-addressed store of compiled objects, shared by all processes of one user (DESIGN §9).
///
/// The key is the whole key material (source, options, target, tool versions, format); its strong
/// hash names the file and the material itself is stored and compared on a hit. One file per entry
/// with a checksum, written to a temporary name and renamed. A corrupt entry is a miss and is
/// removed. A directory that cannot be written costs speed, never correctness. Thread safe.
class DiskCache {
 public:
  /// `directory` is created with mode 0700 at the first write. Above `max_bytes` the least recently
  /// used entries are removed.
  explicit DiskCache(std::filesystem::path directory, std::uint64_t max_bytes = 1ULL << 30);

  /// `$BRAID_CACHE_DIR`, else `$XDG_CACHE_HOME/braid`, else `$HOME/.cache/braid`.
  static std::filesystem::path default_directory();

  [[nodiscard]] std::optional<std::string> get(std::string_view key_material) const;
  void put(std::string_view key_material, std::string_view payload) const;

  /// The stored payload, or what `make` returns, stored. N processes (and threads) that ask for one
  /// key at the same time run `make` once: the others wait for a lock file. `hit`, if given, tells.
  std::string get_or_create(std::string_view key_material, const std::function<std::string()>& make,
                            bool* hit = nullptr) const;

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
  std::uint64_t max_bytes_;
};

}  // namespace braid
