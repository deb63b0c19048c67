#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "braid/graph.h"
#include "braid/pass_config.h"
#include "codegen/target.h"

namespace braid::cli {

/// Exit codes of the command (docs/command.md, Exit codes).
enum ExitCode : int { kGood = 0, kFailed = 1, kUsage = 2, kEnvironmentMissing = 3 };

/// Options of every command that takes a graph.
struct GraphOptions {
  std::string path;  ///< "-" reads stdin
  int world = 0;     ///< 0: as the graph says
};

/// Options of `run` and `ptx` for inputs, and for the cpu device and its checks.
struct CheckOptions {
  std::uint64_t seed = 1;  ///< of what is generated
  int threads = 0;         ///< 0: all cores
  std::string sanitize, count, schedule, matrix_sums;
  bool sample = false;  ///< counts are those of a part of the blocks
};

/// The name of the file that read_text reads, in errors.
[[nodiscard]] std::string input_name(const std::string& path);

/// Reads and verifies the graph. `--world` replaces the size of an only group without rank lists;
/// of any other graph it must be the world size.
[[nodiscard]] Graph load(const GraphOptions& options);

/// Reads `T=8` items.
[[nodiscard]] Bindings parse_bindings(const std::vector<std::string>& items);
/// The values of all symbols of a graph. Symbols without one take 8, moved into the range and down
/// to a multiple, up where that would leave the range.
[[nodiscard]] Bindings resolve_bindings(const Graph& graph, const std::vector<std::string>& items);

/// The directory given by --cache-dir, else the default one.
[[nodiscard]] std::filesystem::path cache_directory(const std::string& option);

/// Whether a directory is there. Throws what keeps it from being known.
[[nodiscard]] bool names_directory(const std::filesystem::path& path, std::string_view option);

/// Creates the directory and checks that files can be made in it, before any work is done.
void prepare_output_directory(const std::filesystem::path& path, std::string_view option);

/// Checks that the file can be written, and makes its directory, before any work is done. The path
/// "-" is standard output.
void prepare_output_file(const std::filesystem::path& path, std::string_view option);

/// How this program starts processes of its own that compile and try kernels: itself, as the
/// command that no help names.
inline constexpr const char* kWorkerCommand = "serve-requests";
[[nodiscard]] std::vector<std::string> own_worker();

/// Writes a text to a file, or to standard output if the path is "-".
void write_text(const std::string& path, const std::string& text);

/// Prints to stderr what may be lost: how far the work has come, and errors, which have exit codes.
void note(std::string_view text) noexcept;

/// A whole text on one line: see printable.
[[nodiscard]] std::string one_line(std::string_view text);

/// The line of every report about a plan that is not batch invariant; "" for others.
[[nodiscard]] std::string_view batch_invariance_line(bool batch_invariant);

/// Rows of equal length; the first is the heading. Columns that hold only numbers are flush right.
[[nodiscard]] std::string format_table(const std::vector<std::vector<std::string>>& rows);
/// A row of such a table.
template <class... Values>
[[nodiscard]] std::vector<std::string> row(const Values&... values) {
  return {fmt::format("{}", values)...};
}

/// The whole text as a number; false, and `*value` is what it was, where it is none or too large.
template <class T>
bool parse_number(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Removes and returns the text up to the next separator, which is removed too.
inline std::string_view next_part(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

[[nodiscard]] inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace braid::cli
