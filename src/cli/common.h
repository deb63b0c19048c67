#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "braid/pass_config.h"
#include "codegen/target.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace braid::cli {

/// Exit codes of the command (README).
enum ExitCode : int { kGood = 0, kFailed = 1, kUsage = 2, kEnvironmentMissing = 3 };

/// What every command says of its graph.
struct GraphOptions {
  std::string path;  ///< "-" reads stdin
  int world = 0;     ///< 0: as the graph says
};

/// Adds GRAPH and --world to a command.
void add_graph_options(CLI::App& command, GraphOptions* options);

/// Adds --target to a command: what choose_target takes.
void add_target_option(CLI::App& command, std::string* target);

/// Adds --sequence-dim, --always-pipeline and --leave-unexposed to a command.
void add_pass_settings(CLI::App& command, PassConfig* config);
/// These and --enable.
void add_pass_options(CLI::App& command, PassConfig* config);

/// Reads and verifies the graph. `--world` replaces the size of an only group without rank lists;
/// of any other graph it must be the world size.
[[nodiscard]] Graph load(const GraphOptions& options);

/// Reads `T=8` items. Symbols without one take min(8, max), rounded down to their multiple_of.
[[nodiscard]] Bindings resolve_bindings(const Graph& graph, const std::vector<std::string>& items);

/// The directory given by --cache-dir, else the default one.
[[nodiscard]] std::filesystem::path cache_directory(const std::string& option);

/// Creates the directory and checks that files can be made in it, before any work is done.
void prepare_output_directory(const std::filesystem::path& path, std::string_view option);

/// Writes a whole file under a temporary name and renames it.
void write_file(const std::filesystem::path& path, std::string_view content);

/// One line of text: control characters escaped.
[[nodiscard]] std::string one_line(std::string_view text);

/// Rows of equal length; the first is the heading. Columns that hold only numbers are flush right.
[[nodiscard]] std::string format_table(const std::vector<std::vector<std::string>>& rows);

// One function per command: it adds the command to the app. Choosing the command runs it, and its
// exit code goes to `exit_code`. They throw braid::Error.
void add_run(CLI::App& app, int* exit_code);
void add_compile(CLI::App& app, int* exit_code);
void add_opt(CLI::App& app, int* exit_code);
void add_explain(CLI::App& app, int* exit_code);
void add_ptx(CLI::App& app, int* exit_code);
void add_cache(CLI::App& app, int* exit_code);
void add_doctor(CLI::App& app, int* exit_code);

}  // namespace braid::cli
