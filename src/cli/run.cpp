#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/count_report.h"
#include "cli/inputs.h"
#include "cli/kernel_report.h"
#include "cli/progress.h"
#include "cli/safetensors.h"
#include "cli/trace.h"
#include "lowering/plan/program.h"
#include "runtime/output_file.h"

namespace braid::cli {

namespace {

struct OutputReport {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  // Only with --check:
  double relative_error = 0;  // the worst of all ranks
  double tolerance = 0;
  bool equal_in_reference = false, equal = false;
  bool good = true;
};

struct RunReport {
  std::int64_t world;
  std::string device;
  double compile_ms, run_ms;
  std::vector<std::string> from_files;
  std::vector<OutputReport> outputs;
  std::vector<Finding> findings;
  const DeviceModel* count_on = nullptr;  ///< null when nothing is counted
  std::vector<KernelCounts> counts;
  std::vector<StepTime> steps;  ///< where they are timed
  std::uint64_t interleavings = 0;
  std::uint64_t differing = 0;  ///< of those, with other output bits than the first
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

/// What is run: a graph, or a plan that was made of one.
struct Subject {
  Graph graph;  ///< of a plan its symbols, groups and inputs alone
  std::vector<std::string> outputs;
  bool is_plan = false;
};

bool is_plan(const std::string& path) {
  if (path == "-") return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(256, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return is_program(std::string_view(head).substr(0, static_cast<std::size_t>(file.gcount())));
}

Subject load_subject(const RunOptions& options) {
  Subject subject;
  const std::string& path = options.graph.path;
  subject.is_plan = is_plan(path);
  if (!subject.is_plan) {
    subject.graph = load(options.graph);
    for (ValueId id : subject.graph.outputs()) {
      subject.outputs.push_back(subject.graph.value(id).name);
    }
    return subject;
  }
  if (options.check) {
    throw_invalid("--check", "a plan has no graph to compare with; expected a graph");
  }
  if (options.graph.world != 0) throw_invalid("--world", "a plan has its own; expected a graph");
  const Program program = load_program(path);
  subject.graph.set_name(program.name);
  for (const auto& [name, symbol] : program.symbols) subject.graph.add_symbol(name, symbol);
  for (const auto& [name, group] : program.groups) subject.graph.add_group(name, group);
  for (const ProgramTensor& input : program.inputs) {
    subject.graph.add_input({input.name, input.type, input.kind, input.per_rank});
  }
  for (const ProgramTensor& output : program.outputs) subject.outputs.push_back(output.name);
  return subject;
}

bool equal_across_ranks(const RankTensors& tensors, std::size_t index) {
  for (const auto& rank : tensors) {
    if (rank[index].data != tensors[0][index].data) return false;
  }
  return true;
}

void compare(const RankTensors& outputs, const RankTensors& reference,
             std::vector<OutputReport>* reports) {
  for (std::size_t i = 0; i < reports->size(); ++i) {
    OutputReport& report = (*reports)[i];
    for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
      report.relative_error =
          std::max(report.relative_error, relative_error(outputs[rank][i], reference[rank][i]));
    }
    report.equal_in_reference = equal_across_ranks(reference, i);
    report.equal = equal_across_ranks(outputs, i);
    report.good =
        report.relative_error <= report.tolerance && (report.equal || !report.equal_in_reference);
  }
}

RankTensors read_outputs(Executable& executable, int ranks, const std::vector<std::string>& names) {
  RankTensors outputs(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    for (const std::string& name : names) {
      outputs[static_cast<std::size_t>(rank)].push_back(executable.output(rank, name));
    }
  }
  return outputs;
}

bool same_bits(const RankTensors& a, const RankTensors& b) {
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    for (std::size_t i = 0; i < a[rank].size(); ++i) {
      if (a[rank][i].data != b[rank][i].data) return false;
    }
  }
  return true;
}

/// Those of all ranks or of none.
void write_outputs(const std::filesystem::path& directory, const std::vector<std::string>& names,
                   const RankTensors& outputs) {
  std::deque<OutputFile> files;
  for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
    std::map<std::string, HostTensor, std::less<>> tensors;
    for (std::size_t i = 0; i < names.size(); ++i) tensors.emplace(names[i], outputs[rank][i]);
    stage_safetensors(directory / rank_file_name(static_cast<int>(rank)), tensors, &files);
  }
  for (OutputFile& file : files) file.publish();
}

std::string bindings_text(const Bindings& bindings) {
  std::string text;
  for (const auto& [name, value] : bindings) text += fmt::format("{}={}, ", name, value);
  return text;
}

void print_text(const Graph& graph, const RunOptions& options, const Bindings& bindings,
                const RunReport& report, const Executable& executable) {
  fmt::print("{}: {} ranks, {}seed {}, {}\n\n", one_line(graph.name()), report.world,
             bindings_text(bindings), options.checks.seed, report.device);
  fmt::print("{}\n", kernel_table(executable.kernels()));
  std::vector<std::vector<std::string>> rows = {{"arena", "bytes per rank"}};
  for (const ArenaReport& arena : executable.arenas()) {
    rows.push_back({one_line(arena.name), std::to_string(arena.bytes)});
  }
  fmt::print("{}\n", format_table(rows));
  if (options.check) {
    rows = {{"output", "type", "relative error", "allowed", "ranks", "check"}};
    for (const OutputReport& o : report.outputs) {
      rows.push_back({one_line(o.name),
                      fmt::format("{}[{}]", dtype_name(o.dtype), fmt::join(o.shape, ", ")),
                      fmt::format("{:.2e}", o.relative_error), fmt::format("{:.0e}", o.tolerance),
                      o.equal                ? "bitwise equal"
                      : o.equal_in_reference ? "DIFFER"
                                             : "differ",
                      o.good ? "ok" : "FAILED"});
    }
    fmt::print("{}\n", format_table(rows));
  }
  fmt::print("  {} launches per rank; compile {:.0f} ms, run {:.1f} ms\n", executable.launches(),
             report.compile_ms, report.run_ms);
  if (!options.outputs.empty()) fmt::print("  outputs in {}\n", options.outputs);
  if (!options.trace.empty()) fmt::print("  trace in {}\n", options.trace);
  if (report.count_on != nullptr) {
    fmt::print("\n{}\n", count_tables(report.counts, *report.count_on));
  }
  if (options.checks.schedule == "all") {
    fmt::print("  {} interleavings, {} with other bits in an output\n", report.interleavings,
               report.differing);
  }
  if (!options.checks.sanitize.empty()) print_findings(report.findings);
}

void print_json(const Graph& graph, const RunOptions& options, const Bindings& bindings,
                const RunReport& report, const Executable& executable, bool good) {
  Json arenas = Json::array(), buffers = arenas, outputs = arenas;
  for (const ArenaReport& arena : executable.arenas()) {
    arenas.push_back(Json::object({{"name", arena.name}, {"bytes", arena.bytes}}));
  }
  for (const BufferReport& buffer : executable.buffers()) {
    buffers.push_back(Json::object({{"name", buffer.name},
                                    {"arena", buffer.arena},
                                    {"offset", buffer.offset},
                                    {"bytes", buffer.bytes}}));
  }
  for (const OutputReport& o : report.outputs) {
    Json entry =
        Json::object({{"name", o.name}, {"dtype", dtype_name(o.dtype)}, {"shape", o.shape}});
    if (options.check) {
      // JSON has no infinity: an error that is not finite prints as null.
      entry.set("relative_error", o.relative_error);
      entry.set("tolerance", o.tolerance);
      entry.set("equal_across_ranks", o.equal);
      entry.set("ok", o.good);
    }
    outputs.push_back(std::move(entry));
  }
  Json values = Json::object();
  for (const auto& [name, value] : bindings) values.set(name, value);
  Json document = Json::object({{"graph", graph.name()},
                                {"world", report.world},
                                {"device", report.device},
                                {"seed", options.checks.seed},
                                {"bindings", values},
                                {"inputs_from_files", report.from_files},
                                {"checked", options.check},
                                {"ok", good},
                                {"launches", executable.launches()},
                                {"program_hash", executable.program_hash()},
                                {"compile_ms", report.compile_ms},
                                {"run_ms", report.run_ms},
                                {"kernels", kernels_json(executable.kernels())},
                                {"arenas", arenas},
                                {"buffers", buffers},
                                {"outputs", outputs}});
  if (report.count_on != nullptr) {
    document.set("counts", counts_json(report.counts, *report.count_on));
  }
  if (options.checks.schedule == "all") {
    document.set("interleavings", report.interleavings);
    document.set("interleavings_differing", report.differing);
  }
  if (!options.checks.sanitize.empty()) document.set("findings", findings_json(report.findings));
  fmt::print("{}\n", document.indented());
}

WorldOptions world_options(const RunOptions& options, const RunReport& report,
                           std::optional<ProgressBar>& bar) {
  WorldOptions result;
  result.device = parse_device_kind(options.device);
  result.target = options.target;
  result.world = static_cast<int>(report.world);
  result.threads = options.checks.threads;
  result.sanitize = parse_checks(options.checks.sanitize);
  result.count = report.count_on != nullptr;
  result.schedule = parse_schedule(options.checks.schedule);
  result.cache_dir = options.cache_dir;
  result.progress = [&bar](std::size_t done, std::size_t total, std::string_view what) {
    bar->update(done, total, what);
  };
  result.warning = [&bar](std::string_view what) { bar->warn(what); };
  return result;
}

/// Runs once, or once for each interleaving until one has findings; gives the first run's outputs.
RankTensors run_all(Executable& executable, World& world, const std::vector<std::string>& names,
                    const RunOptions& options, ProgressBar& bar, RunReport& report) {
  RankTensors outputs;
  do {
    if (report.interleavings != 0 && options.check) executable.poison_outputs();
    if (!options.trace.empty() && report.interleavings == 0) {
      report.steps = executable.trace();
    } else {
      executable.run();
      executable.synchronize();
    }
    RankTensors now = read_outputs(executable, world.size(), names);
    if (report.interleavings++ == 0) {
      outputs = std::move(now);
    } else if (!same_bits(outputs, now)) {
      ++report.differing;
    }
    report.findings = world.device().findings();
    if (std::has_single_bit(report.interleavings) && report.interleavings > 100) {
      bar.phase(fmt::format("{} interleavings", report.interleavings));
    }
  } while (report.findings.empty() && world.device().next_interleaving());
  return outputs;
}

/// What is left to say of a run that its findings stopped.
void print_stopped(const Graph& graph, const RunOptions& options, const RunReport& report) {
  if (!options.json) return print_findings(report.findings);
  const Json document = Json::object(
      {{"graph", graph.name()}, {"ok", false}, {"findings", findings_json(report.findings)}});
  fmt::print("{}\n", document.indented());
}

}  // namespace

