#include "runtime/exec/world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "codegen/graph_target.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "ir/text.h"
#include "runtime/compile/compiler.h"
#include "runtime/cpu_tricks.h"
#include "runtime/device_loader.h"
#include "runtime/dynamic_library.h"
#include "runtime/exec/loaded_program.h"
#include "runtime/exec/rendezvous.h"
#include "runtime/exec/symmetric_block.h"
#include "runtime/exec/unit_canary.h"
#include "runtime/process.h"
#include "runtime/tune/find_tuned.h"

namespace braid {
namespace {

constexpr const char* kWorkerProgram = "braid-worker";
constexpr double kCudaTimeoutSeconds = 30;
constexpr double kCpuTimeoutSeconds = 120;
constexpr double kLongestTimeoutSeconds = 1e9;

void warn(const WorldOptions& options, const std::string& what) {
  if (options.warning) {
    options.warning(what);
  } else {
    std::fputs(("braid: warning: " + what + "\n").c_str(), stderr);
  }
}

/// Whether faults of kernels on the `cpu` device become errors.
bool catches_faults() {
  constexpr const char* kName = "BRAID_CPU_FAULTS";
  const std::string text = environment(kName);
  if (text.empty() || text == "1") return true;
  if (text == "0") return false;
  throw_invalid(kName, "found {}; expected 0 or 1", quote(text));
}

GpuPlace place_of(const WorldOptions& options) {
  if (options.gpu < -1) throw_invalid("gpu", "{}; expected -1 or more", options.gpu);
  if (options.rendezvous == nullptr) return {};
  const std::vector<int>& ranks = options.rendezvous->ranks();
  if (static_cast<int>(ranks.size()) == options.rendezvous->world()) return {};
  if (options.gpu >= 0) return {ranks.front(), options.gpu};
  const std::optional<int> process = local_rank_from_environment();
  return {ranks.front(), process ? *process * static_cast<int>(ranks.size()) : ranks.front()};
}

}  // namespace

DeviceKind parse_device_kind(std::string_view text) {
  if (text.empty()) return DeviceKind::kAny;
  if (text == "cuda") return DeviceKind::kCuda;
  if (text == "cpu") return DeviceKind::kCpu;
  throw_invalid("device", "{} is unknown; expected cpu or cuda", quote(text));
}

void Tallies::add(const CompiledKernel& kernel) {
  ++(kernel.cache_hit ? kernels_from_cache : kernels_compiled);
  compile_ms += kernel.compile_ms;
}

void check_ranks(const std::string& name, std::int64_t ranks, const Device& device) {
  if (ranks == device.world()) return;
  throw_invalid(name, "the graph is a program of {} rank(s), the world has {}", ranks,
                device.world());
}

World::Impl::Impl(const WorldOptions& given) : process(::getpid()), options(given) {
  if (!(options.timeout_s >= 0 && options.timeout_s <= kLongestTimeoutSeconds)) {
    throw_invalid("timeout", "{} s; expected 0 to 1e9 s", options.timeout_s);
  }
  (void)Target::parse(options.target, Target{});
  if (options.use_cache) {
    cache = std::make_unique<DiskCache>(options.cache_dir.empty()
                                            ? DiskCache::default_directory()
                                            : std::filesystem::path(options.cache_dir));
    if (std::string problem = cache->problem(); !problem.empty()) warn(options, problem);
  }
  find_worker();
  const Allocator& own = options.allocator;
  if (static_cast<bool>(own.allocate) != static_cast<bool>(own.free)) {
    throw_invalid("allocator", "has one of allocate and free; expected both or none");
  }
}

std::shared_ptr<World::Impl> World::Impl::make(const WorldOptions& options) {
  return {new Impl(options), [](const Impl* impl) {
            if (!impl->is_fork()) delete impl;
          }};
}

bool World::Impl::is_fork() const { return ::getpid() != process; }

void World::Impl::refuse_fork() const {
  if (!is_fork()) return;
  throw_invalid("world",
                "was opened by process {}, of which this one, {}, is a fork; expected exec after "
                "fork, or a world that is opened after it",
                process, ::getpid());
}

void World::Impl::find_worker() {
  if (options.compile_processes < 0 || options.compile_processes > kMostWorkers) {
    throw_invalid("compile_processes", "{}; expected 0 to {}", options.compile_processes,
                  kMostWorkers);
  }
  if (options.compile_processes == 0) return;
  worker = options.compile_worker.empty() ? (library_folder() / kWorkerProgram).string()
                                          : options.compile_worker;
  if (::access(worker.c_str(), X_OK) == 0) return;
  const std::string problem = fmt::format("is no program: {}", std::strerror(errno));
  if (!options.compile_worker.empty()) throw_environment(worker, problem);
  warn(options, fmt::format("{} {}; kernels are compiled in this process", worker, problem));
  worker.clear();
}

std::unique_ptr<WorkerProcesses> World::Impl::make_workers() const {
  if (worker.empty()) return nullptr;
  return std::make_unique<WorkerProcesses>(std::vector<std::string>{worker},
                                           options.compile_processes);
}

CompileTools World::Impl::tools(WorkerProcesses* workers) const {
  const auto tell = [this](std::size_t done, std::size_t total, std::string_view what) {
    // If a rank is lost, nobody needs the compile's result.
    if (const std::optional<Error> lost = loss()) throw Error(*lost);
    if (options.progress) options.progress(done, total, what);
  };
  return {.cache = cache.get(),
          .progress = tell,
          .line_info = device->inspector() != nullptr,
          .workers = workers,
          .stop = {}};
}

void World::Impl::set_device(std::shared_ptr<Device> opened) {
  if (opened == nullptr) throw_invalid("device", "is null; expected one that is open");
  device = std::move(opened);
  rendezvous = options.rendezvous;
  if (rendezvous == nullptr) {
    std::vector<int> all(static_cast<std::size_t>(device->world()));
    std::iota(all.begin(), all.end(), 0);
    rendezvous = meet_in_process({all})[0];
  }
  if (rendezvous->world() != device->world()) {
    throw_invalid("rendezvous", "is one of {} ranks; the device has {}", rendezvous->world(),
                  device->world());
  }
  if (!all_here()) losses = std::make_unique<LossWatch>(rendezvous);
  const bool cuda = device->kind() == "cuda";
  if (cuda) check_nvrtc_fits_driver();
  if (cuda && !options.target.empty()) {
    const Target gpu = Target::parse(device->target());
    const Target asked = Target::parse(options.target, gpu);
    if (asked.sm > gpu.sm) {
      throw_invalid("target", "{}; expected {} or earlier, which the GPU is", asked.str(),
                    device->target());
    }
  }
  const int least = cuda ? device->ranks_per_device() : 1;
  ranks_per_device = options.ranks_per_device == 0 ? least : options.ranks_per_device;
  if (ranks_per_device < least) {
    throw_invalid("ranks_per_device", "{}; expected {} or more", options.ranks_per_device, least);
  }
  double timeout_s = options.timeout_s;
  if (timeout_s == 0) timeout_s = cuda ? kCudaTimeoutSeconds : kCpuTimeoutSeconds;
  timeout_ns = static_cast<std::uint64_t>(timeout_s * 1e9);
  if (cuda) trials.emplace(device, ranks(), cache.get(), std::chrono::nanoseconds(timeout_ns));
}

void World::Impl::take_part(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& problem) {
    if (all_here()) throw;
    const std::lock_guard lock(meeting);
    const RankCard card{.failure = problem.what(), .hash = "", .arenas = {}};
    try {
      (void)exchange_cards(*rendezvous, std::vector<RankCard>(ranks().size(), card));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // It reports this very failure, or one that the others know already.
    }
    // A lost rank may be the cause of the failure.
    const auto* error = dynamic_cast<const Error*>(&problem);
    const bool elsewhere = error != nullptr && error->code() == ErrorCode::kEnvironment;
    if (const std::optional<Error> lost = loss(); lost && elsewhere) throw Error(*lost);
    throw;
  }
}

