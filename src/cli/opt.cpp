#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "braid/error.h"
#include "cli/common.h"
#include "codegen/graph_target.h"
#include "lowering/passes.h"

namespace braid::cli {

namespace {

constexpr std::string_view kBuildProgram = "build_program";

struct OptOptions {
  GraphOptions graph;
  PassConfig config;
  std::vector<std::string> passes;
  std::string output = "-";
  std::string target;
  bool stats = false;
};

int opt(const OptOptions& options) {
  if (options.output != "-") {
    const std::filesystem::path parent =
        std::filesystem::absolute(options.output).lexically_normal().parent_path();
    prepare_output_directory(parent, "--output");
  }
  PassContext context;
  context.config = options.config;
  std::vector<std::string> passes = options.passes;
  const bool to_program = !passes.empty() && passes.back() == kBuildProgram;
  if (to_program) passes.pop_back();
  if (std::find(passes.begin(), passes.end(), kBuildProgram) != passes.end()) {
    throw_invalid("--passes", fmt::format("{} must be the last", kBuildProgram));
  }

  Graph graph = load(options.graph);
  context.target = choose_target(graph, options.target);
  std::vector<std::string> output_names;
  for (ValueId output : graph.outputs()) output_names.push_back(graph.value(output).name);
  std::vector<std::vector<std::string>> stats = {
      {"pass", "nodes before", "after", "applied", "missed", "ms"}};
  std::size_t remarks_seen = 0;
  auto record = [&](std::string_view pass, std::size_t before, std::size_t after,
                    std::chrono::steady_clock::time_point start) {
    std::size_t applied = 0;
    const std::size_t remarks = context.remarks.size() - remarks_seen;
    for (; remarks_seen < context.remarks.size(); ++remarks_seen) {
      applied += context.remarks[remarks_seen].applied ? 1 : 0;
    }
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    stats.push_back({std::string(pass), std::to_string(before), std::to_string(after),
                     std::to_string(applied), std::to_string(remarks - applied),
                     fmt::format("{:.2f}", time.count())});
  };
  for (const std::string& pass : passes) {
    const std::size_t before = graph.nodes().size();
    const auto start = std::chrono::steady_clock::now();
    graph = run_passes(graph, {&pass, 1}, context);
    record(pass, before, graph.nodes().size(), start);
  }
  std::string text;
  if (to_program) {
    const auto start = std::chrono::steady_clock::now();
    const Program program = build_program(graph, context, output_names);
    record(kBuildProgram, graph.nodes().size(), program.steps.size(), start);
    text = to_json(program);
  } else {
    text = to_json(graph);
  }
  if (text.empty() || text.back() != '\n') text += '\n';
  if (options.output == "-") {
    fmt::print("{}", text);
  } else {
    write_file(options.output, text);
  }
  if (options.stats) fmt::print(stderr, "{}", format_table(stats));
  return kGood;
}

}  // namespace

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

}  // namespace braid::cli
