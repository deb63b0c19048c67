#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "braid/error.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/kernel_report.h"
#include "cli/progress.h"
#include "codegen/graph_target.h"
#include "runtime/compile/artifact.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/tune/find_tuned.h"
#include "runtime/worker_processes.h"

namespace braid::cli {

int compile(const CompileOptions& options) {
  const Graph graph = load(options.graph);
  const Target target = choose_target(graph, options.target);
  prepare_output_directory(options.output, "--output");
  const DiskCache cache(cache_directory(options.cache_dir));
  ArtifactOptions artifact;
  artifact.passes = options.passes;
  artifact.tools.cache = &cache;
  std::optional<WorkerProcesses> workers;
  if (options.jobs > 1) {
    workers.emplace(own_worker(), static_cast<std::size_t>(options.jobs));
    artifact.tools.workers = &*workers;
  }
  if (!options.tune_db.empty()) artifact.tuned = find_tuned(options.tune_db, {target, ""});
  std::string document;
  artifact.report = [&](const std::vector<KernelReport>& reports) {
    document = Json::object({{"graph", graph.name()},
                             {"world", world_size(graph)},
                             {"target", target.str()},
                             {"batch_invariant", options.passes.batch_invariant},
                             {"kernels", kernels_json(reports)}})
                   .indented();
    return document + "\n";
  };
  std::vector<KernelReport> kernels;
  {
    const ProgressBar bar;
    if (const std::string problem = cache.problem(); !problem.empty()) bar.warn(problem);
    artifact.tools.progress = [&bar](std::size_t done, std::size_t total, std::string_view what) {
      bar.update(done, total, what);
    };
    artifact.pass_progress = [&bar](std::string_view pass) { bar.pass(pass); };
    kernels = write_artifact(graph, target, options.output, artifact);
  }
  if (options.json) {
    fmt::print("{}\n", document);
  } else {
    fmt::print(
        "{}: {} ranks, {}\n\n{}\n{}  program.json, code.json, kernels.json and each kernel's .cu, "
        ".ptx and .cubin are in {}\n",
        one_line(graph.name()), world_size(graph), target.str(), kernel_table(kernels),
        batch_invariance_line(options.passes.batch_invariant), options.output);
  }
  return kGood;
}

}  // namespace braid::cli
