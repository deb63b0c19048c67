#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "braid/executable.h"
#include "braid/process.h"
#include "braid/reference.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/count_report.h"
#include "cli/inputs.h"
#include "cli/progress.h"
#include "cli/run_report.h"
#include "cli/trace.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/mutation.h"
#include "lowering/plan/program.h"
#include "runtime/bytes.h"
#include "runtime/output_file.h"
#include "runtime/safetensors.h"

namespace braid::cli {

namespace {

/// What is run: a graph, or a saved plan.
struct Subject {
  Graph graph;  ///< of a plan its symbols, groups and inputs alone
  std::vector<std::string> outputs;
  bool is_plan = false;
};

bool is_plan(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // a pipe is read once
  std::ifstream file(path, std::ios::binary);
  std::string head(256, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return is_program(std::string_view(head).substr(0, file.gcount()));
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
  add_tables(subject.graph, program.symbols, program.groups);
  for (const ProgramTensor& input : program.inputs) {
    subject.graph.add_input({input.name, input.type, input.kind, input.per_rank});
  }
  for (const ProgramTensor& output : program.outputs) subject.outputs.push_back(output.name);
  return subject;
}

/// The outputs of this process's ranks.
RankTensors read_outputs(Executable& executable, const std::vector<int>& ranks,
                         const std::vector<std::string>& names) {
  RankTensors outputs(ranks.size());
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    for (const std::string& name : names) {
      outputs[local].push_back(executable.output(ranks[local], name));
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

/// Writes the outputs of all these ranks, or of none.
void write_outputs(const std::filesystem::path& directory, const std::vector<int>& ranks,
                   const std::vector<std::string>& names, const RankTensors& outputs) {
  std::deque<OutputFile> files;
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    std::map<std::string, HostTensor, std::less<>> tensors;
    for (std::size_t i = 0; i < names.size(); ++i) tensors.emplace(names[i], outputs[local][i]);
    stage_safetensors(directory / rank_file_name(ranks[local]), tensors, &files);
  }
  for (OutputFile& file : files) file.publish();
}

/// Exchanges the cards of this process's ranks for those of all. It is also the last barrier.
OutputCards cards_of_all(Rendezvous& rendezvous, const OutputCards& mine) {
  std::vector<std::string> bytes;
  for (const auto& rank : mine) {
    ByteWriter out;
    out.value<std::uint64_t>(rank.size());
    for (const OutputCard& card : rank) {
      out.value(card.relative_error);
      out.value(card.bits);
    }
    bytes.push_back(out.take());
  }
  OutputCards all;
  for (const std::string& rank : rendezvous.all_gather(std::move(bytes))) {
    ByteReader in(rank);
    std::vector<OutputCard>& cards = all.emplace_back();
    cards.resize(std::min<std::uint64_t>(in.value<std::uint64_t>(), rank.size()));
    for (OutputCard& card : cards) {
      card.relative_error = in.value<double>();
      card.bits = in.value<std::uint64_t>();
    }
    if (in.done() && cards.size() == mine[0].size()) continue;
    throw_invalid("--check", "the ranks check different outputs; expected the same options");
  }
  return all;
}

/// Ranks with other extents would wait for what never comes.
void agree_on(const Bindings& bindings, Rendezvous& rendezvous) {
  std::vector<std::string> values;
  for (const auto& [name, value] : bindings) values.push_back(fmt::format("{} = {}", name, value));
  const std::vector<std::string> all = rendezvous.all_gather(std::vector<std::string>(
      rendezvous.ranks().size(), fmt::format("{}", fmt::join(values, ", "))));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw_invalid("--bind", "rank 0 has {}, rank {} has {}; expected the same values on all ranks",
                  all[0], rank, all[rank]);
  }
}

/// Used around long work that no other rank waits for yet.
void expect_all(const std::shared_ptr<Rendezvous>& rendezvous) {
  const std::string lost = rendezvous == nullptr ? "" : rendezvous->lost();
  if (!lost.empty()) throw_environment("rendezvous", lost);
}

/// Each process has a file of its own: "run.json" is "run.rank1.json" for rank 1.
std::filesystem::path trace_path(const std::filesystem::path& path,
                                 const std::optional<LaunchedProcess>& process) {
  if (!process) return path;
  std::filesystem::path own = path;
  own.replace_extension(fmt::format(".rank{}{}", process->rank, path.extension().string()));
  return own;
}

/// Several processes share the cores of a machine.
int threads_of(const RunOptions& options, const std::optional<LaunchedProcess>& process) {
  if (options.checks.threads != 0 || !process) return options.checks.threads;
  const int cores = std::thread::hardware_concurrency();
  return std::max(1, cores / process->local_world);
}

WorldOptions world_options(const RunOptions& options, const RunReport& report,
                           std::optional<ProgressBar>& bar) {
  WorldOptions result;
  result.device = parse_device_kind(options.device);
  result.target = options.target;
  result.tune_db = options.tune_db;
  result.world = report.world;
  result.threads = options.checks.threads;
  result.sanitize = parse_checks(options.checks.sanitize);
  result.count = report.count_on != nullptr;
  result.count_sample = options.checks.sample;
  result.schedule = parse_schedule(options.checks.schedule);
  result.matrix_sums = parse_matrix_sums(options.checks.matrix_sums);
  result.cache_dir = options.cache_dir;
  result.progress = [&bar, world = report.world](std::size_t done, std::size_t total,
                                                 std::string_view what) {
    bar->update(done, total, what);
    if (done == total) bar->detail(fmt::format("memory of {} ranks", world));
  };
  result.pass_progress = [&bar](std::string_view pass) { bar->pass(pass); };
  result.warning = [&bar](std::string_view what) { bar->warn(what); };
  return result;
}

/// Runs once, or once for each interleaving until one has findings; gives the first run's outputs.
RankTensors run_all(Executable& executable, World& world, const std::vector<std::string>& names,
                    const RunOptions& options, const std::function<void()>& set_inputs,
                    ProgressBar& bar, RunReport& report) {
  Inspector* const inspector = world.device().inspector();
  RankTensors outputs;
  do {
    if (report.interleavings != 0 && options.check) executable.poison_outputs();
    // The run before has overwritten some.
    if (report.interleavings != 0 && names.size() > executable.outputs().size()) set_inputs();
    if (!options.trace.empty() && report.interleavings == 0) {
      report.steps = executable.trace();
    } else {
      executable.run();
      executable.synchronize();
    }
    RankTensors now = read_outputs(executable, world.ranks(), names);
    if (report.interleavings++ == 0) {
      outputs = std::move(now);
    } else if (!same_bits(outputs, now)) {
      ++report.differing;
    }
    if (inspector != nullptr) {
      report.findings = inspector->findings();
      report.notes = inspector->notes();
    }
    if (std::has_single_bit(report.interleavings) && report.interleavings > 100) {
      bar.phase(fmt::format("{} interleavings", report.interleavings));
    }
  } while (inspector != nullptr && report.findings.empty() && inspector->next_interleaving());
  return outputs;
}

void check_process_of_several(const RunOptions& options) {
  const auto refuse = [](const char* option) {
    throw_invalid(option, "watches all ranks in one process; expected a run without WORLD_SIZE");
  };
  if (!options.checks.sanitize.empty()) refuse("--sanitize");
  if (!options.checks.count.empty()) refuse("--count");
  if (!options.checks.schedule.empty()) refuse("--schedule");
  if (options.graph.path == "-") {
    throw_invalid("stdin", "is that of one process of several; expected a file");
  }
}

/// `cut`: whether matrix units cut sums; nothing for a run that is not checked.
void describe_outputs(const Graph& graph, const std::vector<std::string>& names,
                      const std::vector<HostTensor>& outputs, std::optional<bool> cut,
                      RunReport& report) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const HostTensor& output = outputs[i];
    report.outputs.push_back(
        {.name = names[i],
         .dtype = output.dtype,
         .shape = output.shape,
         .tolerance = cut ? tolerance(graph, graph.outputs()[i], output.shape, *cut) : 0});
  }
}

/// The graph that has the inputs that it overwrites as further outputs; `names` gets theirs. The
/// buffer of an fsdp.all_gather_copy_in is scratch: what is in it when its gather has run is open.
Graph with_overwritten_inputs(const Graph& graph, std::vector<std::string>& names) {
  Graph all = graph;
  std::vector<bool> overwritten = overwritten_values(graph);
  const std::vector<ValueId> storage = storages(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op_name() == "fsdp.all_gather_copy_in")
      overwritten[storage[node.inputs.back()]] = false;
  }
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string& name = graph.inputs()[i].name;
    if (!overwritten[graph.input_values()[i]] || std::ranges::find(names, name) != names.end()) {
      continue;
    }
    all.add_output(graph.input_values()[i]);
    names.push_back(name);
  }
  return all;
}

