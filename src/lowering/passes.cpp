#include "lowering/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "codegen/graph_target.h"
#include "ir/buckets.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/mapped.h"
#include "ir/split_list.h"
#include "ir/text.h"
#include "lowering/plan/variants.h"

namespace braid {
namespace {

#define BRAID_LIST_PASS(name) &name,
constexpr auto kPasses = std::to_array<const Pass*>({BRAID_PASSES(BRAID_LIST_PASS)});
#undef BRAID_LIST_PASS

constexpr std::string_view kEnable = "enable";

const Pass& find_pass(std::string_view name) {
  const auto* const found = std::ranges::find(kPasses, name, &Pass::name);
  if (found != kPasses.end()) return **found;
  throw_invalid("passes", "unknown pass {}; expected some of {}", quote(name),
                fmt::join(mapped(kPasses, &Pass::name), ", "));
}

const PassOption& find_option(std::string_view name) {
  std::vector<std::string_view> known{kEnable};
  for (const Pass* pass : kPasses) {
    for (const PassOption& option : pass->options) {
      if (option.name == name) return option;
      known.push_back(option.name);
    }
  }
  throw_invalid("passes", "unknown option {}; expected one of {}", quote(name),
                fmt::join(known, ", "));
}

void read_option(const PassOption& option, std::string_view value, void* options) {
  if (option.variable.read(value, options)) return;
  throw_invalid(std::string(option.name), "found {}; expected {}", quote(value),
                option.variable.expected);
}

/// Checks names and options, and sets the members that are given by name.
void resolve(PassConfig& config) {
  for (const std::string& name : config.enable) static_cast<void>(find_pass(name));
  const auto given = config.options;
  for (const auto& [name, value] : given) set_pass_option(config, name, value);
}

/// Verifies the graph, runs the passes in order and verifies each changed graph. Returns nothing
/// where none changed it. `unscheduled` receives the graph before the first scheduling pass.
std::optional<Graph> run_all(const Graph& graph, std::span<const Pass* const> passes,
                             PassContext& context, std::optional<Graph>* unscheduled = nullptr) {
  if (!passes.empty()) verify(graph);
  std::optional<Graph> result;
  for (const Pass* pass : passes) {
    if (context.progress) context.progress(pass->name);
    if (pass->schedules && unscheduled != nullptr && !*unscheduled) {
      *unscheduled = result ? *result : graph;
    }
    std::optional<Graph> next = pass->run(result ? *result : graph, context);
    if (!next) continue;
    verify(*next);
    if (!pass->schedules) context.base_peak.reset();
    result = std::move(next);
  }
  return result;
}

/// Runs the passes, then build_program.
Program lower_by(std::span<const Pass* const> passes, const Graph& graph,
                 std::span<const std::string> output_names, PassContext& context,
                 Schedules* schedules) {
  std::optional<Graph> unscheduled;
  const std::optional<Graph> lowered =
      run_all(graph, passes, context, schedules == nullptr ? nullptr : &unscheduled);
  const Graph& last = lowered ? *lowered : graph;
  if (schedules != nullptr) {
    schedules->before = unscheduled ? *std::move(unscheduled) : last;
    schedules->after = last;
  }
  if (context.progress) context.progress("build_program");
  return build_program(last, context, output_names);
}

/// Keeps each remark once, whichever variants it comes from.
void drop_repeated(std::vector<Remark>& remarks) {
  std::set<std::tuple<std::string_view, std::string, bool, std::string>> known;
  std::erase_if(remarks, [&](const Remark& remark) {
    return !known.emplace(remark.pass, remark.node, remark.applied, remark.reason.text()).second;
  });
}

}  // namespace

void PassContext::applied(std::string_view pass, std::string_view node, Reason reason) {
  remarks.push_back({pass, std::string(node), true, std::move(reason)});
}

void PassContext::missed(std::string_view pass, std::string_view node, Reason reason) {
  remarks.push_back({pass, std::string(node), false, std::move(reason)});
}

Reason PassContext::why_missed(std::string_view pass, std::string_view node) const {
  for (const Remark& remark : remarks) {
    if (!remark.applied && remark.pass == pass && remark.node == node) return remark.reason;
  }
  return {};
}

std::string PassOption::value(const PassConfig& config) const {
  if (variable.owner == &kOwner<PassConfig>) return variable.write(&config);
  const auto given = config.options.find(name);
  return given == config.options.end() ? variable.write(nullptr) : given->second;
}

std::string PassOption::default_text() const {
  const std::string text = value({});
  if (is_flag()) return text == "true" ? "on" : "off";
  return text.empty() ? std::string(off) : text;
}

std::span<const Pass* const> all_passes() { return kPasses; }

void set_pass_option(PassConfig& config, std::string_view name, std::string_view value) {
  if (name == kEnable) {
    for (const std::string_view name : split_list(value)) {
      config.enable.emplace_back(find_pass(name).name);
    }
    return;
  }
  const PassOption& option = find_option(name);
  const bool is_member = option.variable.owner == &kOwner<PassConfig>;
  read_option(option, value, is_member ? &config : nullptr);
  if (!is_member) config.options.insert_or_assign(std::string(name), std::string(value));
}

void read_options(const Pass& pass, const PassConfig& config, const void* owner, void* options) {
  for (const PassOption& option : pass.options) {
    const auto given = config.options.find(option.name);
    if (given == config.options.end() || option.variable.owner != owner) continue;
    read_option(option, given->second, options);
  }
}

bool runs(const Pass& pass, const PassConfig& config) {
  const auto& enable = config.enable;
  return pass.by_default || std::ranges::find(enable, pass.name) != enable.end();
}

std::string describe_passes() {
  std::string text =
      "# Passes\n\nIn the order in which they run. This page is made from the passes' own records "
      "(src/lowering/passes.h\nlists them).\n\n| pass | what it does | runs |\n|---|---|---|\n";
  for (const Pass* pass : kPasses) {
    text += fmt::format("| `{}` | {} | {} |\n", pass->name, pass->summary,
                        pass->by_default ? "by default" : "with `--enable`");
  }
  text += "\n| option | of | value | default | meaning |\n|---|---|---|---|---|\n";
  for (const Pass* pass : kPasses) {
    for (const PassOption& option : pass->options) {
      text += fmt::format("| `--{}` | `{}` | {} | {} | {} |\n", option.name, pass->name,
                          option.variable.expected, option.default_text(), option.meaning);
    }
  }
  return text;
}

Graph run_passes(const Graph& graph, std::span<const std::string> names, PassContext& context) {
  resolve(context.config);
  const auto passes = mapped(names, [](const std::string& name) { return &find_pass(name); });
  std::optional<Graph> result = run_all(graph, passes, context);
  if (result) return *std::move(result);
  return graph;
}

Program lower(const Graph& graph, PassContext& context, Schedules* schedules) {
  resolve(context.config);
  check_target(graph, context.target);
  std::vector<const Pass*> passes;
  for (const Pass* pass : kPasses) {
    if (runs(*pass, context.config)) passes.push_back(pass);
  }
  std::vector<std::string> names;
  for (ValueId output : graph.outputs()) names.push_back(graph.value(output).name);
  const auto* bucketed = bucketed_symbol(graph.symbols());
  if (bucketed == nullptr) return lower_by(passes, graph, names, context, schedules);

  const auto split = std::ranges::find_if(passes, [](const Pass* pass) { return pass->cuts_sums; });
  const auto common =
      context.config.batch_invariant ? static_cast<std::size_t>(split - passes.begin()) + 1 : 0;
  const std::span<const Pass* const> all(passes);
  const std::optional<Graph> changed = run_all(graph, all.first(common), context);
  const PassContext so_far = context;
  std::vector<Program> programs;
  Schedules* wanted = schedules;
  for (const Symbol& part : parts_of(bucketed->second)) {
    SymbolTable symbols = graph.symbols();
    symbols.find(bucketed->first)->second = part;
    const Graph narrow = with_tables(changed ? *changed : graph, symbols, graph.groups());
    PassContext own = so_far;
    const bool is_it = wanted != nullptr && holds(part, wanted->value);
    programs.push_back(lower_by(all.subspan(common), narrow, names, own, is_it ? wanted : nullptr));
    if (is_it) wanted = nullptr;  // the first part that contains the value represents it
    context.remarks.insert(context.remarks.end(), own.remarks.begin(), own.remarks.end());
  }
  drop_repeated(context.remarks);
  Program program = unite(programs, graph.symbols());
  verify(program);
  return program;
}

}  // namespace braid
