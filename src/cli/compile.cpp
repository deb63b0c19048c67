#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/kernel_report.h"
#include "cli/progress.h"
#include "codegen/graph_target.h"
#include "runtime/artifact.h"
#include "runtime/disk_cache.h"

namespace braid::cli {

namespace {

struct CompileOptions {
  GraphOptions graph;
  PassConfig passes;
  std::string target, output, cache_dir;
  bool json = false;
};

int compile(const CompileOptions& options) {
  const Graph graph = load(options.graph);
  const Target target = choose_target(graph, options.target);
  prepare_output_directory(options.output, "--output");
  const DiskCache cache(cache_directory(options.cache_dir));
  ArtifactOptions artifact;
  artifact.passes = options.passes;
  artifact.cache = &cache;
  std::vector<KernelReport> kernels;
  {
    const ProgressBar bar;
    artifact.progress = [&bar](std::size_t done, std::size_t total, std::string_view what) {
      bar.update(done, total, what);
    };
    kernels = write_artifact(graph, target, options.output, artifact);
  }
  const nlohmann::ordered_json document = {{"graph", graph.name()},
                                           {"world", world_size(graph)},
                                           {"target", target.str()},
                                           {"kernels", kernels_json(kernels)}};
  write_file(std::filesystem::path(options.output) / "kernels.json", document.dump(2) + "\n");
  if (options.json) {
    fmt::print("{}\n", document.dump(2));
  } else {
    fmt::print(
        "{}: {} ranks, {}\n\n{}\n  program.json, kernels.json and each kernel's .cu, .ptx "
        "and .cubin are in {}\n",
        one_line(graph.name()), world_size(graph), target.str(), kernel_table(kernels),
        options.output);
  }
  return kGood;
}

}  // namespace

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

}  // namespace braid::cli