std::optional<Error> World::Impl::disagreement() const {
  const std::string how = all_here() ? "" : rendezvous->disagreement();
  if (how.empty()) return {};
  return Error(ErrorCode::kInvalidArgument, "rendezvous", how);
}

std::optional<Error> World::Impl::loss() const {
  if (std::optional<Error> unlike = disagreement()) return unlike;
  const std::string who = all_here() ? "" : rendezvous->lost();
  if (who.empty()) return {};
  return Error(ErrorCode::kEnvironment, "rendezvous", who);
}

Target World::Impl::target_of(const Graph& graph) const {
  // The cpu device runs code of any target.
  if (device->kind() == "cpu") return choose_target(graph, options.target);
  Target target = choose_target(graph, options.target, Target::parse(device->target()));
  target.off |= units_off;
  return target;
}

std::vector<UnitFinding> World::Impl::try_units(const Program& program, const ProgramCode& code) {
  std::vector<UnitFinding> findings;
  if (!trials) return findings;
  const std::lock_guard lock(meeting);
  for (const unsigned units : tried_units()) {
    const bool used = std::ranges::any_of(
        code.sources, [&](const KernelSource& source) { return (source.units & units) == units; });
    if (!used || unit_failures.contains(units)) continue;
    findings.push_back(trials->find(units, program.target));
  }
  return findings;
}

