// Any bytes in the place of a cache entry: a miss, or the payload that was stored.

#include <cstdlib>
#include <string>

#include "fuzz/temporary_file.h"
#include "runtime/compile/disk_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const braid::DiskCache cache(braid::fuzz::directory() / "cache");
  const std::string payload = "payload";
  cache.put({"key"}, payload);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.directory())) {
    if (entry.is_regular_file()) braid::fuzz::write_file(entry.path(), data, size);
  }
  const auto found = cache.get({"key"});
  if (found && *found != payload) std::abort();
  return 0;
}
