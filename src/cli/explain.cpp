#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "lowering/passes.h"

namespace braid::cli {

namespace {

struct ExplainOptions {
  GraphOptions graph;
  std::string target = "sm_80";
  bool json = false;
};

// Remarks of one pass with the same outcome and reason are one line.
struct Line {
  const Remark* first;
  std::vector<std::string> nodes;
};

std::vector<Line> group_remarks(const std::vector<Remark>& remarks) {
  std::vector<Line> lines;
  for (const Remark& remark : remarks) {
    auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      return line.first->pass == remark.pass && line.first->applied == remark.applied &&
             line.first->reason == remark.reason;
    });
    if (same == lines.end()) same = lines.insert(lines.end(), {&remark, {}});
    same->nodes.push_back(one_line(remark.node));
  }
  return lines;
}

void print_text(const Graph& graph, const Program& program, const std::vector<Remark>& remarks) {
  constexpr std::size_t kNodesShown = 4;
  fmt::print("{}: {} nodes become {} steps and {} kernels on {} ranks\n", one_line(graph.name()),
             graph.nodes().size(), program.steps.size(), program.kernels.size(), program.world);
  std::string_view pass;
  for (const Line& line : group_remarks(remarks)) {
    if (line.first->pass != pass) {
      pass = line.first->pass;
      fmt::print("\n{}\n", pass);
    }
    const std::size_t shown = std::min(kNodesShown, line.nodes.size());
    std::string nodes =
        fmt::format("{}", fmt::join(line.nodes.begin(),
                                    line.nodes.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (shown < line.nodes.size()) nodes += fmt::format(" +{} more", line.nodes.size() - shown);
    fmt::print("  {:<8} {}: {}\n", line.first->applied ? "applied" : "missed", nodes,
               one_line(line.first->reason));
  }
}

int explain(const ExplainOptions& options) {
  PassContext context;
  context.target = Target::parse(options.target);
  const Graph graph = load(options.graph);
  const Program program = lower(graph, context);
  if (!options.json) {
    print_text(graph, program, context.remarks);
    return kGood;
  }
  auto remarks = nlohmann::ordered_json::array();
  for (const Remark& remark : context.remarks) {
    remarks.push_back({{"pass", remark.pass},
                       {"node", remark.node},
                       {"outcome", remark.applied ? "applied" : "missed"},
                       {"reason", remark.reason}});
  }
  const nlohmann::ordered_json document = {{"graph", graph.name()},
                                           {"world", program.world},
                                           {"nodes", graph.nodes().size()},
                                           {"steps", program.steps.size()},
                                           {"kernels", program.kernels.size()},
                                           {"remarks", remarks}};
  fmt::print("{}\n", document.dump(2));
  return kGood;
}

}  // namespace

void add_explain(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "Say what each pass did, and why it did not do more");
  add_graph_options(*command, &options->graph);
  command->add_option("--target", options->target, "What the passes plan for (default sm_80)");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, exit_code] { *exit_code = explain(*options); });
}

}  // namespace braid::cli
