#include "runtime/exec/executable_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "braid/error.h"
#include "braid/reference.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "lowering/plan/variants.h"
#include "runtime/exec/block_times.h"
#include "runtime/exec/run_record.h"
#include "runtime/exec/watch.h"
#include "runtime/stream_home.h"

namespace braid {
namespace {

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

void Executable::Plan::Impl::require_inputs(const RankContext& rank, std::size_t local) const {
  std::vector<RankContext::Unset>& inputs = unset[local];
  std::erase_if(inputs, [](const RankContext::Unset& input) { return input.is_set->load(); });
  if (inputs.empty()) return;
  throw_invalid(inputs.front().input->name,
                "has no value on rank {}; expected set_input(), or bind() before prepare()",
                rank.rank());
}

Executable::Impl::Impl(std::shared_ptr<World::Impl> world_impl,
                       std::shared_ptr<const LoadedProgram> loaded_program)
    : world(std::move(world_impl)),
      loaded(std::move(loaded_program)),
      program(loaded->program()),
      heap(program, *world->device, world->ranks()),
      communicators(program, *world->device, world->ranks(), world->options.nccl_communicators,
                    world->timeout_ns),
      values(program, world->ranks()) {
  for (std::size_t local = 0; local < world->ranks().size(); ++local) {
    ranks.push_back(std::make_unique<RankContext>(*world->device, world->options.allocator, *loaded,
                                                  heap, local, world->ranks()[local]));
    for (const auto& stream : ranks.back()->streams()) own.push_back(stream.get());
    for (const auto& event : ranks.back()->events()) events.push_back(event.get());
  }
  lanes = own;
  reset();
}

Executable::Impl::~Impl() {
  // Work in flight uses memory that is about to be freed. Its errors are dropped.
  try {
    drain(failed ? 0 : world->timeout_ns);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
  if (on_loss) world->losses->remove(*on_loss);
}

void Executable::Impl::meet() {
  std::vector<RankCard> own_cards;
  world->take_part([&] { own_cards = cards(); });
  const std::lock_guard lock(world->meeting);
  number = ++world->executables;
  Rendezvous& rendezvous = *world->rendezvous;
  const std::vector<RankCard> all = exchange_cards(rendezvous, own_cards);
  world->take_part([&] { connect(all); });
  for (RankCard& card : own_cards) card.arenas.clear();
  for (RankCard& card : own_cards) card.communicators.clear();
  if (heap.has_multicasts()) {
    (void)exchange_cards(rendezvous, own_cards);  // nobody binds memory before all have joined
    world->take_part([&] { heap.bind(); });
  }
  (void)exchange_cards(rendezvous, own_cards);  // nobody runs before all are ready
  if (communicators.empty()) return;
  world->take_part([&] { communicate(all); });
  (void)exchange_cards(rendezvous, own_cards);
}

std::vector<RankCard> Executable::Impl::cards() {
  std::vector<RankCard> mine;
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    mine.push_back({"", program.hash, heap.exports(local), communicators.offers(local)});
  }
  return mine;
}

void Executable::Impl::connect(const std::vector<RankCard>& cards) {
  heap.connect(mapped(cards, &RankCard::arenas));
  if (world->all_here()) return;
  make_urgent();
  on_loss = world->losses->add([this] {
    const std::lock_guard lock(giving_up);
    give_up();
  });
}

void Executable::Impl::make_urgent() {
  while (urgent.size() < ranks.size()) {
    urgent.push_back(world->device->create_stream(world->ranks()[urgent.size()]));
  }
}

void Executable::Impl::give_up() {
  for (std::size_t local = 0; local < urgent.size(); ++local) {
    heap.give_up(local, *urgent[local]);
  }
}

void Executable::Impl::cancel() {
  const std::lock_guard lock(giving_up);
  make_urgent();
  cancelled = true;
  give_up();
}

std::optional<Error> Executable::Impl::interruption() const {
  if (std::optional<Error> loss = world->loss()) return loss;
  if (!cancelled) return {};
  return Error(ErrorCode::kCancelled, program.name, "its runs were cancelled");
}

void Executable::Impl::communicate(const std::vector<RankCard>& cards) {
  communicators.connect(mapped(cards, &RankCard::communicators));
}

void Executable::Impl::reset() {
  const std::lock_guard lock(giving_up);
  for (const auto& stream : urgent) stream->synchronize();  // its writes must not arrive later
  cancelled = false;
  for (const auto& rank : ranks) rank->reset();
  synchronize_all(ranks);
}

void Executable::Impl::drain(std::uint64_t patience_ns) {
  for (const auto& rank : ranks) (void)rank->stream_after_runs();
  Watch watch(communicators, patience_ns, [this] { return interruption(); });
  try {
    synchronize_all(ranks);
  } catch (const std::exception&) {
    watch.finish();  // the watch's error is more informative
    throw;
  }
  watch.finish();
}

void Executable::Impl::recover() {
  last_run = nullptr;
  try {
    drain(0);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // Reported when it was found.
  }
  const std::lock_guard lock(world->meeting);
  world->rendezvous->barrier();  // no kernel waits after this
  reset();
  values.restart();
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

void Executable::Impl::fail() {
  ++world->tallies.failures;
  last_run = nullptr;
  failed = true;
  if (!world->all_here()) return;  // other worlds do not know of the failure yet
  try {
    recover();
  } catch (const std::exception&) {
    // A lost device reports the error at every call.
    failed = false;
  }
}

void Executable::Impl::synchronize() {
  try {
    for (std::size_t local = 0; !world->all_here() && local < ranks.size(); ++local) {
      heap.note_giving_up(local, ranks[local]->stream_after_runs());
    }
    drain(world->timeout_ns);
  } catch (const std::exception&) {
    fail();
    throw;
  }
  if (failed) {
    if (world->all_here()) fail();
    return;  // reported already
  }
  if (const std::optional<Error> unlike = world->disagreement()) {
    fail();
    throw Error(*unlike);
  }
  if (cancelled) {
    const Error error = *interruption();
    fail();
    throw Error(error);
  }
  // Includes replays, which this side does not know about.
  const auto records = mapped(ranks, [](const auto& rank) {
    return RankRecord{rank->rank(), rank->record()};
  });
  std::optional<Error> error = run_error(program, records, world->timeout_ns);
  if (!world->all_here()) error = with_others(std::move(error));
  if (!error) return;
  fail();
  throw Error(*error);
}

std::optional<Error> Executable::Impl::with_others(std::optional<Error> error) const {
  if (error && error->code() != ErrorCode::kTimeout) return error;
  bool gave_up = error.has_value();
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    gave_up = heap.gave_up(local) || gave_up;
  }
  if (!gave_up) return {};
  if (std::optional<Error> loss = world->loss()) return loss;
  if (error) return error;
  return Error(ErrorCode::kTimeout, program.name,
               "another rank gave up waiting for a peer; its error names the peer");
}

std::size_t Executable::Impl::local_of(int rank) const {
  if (rank < 0 || rank >= world->device->world()) {
    throw_invalid("rank", "{} is not in a world of {}", rank, world->device->world());
  }
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    if (ranks[local]->rank() == rank) return local;
  }
  throw_invalid("rank", "{} does not live here; expected one of {}", rank,
                fmt::join(world->ranks(), ", "));
}

const Executable::Plan::Impl& Executable::Impl::require_prepared(const char* call) const {
  if (current == nullptr) throw_invalid(call, "prepare() must be called first");
  return *current;
}

void Executable::Impl::check_own(const Plan::Impl* plan, const char* call) const {
  if (plan != nullptr && plan->owner == token) return;
  throw_invalid(call, "the plan is not one of this executable's prepare()");
}

Bindings Executable::Impl::checked(const Bindings& values) const {
  // The graph is gone; a graph with its symbol table suffices to check values.
  Graph interface(program.name);
  for (const auto& [name, symbol] : program.symbols) interface.add_symbol(name, symbol);
  return check_bindings(interface, values);
}

std::shared_ptr<const Executable::Plan::Impl> Executable::Impl::make_plan(
    const Bindings& values) const {
  auto plan = std::make_shared<Plan::Impl>();
  plan->owner = token;
  plan->bindings = checked(values);
  std::vector<RankPlaces> places;
  for (const auto& rank : ranks) rank->check_bound(plan->bindings);
  loaded->load(variant_at(program, plan->bindings));
  for (const auto& rank : ranks) {
    rank->allocate_unbound();
    plan->unset.push_back(rank->unset());
    places.push_back(rank->places());
    for (const auto& [name, group] : program.groups) {
      Communicator* communicator = communicators.find(name, places.size() - 1);
      if (communicator != nullptr) places.back().communicators[name] = communicator;
    }
    plan->addresses.push_back(places.back().buffer_addresses);
    if (world->device->inspector() == nullptr) continue;
    for (auto& memory : rank->named_memory(plan->bindings)) {
      plan->memory.push_back(std::move(memory));
    }
  }
  ++world->tallies.plans;
  plan->launches = LaunchPlan(program, plan->bindings, places, world->timeout_ns);
  return plan;
}

void Executable::Impl::make_current(std::shared_ptr<const Plan::Impl> plan) {
  if (plan == current) return;
  if (!plan->memory.empty()) synchronize();  // work in flight is checked with the old names
  for (const auto& memory : plan->memory) {
    world->device->inspector()->name_parts(memory.address, memory.parts);
  }
  current = std::move(plan);
}

void Executable::Impl::run(std::span<Stream* const> streams, std::span<Event* const> times) {
  if (const std::optional<Error> loss = world->loss()) throw Error(*loss);
  if (failed) {
    if (!world->all_here()) {
      throw_invalid("run", "an earlier run failed; expected recover() on every rank first");
    }
    fail();
  }
  if (!streams.empty() && streams.size() != ranks.size()) {
    throw_invalid("run", "{} streams; expected one for each of {} ranks", streams.size(),
                  ranks.size());
  }
  for (std::size_t i = 0; i < streams.size(); ++i) check_stream("run", i, streams[i]);
  const bool recorded = is_recorded(streams);
  for (std::size_t i = 0; i < ranks.size(); ++i) current->require_inputs(*ranks[i], i);
  const std::size_t width = own.size() / ranks.size();
  ++world->tallies.runs;
  last_run = current;
  values.state(current->bindings, number, *world->rendezvous);
  const std::lock_guard lock(world->enqueue);
  try {
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      Stream* const callers = streams.empty() ? nullptr : streams[local];
      lanes[local * width] = &ranks[local]->begin_run(callers, recorded);
    }
    if (times.empty()) {
      current->launches.run({lanes, events});
    } else {
      current->launches.run({lanes, events}, times);
    }
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      ranks[local]->end_run(*lanes[local * width], recorded);
    }
  } catch (const std::exception&) {
    failed = true;
    throw;
  }
}