int run(const RunOptions& options) {
  const Subject subject = load_subject(options);
  const Graph& graph = subject.graph;
  const Bindings bindings = resolve_bindings(graph, options.bind);
  if (!options.outputs.empty()) prepare_output_directory(options.outputs, "--outputs");
  if (!options.trace.empty()) prepare_output_file(options.trace, "--trace");

  RunReport report{};
  report.count_on = count_device(options.checks.count);
  report.world = world_size(graph);
  std::optional<ProgressBar> bar(std::in_place);
  World world = World::open(world_options(options, report, bar));
  report.device = world.device().description();

  bar->phase("inputs");
  const Inputs inputs = gather_inputs(
      graph, bindings, options.inputs, options.checks.seed,
      [&bar](std::size_t done, std::size_t total) { bar->part("inputs", done, total); });
  report.from_files = inputs.from_files;

  bar->phase("plan and compile");
  const auto compile_start = std::chrono::steady_clock::now();
  Executable executable = subject.is_plan ? Executable::load(options.graph.path, world)
                                          : Executable::compile(graph, world, options.passes);
  executable.prepare(bindings);
  report.compile_ms = milliseconds_since(compile_start);
  // So that an element that no kernel writes cannot look right.
  if (options.check) executable.poison_outputs();

  bar->phase("run");
  const int ranks = world.size();
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      executable.set_input(rank, graph.inputs()[i].name,
                           inputs.tensors[static_cast<std::size_t>(rank)][i]);
    }
  }
  const auto run_start = std::chrono::steady_clock::now();
  const std::vector<std::string>& names = subject.outputs;
  RankTensors outputs;
  try {
    outputs = run_all(executable, world, names, options, *bar, report);
  } catch (const Error&) {
    // What stopped the kernels is among the findings, if they were checked.
    report.findings = world.device().findings();
    if (report.findings.empty()) throw;
    bar.reset();
    print_stopped(graph, options, report);
    return kFailed;
  }
  report.counts = world.device().counts();
  report.run_ms = milliseconds_since(run_start);

  for (std::size_t i = 0; i < names.size(); ++i) {
    report.outputs.push_back(
        {.name = names[i],
         .dtype = outputs[0][i].dtype,
         .shape = outputs[0][i].shape,
         .tolerance =
             options.check ? tolerance(graph, graph.outputs()[i], outputs[0][i].shape) : 0});
  }
  bool good = report.findings.empty() && report.differing == 0;
  if (options.check) {
    bar->phase("reference");
    const auto tell = [&bar](std::size_t done, std::size_t total) {
      bar->part("reference", done, total);
    };
    compare(outputs, evaluate(graph, inputs.tensors, bindings, tell), &report.outputs);
    for (const OutputReport& output : report.outputs) good = good && output.good;
  }
  if (!options.outputs.empty()) write_outputs(options.outputs, names, outputs);
  if (!options.trace.empty()) {
    write_output_file(options.trace, chrome_trace(graph.name(), report.steps));
  }
  bar.reset();

  if (options.json) {
    print_json(graph, options, bindings, report, executable, good);
  } else {
    print_text(graph, options, bindings, report, executable);
  }
  return good ? kGood : kFailed;
}

}  // namespace braid::cli
