#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "braid/error.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/progress.h"
#include "cli/remark_lines.h"
#include "codegen/graph_target.h"
#include "ir/buckets.h"
#include "ir/json_value.h"
#include "lowering/passes.h"
#include "lowering/plan/variants.h"
#include "runtime/tune/find_tuned.h"

namespace braid::cli {

namespace {

/// The passes that ran.
std::vector<std::string_view> passes_of(const PassConfig& config) {
  std::vector<std::string_view> names;
  for (const Pass* pass : all_passes()) {
    if (runs(*pass, config)) names.push_back(pass->name);
  }
  return names;
}

/// "sequence dim 1; pipelines always", of all passes.
std::string describe_settings(const PassConfig& config) {
  std::vector<std::string> texts;
  for (const Pass* pass : all_passes()) {
    for (const PassOption& option : pass->options) {
      const std::string value = option.value(config);
      if (option.said.empty()) {
        if (value == option.value({})) continue;
        texts.push_back(fmt::format("{} {}", option.name, option.is_flag() ? "on" : value));
        continue;
      }
      std::string_view shown = value;
      if (option.is_flag()) shown = value == "true" ? option.on : option.off;
      if (value.empty()) shown = option.off;
      std::string text = fmt::format(fmt::runtime(option.said), shown);
      if (!text.empty()) texts.push_back(std::move(text));
    }
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

void print_config(const Graph& graph, const PassContext& context) {
  const PassConfig& config = context.config;
  fmt::print("target {}; passes {}\n", context.target.str(), fmt::join(passes_of(config), ", "));
  fmt::print("{}\n", describe_settings(config));
  for (const auto& [name, group] : graph.groups()) {
    fmt::print("group {}: {} ranks, {}\n", one_line(name), group.size,
               group.symmetric ? "symmetric memory" : "no symmetric memory");
  }
}

/// `program` is null where a pass failed.
void print_text(const Graph& graph, const Program* program, const PassContext& context) {
  constexpr std::size_t kNodesShown = 4;
  fmt::print("{}: {} nodes ", one_line(graph.name()), graph.nodes().size());
  if (program == nullptr) {
    fmt::print("on {} ranks; no plan, for a pass failed\n", world_size(graph));
  } else {
    fmt::print("become {} steps and {} kernels on {} ranks\n", program->steps.size(),
               program->kernels.size(), program->world);
    for (const Variant& variant : program->variants) {
      fmt::print("  {} and {} of them for {}\n", variant.steps.size(), variant.kernels.size(),
                 ranges_text(variant.symbols));
    }
  }
  print_config(graph, context);
  std::string_view pass;
  for (const RemarkLine& line : remark_lines(context.remarks)) {
    if (line.first->pass != pass) {
      pass = line.first->pass;
      fmt::print("\n{}\n", pass);
    }
    const std::size_t shown = std::min(kNodesShown, line.nodes.size());
    std::string nodes =
        fmt::format("{}", fmt::join(line.nodes.begin(), line.nodes.begin() + shown, ", "));
    if (shown < line.nodes.size()) nodes += fmt::format(" +{} more", line.nodes.size() - shown);
    fmt::print("  {:<8} {}: {}\n", line.first->applied ? "applied" : "missed", nodes, line.reason);
  }
}

Json json_of(const Graph& graph, const Program* program, const PassContext& context) {
  Json remarks = Json::array();
  for (const Remark& remark : context.remarks) {
    Json entry = Json::object({{"pass", remark.pass},
                               {"node", remark.node},
                               {"outcome", remark.applied ? "applied" : "missed"},
                               {"reason", remark.reason.text()}});
    remark.reason.add_to(entry);
    remarks.push_back(std::move(entry));
  }
  Json groups = Json::object();
  for (const auto& [name, group] : graph.groups()) {
    groups.set(name, Json::object({{"size", group.size}, {"symmetric", group.symmetric}}));
  }
  Json config =
      Json::object({{"target", context.target.str()}, {"passes", passes_of(context.config)}});
  for (const Pass* pass : all_passes()) {
    for (const PassOption& option : pass->options) {
      std::string key(option.name);
      std::replace(key.begin(), key.end(), '-', '_');
      const std::string value = option.value(context.config);
      config.set(std::move(key), option.is_flag() ? Json(value == "true")
                                 : value.empty()  ? Json(option.off)
                                                  : Json(value));
    }
  }
  config.set("groups", groups);
  Json document = Json::object({{"graph", graph.name()},
                                {"config", config},
                                {"world", world_size(graph)},
                                {"nodes", graph.nodes().size()}});
  if (program != nullptr) {
    document.set("steps", program->steps.size());
    document.set("kernels", program->kernels.size());
    Json variants = Json::array();
    for (const Variant& variant : variants_of(*program)) {
      Json symbols = Json::object();
      for (const auto& [name, symbol] : variant.symbols) {
        symbols.set(name, Json::object({{"min", symbol.min},
                                        {"max", symbol.max},
                                        {"multiple_of", symbol.multiple_of}}));
      }
      variants.push_back(Json::object({{"symbols", symbols},
                                       {"steps", variant.steps.size()},
                                       {"kernels", variant.kernels.size()}}));
    }
    document.set("variants", variants);
  }
  document.set("remarks", remarks);
  return document;
}

}  // namespace

int explain(const ExplainOptions& options) {
  PassContext context;
  context.config = options.passes;
  const Graph graph = load(options.graph);
  context.target = choose_target(graph, options.target);
  if (!options.tune_db.empty()) context.tuned = find_tuned(options.tune_db, {context.target, ""});
  std::optional<Program> program;
  std::string failure;
  std::exception_ptr thrown;
  try {
    const ProgressBar bar;
    context.progress = [&bar](std::string_view pass) { bar.pass(pass); };
    program = lower(graph, context);
  } catch (const Error& error) {
    if (context.remarks.empty()) throw;
    failure = error.what();
    thrown = std::current_exception();  // what led to it is among the remarks
  }
  const Program* plan = program ? &*program : nullptr;
  if (options.json) {
    Json document = json_of(graph, plan, context);
    if (thrown) document.set("error", failure);
    fmt::print("{}\n", document.indented());
  } else {
    print_text(graph, plan, context);
  }
  if (thrown) std::rethrow_exception(thrown);
  return kGood;
}

}  // namespace braid::cli