void Executable::Impl::run_rank(const std::shared_ptr<const Plan::Impl>& plan, std::size_t local,
                                Stream* stream) {
  if (const std::optional<Error> loss = world->loss()) throw Error(*loss);
  if (failed) throw_invalid("run_rank", "an earlier run failed; expected synchronize() first");
  if (stream != nullptr) check_stream("run_rank", local, stream);
  const bool recorded = stream != nullptr && is_recorded({&stream, 1});
  plan->require_inputs(*ranks[local], local);
  {
    const std::lock_guard lock(parts);
    if (plan != current && world->device->inspector() != nullptr) {
      throw_invalid("run_rank",
                    "another plan is the current one; expected that one, on a device "
                    "that checks or counts");
    }
    current = plan;
    last_run = plan;
    if (local == 0) ++world->tallies.runs;
  }
  values.state(plan->bindings, number, *world->rendezvous);
  const std::size_t width = own.size() / ranks.size();
  try {
    Stream& lane = ranks[local]->begin_run(stream, recorded);
    lanes[local * width] = &lane;
    plan->launches.run({lanes, events}, local);
    ranks[local]->end_run(lane, recorded);
  } catch (const std::exception&) {
    failed = true;
    throw;
  }
}

void Executable::Impl::check_stream(const char* call, std::size_t local,
                                    const Stream* stream) const {
  const int rank = ranks[local]->rank();
  if (stream == nullptr) {
    throw_invalid(call, "the stream of rank {} is null; expected one, or no streams", rank);
  }
  braid::check_stream(call, *stream, own[local * (own.size() / ranks.size())]->home());
}

