#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace braid::fuzz {

/// A directory for this process, made at the first call.
inline const std::filesystem::path& directory() {
  static const std::filesystem::path path = [] {
    std::string name = std::filesystem::temp_directory_path() / "braid-fuzz-XXXXXX";
    return std::filesystem::path(mkdtemp(name.data()));
  }();
  return path;
}

inline void write_file(const std::filesystem::path& path, const std::uint8_t* data,
                       std::size_t size) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

}  // namespace braid::fuzz
