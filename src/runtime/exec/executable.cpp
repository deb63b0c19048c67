#include "braid/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>

#include "braid/error.h"
#include "braid/reference.h"
#include "codegen/graph_target.h"
#include "codegen/protocol.h"
#include "ir/expr.h"
#include "ir/poison.h"
#include "lowering/passes.h"
#include "runtime/compile/artifact.h"
#include "runtime/compile/compile_program.h"
#include "runtime/exec/communicators.h"
#include "runtime/exec/rank_context.h"
#include "runtime/exec/rendezvous.h"
#include "runtime/exec/run_record.h"
#include "runtime/exec/watch.h"
#include "runtime/exec/world.h"

namespace braid {
namespace {

constexpr std::uint64_t kBoundAlignment = 16;

// A grid that waits runs only if it is resident with those it waits for: a block on some
// multiprocessor and a hardware queue for each rank of a GPU. The cpu device runs them all.
void check_resident(const Program& program, const Device& device) {
  const bool waits =
      std::any_of(program.kernels.begin(), program.kernels.end(),
                  [](const ProgramKernel& k) { return !k.needs.comm_group.empty(); });
  if (!waits || device.kind() == "cpu") return;
  if (device.ranks_per_device() <= kMaxCollectiveBlocks) return;
  throw_invalid(program.name,
                fmt::format("{} ranks share a GPU, where the kernels of at most {} can wait for "
                            "each other; expected fewer ranks, more GPUs or the cpu device",
                            device.ranks_per_device(), kMaxCollectiveBlocks));
}

void check_ranks(const std::string& name, std::int64_t ranks, const Device& device) {
  if (ranks == device.world()) return;
  throw_invalid(name, fmt::format("the graph is a program of {} rank(s), the world has {}", ranks,
                                  device.world()));
}

void check_fits(const Program& program, const Device& device) {
  check_ranks(program.name, program.world, device);
  check_resident(program, device);
}

Program lower_for(const Graph& graph, const Device& device, const std::string& target,
                  int ranks_per_device, const PassConfig& passes) {
  check_ranks(graph.name(), world_size(graph), device);
  PassContext context;
  // The cpu device runs what was compiled for any target.
  const bool any = device.kind() == "cpu";
  context.target = choose_target(graph, target.empty() && !any ? device.target() : target);
  context.ranks_per_device = ranks_per_device;
  context.multicast = device.has_multicast();
  context.config = passes;
  return lower(graph, context);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<std::int64_t> shape_of(const TensorType& type, const Bindings& bindings) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.evaluate(bindings));
  return shape;
}

const ProgramTensor* find(const std::vector<ProgramTensor>& tensors, std::string_view name) {
  for (const ProgramTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// Waits for every stream, then throws the first error.
void synchronize_all(std::span<const std::unique_ptr<RankContext>> ranks) {
  std::exception_ptr first;
  for (const auto& rank : ranks) {
    for (const auto& stream : rank->streams()) {
      try {
        stream->synchronize();
      } catch (const std::exception&) {
        if (!first) first = std::current_exception();
      }
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

struct Executable::Plan::Impl {
  std::shared_ptr<const char> owner;  ///< the token of its executable
  Bindings bindings;                  ///< complete
  LaunchPlan launches;
  std::vector<std::vector<std::uint64_t>> addresses;  ///< of each buffer, by local rank
  std::vector<RankContext::NamedMemory> memory;       ///< where the device watches
};

struct Executable::Impl {
  Impl(std::shared_ptr<World::Impl> world_impl, Program plan_of_it, ProgramCode code_of_it)
      : world(std::move(world_impl)),
        program(std::move(plan_of_it)),
        code(std::move(code_of_it)),
        heap(program, *world->device, world->ranks()),
        communicators(program, *world->device, world->ranks(), world->nccl_communicators,
                      world->timeout_ns) {
    for (std::size_t local = 0; local < world->ranks().size(); ++local) {
      ranks.push_back(std::make_unique<RankContext>(*world->device, program, code, heap, local,
                                                    world->ranks()[local]));
      for (const auto& stream : ranks.back()->streams()) own.push_back(stream.get());
      for (const auto& event : ranks.back()->events()) events.push_back(event.get());
    }
    lanes = own;
    reset();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    // Work in flight uses the memory that goes away now; its errors have no one left to tell.
    try {
      drain(failed ? 0 : world->timeout_ns);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
    if (on_loss) world->losses->remove(*on_loss);
  }

  /// What the other ranks must know of a rank that lives here.
  [[nodiscard]] std::vector<RankCard> cards() {
    std::vector<RankCard> mine;
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      mine.push_back({"", program.hash, heap.exports(local), communicators.offers(local)});
    }
    return mine;
  }
  void connect(const std::vector<RankCard>& cards) {
    std::vector<std::vector<std::string>> handles;
    handles.reserve(cards.size());
    for (const RankCard& card : cards) handles.push_back(card.arenas);
    heap.connect(handles);
    if (world->all_here()) return;
    // Kernels may hold the other streams when this one is needed.
    for (const int rank : world->ranks()) {
      urgent.push_back(world->device->create_stream(rank));
    }
    on_loss = world->losses->add([this] {
      for (std::size_t local = 0; local < urgent.size(); ++local) {
        heap.give_up(local, *urgent[local]);
      }
    });
  }
  /// Once all can: a communicator waits for the others while it is made.
  void communicate(const std::vector<RankCard>& cards) {
    std::vector<std::string> offers;
    offers.reserve(cards.size());
    for (const RankCard& card : cards) offers.push_back(card.communicators);
    communicators.connect(offers);
  }

  // Records and all by which ranks wait for each other, on the ranks that live here. Nothing may be
  // in flight.
  void reset() {
    for (const auto& rank : ranks) rank->reset();
    synchronize_all(ranks);
  }

  // Waits for all runs, on whatever streams; throws the first error. A communicator may wait for
  // its peers for so long.
  void drain(std::uint64_t patience_ns) {
    for (std::size_t local = 0; local < ranks.size(); ++local) (void)stream_after_runs(local);
    foreign = false;
    Watch watch(communicators, patience_ns, [this] { return world->loss(); });
    try {
      synchronize_all(ranks);
    } catch (const std::exception&) {
      watch.finish();  // what it found says more
      throw;
    }
    watch.finish();
  }

  // Ranks that stopped at different places would wait for epochs that never come.
  void recover() {
    has_run = unchecked = false;
    try {
      drain(0);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // Told when it was found.
    }
    const std::lock_guard lock(world->meeting);
    world->rendezvous->barrier();  // nobody's kernels wait any more
    reset();
    if (!communicators.empty()) {
      std::vector<std::string> mine;
      for (std::size_t local = 0; local < ranks.size(); ++local) {
        mine.push_back(communicators.offers(local));
      }
      communicators.connect(world->rendezvous->all_gather(std::move(mine)));
    }
    world->rendezvous->barrier();
    failed = false;
  }

  // After an error that was found on this side.
  void fail() {
    has_run = unchecked = false;
    failed = true;
    if (!world->all_here()) return;  // the others do not know of it
    try {
      recover();
    } catch (const std::exception&) {
      // A device that is lost says so at every call.
      failed = false;
    }
  }

  void synchronize() {
    try {
      drain(world->timeout_ns);
    } catch (const std::exception&) {
      fail();
      throw;
    }
    if (failed && world->all_here()) fail();
    if (!unchecked) return;
    unchecked = false;
    std::vector<RankRecord> records;
    for (const auto& rank : ranks) records.push_back({rank->rank(), rank->record()});
    std::optional<Error> error = run_error(program, records, world->timeout_ns);
    if (!world->all_here()) error = with_others(std::move(error));
    if (!error) return;
    fail();
    throw Error(*error);
  }

  /// The error of this world's ranks, or why they gave up: what another rank did.
  [[nodiscard]] std::optional<Error> with_others(std::optional<Error> error) const {
    if (error && error->code() != ErrorCode::kTimeout) return error;
    bool gave_up = error.has_value();
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      gave_up = heap.gave_up(local, ranks[local]->stream()) || gave_up;
    }
    if (!gave_up) return {};
    if (std::optional<Error> loss = world->loss()) return loss;
    if (error) return error;
    return Error(ErrorCode::kTimeout, program.name,
                 "another rank gave up waiting for a peer; its error names the peer");
  }

  [[nodiscard]] std::size_t local_of(int rank) const {
    if (rank < 0 || rank >= world->device->world()) {
      throw_invalid("rank",
                    fmt::format("{} is not in a world of {}", rank, world->device->world()));
    }
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      if (ranks[local]->rank() == rank) return local;
    }
    throw_invalid("rank", fmt::format("{} does not live here; expected one of {}", rank,
                                      fmt::join(world->ranks(), ", ")));
  }

  const Plan::Impl& require_prepared(const char* call) const {
    if (current == nullptr) throw_invalid(call, "prepare() must be called first");
    return *current;
  }

  [[nodiscard]] std::shared_ptr<const Plan::Impl> make_plan(const Bindings& values) const {
    // The graph is gone; its symbol table suffices to check values for it.
    Graph interface(program.name);
    for (const auto& [name, symbol] : program.symbols) interface.add_symbol(name, symbol);
    auto plan = std::make_shared<Plan::Impl>();
    plan->owner = token;
    plan->bindings = check_bindings(interface, values);
    std::vector<RankPlaces> places;
    for (const auto& rank : ranks) {
      rank->allocate_unbound();
      places.push_back(rank->places());
      for (const auto& [name, group] : program.groups) {
        Communicator* communicator = communicators.find(name, places.size() - 1);
        if (communicator != nullptr) places.back().communicators[name] = communicator;
      }
      plan->addresses.push_back(places.back().buffer_addresses);
      if (!world->device->watches()) continue;
      for (auto& memory : rank->named_memory(plan->bindings)) {
        plan->memory.push_back(std::move(memory));
      }
    }
    plan->launches = LaunchPlan(program, plan->bindings, places, world->timeout_ns);
    return plan;
  }

  void make_current(std::shared_ptr<const Plan::Impl> plan) {
    if (plan == current) return;
    if (!plan->memory.empty()) synchronize();  // what is in flight is judged by the old names
    for (const auto& memory : plan->memory) {
      world->device->name_parts(memory.address, memory.parts);
    }
    current = std::move(plan);
    has_run = false;
  }

  /// `times`: as LaunchPlan::run wants them, or none.
  void run(std::span<Stream* const> streams, std::span<Event* const> times = {}) {
    if (const std::optional<Error> loss = world->loss()) throw Error(*loss);
    if (failed) {
      if (!world->all_here()) {
        throw_invalid("run", "an earlier run failed; expected recover() on every rank first");
      }
      fail();
    }
    if (!streams.empty() && streams.size() != ranks.size()) {
      throw_invalid("run", fmt::format("{} streams; expected one for each of {} ranks",
                                       streams.size(), ranks.size()));
    }
    const std::size_t width = own.size() / ranks.size();
    has_run = true;
    unchecked = true;
    const std::lock_guard lock(world->enqueue);
    try {
      for (std::size_t local = 0; local < ranks.size(); ++local) {
        Event& end = ranks[local]->end_of_run();
        Stream*& lane = lanes[local * width];
        lane = streams.empty() ? own[local * width] : streams[local];
        if (!streams.empty() && !foreign) own[local * width]->record(end);
        if (!streams.empty() || foreign) lane->wait(end);
      }
      foreign = !streams.empty();
      if (times.empty()) {
        current->launches.run({lanes, events});
      } else {
        current->launches.run({lanes, events}, times);
      }
      for (std::size_t local = 0; foreign && local < ranks.size(); ++local) {
        lanes[local * width]->record(ranks[local]->end_of_run());
      }
    } catch (const std::exception&) {
      failed = true;
      throw;
    }
  }

  std::vector<StepTime> trace() {
    const std::vector<LaunchPlan::Work> work = current->launches.work();
    std::vector<std::unique_ptr<TimedEvent>> begins;  // of the run, by local rank
    std::vector<std::unique_ptr<TimedEvent>> timed;
    std::vector<Event*> times;
    for (const auto& rank : ranks) {
      begins.push_back(world->device->create_timed_event(rank->rank()));
    }
    for (const LaunchPlan::Work& piece : work) {
      for (int side = 0; side < 2; ++side) {
        timed.push_back(world->device->create_timed_event(ranks[piece.local]->rank()));
        times.push_back(timed.back().get());
      }
    }
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      stream_after_runs(local).record(*begins[local]);
    }
    run({}, times);
    synchronize();
    std::vector<StepTime> result;
    for (std::size_t i = 0; i < work.size(); ++i) {
      const auto& [step_index, local] = work[i];
      const Step& step = program.steps[step_index];
      StepTime time{.rank = ranks[local]->rank(),
                    .stream = step.stream,
                    .name = step.name,
                    .what = "copy",
                    .ops = "",
                    .begin_us = timed[2 * i]->ns_since(*begins[local]) / 1e3,
                    .end_us = timed[2 * i + 1]->ns_since(*begins[local]) / 1e3};
      if (step.kernel >= 0) {
        const ProgramKernel& kernel = program.kernels[static_cast<std::size_t>(step.kernel)];
        time.what = kernel.needs.template_name;
        time.ops = op_names(kernel.spec);
      } else if (step.kind == Step::Kind::kCollective) {
        time.what = step.op;
      }
      result.push_back(std::move(time));
    }
    return result;
  }

  /// The rank's own stream, behind all that was enqueued for it.
  [[nodiscard]] Stream& stream_after_runs(std::size_t local) const {
    if (foreign) ranks[local]->stream().wait(ranks[local]->end_of_run());
    return ranks[local]->stream();
  }

  std::shared_ptr<World::Impl> world;
  std::shared_ptr<const char> token = std::make_shared<const char>();
  Program program;
  ProgramCode code;
  SymmetricHeap heap;
  Communicators communicators;
  std::vector<std::unique_ptr<RankContext>> ranks;  ///< that live here
  std::vector<std::unique_ptr<Stream>> urgent;      ///< of each, where some live elsewhere
  std::optional<std::uint64_t> on_loss;             ///< in the world's LossWatch
  std::vector<Stream*> own;                         ///< as Lanes::streams
  std::vector<Event*> events;                       ///< as Lanes::events
  std::vector<Stream*> lanes;                       ///< of the run that is enqueued
  std::shared_ptr<const Plan::Impl> current;        ///< null when prepare() is due
  bool foreign = false;                             ///< the last run is on the caller's streams
  bool has_run = false;                             ///< outputs are there, or under way
  bool unchecked = false;                           ///< runs whose records were not looked at yet
  bool failed = false;                              ///< a run failed, and recover() is due
};

const Bindings& Executable::Plan::bindings() const {
  if (impl_ == nullptr) throw_invalid("plan", "is empty; expected one of prepare()");
  return impl_->bindings;
}

Executable Executable::compile(const Graph& graph, const World& world, const PassConfig& passes) {
  World::Impl& w = *world.impl_;
  Program program;
  ProgramCode code;
  w.take_part([&] {
    program = lower_for(graph, *w.device, w.target, w.ranks_per_device, passes);
    check_fits(program, *w.device);  // before anything is compiled
    code = compile_program(program, w.cache.get(), w.progress, w.line_info);
  });
  return {world, std::move(program), std::move(code)};
}

Executable Executable::load(const std::string& path, const World& world) {
  World::Impl& w = *world.impl_;
  Program program;
  std::optional<ProgramCode> code;
  w.take_part([&] {
    program = load_program(path);
    check_fits(program, *w.device);
    code = read_code(program, std::filesystem::path(path).parent_path());
    if (!code) code = compile_program(program, w.cache.get(), w.progress, w.line_info);
  });
  return {world, std::move(program), *std::move(code)};
}

Executable::Executable(const World& world, Program program, ProgramCode code) {
  World::Impl& w = *world.impl_;
  std::vector<RankCard> cards;
  w.take_part([&] {
    check_fits(program, *w.device);
    impl_ = std::make_unique<Impl>(world.impl_, std::move(program), std::move(code));
    cards = impl_->cards();
  });
  const std::lock_guard lock(w.meeting);
  const std::vector<RankCard> all = exchange_cards(*w.rendezvous, cards);
  w.take_part([&] { impl_->connect(all); });
  for (RankCard& card : cards) card.arenas.clear();
  for (RankCard& card : cards) card.communicators.clear();
  (void)exchange_cards(*w.rendezvous, cards);  // nobody runs before all can
  if (impl_->communicators.empty()) return;
  w.take_part([&] { impl_->communicate(all); });
  (void)exchange_cards(*w.rendezvous, cards);
}

Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

void Executable::bind(int rank, std::string_view name, std::uint64_t address) {
  const std::size_t local = impl_->local_of(rank);
  const Program& program = impl_->program;
  const ProgramTensor* tensor = find(program.inputs, name);
  if (tensor == nullptr) tensor = find(program.outputs, name);
  if (tensor == nullptr) throw_invalid(std::string(name), "is no input or output of the program");
  if (address == 0 || address % kBoundAlignment != 0) {
    throw_invalid(std::string(name),
                  fmt::format("address {:#x}; expected a multiple of {} other than 0", address,
                              kBoundAlignment));
  }
  const auto buffer = static_cast<std::size_t>(tensor->buffer);
  const Arena& arena = program.arenas[static_cast<std::size_t>(program.buffers[buffer].arena)];
  if (arena.kind == ArenaKind::kWorkspace || arena.kind == ArenaKind::kSymmetric) {
    throw_invalid(std::string(name),
                  fmt::format("lies in arena {} and cannot be bound", arena.name()));
  }
  impl_->ranks[local]->bind(buffer, address);
  impl_->current = nullptr;
  impl_->has_run = false;
}

Executable::Plan Executable::prepare(const Bindings& bindings) {
  Plan plan;
  plan.impl_ = impl_->make_plan(bindings);
  impl_->make_current(plan.impl_);
  return plan;
}

void Executable::set_input(int rank, std::string_view name, const HostTensor& tensor) {
  const Plan::Impl& plan = impl_->require_prepared("set_input");
  const std::size_t local = impl_->local_of(rank);
  const ProgramTensor* input = find(impl_->program.inputs, name);
  if (input == nullptr) throw_invalid(std::string(name), "is no input of the program");
  const std::vector<std::int64_t> shape = shape_of(input->type, plan.bindings);
  if (tensor.dtype != input->type.dtype || tensor.shape != shape) {
    throw_invalid(std::string(name), fmt::format("is {}{}; expected {}{}", dtype_name(tensor.dtype),
                                                 shape_text(tensor.shape),
                                                 dtype_name(input->type.dtype), shape_text(shape)));
  }
  const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype);
  if (tensor.data.size() != bytes) {
    throw_invalid(std::string(name),
                  fmt::format("has {} bytes of data; expected {}", tensor.data.size(), bytes));
  }
  if (bytes == 0) return;
  Stream& stream = impl_->stream_after_runs(local);
  stream.copy_from_host(plan.addresses[local][static_cast<std::size_t>(input->buffer)],
                        tensor.data.data(), bytes);
  stream.synchronize();  // the tensor is the caller's and may go away
}

void Executable::run() { run(std::span<Stream* const>()); }

void Executable::run(std::span<Stream* const> streams) {
  (void)impl_->require_prepared("run");
  impl_->run(streams);
}

void Executable::run(const Plan& plan, std::span<Stream* const> streams) {
  if (plan.impl_ == nullptr || plan.impl_->owner != impl_->token) {
    throw_invalid("run", "the plan is not one of this executable's prepare()");
  }
  impl_->make_current(plan.impl_);
  impl_->run(streams);
}

std::vector<StepTime> Executable::trace() {
  (void)impl_->require_prepared("trace");
  return impl_->trace();
}

void Executable::synchronize() { impl_->synchronize(); }

void Executable::recover() { impl_->recover(); }

void Executable::poison_outputs() {
  const Plan::Impl& plan = impl_->require_prepared("poison_outputs");
  for (std::size_t local = 0; local < impl_->ranks.size(); ++local) {
    Stream& stream = impl_->stream_after_runs(local);
    for (const ProgramTensor& output : impl_->program.outputs) {
      const std::size_t size = dtype_size(output.type.dtype);
      const std::uint64_t element = poison_bits(output.type.dtype);
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(numel(output.type.shape).evaluate(plan.bindings)) * size);
      for (std::size_t at = 0; at < bytes.size(); at += size) {
        std::memcpy(bytes.data() + at, &element, size);
      }
      if (bytes.empty()) continue;
      stream.copy_from_host(plan.addresses[local][static_cast<std::size_t>(output.buffer)],
                            bytes.data(), bytes.size());
      stream.synchronize();  // the bytes go away
    }
  }
}

HostTensor Executable::output(int rank, std::string_view name) {
  const std::size_t local = impl_->local_of(rank);
  const ProgramTensor* output = find(impl_->program.outputs, name);
  if (output == nullptr) throw_invalid(std::string(name), "is no output of the program");
  impl_->synchronize();
  const Plan::Impl& plan = impl_->require_prepared("output");
  if (!impl_->has_run) throw_invalid(std::string(name), "there is no output before a run");
  HostTensor tensor;
  tensor.dtype = output->type.dtype;
  tensor.shape = shape_of(output->type, plan.bindings);
  tensor.data.resize(static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype));
  if (tensor.data.empty()) return tensor;
  Stream& stream = impl_->ranks[local]->stream();
  stream.copy_to_host(tensor.data.data(),
                      plan.addresses[local][static_cast<std::size_t>(output->buffer)],
                      tensor.data.size());
  stream.synchronize();
  return tensor;
}

std::vector<KernelReport> Executable::kernels() const {
  const auto& current = impl_->current;
  return kernel_reports(impl_->program, impl_->code,
                        current == nullptr ? nullptr : &current->bindings);
}

std::vector<ArenaReport> Executable::arenas() const {
  std::vector<ArenaReport> reports;
  for (const Arena& arena : impl_->program.arenas) reports.push_back({arena.name(), arena.bytes});
  return reports;
}

std::vector<BufferReport> Executable::buffers() const {
  std::vector<BufferReport> reports;
  for (const Buffer& buffer : impl_->program.buffers) {
    if (buffer.slice) continue;
    const Arena& arena = impl_->program.arenas[static_cast<std::size_t>(buffer.arena)];
    reports.push_back({buffer.name, arena.name(), buffer.offset, buffer.bytes});
  }
  return reports;
}

int Executable::launches() const {
  const auto& steps = impl_->program.steps;
  return static_cast<int>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.kernel >= 0; }));
}

const std::string& Executable::program_hash() const { return impl_->program.hash; }
std::string Executable::program_json() const { return to_json(impl_->program); }

}  // namespace braid