Executable compile_on(const World& world, const Subject& subject, const RunOptions& options,
                      const Bindings& bindings, RunReport& report) {
  const auto start = std::chrono::steady_clock::now();
  PassConfig passes = options.passes;
  passes.mark_blocks = !options.trace.empty();
  Executable executable = subject.is_plan ? Executable::load(options.graph.path, world)
                                          : Executable::compile(subject.graph, world, passes);
  executable.prepare(bindings);
  report.compile_ms = milliseconds_since(start);
  // An element that no kernel writes then cannot look right.
  if (options.check) executable.poison_outputs();
  return executable;
}

/// On the ranks that live here; `rendezvous` is null where these are all.
int run_on(const RunOptions& options, const std::optional<LaunchedProcess>& process,
           const std::shared_ptr<Rendezvous>& rendezvous) {
  const bool first = !process || process->rank == 0;
  std::vector<std::string> others;
  if (!options.checks.sanitize.empty()) others.emplace_back("--sanitize");
  if (options.check) others.emplace_back("--check");
  if (!options.outputs.empty()) others.emplace_back("--outputs");
  check_sample(options.checks, others);
  const Subject subject = load_subject(options);
  const Graph& graph = subject.graph;
  const Bindings bindings = resolve_bindings(graph, options.bind);
  if (!options.outputs.empty()) prepare_output_directory(options.outputs, "--outputs");
  if (!options.trace.empty()) prepare_output_file(trace_path(options.trace, process), "--trace");

  RunReport report{};
  report.count_on = count_device(options.checks.count);
  report.world = world_size(graph);
  if (process && report.world != process->meeting.world) {
    throw_invalid("WORLD_SIZE", "{} processes; the graph is a program of {} ranks",
                  process->meeting.world, report.world);
  }
  if (rendezvous != nullptr) agree_on(bindings, *rendezvous);
  std::optional<ProgressBar> bar(std::in_place, first);
  WorldOptions on = world_options(options, report, bar);
  on.threads = threads_of(options, process);
  on.rendezvous = rendezvous;
  World world = World::open(on);
  Inspector* const inspector = world.device().inspector();
  report.device = world.device().description();
  if (process) report.device += fmt::format(", in each of {} processes", process->meeting.world);

  bar->phase("inputs");
  const Inputs inputs = gather_inputs(graph, bindings, options.inputs, options.checks.seed,
                                      [&](std::size_t done, std::size_t total) {
                                        expect_all(rendezvous);
                                        bar->part("inputs", done, total);
                                      });
  report.from_files = inputs.from_files;

  bar->phase("plan and compile");
  Executable executable = compile_on(world, subject, options, bindings, report);

  bar->phase("run");
  std::vector<std::string> names = subject.outputs;
  const Graph checked = with_overwritten_inputs(graph, names);
  const auto set = [&] { set_inputs(executable, graph, world.ranks(), inputs.tensors); };
  set();
  const auto run_start = std::chrono::steady_clock::now();
  RankTensors outputs;
  try {
    outputs = run_all(executable, world, names, options, set, *bar, report);
  } catch (const Error&) {
    // If checked, the findings say what stopped the kernels.
    if (inspector == nullptr) throw;
    report.findings = inspector->findings();
    report.notes = inspector->notes();
    if (report.findings.empty()) throw;
    bar.reset();
    print_stopped(graph, options, report);
    return kFailed;
  }
  if (inspector != nullptr) report.counts = inspector->counts();
  note_registers(executable.kernels(), report.counts);
  report.run_ms = milliseconds_since(run_start);

  const bool cut = world.device().kind() == "cuda" ||
                   parse_matrix_sums(options.checks.matrix_sums) == MatrixSums::kHopper;
  describe_outputs(checked, names, outputs[0],
                   options.check ? std::optional<bool>(cut) : std::nullopt, report);
  RankTensors reference;
  OutputCards cards(outputs.size());
  if (options.check) {
    bar->phase("reference");
    const auto tell = [&](std::size_t done, std::size_t total) {
      expect_all(rendezvous);
      bar->part("reference", done, total);
    };
    reference = evaluate(checked, inputs.tensors, bindings, tell);
    cards = compare(outputs, world.ranks(), reference);
  }
  if (!options.outputs.empty()) write_outputs(options.outputs, world.ranks(), names, outputs);
  if (!options.trace.empty()) {
    write_output_file(trace_path(options.trace, process), chrome_trace(graph.name(), report.steps));
  }
  if (rendezvous != nullptr) cards = cards_of_all(*rendezvous, cards);
  bar.reset();

  bool good = report.findings.empty() && report.differing == 0;
  if (options.check) {
    judge(cards, reference, &report.outputs);
    for (const OutputReport& output : report.outputs) good = good && output.good;
  }
  if (first && options.json) {
    print_json(graph, options, bindings, report, executable, good);
  } else if (first) {
    print_text(graph, options, bindings, report, executable);
  }
  return good ? kGood : kFailed;
}

}  // namespace

int run(const RunOptions& options) {
  const std::optional<LaunchedProcess> process = process_from_environment();
  if (!process) return run_on(options, process, nullptr);
  try {
    check_process_of_several(options);
    return run_on(options, process, meet_by_socket(process->meeting));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("rank {}", process->rank), error.what());
  }
}

}  // namespace braid::cli