bool Executable::Impl::is_recorded(std::span<Stream* const> streams) const {
  const auto count = static_cast<std::size_t>(
      std::ranges::count_if(streams, [](Stream* s) { return s->is_capturing(); }));
  if (count == 0) return false;
  if (count != streams.size()) {
    throw_invalid("run", "{} of {} streams are being captured; expected all or none", count,
                  streams.size());
  }
  if (!communicators.empty()) {
    throw_invalid("run",
                  "the collectives of {} are a communicator's, whose calls differ from run to run; "
                  "expected no capture",
                  communicators.name(0));
  }
  return true;
}

std::vector<StepTime> Executable::Impl::trace() {
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
    Stream& stream = ranks[local]->stream_after_runs();
    ranks[local]->clear_marks();
    stream.record(*begins[local]);
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
      const ProgramKernel& kernel = program.kernels[step.kernel];
      time.what = kernel.needs.template_name;
      time.ops = op_names(kernel.spec);
    } else if (step.kind == Step::Kind::kCollective) {
      time.what = step.op;
    }
    const std::vector<StepTime> parts = block_times(time, ranks[local]->marks(step_index));
    result.push_back(std::move(time));
    result.insert(result.end(), parts.begin(), parts.end());
  }
  return result;
}

}  // namespace braid
