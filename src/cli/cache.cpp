#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "runtime/disk_cache.h"

namespace braid::cli {
namespace {

struct CacheOptions {
  std::string cache_dir;
  std::uint64_t max_mib = 0;
  bool json = false;
};

std::int64_t age_seconds(const DiskCache::Entry& entry) {
  const auto age = std::filesystem::file_time_type::clock::now() - entry.used;
  return std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(age).count());
}

int list(const CacheOptions& options, const DiskCache& cache) {
  const std::vector<DiskCache::Entry> entries = cache.list();
  std::uint64_t bytes = 0;
  for (const DiskCache::Entry& entry : entries) bytes += entry.bytes;
  if (options.json) {
    auto rows = nlohmann::ordered_json::array();
    for (const DiskCache::Entry& entry : entries) {
      rows.push_back({{"name", entry.name},
                      {"kind", one_line(entry.kind)},
                      {"bytes", entry.bytes},
                      {"used_seconds_ago", age_seconds(entry)},
                      {"intact", entry.intact}});
    }
    const nlohmann::ordered_json document = {
        {"directory", cache.directory().string()}, {"bytes", bytes}, {"entries", rows}};
    fmt::print("{}\n", document.dump(2));
    return kGood;
  }
  std::vector<std::vector<std::string>> rows = {{"entry", "kind", "bytes", "used s ago"}};
  for (const DiskCache::Entry& entry : entries) {
    rows.push_back({entry.name.substr(0, 12), entry.intact ? one_line(entry.kind) : "CORRUPT",
                    std::to_string(entry.bytes), std::to_string(age_seconds(entry))});
  }
  fmt::print("{}\n  {} entries, {} bytes in {}\n", format_table(rows), entries.size(), bytes,
             one_line(cache.directory().string()));
  return kGood;
}

int verify(const CacheOptions& options, const DiskCache& cache) {
  const std::vector<DiskCache::Entry> entries = cache.list();
  auto corrupt = nlohmann::ordered_json::array();
  for (const DiskCache::Entry& entry : entries) {
    if (entry.intact) continue;
    corrupt.push_back(entry.name);
    cache.remove(entry.name);
    if (!options.json) fmt::print("  {}: corrupt, removed\n", entry.name);
  }
  if (options.json) {
    const nlohmann::ordered_json document = {{"entries", entries.size()}, {"corrupt", corrupt}};
    fmt::print("{}\n", document.dump(2));
  } else {
    fmt::print("  {} entries, {} corrupt\n", entries.size(), corrupt.size());
  }
  return corrupt.empty() ? kGood : kFailed;
}

int prune(const CacheOptions& options, const DiskCache& cache, std::uint64_t max_bytes) {
  const DiskCache::Usage removed = cache.prune(max_bytes);
  const DiskCache::Usage left = cache.usage();
  if (options.json) {
    const nlohmann::ordered_json document = {{"removed_entries", removed.entries},
                                             {"removed_bytes", removed.bytes},
                                             {"entries", left.entries},
                                             {"bytes", left.bytes}};
    fmt::print("{}\n", document.dump(2));
  } else {
    fmt::print("  removed {} entries, {} bytes; {} entries, {} bytes are left\n", removed.entries,
               removed.bytes, left.entries, left.bytes);
  }
  return max_bytes == 0 && left.entries != 0 ? kEnvironmentMissing : kGood;
}

}  // namespace

void add_cache(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("cache", "Look after the compile cache");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, auto run) {
    auto options = std::make_shared<CacheOptions>();
    CLI::App* sub = command->add_subcommand(name, what);
    sub->add_option("--cache-dir", options->cache_dir, "Directory of the compile cache");
    sub->add_flag("--json", options->json, "Print one JSON document");
    sub->callback([options, exit_code, run] {
      *exit_code = run(*options, DiskCache(cache_directory(options->cache_dir)));
    });
    return std::pair(sub, options);
  };
  add("ls", "List the entries, the most recently used first", list);
  add("verify", "Check every entry; remove the corrupt ones and exit with 1 when there are any",
      verify);
  const auto [sub, options] = add("prune", "Remove the least recently used entries above a size",
                                  [](const CacheOptions& o, const DiskCache& cache) {
                                    return prune(o, cache, o.max_mib << 20U);
                                  });
  require_integer(
      *sub->add_option("--max-mib", options->max_mib, "What may stay, in MiB")->required(), 0,
      std::uint64_t{1} << 40U);
  add("clear", "Remove all entries",
      [](const CacheOptions& o, const DiskCache& cache) { return prune(o, cache, 0); });
}

}  // namespace braid::cli
