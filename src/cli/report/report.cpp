#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/count_report.h"
#include "cli/inputs.h"
#include "cli/progress.h"
#include "cli/remark_lines.h"
#include "cli/report/page.h"
#include "cli/report/timelines.h"
#include "codegen/graph_target.h"
#include "ir/buckets.h"
#include "ir/mapped.h"
#include "ir/op_registry.h"
#include "lowering/passes.h"
#include "lowering/plan/lay_out.h"
#include "lowering/plan/variants.h"
#include "runtime/compile/compile_program.h"
#include "runtime/inspection_json.h"

// braid report: a page of pictures. What it shows is put together here as JSON; report/page.html
// draws it.

namespace braid::cli {
namespace {

Json memory_json(const Program& program) {
  std::vector<Json> buffers(program.arenas.size(), Json::array());
  for (const Buffer& b : program.buffers) {
    if (b.slice) continue;  // drawn with what it is a part of
    buffers[b.arena].push_back(Json::object({{"name", b.name},
                                             {"type", b.type.str()},
                                             {"kind", name_of(b.kind)},
                                             {"offset", b.offset},
                                             {"bytes", b.bytes},
                                             {"first", b.first_step},
                                             {"last", b.last_step}}));
  }
  Json arenas = Json::array();
  for (std::size_t a = 0; a < program.arenas.size(); ++a) {
    const Arena& arena = program.arenas[a];
    const ArenaUse use = arena_use(program, a);
    const bool fixed = arena.kind == ArenaKind::kParameters || arena.kind == ArenaKind::kIo;
    arenas.push_back(Json::object({{"name", arena.name()},
                                   {"bytes", arena.bytes},
                                   {"fixed", fixed},
                                   {"peak", use.peak},
                                   {"bound", use.bound},
                                   {"buffers", std::move(buffers[a])}}));
  }
  return Json::object({{"steps", mapped(program.steps, &Step::name)}, {"arenas", arenas}});
}

Json remarks_json(const std::vector<Remark>& remarks) {
  return mapped(remark_lines(remarks), [](const RemarkLine& line) {
    return Json::object({{"pass", line.first->pass},
                         {"outcome", line.first->applied ? "applied" : "missed"},
                         {"nodes", line.nodes},
                         {"reason", line.reason}});
  });
}

/// The observations of a run, if one was requested.
struct Run {
  std::vector<StepTime> steps;
  std::vector<KernelCounts> counts;
};

/// Distinguishes kernels of one name by the types of operands and results.
std::string shapes_of(const Graph& body) {
  const auto in = mapped(body.inputs(), [](const GraphInput& input) { return input.type.str(); });
  const auto out = mapped(body.outputs(), [&](ValueId output) { return body.type(output).str(); });
  return fmt::format("{} → {}", fmt::join(in, ", "), fmt::join(out, ", "));
}

/// Kernels with equal text appear once.
Json kernels_json(const Program& program, const Run* run, const DeviceModel* count_on) {
  const ProgramCode code = print_program(program);
  std::vector<int> launches(code.sources.size(), 0);
  for (const Step& step : program.steps) {
    if (step.kernel >= 0) ++launches[code.code_of[step.kernel]];
  }
  std::map<std::string_view, const KernelCounts*> counted;
  if (run != nullptr) {
    for (const KernelCounts& counts : run->counts) counted.emplace(counts.kernel, &counts);
  }
  Json list = Json::array();
  std::vector<bool> told(code.sources.size(), false);
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const std::size_t source = code.code_of[k];
    if (told[source]) continue;
    told[source] = true;
    const ProgramKernel& kernel = program.kernels[k];
    Json entry = Json::object({{"name", code.sources[source].entry},
                               {"template", kernel.needs.template_name},
                               {"ops", op_names(kernel.spec)},
                               {"shapes", shapes_of(*kernel.spec.body)},
                               {"launches", launches[source]},
                               {"grid", kernel.needs.grid.max(program.symbols)},
                               {"threads", kernel.needs.threads},
                               {"cuda", code.sources[source].text}});
    const auto found = counted.find(code.sources[source].entry);
    if (found != counted.end()) entry.set("counted", counts_json(*found->second, *count_on));
    list.push_back(std::move(entry));
  }
  return list;
}

/// On the cpu device, with inputs from a seed.
Run run_once(const Graph& graph, const ReportOptions& options, const Bindings& bindings,
             const Target& target) {
  ProgressBar bar;
  WorldOptions on;
  on.device = DeviceKind::kCpu;
  on.target = target.str();
  on.world = world_size(graph);
  on.count = true;
  on.cache_dir = options.cache_dir;
  on.progress = [&bar](std::size_t done, std::size_t total, std::string_view what) {
    bar.update(done, total, what);
  };
  on.warning = [&bar](std::string_view what) { bar.warn(what); };
  const World world = World::open(on);
  Executable executable = Executable::compile(graph, world, options.passes);
  executable.prepare(bindings);
  constexpr std::uint64_t kSeed = 1;
  const Inputs inputs = gather_inputs(graph, bindings, "", kSeed, {});
  set_inputs(executable, graph, world.ranks(), inputs.tensors);
  bar.phase("run");
  Run run;
  run.steps = executable.trace();
  run.counts = world.device().inspector()->counts();
  note_registers(executable.kernels(), run.counts);
  return run;
}

/// Whether it is a program of costs alone, of which there is no plan.
bool has_opaque_nodes(const Graph& graph) {
  return std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return node.op->op_class == OpClass::kOpaque; });
}

