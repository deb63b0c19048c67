#include "cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "braid/reference.h"
#include "ir/fail.h"
#include "ir/text.h"
#include "ir/text_file.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/output_file.h"

namespace braid::cli {

namespace {

constexpr std::int64_t kDefaultExtent = 8;  // of a symbol that is not bound
constexpr std::size_t kPathShown = 300;     // characters of a path in an error

}  // namespace

std::string input_name(const std::string& path) { return path == "-" ? "stdin" : path; }

Graph load(const GraphOptions& options) {
  const std::string name = input_name(options.path);
  Graph graph = parse_graph(read_text(options.path, kMaxGraphBytes), name);
  try {
    verify(graph);
  } catch (const Error& error) {
    throw Error(error.code(), "", fmt::format("{}:{}", name, error.what()));
  }
  if (options.world == 0) return graph;
  try {
    return with_world_size(graph, options.world);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--world {}", options.world), error.what());
  }
}

Bindings parse_bindings(const std::vector<std::string>& items) {
  Bindings bindings;
  for (const std::string& item : items) {
    std::string_view number = item;
    const std::string symbol(next_part(number, '='));
    std::int64_t value = 0;
    if (symbol.empty() || !parse_number(number, &value)) {
      throw_invalid("--bind", "found {}; expected SYMBOL=INTEGER", quote(item));
    }
    if (!bindings.emplace(symbol, value).second) {
      throw_invalid("--bind", "{} is bound twice", quote(symbol));
    }
  }
  return bindings;
}

Bindings resolve_bindings(const Graph& graph, const std::vector<std::string>& items) {
  Bindings bindings = parse_bindings(items);
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

namespace {

/// Bad input where the name itself is no good, else the machine's doing.
[[noreturn]] void fail_at(std::string_view option, const std::filesystem::path& path,
                          std::string_view what, const std::error_code& code) {
  bool input = false;
  for (const std::errc bad :
       {std::errc::no_such_file_or_directory, std::errc::not_a_directory, std::errc::file_exists,
        std::errc::filename_too_long, std::errc::too_many_symbolic_link_levels,
        std::errc::invalid_argument}) {
    input = input || code == bad;
  }
  throw Error(input ? ErrorCode::kInvalidArgument : ErrorCode::kEnvironment, std::string(option),
              fmt::format("{} {}: {}", quote(path.string(), kPathShown), what, code.message()));
}

std::error_code last_error() { return {errno, std::generic_category()}; }

}  // namespace

bool names_directory(const std::filesystem::path& path, std::string_view option) {
  std::error_code code;
  const std::filesystem::file_type type = std::filesystem::status(path, code).type();
  if (type == std::filesystem::file_type::none) fail_at(option, path, "cannot be read", code);
  return type == std::filesystem::file_type::directory;
}

void prepare_output_directory(const std::filesystem::path& path, std::string_view option) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) fail_at(option, path, "cannot be made a directory", code);
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    fail_at(option, path, "cannot be written", last_error());
  }
}

void prepare_output_file(const std::filesystem::path& path, std::string_view option) {
  if (path == "-") return;
  if (!path.has_filename() || names_directory(path, option)) {
    throw_invalid(std::string(option), "{} is a directory; expected a file",
                  quote(path.string(), kPathShown));
  }
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    const std::filesystem::path whole = std::filesystem::absolute(path, code);
    if (code) fail_at(option, path, "cannot be made", code);
    prepare_output_directory(whole.lexically_normal().parent_path(), option);
  } else if (std::filesystem::is_regular_file(path, code) && ::access(path.c_str(), W_OK) != 0) {
    fail_at(option, path, "cannot be written", last_error());
  }
}

void write_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
  } else {
    write_output_file(path, text);
  }
}

void note(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string one_line(std::string_view text) { return printable(text, text.npos); }

std::string_view batch_invariance_line(bool batch_invariant) {
  if (batch_invariant) return "";
  return "  not batch-invariant, by --batch-invariant=false: sums may be added in any order\n";
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

std::vector<std::string> own_worker() {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), kWorkerCommand};
}

}  // namespace braid::cli
