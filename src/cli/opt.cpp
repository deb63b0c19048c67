#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/schedule_report.h"
#include "codegen/graph_target.h"
#include "ir/fail.h"
#include "lowering/passes.h"
#include "lowering/schedule/overlap_timeline.h"

namespace braid::cli {

namespace {

/// The pass of that name where it is one that schedules, else null.
const Pass* scheduling_pass(std::string_view name) {
  for (const Pass* pass : all_passes()) {
    if (pass->name == name && pass->schedules) return pass;
  }
  return nullptr;
}

}  // namespace

int opt(const OptOptions& options) {
  prepare_output_file(options.output, "--output");
  PassContext context;
  context.config = options.config;
  std::vector<std::string> passes = options.passes;
  const bool to_program = !passes.empty() && passes.back() == kBuildProgram;
  if (to_program) passes.pop_back();
  if (std::ranges::find(passes, kBuildProgram) != passes.end()) {
    throw_invalid("--passes", "{} must be the last", kBuildProgram);
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
    stats.push_back(row(pass, before, after, applied, remarks - applied,
                        fmt::format("{:.2f}", milliseconds_since(start))));
  };
  std::vector<MoveRecord> moves;
  if (options.stats) context.move_records = &moves;
  std::string schedules;
  for (const std::string& pass : passes) {
    const std::size_t before = graph.nodes().size();
    const std::size_t remarks = context.remarks.size();
    moves.clear();
    const auto start = std::chrono::steady_clock::now();
    Graph next = run_passes(graph, {&pass, 1}, context);
    record(pass, before, next.nodes().size(), start);
    if (const Pass* scheduling = options.stats ? scheduling_pass(pass) : nullptr) {
      schedules += describe_schedule(*scheduling, graph, next, context.target, moves,
                                     std::span(context.remarks).subspan(remarks));
    }
    graph = std::move(next);
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
  write_text(options.output, text);
  if (options.stats) note(format_table(stats) + schedules);
  if (options.visualize_overlap) note(visualize_overlap(graph, context.target));
  return kGood;
}

}  // namespace braid::cli
