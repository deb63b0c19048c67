#include <fmt/format.h>

#include <chrono>

#include "cli/commands.h"
#include "cli/common.h"
#include "ir/fail.h"
#include "ir/json_value.h"
#include "ir/mapped.h"
#include "runtime/compile/disk_cache.h"

namespace braid::cli {
namespace {

std::int64_t age_seconds(const DiskCache::Entry& entry) {
  const auto age = std::chrono::system_clock::now() - entry.used;
  return std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(age).count());
}

void expect_usable(const DiskCache& cache) {
  if (std::string problem = cache.problem(); !problem.empty()) throw_environment("cache", problem);
}

[[noreturn]] void fail_with_rest(const DiskCache& cache, std::uint64_t count,
                                 std::string_view what) {
  throw_environment("cache", "{} {} are left in {}: they cannot be removed", count, what,
                    cache.directory().string());
}

}  // namespace

int cache_ls(const CacheOptions& options) {
  const DiskCache cache(cache_directory(options.cache_dir));
  expect_usable(cache);
  const std::vector<DiskCache::Entry> entries = cache.list();
  std::uint64_t bytes = 0;
  for (const DiskCache::Entry& entry : entries) bytes += entry.bytes;
  if (options.json) {
    const Json rows = mapped(entries, [](const DiskCache::Entry& entry) {
      return Json::object({{"name", entry.name},
                           {"kind", one_line(entry.kind)},
                           {"bytes", entry.bytes},
                           {"used_seconds_ago", age_seconds(entry)},
                           {"intact", entry.intact},
                           {"of_another_version", entry.of_another_version}});
    });
    const Json document = Json::object(
        {{"directory", cache.directory().string()}, {"bytes", bytes}, {"entries", rows}});
    fmt::print("{}\n", document.indented());
    return kGood;
  }
  std::vector<std::vector<std::string>> rows = {{"entry", "kind", "bytes", "used s ago"}};
  for (const DiskCache::Entry& entry : entries) {
    const std::string kind = entry.intact               ? one_line(entry.kind)
                             : entry.of_another_version ? "of another version"
                                                        : "CORRUPT";
    rows.push_back(row(entry.name.substr(0, 12), kind, entry.bytes, age_seconds(entry)));
  }
  fmt::print("{}\n  {} entries, {} bytes in {}\n", format_table(rows), entries.size(), bytes,
             one_line(cache.directory().string()));
  return kGood;
}

int cache_verify(const CacheOptions& options) {
  const DiskCache cache(cache_directory(options.cache_dir));
  expect_usable(cache);
  const std::vector<DiskCache::Entry> entries = cache.list();
  std::vector<std::string> corrupt;
  std::size_t left = 0;
  for (const DiskCache::Entry& entry : entries) {
    if (entry.intact || entry.of_another_version) continue;
    corrupt.push_back(entry.name);
    const bool removed = cache.remove(entry.name);
    left += removed ? 0 : 1;
    if (options.json) continue;
    fmt::print("  {}: corrupt, {}\n", entry.name, removed ? "removed" : "cannot be removed");
  }
  if (options.json) {
    const Json document = Json::object({{"entries", entries.size()}, {"corrupt", corrupt}});
    fmt::print("{}\n", document.indented());
  } else {
    fmt::print("  {} entries, {} corrupt\n", entries.size(), corrupt.size());
  }
  if (left != 0) fail_with_rest(cache, left, "corrupt entries");
  return corrupt.empty() ? kGood : kFailed;
}

int cache_prune(const CacheOptions& options) {
  const DiskCache cache(cache_directory(options.cache_dir));
  expect_usable(cache);
  const std::uint64_t max_bytes = options.max_mib << 20U;
  const DiskCache::Usage removed = cache.prune(max_bytes);
  const DiskCache::Usage left = cache.usage();
  if (options.json) {
    const Json document = Json::object({{"removed_entries", removed.entries},
                                        {"removed_bytes", removed.bytes},
                                        {"entries", left.entries},
                                        {"bytes", left.bytes}});
    fmt::print("{}\n", document.indented());
  } else {
    fmt::print("  removed {} entries, {} bytes; {} entries, {} bytes are left\n", removed.entries,
               removed.bytes, left.entries, left.bytes);
  }
  if (left.entries != 0 && (max_bytes == 0 || left.bytes > max_bytes)) {
    fail_with_rest(cache, left.entries, "entries");
  }
  return kGood;
}

}  // namespace braid::cli