void World::Impl::settle_units(const Program& program, std::vector<UnitFinding> findings) {
  if (findings.empty()) return;
  const std::lock_guard lock(meeting);
  if (!all_here()) {
    const RankCard card{.failure = "",
                        .hash = program.hash,
                        .arenas = {},
                        .communicators = "",
                        .units = mapped(findings, &UnitFinding::failure)};
    for (const RankCard& other :
         exchange_cards(*rendezvous, std::vector<RankCard>(ranks().size(), card))) {
      for (std::size_t i = 0; i < std::min(findings.size(), other.units.size()); ++i) {
        if (other.units[i].empty() || !findings[i].failure.empty()) continue;
        findings[i].failure = other.units[i];
        findings[i].is_new = true;
      }
    }
  }
  for (const UnitFinding& finding : findings) {
    if (finding.is_new) trials->keep(finding, program.target);
    if (!unit_failures.emplace(finding.units, finding.failure).second || finding.failure.empty()) {
      continue;
    }
    units_off |= finding.units;
    warn(options,
         fmt::format("kernels do without {}: {}", names_of_units(finding.units), finding.failure));
  }
}

unsigned World::Impl::failed_units(const ProgramCode& code) const {
  unsigned used = 0;
  for (const KernelSource& source : code.sources) used |= source.units;
  return used & units_off;
}

void World::Impl::refuse_failed_units(const Program& program, const ProgramCode& code) {
  const unsigned failed = failed_units(code);
  const std::lock_guard lock(meeting);
  for (const auto& [units, failure] : unit_failures) {
    if ((units & failed) == 0) continue;
    throw_environment(program.name,
                      "its kernels use {}, and {}; expected a plan without, which --units {} makes",
                      names_of_units(units), failure, other_units(program.target, failed));
  }
}

Program World::Impl::lower(const Graph& graph, const PassConfig& passes) const {
  check_ranks(graph.name(), world_size(graph), *device);
  PassContext context;
  context.target = target_of(graph);
  context.ranks_per_device = ranks_per_device;
  context.multicast = device->has_multicast();
  context.progress = options.pass_progress;
  context.config = passes;
  if (!options.tune_db.empty()) {
    const bool gpu = device->kind() == "cuda";
    context.tuned = find_tuned(options.tune_db, {context.target, gpu ? device->name() : ""});
  }
  return braid::lower(graph, context);
}

std::shared_ptr<const LoadedProgram> World::Impl::load(Program program, ProgramCode code) {
  for (const CompiledKernel& kernel : code.compiled) tallies.add(kernel);
  return std::make_shared<const LoadedProgram>(*device, ranks(), std::move(program),
                                               std::move(code));
}

std::shared_ptr<const LoadedProgram> World::Impl::compile(Program program, ProgramCode printed) {
  if (!options.compile_in_background || program.variants.size() < 2) {
    const std::unique_ptr<WorkerProcesses> workers = make_workers();
    ProgramCode code = compile_printed(std::move(printed), program.target, tools(workers.get()));
    return load(std::move(program), std::move(code));
  }
  StagedCode::Tools staged{.compile = tools(nullptr),
                           .make_workers = [this] { return make_workers(); },
                           .told = [this](const CompiledKernel& kernel) { tallies.add(kernel); }};
  return std::make_shared<const LoadedProgram>(*device, ranks(), std::move(program),
                                               std::move(printed), std::move(staged));
}

World World::open(const WorldOptions& options) {
  auto impl = Impl::make(options);
  if (options.sanitize == kCheckNothing && options.schedule.kind != Schedule::Kind::kTurns) {
    throw_invalid("schedule", "only a checked run can be scheduled; expected sanitize as well");
  }
  if (options.count_sample && (!options.count || options.sanitize != kCheckNothing)) {
    throw_invalid("count_sample",
                  "only counts can be those of a sample; expected count, and no sanitize");
  }
  impl->set_device(open_device(options.device,
                               {.world = options.world,
                                .threads = options.threads,
                                .cache = impl->cache.get(),
                                .checks = options.sanitize,
                                .count = options.count,
                                .sample = options.count_sample,
                                .schedule = options.schedule,
                                .matrix_sums = options.matrix_sums,
                                .catch_faults = catches_faults(),
                                .tricks = cpu_tricks_from_environment()},
                               place_of(options)));
  return World(std::move(impl));
}

World World::open(const WorldOptions& options, std::shared_ptr<Device> device) {
  auto impl = Impl::make(options);
  impl->set_device(std::move(device));
  return World(std::move(impl));
}

World::World(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

World::Impl& World::impl() const {
  if (impl_ == nullptr) throw_invalid("world", "was moved from; expected one that is open");
  impl_->refuse_fork();
  return *impl_;
}

int World::size() const { return impl().device->world(); }
const std::vector<int>& World::ranks() const { return impl().ranks(); }
Device& World::device() const { return *impl().device; }
WorldMetrics World::metrics() const {
  const Tallies& tallies = impl().tallies;
  return {tallies.kernels_compiled,
          tallies.kernels_from_cache,
          tallies.compile_ms,
          tallies.plans,
          tallies.runs,
          tallies.failures};
}

}  // namespace braid
