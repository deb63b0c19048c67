#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "braid/error.h"
#include "cli/commands.h"
#include "ir/text.h"
#include "lowering/passes.h"

// The only file that includes CLI11: it costs more to compile than all commands together.

namespace braid::cli {
namespace {

constexpr int kMaxWorld = 1024;
constexpr int kMaxThreads = 4096;

/// The option takes a decimal integer in [least, most] and refuses all else.
void require_integer(CLI::Option& option, std::int64_t least, std::uint64_t most) {
  option.check([least, most](const std::string& text) -> std::string {
    const char* const end = text.data() + text.size();
    const auto parses = [&](auto* value) {
      const auto [at, code] = std::from_chars(text.data(), end, *value);
      return code == std::errc() && at == end;
    };
    std::int64_t low = 0;
    std::uint64_t high = 0;
    if (parses(&high) && high <= most && (least <= 0 || high >= static_cast<std::uint64_t>(least)))
      return {};
    if (parses(&low) && low < 0 && low >= least) return {};
    return fmt::format("found {}; expected an integer from {} to {}", quote(text), least, most);
  });
}

/// Adds GRAPH and --world to a command.
void add_graph_options(CLI::App& command, GraphOptions* options) {
  command.add_option("GRAPH", options->path, "Graph in JSON; - reads it from standard input")
      ->required();
  require_integer(*command.add_option("--world", options->world,
                                      "Number of ranks: replaces the only group's size"),
                  1, kMaxWorld);
}

/// Adds --target to a command: what choose_target takes.
void add_target_option(CLI::App& command, std::string* target) {
  command.add_option("--target", *target,
                     "What kernels are compiled for: sm_80, sm_90a, sm_100a, ... (default: the "
                     "GPU's own when they run on one, else the first that the graph can run on)");
}

/// Adds --sequence-dim, --always-pipeline and --leave-unexposed to a command.
void add_pass_settings(CLI::App& command, PassConfig* config) {
  require_integer(*command.add_option(
                      "--sequence-dim", config->sequence_dim,
                      "sequence_parallel: the dim of the tokens (default: 0 of a matrix, else 1)"),
                  0, INT64_MAX);
  command.add_flag("--always-pipeline", config->always_pipeline,
                   "micro_pipeline: fuse also where no gain is expected");
  command.add_flag("--leave-unexposed", config->leave_unexposed,
                   "micro_pipeline: leave collectives alone that other matmuls can hide");
}

/// These and --enable.
void add_pass_options(CLI::App& command, PassConfig* config) {
  command
      .add_option("--enable", config->enable,
                  "Passes to run beside the default ones: sequence_parallel, micro_pipeline")
      ->delimiter(',')
      ->allow_extra_args(false);  // what follows is the graph
  add_pass_settings(command, config);
}

// One function per command. Choosing the command runs it, and its exit code goes to `exit_code`.

void add_run(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run a graph, or a plan that was made of one, on all its ranks");
  add_graph_options(*command, &options->graph);
  add_pass_options(*command, &options->passes);
  command->add_option("--device", options->device, "Default: cuda where there is a GPU, else cpu")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  add_target_option(*command, &options->target);
  command->add_option("--inputs", options->inputs,
                      "A .safetensors file for all ranks, or a directory with "
                      "rank0.safetensors, ...; what is missing is generated");
  command->add_option("--outputs", options->outputs,
                      "Directory for rank0.safetensors, ... (made if need be)");
  require_integer(
      *command->add_option("--seed", options->seed, "Of the generated inputs (default 1)"), 0,
      UINT64_MAX);
  command
      ->add_option("--bind", options->bind,
                   "Value of a symbol, T=8 (default: 8, or the nearest its range allows)")
      ->allow_extra_args(false);
  command->add_flag("--sanitize{all}", options->sanitize,
                    "Check the kernels on the cpu device: --sanitize for all, or "
                    "--sanitize=bounds,init,race,sync; exit code 1 when something is found");
  command->add_flag("--count{A100}", options->count,
                    "Count what each kernel and line does on the cpu device: instructions, "
                    "sectors, bank conflicts, ...; --count=H200 estimates times on that device "
                    "(default A100)");
  command->add_option("--schedule", options->schedule,
                      "Interleaving under --sanitize: a seed, delay:SEED to hold back a rank, a "
                      "block or a store, or all for every one (default: in turns)");
  require_integer(
      *command->add_option("--threads", options->threads, "Of the cpu device (default: all cores)"),
      1, kMaxThreads);
  command->add_option("--cache-dir", options->cache_dir, "Directory of the compile cache");
  command->add_flag("--check", options->check,
                    "Compare with the reference evaluator; exit code 1 when it differs");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

void add_compile(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command =
      app.add_subcommand("compile", "Compile a graph's kernels for a target, without a device");
  add_graph_options(*command, &options->graph);
  add_pass_options(*command, &options->passes);
  add_target_option(*command, &options->target);
  command->add_option("-o,--output", options->output, "Directory to write (made if need be)")
      ->required();
  command->add_option("--cache-dir", options->cache_dir, "Directory of the compile cache");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, exit_code] { *exit_code = compile(*options); });
}

void add_opt(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<OptOptions>();
  std::string names;
  for (const Pass& pass : all_passes()) names += fmt::format("{}, ", pass.name);
  CLI::App* command = app.add_subcommand("opt", "Run passes on a graph and print the result");
  add_graph_options(*command, &options->graph);
  command
      ->add_option(
          "--passes", options->passes,
          fmt::format("In this order, separated by commas: {}{} (last)", names, kBuildProgram))
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("-o,--output", options->output, "File to write; - is standard output");
  add_target_option(*command, &options->target);
  add_pass_settings(*command, &options->config);
  command->add_flag("--stats", options->stats, "Print what each pass did to standard error");
  command->callback([options, exit_code] { *exit_code = opt(*options); });
}

void add_explain(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "Say what each pass did, and why it did not do more");
  add_graph_options(*command, &options->graph);
  add_pass_options(*command, &options->passes);
  add_target_option(*command, &options->target);
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, exit_code] { *exit_code = explain(*options); });
}