/// The schedules of such a program by the scheduling passes alone.
Schedules schedule_alone(const Graph& graph, PassContext& context) {
  std::vector<std::string> passes;
  for (const Pass* pass : all_passes()) {
    if (pass->schedules && runs(*pass, context.config)) passes.emplace_back(pass->name);
  }
  return {graph, run_passes(graph, passes, context)};
}

}  // namespace

int report(const ReportOptions& options) {
  prepare_output_file(options.output, "--output");
  const DeviceModel* count_on = count_device(options.count);
  const Graph graph = load(options.graph);
  const Bindings bindings = resolve_bindings(graph, options.bind);
  PassContext context;
  context.config = options.passes;
  context.target = choose_target(graph, options.target);
  std::optional<ProgressBar> bar(std::in_place);
  context.progress = [&bar](std::string_view pass) { bar->pass(pass); };
  Schedules schedules;
  std::optional<Program> program;
  if (has_opaque_nodes(graph) && count_on == nullptr) {
    schedules = schedule_alone(graph, context);
  } else {
    const auto* bucketed = bucketed_symbol(graph.symbols());
    if (bucketed != nullptr) schedules.value = bindings.at(bucketed->first);
    program = lower(graph, context, &schedules);
    if (!program->variants.empty()) {
      program = part_of(*program, program->variants[variant_at(*program, bindings)]);
    }
  }
  bar.reset();
  std::optional<Run> run;
  if (count_on != nullptr) run = run_once(graph, options, bindings, context.target);

  Json timelines =
      Json::array({estimated_timeline("Before scheduling", schedules.before, context.target),
                   estimated_timeline("After scheduling", schedules.after, context.target)});
  if (run) {
    timelines.push_back(
        measured_timeline("One run on the cpu device, while it counted", *program, run->steps));
  }
  Json data = Json::object({{"graph", graph.name()},
                            {"target", context.target.str()},
                            {"device", device_model(context.target).name},
                            {"world", world_size(graph)},
                            {"batch_invariant", context.config.batch_invariant},
                            {"nodes", graph.nodes().size()},
                            {"counted", run.has_value()},
                            {"timelines", timelines},
                            {"remarks", remarks_json(context.remarks)}});
  if (program) {
    data.set("memory", memory_json(*program));
    data.set("kernels", kernels_json(*program, run ? &*run : nullptr, count_on));
  }
  write_text(options.output, report_page(data));
  return kGood;
}

}  // namespace braid::cli
