#include "cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "braid/error.h"
#include "braid/reference.h"
#include "runtime/disk_cache.h"

namespace braid::cli {

namespace {

constexpr int kMaxWorld = 1024;
constexpr std::int64_t kDefaultExtent = 8;  // of a symbol that is not bound

// Shapes stay as they are; everything that depends on the group's size is inferred anew.
Graph with_world(const Graph& graph, std::int64_t world) {
  const std::int64_t own = world_size(graph);
  if (own == world) return graph;
  if (graph.groups().size() != 1 || !graph.groups().begin()->second.ranks.empty()) {
    throw_invalid("--world", fmt::format("the graph runs on {} rank{}, not {} (only the size of a "
                                         "single group without rank lists can be replaced)",
                                         own, own == 1 ? "" : "s", world));
  }
  auto json = nlohmann::ordered_json::parse(to_json(graph));
  json["groups"][graph.groups().begin()->first]["size"] = world;
  return parse_graph(json.dump(), fmt::format("--world {}", world));
}

}  // namespace

void add_graph_options(CLI::App& command, GraphOptions* options) {
  command.add_option("GRAPH", options->path, "Graph in JSON; - reads it from standard input")
      ->required();
  command.add_option("--world", options->world, "Number of ranks: replaces the only group's size")
      ->check(CLI::Range(1, kMaxWorld));
}

void add_target_option(CLI::App& command, std::string* target) {
  command.add_option("--target", *target,
                     "What kernels are compiled for: sm_80, sm_90a, sm_100a, ... (default: the "
                     "GPU's own when they run on one, else the first that the graph can run on)");
}

void add_pass_settings(CLI::App& command, PassConfig* config) {
  command.add_option("--sequence-dim", config->sequence_dim,
                     "sequence_parallel: the dim of the tokens (default: 0 of a matrix, else 1)");
  command.add_flag("--always-pipeline", config->always_pipeline,
                   "micro_pipeline: fuse also where no gain is expected");
  command.add_flag("--leave-unexposed", config->leave_unexposed,
                   "micro_pipeline: leave collectives alone that other matmuls can hide");
}

void add_pass_options(CLI::App& command, PassConfig* config) {
  command
      .add_option("--enable", config->enable,
                  "Passes to run beside the default ones: sequence_parallel, micro_pipeline")
      ->delimiter(',')
      ->allow_extra_args(false);  // what follows is the graph
  add_pass_settings(command, config);
}

Graph load(const GraphOptions& options) {
  Graph graph = [&] {
    if (options.path != "-") return load_graph(options.path);
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    return parse_graph(text, "stdin");
  }();
  try {
    verify(graph);
  } catch (const Error& error) {
    throw Error(error.code(), "", fmt::format("{}:{}", options.path, error.what()));
  }
  return options.world == 0 ? graph : with_world(graph, options.world);
}

Bindings resolve_bindings(const Graph& graph, const std::vector<std::string>& items) {
  Bindings bindings;
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    std::int64_t value = 0;
    if (equals != std::string::npos) {
      const char* end = item.data() + item.size();
      auto [at, code] = std::from_chars(item.data() + equals + 1, end, value);
      if (code == std::errc() && at == end && equals > 0) {
        if (!bindings.emplace(item.substr(0, equals), value).second) {
          throw_invalid("--bind", fmt::format("'{}' is bound twice", item.substr(0, equals)));
        }
        continue;
      }
    }
    throw_invalid("--bind", fmt::format("'{}' is not of the form SYMBOL=INTEGER", item));
  }
  for (const auto& [name, symbol] : graph.symbols()) {
    const std::int64_t wanted = std::clamp(kDefaultExtent, symbol.min, symbol.max);
    const std::int64_t down = wanted - wanted % symbol.multiple_of;
    bindings.emplace(name, down < symbol.min ? down + symbol.multiple_of : down);
  }
  try {
    return check_bindings(graph, bindings);
  } catch (const Error& error) {
    throw Error(error.code(), "--bind", error.what());
  }
}

std::filesystem::path cache_directory(const std::string& option) {
  return option.empty() ? DiskCache::default_directory() : std::filesystem::path(option);
}

void prepare_output_directory(const std::filesystem::path& path, std::string_view option) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (!std::filesystem::is_directory(path)) {
    throw_invalid(std::string(option),
                  fmt::format("'{}' cannot be made a directory", path.string()));
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    throw_environment(std::string(option),
                      fmt::format("'{}': {}", path.string(), std::strerror(errno)));
  }
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = path.string() + fmt::format(".tmp{}", ::getpid());
  std::ofstream out(temporary, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  std::error_code code;
  if (out) std::filesystem::rename(temporary, path, code);
  if (!out || code) {
    const std::string reason = code ? code.message() : std::strerror(errno);
    std::filesystem::remove(temporary, code);
    throw_environment(path.string(), reason);
  }
}

std::string one_line(std::string_view text) {
  std::string line;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return {};
  std::vector<std::size_t> widths(rows[0].size(), 0);
  std::vector<bool> numeric(rows[0].size(), true);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
      if (&row != &rows[0] && !row[i].empty() &&
          row[i].find_first_not_of("0123456789.+-e") != std::string::npos) {
        numeric[i] = false;
      }
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += numeric[i] ? fmt::format("  {:>{}}", row[i], widths[i])
                         : fmt::format("  {:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace braid::cli