void add_ptx(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<PtxOptions>();
  CLI::App* command =
      app.add_subcommand("ptx", "Run a kernel of a PTX or CUDA file on the cpu device");
  command->add_option("FILE", options->file, "A .ptx file, or a .cu file for NVRTC")->required();
  command->add_option("--entry", options->entry, "Name of the kernel (extern \"C\")")->required();
  command->add_option("--grid", options->grid, "Blocks: X,Y,Z (default 1)");
  command->add_option("--block", options->block, "Threads of a block: X,Y,Z (default 1)");
  require_integer(
      *command->add_option("--shared", options->shared, "Bytes of dynamic shared memory"), 0,
      UINT32_MAX);
  command
      ->add_option("--arg", options->args,
                   "The arguments in order: i32:7, f32:0.5, zero:f32:1024, random:f32:1024, "
                   "poison:f32:1024 (nobody wrote it), or FILE.safetensors:TENSOR")
      ->allow_extra_args(false);
  require_integer(
      *command->add_option("--seed", options->seed, "Of the random buffers (default 1)"), 0,
      UINT64_MAX);
  command->add_flag("--sanitize{all}", options->sanitize,
                    "Check it: all, or --sanitize=bounds,init,race,sync; exit code 1 when "
                    "something is found");
  command->add_flag("--count{A100}", options->count,
                    "Count what it does, line by line; --count=H200 estimates its time on that "
                    "device (default A100)");
  command->add_option("--out", options->output,
                      "Directory for buffers.safetensors: arg0, arg1, ... afterwards");
  command->add_option("--schedule", options->schedule,
                      "Interleaving under --sanitize: a seed, delay:SEED to hold back a block or a "
                      "store, or all for every one (default: in turns)");
  require_integer(
      *command->add_option("--threads", options->threads, "Workers (default: all cores)"), 1,
      kMaxThreads);
  command->add_option("--cache-dir", options->cache_dir, "Directory of the compile cache");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, exit_code] { *exit_code = ptx(*options); });
}

void add_doctor(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "Say what braid found on this machine and how to get the rest");
  command->add_option("--cache-dir", options->cache_dir, "Directory of the compile cache");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, exit_code] { *exit_code = doctor(*options); });
}

void add_cache(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("cache", "Look after the compile cache");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*run)(const CacheOptions&)) {
    auto options = std::make_shared<CacheOptions>();
    CLI::App* sub = command->add_subcommand(name, what);
    sub->add_option("--cache-dir", options->cache_dir, "Directory of the compile cache");
    sub->add_flag("--json", options->json, "Print one JSON document");
    sub->callback([options, exit_code, run] { *exit_code = run(*options); });
    return std::pair(sub, options);
  };
  add("ls", "List the entries, the most recently used first", cache_ls);
  add("verify", "Check every entry; remove the corrupt ones and exit with 1 when there are any",
      cache_verify);
  const auto [sub, options] =
      add("prune", "Remove the least recently used entries above a size", cache_prune);
  require_integer(
      *sub->add_option("--max-mib", options->max_mib, "What may stay, in MiB")->required(), 0,
      std::uint64_t{1} << 40U);
  add("clear", "Remove all entries", cache_prune);
}

/// What is wrong with the command line; what no command or option stands for comes first, with the
/// names nearest to it.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string path = "braid";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  const std::vector<std::string> extras = app.remaining(true);
  if (extras.empty()) return fmt::format("{} (see {} --help)", error.what(), path);
  // What follows an unknown option may be its value.
  const auto option = std::find_if(extras.begin(), extras.end(), [](const std::string& text) {
    return text.starts_with('-') && text != "-";
  });
  const bool is_option = option != extras.end();
  std::string found = is_option ? *option : extras.front();
  found.erase(std::min(found.find('='), found.size()));
  std::vector<std::string> names;
  if (is_option) {
    for (const CLI::Option* known : command->get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* known : command->get_subcommands(nullptr)) {
      names.push_back(known->get_name());
    }
  }
  const std::string_view kind = is_option ? "option" : names.empty() ? "argument" : "command";
  std::string text = fmt::format("{}: unknown {} {}", path, kind, quote(found));
  constexpr std::size_t kNamed = 3;
  const std::vector<std::string_view> near = nearest(found, {names.begin(), names.end()}, kNamed);
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
  add_compile(app, &exit_code);
  add_opt(app, &exit_code);
  add_explain(app, &exit_code);
  add_ptx(app, &exit_code);
  add_cache(app, &exit_code);
  add_doctor(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    app.exit(help_or_version, text, text);
    fmt::print("{}", text.str());
  } catch (const CLI::ParseError& error) {
    throw_invalid("", usage_error(app, error));
  }
  return exit_code;
}

}  // namespace braid::cli
