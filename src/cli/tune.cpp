#include "braid/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/progress.h"
#include "ir/fail.h"
#include "ir/json_value.h"
#include "ir/mapped.h"
#include "ir/text.h"
#include "runtime/output_file.h"

namespace braid::cli {
namespace {

/// "60s", "10m", "2h" or "60".
double seconds_of(const std::string& text) {
  const char* const end = text.data() + text.size();
  double value = 0;
  const auto [at, code] = std::from_chars(text.data(), end, value);
  const std::string_view unit(at, end - at);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  constexpr double kMost = 1e6;
  if (code == std::errc() && value * factor > 0 && value * factor <= kMost) return value * factor;
  throw_invalid("--budget", "found {}; expected a time such as 60s, 10m or 2h, up to 1e6 s",
                quote(text));
}

std::string settings_text(const std::map<std::string, std::int64_t>& config,
                          const std::map<std::string, std::int64_t>* other) {
  std::string text;
  for (const auto& [name, value] : config) {
    const auto found = other == nullptr ? config.end() : other->find(name);
    if (other != nullptr && found != other->end() && found->second == value) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::string us(const std::optional<TunedConfig>& config) {
  return config ? fmt::format("{:.1f}", config->ns / 1e3) : "";
}

/// Which option each choice of an op takes, and what each of them takes alone.
void print_choices(const TuneResult& result, std::string_view op) {
  std::vector<std::string> options;
  for (const TunedChoice& choice : result.choices) {
    if (choice.op != op) continue;
    for (const TunedOption& option : choice.options) {
      if (std::ranges::find(options, option.name) == options.end()) options.push_back(option.name);
    }
  }
  std::vector<std::vector<std::string>> rows = {
      {fmt::format("{} of", op), "ranks", "for", "tried at"}};
  for (const std::string& option : options) rows[0].push_back(option + " us");
  for (const char* head : {"takes", "by the cost model"}) rows[0].emplace_back(head);
  for (const TunedChoice& choice : result.choices) {
    if (choice.op != op) continue;
    std::vector<std::string> cells = row(one_line(choice.operands), choice.ranks,
                                         one_line(choice.serves), one_line(choice.symbols));
    for (const std::string& name : options) {
      const auto found = std::ranges::find_if(
          choice.options, [&](const TunedOption& option) { return option.name == name; });
      const bool known = found != choice.options.end() && found->ns;
      cells.push_back(known ? fmt::format("{:.1f}", *found->ns / 1e3) : "");
    }
    cells.push_back(choice.taken);
    cells.push_back(choice.by_model);
    rows.push_back(std::move(cells));
  }
  fmt::print("{}\n", format_table(rows));
}

/// How many times as fast all launches of one run are that were tuned; nothing without any.
std::optional<double> gain(const TuneResult& result) {
  double by_default = 0, best = 0;
  for (const TunedKernel& kernel : result.kernels) {
    if (!kernel.by_default || !kernel.best) continue;
    by_default += kernel.by_default->ns * kernel.launches;
    best += kernel.best->ns * kernel.launches;
  }
  if (best == 0) return {};
  return by_default / best;
}

void print_text(const Graph& graph, const TuneResult& result, const std::string& database) {
  const std::string_view measure = result.measured ? "measured" : "estimated";
  fmt::print("{}: times {} on {} ({}), {}\n\n", one_line(graph.name()), measure,
             one_line(result.device), result.target, result.toolchain);
  std::set<std::string> ops;
  for (const TunedChoice& choice : result.choices) ops.insert(choice.op);
  for (const std::string& op : ops) print_choices(result, op);
  std::vector<std::vector<std::string>> rows = {{"kernel", "ops", "launches", "for", "tried at",
                                                 "tried", "of", "default us", "best us", "times",
                                                 "settings", "limited by"}};
  std::vector<std::string> remarks;
  for (const TunedKernel& kernel : result.kernels) {
    if (!kernel.remark.empty()) {
      remarks.push_back(fmt::format("  {}: {}\n", kernel.name, kernel.remark));
      continue;
    }
    const auto& first = kernel.by_default;
    const auto& best = kernel.best;
    std::string settings = kernel.tried == 0 ? "not tried" : "none runs", limiter;
    if (best) {
      settings = settings_text(best->config, first ? &first->config : nullptr);
      if (settings.empty()) settings = "the default's";
      limiter = best->limiter;
    }
    if (first && best && first->limiter != best->limiter) {
      limiter = fmt::format("{}, was {}", best->limiter, first->limiter);
    }
    rows.push_back(row(kernel.name, one_line(kernel.ops), kernel.launches, one_line(kernel.serves),
                       one_line(kernel.symbols), kernel.tried, kernel.candidates, us(first),
                       us(best), first && best ? fmt::format("{:.2f}", first->ns / best->ns) : "",
                       settings, limiter));
  }
  if (rows.size() > 1) fmt::print("{}\n", format_table(rows));
  for (const std::string& remark : remarks) fmt::print("{}", remark);
  if (const auto times = gain(result)) {
    fmt::print("  all launches of these kernels: {:.2f} times as fast, {}\n", *times,
               result.measured ? "measured" : "by an estimate");
  }
  fmt::print("{}", batch_invariance_line(result.batch_invariant));
  if (!result.complete) {
    fmt::print("  the budget did not suffice; --resume goes on with what is left\n");
  }
  fmt::print("  everything tried is in {}; --tune-db uses it\n", one_line(database));
}

Json config_json(const std::optional<TunedConfig>& tuned) {
  if (!tuned) return {};
  Json config = Json::object();
  for (const auto& [name, value] : tuned->config) config.set(name, value);
  return Json::object({{"config", config}, {"ns", tuned->ns}, {"limiter", tuned->limiter}});
}

Json json_of(const Graph& graph, const TuneResult& result) {
  const Json kernels = mapped(result.kernels, [](const TunedKernel& kernel) {
    return Json::object({{"name", kernel.name},
                         {"template", kernel.template_name},
                         {"ops", kernel.ops},
                         {"launches", kernel.launches},
                         {"symbols", kernel.symbols},
                         {"serves", kernel.serves},
                         {"remark", kernel.remark},
                         {"candidates", kernel.candidates},
                         {"tried", kernel.tried},
                         {"from_database", kernel.from_database},
                         {"failed", kernel.failed},
                         {"default", config_json(kernel.by_default)},
                         {"best", config_json(kernel.best)}});
  });
  Json choices = Json::array();
  for (const TunedChoice& choice : result.choices) {
    Json options = Json::object();
    for (const TunedOption& option : choice.options) {
      options.set(option.name, option.ns
                                   ? Json::object({{"ns", *option.ns}, {"limiter", option.limiter}})
                                   : Json());
    }
    choices.push_back(Json::object({{"op", choice.op},
                                    {"operands", choice.operands},
                                    {"ranks", choice.ranks},
                                    {"symbols", choice.symbols},
                                    {"serves", choice.serves},
                                    {"options", options},
                                    {"tried", choice.tried},
                                    {"from_database", choice.from_database},
                                    {"by_model", choice.by_model},
                                    {"taken", choice.taken}}));
  }
  return Json::object({{"graph", graph.name()},
                       {"target", result.target},
                       {"device", result.device},
                       {"toolchain", result.toolchain},
                       {"measure", result.measured ? "measured" : "estimated"},
                       {"complete", result.complete},
                       {"batch_invariant", result.batch_invariant},
                       {"choices", choices},
                       {"kernels", kernels}});
}

}  // namespace

int tune(const TuneCommandOptions& options) {
  TuneOptions on;
  on.budget_s = seconds_of(options.budget);
  const Graph graph = load(options.graph);
  if (!options.output.empty()) prepare_output_file(options.output, "--export");
  prepare_output_file(options.database, "--tune-db");
  on.passes = options.passes;
  on.device = parse_device_kind(options.device);
  on.target = options.target;
  on.database = options.database;
  on.resume = options.resume;
  on.exhaustive = options.exhaustive;
  (void)resolve_bindings(graph, options.bind);  // what is no good is an error of the option
  on.bindings = parse_bindings(options.bind);
  on.cache_dir = cache_directory(options.cache_dir).string();
  on.worker = own_worker();
  TuneResult result;
  {
    const ProgressBar bar;
    on.progress = [&bar](std::size_t kernel, std::size_t kernels, std::string_view what) {
      bar.update(kernel, kernels, what);
    };
    result = braid::tune(graph, on);
  }
  const Json document = json_of(graph, result);
  if (!options.output.empty()) write_output_file(options.output, document.indented() + "\n");
  if (options.json) {
    fmt::print("{}\n", document.indented());
  } else {
    print_text(graph, result, options.database);
  }
  return kGood;
}

}  // namespace braid::cli
