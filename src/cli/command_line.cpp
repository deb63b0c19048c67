#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/error.h"
#include "cli/commands.h"
#include "cli/ptx_arguments.h"
#include "codegen/device_model.h"
#include "codegen/units.h"
#include "ir/text.h"
#include "lowering/passes.h"
#include "runtime/device_loader.h"
#include "runtime/serve_requests.h"
#include "runtime/worker_processes.h"

// The only file that includes CLI11: it costs more to compile than all commands together.

namespace braid::cli {
namespace {

constexpr int kMaxWorld = 1024;

// Options that few runs need stand in groups of their own, behind all others.
constexpr const char* kPassGroup = "Options of passes";
constexpr const char* kScheduleGroup = "Options of the passes that schedule";
constexpr const char* kCheckGroup = "Options of the cpu device";

/// What checks the value of an option.
using Check = std::function<std::string(const std::string&)>;

/// A decimal integer in [least, most] and nothing else: no 0 in front, which CLI11 takes for octal.
Check integer(std::uint64_t least, std::uint64_t most) {
  return [least, most](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const bool decimal = parse_number(text, &value) && (text[0] != '0' || text.size() == 1);
    if (decimal && value >= least && value <= most) return {};
    return fmt::format("found {}; expected an integer from {} to {}", quote(text), least, most);
  };
}

/// A finite number of seconds in [least, most], written in full.
Check seconds(double least, double most) {
  return [least, most](const std::string& text) -> std::string {
    double value = 0;
    const bool finite = parse_number(text, &value) && std::isfinite(value);
    if (finite && value >= least && value <= most) return {};
    return fmt::format("found {}; expected seconds from {} to {}", quote(text), least, most);
  };
}

/// A command whose options go to `run` when it is chosen; the exit code goes to `exit_code`.
template <class Options>
std::pair<CLI::App&, Options&> add_command(CLI::App& app, const char* name, const char* what,
                                           int (*run)(const Options&), int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(name, what);
  command->callback([options, exit_code, run] { *exit_code = run(*options); });
  return {*command, *options};
}

/// Adds GRAPH and --world to a command.
void add_graph_options(CLI::App& command, GraphOptions* options) {
  command.add_option("GRAPH", options->path, "Graph in JSON; - reads it from standard input")
      ->required();
  command.add_option("--world", options->world, "Number of ranks: replaces the only group's size")
      ->check(integer(1, kMaxWorld));
}

/// Adds --target and --units to a command: what choose_target takes.
void add_target_option(CLI::App& command, std::string* target) {
  command.add_option("--target", *target,
                     fmt::format("What kernels are compiled for: sm_80, sm_90a, sm_100a, ..., or a "
                                 "device that they are planned for: {} (default: the GPU's own "
                                 "when they run on one, else the first that the graph can run on)",
                                 device_names()));
  // Behind --target, whose value it extends.
  command.add_option_function<std::string>(
      "--units", [target](const std::string& names) { *target += ":" + names; },
      fmt::format("The units that kernels may use, some of {}; fma and ld/st are always among them "
                  "(default: all that the target has)",
                  unit_names()));
}

/// Adds the passes' own options to a command.
void add_pass_settings(CLI::App& command, PassConfig* config) {
  for (const Pass* pass : all_passes()) {
    for (const PassOption& option : pass->options) {
      const std::string name = fmt::format("--{}", option.name);
      std::string help = fmt::format("{}: {}", pass->name, option.meaning);
      CLI::Option* const added =
          option.is_flag() ? command.add_flag(name) : command.add_option(name)->type_name("VALUE");
      if (!option.is_flag()) help += fmt::format(" (default: {})", option.default_text());
      added->description(help)
          ->group(pass->schedules ? kScheduleGroup : kPassGroup)
          ->each([config, &option](const std::string& value) {
            if (!value.empty()) set_pass_option(*config, option.name, value);
          });
    }
  }
}

/// These and --enable.
void add_pass_options(CLI::App& command, PassConfig* config) {
  std::vector<std::string_view> others;
  for (const Pass* pass : all_passes()) {
    if (!pass->by_default) others.push_back(pass->name);
  }
  command
      .add_option("--enable", config->enable,
                  fmt::format("Passes to run beside the default ones: {}", fmt::join(others, ", ")))
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is the graph
      ->group(kPassGroup);
  add_pass_settings(command, config);
}

/// Adds --cache-dir to a command.
void add_cache_dir(CLI::App& command, std::string* directory) {
  command.add_option("--cache-dir", *directory, "Directory of the compile cache");
}

/// Adds --json to a command.
void add_json(CLI::App& command, bool* json) {
  command.add_flag("--json", *json, "Print one JSON document");
}

/// Adds --bind to a command.
void add_bind(CLI::App& command, std::vector<std::string>* items) {
  command
      .add_option("--bind", *items,
                  "Value of a symbol, T=8 (default: 8, moved into the range and down to a "
                  "multiple, up where that would leave it)")
      ->allow_extra_args(false);
}

/// Adds --tune-db to a command.
void add_tune_db(CLI::App& command, std::string* path) {
  command.add_option("--tune-db", *path,
                     "File of braid tune: kernels take the configurations that it found");
}

/// Adds --count to a command.
void add_count(CLI::App& command, std::string* device) {
  command
      .add_flag("--count{A100}", *device,
                "Count what each kernel and line does on the cpu device: instructions, sectors, "
                "bank conflicts, ...; --count=H200 estimates times on that device (default A100)")
      ->group(kCheckGroup);
}

/// Adds --seed, --threads, --matrix-sums, --sanitize, --count and --schedule to a command.
void add_check_options(CLI::App& command, CheckOptions* options) {
  command.add_option("--seed", options->seed, "Of the inputs that are generated (default 1)")
      ->check(integer(0, UINT64_MAX));
  command
      .add_flag("--sanitize{all}", options->sanitize,
                "Check the kernels on the cpu device: --sanitize for all, or "
                "--sanitize=bounds,init,race,sync; exit code 1 when something is found")
      ->group(kCheckGroup);
  add_count(command, &options->count);
  command
      .add_flag("--sample", options->sample,
                "With --count: run some blocks of each kernel that does not wait for others, and "
                "scale their counts to all; there are no results then")
      ->group(kCheckGroup);
  command
      .add_option("--schedule", options->schedule,
                  "Interleaving under --sanitize: a seed, delay:SEED to hold back a rank, a block "
                  "or a store, or all for every one (default: in turns)")
      ->group(kCheckGroup);
  command
      .add_option("--matrix-sums", options->matrix_sums,
                  "How mma.sync and wgmma add to f32: rounded, or hopper, to the bits of an H100 "
                  "(default: rounded)")
      ->group(kCheckGroup);
  command.add_option("--threads", options->threads, "Of the cpu device (default: all cores)")
      ->group(kCheckGroup)
      ->check(integer(1, kMostThreads));
}

// One function per command.

void add_run(CLI::App& app, int* exit_code) {
  const auto [command, options] = add_command(
      app, "run", "Run a graph, or a plan that was made of one, on all its ranks", run, exit_code);
  add_graph_options(command, &options.graph);
  add_bind(command, &options.bind);
  command.add_option("--device", options.device,
                     "cpu or cuda (default: cuda where there is a GPU, else cpu)");
  command.add_flag("--check", options.check,
                   "Compare with the reference evaluator; exit code 1 when it differs");
  command.add_option("--inputs", options.inputs,
                     "A .safetensors file for all ranks, or a directory with rank0.safetensors, "
                     "...; what is missing is generated");
  command.add_option("--outputs", options.outputs,
                     "Directory for rank0.safetensors, ... (made if need be)");
  add_check_options(command, &options.checks);
  add_target_option(command, &options.target);
  add_tune_db(command, &options.tune_db);
  command.add_option("--trace", options.trace,
                     "File for when each step ran, which Perfetto and chrome://tracing show");
  add_cache_dir(command, &options.cache_dir);
  add_json(command, &options.json);
  add_pass_options(command, &options.passes);
}

void add_launch(CLI::App& app, int* exit_code) {
  const auto [command, options] = add_command(
      app, "launch", "Start a command in several processes, each of which runs one rank", launch,
      exit_code);
  command.add_option("--nproc", options.processes, "Number of processes")
      ->required()
      ->check(integer(1, kMaxWorld));
  command
      .add_option("--timeout", options.timeout_s,
                  "Seconds after which a process that does not come, or that says nothing, is "
                  "given up (default 30)")
      ->check(seconds(0.1, 1e6));
  command.add_option("COMMAND", options.command, "The command, after --")->required();
}

void add_compile(CLI::App& app, int* exit_code) {
  const auto [command, options] =
      add_command(app, "compile", "Compile a graph's kernels for a target, without a device",
                  compile, exit_code);
  add_graph_options(command, &options.graph);
  add_pass_options(command, &options.passes);
  add_target_option(command, &options.target);
  command.add_option("-o,--output", options.output, "Directory to write (made if need be)")
      ->required();
  add_tune_db(command, &options.tune_db);
  command.add_option("--jobs", options.jobs, "Compile in so many processes (default: 1, this one)")
      ->check(integer(1, kMostWorkers));
  add_cache_dir(command, &options.cache_dir);
  add_json(command, &options.json);
}

void add_opt(CLI::App& app, int* exit_code) {
  std::string names;
  std::string summaries = "Passes:";
  for (const Pass* pass : all_passes()) {
    names += fmt::format("{}, ", pass->name);
    summaries += fmt::format("\n  {:<18} {}{}", pass->name, pass->summary,
                             pass->by_default ? "" : " (where --enable names it)");
  }
  const auto [command, options] =
      add_command(app, "opt", "Run passes on a graph and print the result", opt, exit_code);
  command.footer(summaries);
  add_graph_options(command, &options.graph);
  command
      .add_option(
          "--passes", options.passes,
          fmt::format("In this order, separated by commas: {}{} (last)", names, kBuildProgram))
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("-o,--output", options.output, "File to write; - is standard output");
  add_target_option(command, &options.target);
  add_pass_settings(command, &options.config);
  command.add_flag("--stats", options.stats,
                   "Print what each pass did to standard error; of scheduling passes, to each "
                   "collective or wait");
  command.add_flag("--visualize-overlap", options.visualize_overlap,
                   "Print when each node of the result would run, by estimates, to standard error");
}

void add_explain(CLI::App& app, int* exit_code) {
  const auto [command, options] = add_command(
      app, "explain", "Say what each pass did, and why it did not do more", explain, exit_code);
  add_graph_options(command, &options.graph);
  add_pass_options(command, &options.passes);
  add_target_option(command, &options.target);
  add_tune_db(command, &options.tune_db);
  add_json(command, &options.json);
}

void add_report(CLI::App& app, int* exit_code) {
  const auto [command, options] = add_command(
      app, "report",
      "Draw schedule and memory of a graph, with remarks and kernels, as a page of HTML", report,
      exit_code);
  add_graph_options(command, &options.graph);
  add_pass_options(command, &options.passes);
  add_target_option(command, &options.target);
  command.add_option("-o,--output", options.output, "File to write; - is standard output")
      ->required();
  add_count(command, &options.count);
  add_bind(command, &options.bind);
  add_cache_dir(command, &options.cache_dir);
}

void add_tune(CLI::App& app, int* exit_code) {
  const auto [command, options] = add_command(
      app, "tune", "Look for quicker configurations of a graph's kernels, and keep them", tune,
      exit_code);
  add_graph_options(command, &options.graph);
  add_pass_options(command, &options.passes);
  command.add_option("--device", options.device,
                     "cuda times kernels on a GPU, cpu estimates their times on the target's "
                     "device (default: cuda where there is a GPU, else cpu)");
  add_target_option(command, &options.target);
  command.add_option("--budget", options.budget,
                     "No trial begins later: 60s, 10m or 2h (default 60s)");
  command.add_option("--tune-db", options.database,
                     "File for all that was tried, which run takes likewise (default tune.db)");
  command.add_flag("--resume", options.resume, "Do not try again what is there already");
  command.add_flag("--exhaustive", options.exhaustive,
                   "Try every candidate, not the most promising tenth");
  command
      .add_option("--bind", options.bind,
                  "Value of a symbol at which kernels are tried, T=8 (default: its largest)")
      ->allow_extra_args(false);
  command.add_option("--export", options.output, "File for the results as JSON");
  add_cache_dir(command, &options.cache_dir);
  add_json(command, &options.json);
  app.add_subcommand(kWorkerCommand, "")->group("")->callback([exit_code] {
    *exit_code = braid_serve_requests(STDIN_FILENO);
  });
}

void add_plan_buffers(CLI::App& app, int* exit_code) {
  const auto [command, options] = add_command(
      app, "plan-buffers", "Give buffers with known lifetimes offsets within a capacity",
      plan_buffers, exit_code);
  command
      .add_option("CSV", options.path,
                  "Columns id, lower, upper, size, maybe alignment; a buffer lives in [lower, "
                  "upper); - reads standard input")
      ->required();
  command
      .add_option("--capacity", options.capacity,
                  "Bytes that are to hold all; exit code 1 where they do not")
      ->required()
      ->check(integer(1, std::uint64_t{1} << 62U));
  command.add_option("-o,--output", options.output,
                     "File for the same with a column offset; - is standard output");
  command
      .add_option("--time-limit", options.time_limit_s,
                  "Seconds to search (default: 100000 nodes, whatever they take)")
      ->check(seconds(0.001, 1e6));
}

void add_ptx(CLI::App& app, int* exit_code) {
  const auto [command, options] = add_command(
      app, "ptx", "Run a kernel of a PTX or CUDA file on the cpu device", ptx, exit_code);
  command
      .add_option("FILE", options.file,
                  "A .ptx file, or a .cu file for NVRTC; - reads PTX from standard input")
      ->required();
  command.add_option("--entry", options.entry, "Name of the kernel (extern \"C\")")->required();
  command.add_option("--grid", options.grid, "Blocks: X,Y,Z (default 1)");
  command.add_option("--block", options.block, "Threads of a block: X,Y,Z (default 1)");
  command.add_option("--cluster", options.cluster, "Blocks of a cluster: X,Y,Z (default 1)");
  command.add_option("--shared", options.shared, "Bytes of dynamic shared memory")
      ->check(integer(0, UINT32_MAX));
  command
      .add_option("--arg", options.args,
                  "The arguments in order: " + std::string(PtxArguments::kForms))
      ->allow_extra_args(false);
  command.add_option("--target", options.target,
                     "What a .cu file is compiled for: sm_90a, H200, ... (default: the device of "
                     "--count, else sm_80)");
  command.add_option("--out", options.output,
                     "Directory for buffers.safetensors: arg0, arg1, ... afterwards");
  command
      .add_option("--repeat", options.repeat, "Launches, each from the same buffers (default 1)")
      ->check(integer(1, 1'000'000));
  command.add_flag("--time", options.time,
                   "Say how long a launch takes: the least and the median of --repeat, after one "
                   "more that is not timed");
  command
      .add_option("--timeout", options.timeout_s,
                  "Seconds after which a kernel that has not ended is given up, with exit code 1 "
                  "(default: none)")
      ->check(seconds(0.1, 1e6));
  add_check_options(command, &options.checks);
  PtxAgainst& against = options.against;
  command.add_option("--against", against.file,
                     "Another .ptx or .cu file: print its counts beside, launched the same way");
  command.add_option("--against-entry", against.entry, "Its kernel, where the name is another");
  command.add_option("--against-grid", against.grid, "Its blocks, where they are others");
  command.add_option("--against-block", against.block, "Its threads of a block");
  command.add_option("--against-shared", against.shared, "Its bytes of dynamic shared memory")
      ->check(integer(0, UINT32_MAX));
  add_cache_dir(command, &options.cache_dir);
  add_json(command, &options.json);
}

void add_doctor(CLI::App& app, int* exit_code) {
  const auto [command, options] =
      add_command(app, "doctor", "Say what braid found on this machine and how to get the rest",
                  doctor, exit_code);
  add_cache_dir(command, &options.cache_dir);
  add_json(command, &options.json);
}

void add_cache(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("cache", "Look after the compile cache");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*run)(const CacheOptions&)) {
    const auto added = add_command(*command, name, what, run, exit_code);
    add_cache_dir(added.first, &added.second.cache_dir);
    add_json(added.first, &added.second.json);
    return added;
  };
  add("ls", "List the entries, the most recently used first", cache_ls);
  add("verify", "Check every entry; remove the corrupt ones and exit with 1 when there are any",
      cache_verify);
  const auto [sub, options] =
      add("prune", "Remove the least recently used entries above a size", cache_prune);
  sub.add_option("--max-mib", options.max_mib, "What may stay, in MiB")
      ->required()
      ->check(integer(0, std::uint64_t{1} << 40U));
  add("clear", "Remove all entries", cache_prune);
}

/// An option that takes a value takes none that is empty, such as that of a shell's variable which
/// is not set: it would be as if the option were not there.
void refuse_nothing(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() != 1) continue;
    option->check([](const std::string& text) -> std::string {
      return text.empty() ? "found nothing; expected a value" : "";
    });
  }
  for (CLI::App* each : command.get_subcommands(nullptr)) refuse_nothing(*each);
}

/// The command that was chosen.
const CLI::App& chosen_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

/// An error of the library at "target" is one of --target, where the command has that option.
Error name_option(const CLI::App& command, const Error& error) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->check_lname(error.where())) continue;
    return {error.code(), "--" + error.where(), std::string(message_of(error))};
  }
  return error;
}

/// The name of a command as its user writes it: "braid cache ls".
std::string path_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : path_of(*parent) + " " + command.get_name();
}

/// The message for an error that CLI11 found; as in every error, the place comes first.
std::string parse_error(const CLI::App& command, std::string_view message) {
  constexpr std::size_t kShown = 300;
  if (message.starts_with("--")) return printable(message, kShown);
  return fmt::format("{}: {}", path_of(command), printable(message, kShown));
}

/// The message for a usage error. Unknown commands and options come first, with the nearest names.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen_command(app);
  const std::string path = path_of(command);
  std::vector<std::string> extras = app.remaining(true);
  std::erase(extras, "--");  // which is left where an option in front of it is wrong
  if (extras.empty()) {
    return fmt::format("{} (see {} --help)", parse_error(command, error.what()), path);
  }
  // What follows an unknown option may be its value.
  const auto option = std::ranges::find_if(
      extras, [](const std::string& text) { return text.starts_with('-') && text != "-"; });
  const bool is_option = option != extras.end();
  std::string found = is_option ? *option : extras.front();
  found.erase(std::min(found.find('='), found.size()));
  std::vector<std::string> names;
  if (is_option) {
    for (const CLI::Option* known : command.get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* known : command.get_subcommands(nullptr)) {
      names.push_back(known->get_name());
    }
  }
  const std::string_view kind = is_option ? "option" : names.empty() ? "argument" : "command";
  std::string text = fmt::format("{}: unknown {} {}", path, kind, quote(found));
  constexpr std::size_t kNamed = 3;
  // A name that differs by more than a third is a different word.
  const std::vector<std::string_view> near = nearest(found, {names.begin(), names.end()}, kNamed,
                                                     std::max<std::size_t>(1, found.size() / 3));
  if (!near.empty()) text += fmt::format("; the nearest: {}", fmt::join(near, ", "));
  return text + fmt::format(" (see {} --help)", path);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("braid: fused kernels from tensor programs with collectives", "braid");
  app.set_version_flag("--version", BRAID_VERSION);
  app.require_subcommand(1);
  int exit_code = kGood;
  add_run(app, &exit_code);
  add_launch(app, &exit_code);
  add_compile(app, &exit_code);
  add_opt(app, &exit_code);
  add_explain(app, &exit_code);
  add_report(app, &exit_code);
  add_tune(app, &exit_code);
  add_plan_buffers(app, &exit_code);
  add_ptx(app, &exit_code);
  add_cache(app, &exit_code);
  add_doctor(app, &exit_code);
  refuse_nothing(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    app.exit(help_or_version, text, text);
    fmt::print("{}", text.str());
  } catch (const CLI::ParseError& error) {
    throw_invalid("", usage_error(app, error));
  } catch (const Error& error) {
    throw name_option(chosen_command(app), error);
  }
  return exit_code;
}

}  // namespace braid::cli
