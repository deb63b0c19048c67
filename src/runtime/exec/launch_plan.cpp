#include "runtime/exec/launch_plan.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/fail.h"
#include "lowering/plan/collective_step.h"
#include "lowering/plan/variants.h"
#include "runtime/exec/symmetric_heap.h"

namespace braid {
namespace {

template <class T>
const T& element(const std::vector<T>& items, std::int64_t index, const char* what,
                 const Step& step) {
  if (index < 0 || index >= static_cast<std::int64_t>(items.size())) {
    throw_internal(step.name, "{} {} of {}", what, index, items.size());
  }
  return items[index];
}

static_assert(alignof(ParameterLine) >= kMaxParamAlignment);

std::size_t bytes_of(const TensorType& type, const Bindings& bindings) {
  return static_cast<std::size_t>(numel(type.shape).evaluate(bindings)) * dtype_size(type.dtype);
}

}  // namespace

int events_needed(const Program& program) {
  const int streams = stream_count(program);
  return streams == 1 ? event_count(program) : event_count(program) + streams;
}

class LaunchPlan::Builder {
 public:
  Builder(const Program& program, const Bindings& bindings, std::span<const RankPlaces> ranks,
          std::uint64_t timeout_ns, LaunchPlan& plan)
      : program_(program),
        bindings_(bindings),
        ranks_(ranks),
        timeout_ns_(timeout_ns),
        plan_(plan),
        streams_(stream_count(program)),
        events_(events_needed(program)),
        range_(variants_of(program)[variant_at(program, bindings)].steps) {
    for (int s = range_.first; s < range_.end; ++s) {
      used_ = std::max(used_, program.steps[s].stream + 1);
    }
  }

  void build() {
    part();
    for (int s = range_.first; s < range_.end; ++s) {
      step_index_ = static_cast<std::size_t>(s);
      step_ = &program_.steps[step_index_];
      if (step_->kind == Step::Kind::kCollective) {
        add_collective();
        continue;
      }
      for (local_ = 0; local_ < ranks_.size(); ++local_) add_step();
    }
    meet();
    // Only now, when the values will not move any more.
    plan_.arguments_.reserve(places_of_arguments_.size());
    for (const std::size_t place : places_of_arguments_) {
      plan_.arguments_.push_back(plan_.values_.data() + place);
    }
  }

 private:
  [[nodiscard]] std::uint64_t address(int index) const {
    const std::optional<Slice>& slice = buffer(index).slice;
    if (!slice) return element(places().buffer_addresses, index, "buffer", *step_);
    return address(slice->of) + static_cast<std::uint64_t>(rank_after(slice->group, slice->shift)) *
                                    bytes_of(buffer(index).type, bindings_);
  }
  [[nodiscard]] const RankPlaces& places() const { return ranks_[local_]; }
  [[nodiscard]] Record record(Record::What what, int stream) const {
    if (stream < 0 || stream >= streams_) {
      throw_internal(step_->name, "stream {} of {}", stream, streams_);
    }
    Record made;
    made.what = what;
    made.work = {step_index_, local_};
    made.stream = local_ * static_cast<std::size_t>(streams_) + static_cast<std::size_t>(stream);
    return made;
  }
  [[nodiscard]] const Buffer& buffer(int index) const {
    return element(program_.buffers, index, "buffer", *step_);
  }

  void add_step() {
    switch (step_->kind) {
      case Step::Kind::kLaunch:
      case Step::Kind::kBarrier:
        return add_launch();
      case Step::Kind::kCopy:
        return add_copy();
      case Step::Kind::kEventRecord:
        return add_event(Record::What::kRecord, step_->stream, step_->event);
      case Step::Kind::kEventWait:
        return add_event(Record::What::kWait, step_->stream, step_->event);
      case Step::Kind::kCollective:
        return;  // for all ranks at once
    }
  }

  void add_event(Record::What what, int stream, int event) {
    if (event < 0 || event >= events_) {
      throw_internal(step_->name, "event {} of {}", event, events_);
    }
    Record record = this->record(what, stream);
    record.event = local_ * static_cast<std::size_t>(events_) + static_cast<std::size_t>(event);
    plan_.records_.push_back(record);
  }

  /// At the start the other streams wait for the first one; at the end it waits for them.
  void part() {
    const Step begin{.name = "the begin of a run"};
    step_ = &begin;
    for (local_ = 0; used_ > 1 && local_ < ranks_.size(); ++local_) {
      const int own = event_count(program_);
      add_event(Record::What::kRecord, 0, own);
      for (int s = 1; s < used_; ++s) add_event(Record::What::kWait, s, own);
    }
  }
  void meet() {
    const Step end{.name = "the end of a run"};
    step_ = &end;
    for (int s = 1; s < used_; ++s) {
      for (local_ = 0; local_ < ranks_.size(); ++local_) {
        const int own = event_count(program_) + s;
        add_event(Record::What::kRecord, s, own);
        add_event(Record::What::kWait, 0, own);
      }
    }
  }

  void add_copy() {
    Record record = this->record(Record::What::kCopy, step_->stream);
    record.destination = operand(step_->destination, step_->destination_peer);
    record.source = operand(step_->source, step_->source_peer);
    record.bytes = bytes_of(buffer(step_->source).type, bindings_);
    if (record.bytes != bytes_of(buffer(step_->destination).type, bindings_)) {
      throw_internal(step_->name, "a copy between buffers of different size");
    }
    if (record.bytes > 0) plan_.records_.push_back(record);
  }

  /// The address of a copy's buffer, on this rank or on the peer that it names.
  [[nodiscard]] std::uint64_t operand(int index, const std::optional<Step::Peer>& peer) const {
    if (!peer) return address(index);
    const Buffer& b = buffer(index);
    if (static_cast<std::size_t>(b.arena) != symmetric_arena(peer->group)) {
      throw_internal(step_->name, "'{}' is no buffer of group {}", b.name, peer->group);
    }
    const std::int64_t rank = members(peer->group)[rank_after(peer->group, peer->shift)];
    const std::uint64_t begin = arena_of(peer->group, rank) + static_cast<std::uint64_t>(b.offset);
    if (!b.slice) return begin;
    const std::int64_t chunk = rank_after(peer->group, peer->shift + b.slice->shift);
    return begin + static_cast<std::uint64_t>(chunk) * bytes_of(b.type, bindings_);
  }

  void add_collective() {
    const Collective form = collective_of(program_, *step_);
    local_ = 0;
    Record record = this->record(Record::What::kCollective, step_->stream);
    record.first_call = plan_.calls_.size();
    record.call_count = ranks_.size();
    for (; local_ < ranks_.size(); ++local_) {
      const auto communicator = places().communicators.find(step_->group);
      if (communicator == places().communicators.end()) {
        throw_internal(step_->name, "no communicator of '{}'", step_->group);
      }
      plan_.calls_.push_back({communicator->second,
                              this->record(Record::What::kCollective, step_->stream).stream,
                              call_of(form),
                              {step_index_, local_}});
      if (plan_.calls_.back().call.count > 0) continue;
      plan_.calls_.resize(record.first_call);
      return;
    }
    plan_.records_.push_back(record);
  }

  [[nodiscard]] CollectiveCall call_of(const Collective& form) const {
    const std::vector<std::int64_t> all = members(step_->group);
    const std::int64_t own = std::ranges::find(all, places().rank) - all.begin();
    CollectiveCall call = collective_call(form, step_->operand, bindings_, own);
    call.send = address(step_->inputs[0]);
    call.receive = address(step_->outputs[0]);
    return call;
  }

  void add_launch() {
    const ProgramKernel& kernel = element(program_.kernels, step_->kernel, "kernel", *step_);
    const std::int64_t grid = kernel.needs.grid.evaluate(bindings_);
    if (grid == 0) return;
    if (grid < 0 || grid > std::numeric_limits<std::int32_t>::max() || kernel.needs.threads < 1) {
      throw_internal(step_->name, "a launch of {} blocks of {} threads", grid,
                     kernel.needs.threads);
    }
    Record record = this->record(Record::What::kLaunch, step_->stream);
    record.function = element(places().functions, step_->kernel, "kernel", *step_);
    record.config = {.grid = {static_cast<std::uint32_t>(grid)},
                     .block = {static_cast<std::uint32_t>(kernel.needs.threads)},
                     .shared_bytes = static_cast<std::uint32_t>(kernel.needs.shared_bytes),
                     .attributes = kernel.needs.attributes};
    record.first_argument = places_of_arguments_.size();
    record.argument_count = kernel.needs.params.size();
    for (const KernelParam& param : kernel.needs.params) add_argument(param);
    plan_.records_.push_back(record);
  }

  // Appends the value of one argument. The machine is little endian, so a 32-bit argument is the
  // first half of its word.
  void add_argument(const KernelParam& param) {
    switch (param.kind) {
      case KernelParam::Kind::kInput:
        return add_word(address(element(step_->inputs, param.index, "input", *step_)));
      case KernelParam::Kind::kOutput:
        return add_word(address(element(step_->outputs, param.index, "output", *step_)));
      case KernelParam::Kind::kScalar:
        return add_word(param.expr.evaluate(bindings_));
      case KernelParam::Kind::kPeers:
        return add_peers(param.group);
      case KernelParam::Kind::kMulticast:
        return add_word(element(places().multicasts,
                                static_cast<std::int64_t>(symmetric_arena(param.group)), "arena",
                                *step_));
      case KernelParam::Kind::kOffset:
        return add_word(buffer(element(step_->inputs, param.index, "input", *step_)).offset);
      case KernelParam::Kind::kResultOffset:
        return add_word(buffer(element(step_->outputs, param.index, "output", *step_)).offset);
      case KernelParam::Kind::kRank:
        return add_word(rank_after(param.group, 0));
      case KernelParam::Kind::kFlags:
        return add_word(buffer(step_->flags).offset);
      case KernelParam::Kind::kScratch:
        return add_word(buffer(step_->scratch).offset);
      case KernelParam::Kind::kStep:
        return add_word(step_index_);
      case KernelParam::Kind::kRecord:
        return add_word(places().record_address);
      case KernelParam::Kind::kClosing:
        return add_word(step_->closing_barrier ? 1 : 0);
      case KernelParam::Kind::kTimeout:
        return add_word(timeout_ns_);
      case KernelParam::Kind::kMarks:
        return add_word(element(places().marks, step_index_, "step", *step_));
      case KernelParam::Kind::kBytes:
        return add_bytes(param);
      case KernelParam::Kind::kInputMap:
        return add_map(param, address(element(step_->inputs, param.index, "input", *step_)));
      case KernelParam::Kind::kOutputMap:
        return add_map(param, address(element(step_->outputs, param.index, "output", *step_)));
      case KernelParam::Kind::kCounter:
        return add_word(element(places().buffer_addresses, step_->flags, "buffer", *step_));
    }
  }

  /// Room for the value of the next argument, valid until the one after it.
  std::span<std::uint8_t> add_value(std::size_t bytes, std::size_t alignment) {
    end_of_values_ = (end_of_values_ + alignment - 1) / alignment * alignment;
    places_of_arguments_.push_back(end_of_values_);
    end_of_values_ += bytes;
    plan_.values_.reserve_bytes(end_of_values_);
    return {plan_.values_.data() + places_of_arguments_.back(), bytes};
  }

  template <class T>
  void add_word(T value) {
    const auto word = static_cast<std::uint64_t>(value);
    std::memcpy(add_value(sizeof word, alignof(std::uint64_t)).data(), &word, sizeof word);
  }

  void add_peers(const std::string& group) {
    std::vector<std::uint64_t> bases;
    for (const std::int64_t peer : members(group)) bases.push_back(arena_of(group, peer));
    const std::size_t bytes = bases.size() * sizeof(std::uint64_t);
    std::memcpy(add_value(bytes, alignof(std::uint64_t)).data(), bases.data(), bytes);
  }

  void add_bytes(const KernelParam& param) {
    check_param(step_->name, param);
    if (!places().write_bytes) {
      throw_internal(step_->name, "nobody makes the {} bytes of a parameter", param.size);
    }
    places().write_bytes(
        *step_, param,
        add_value(static_cast<std::size_t>(param.size), static_cast<std::size_t>(param.alignment)));
  }

  void add_map(const KernelParam& param, std::uint64_t address) {
    const auto number = [&](const Expr& expr) {
      return static_cast<std::uint64_t>(expr.evaluate(bindings_));
    };
    MatrixMap map{.address = address,
                  .dtype = param.map.dtype,
                  .rows = number(param.map.rows),
                  .columns = number(param.map.columns),
                  .box_rows = static_cast<std::uint32_t>(param.map.box),
                  .row_stride = number(param.map.row_stride)};
    bool is_empty = map.rows == 0 || map.columns == 0;
    for (const auto& [extent, stride] : param.map.outer) {
      map.outer.push_back({number(extent), number(stride)});
      is_empty = is_empty || map.outer.back().extent == 0;
    }
    // There is no map of nothing. Of this one nothing is copied either.
    if (is_empty) {
      map.rows = 1, map.columns = map.row_stride = kMapRowBytes;
      std::ranges::fill(map.outer, MatrixMap::Outer{1, kMapRowBytes});
    }
    places().encode(map, add_value(kMapBytes, kMapAlignment));
  }

  [[nodiscard]] std::vector<std::int64_t> members(const std::string& group) const {
    return group_members(program_, group, places().rank);
  }

  /// The index in the group of the rank `shift` after this one, cyclically.
  [[nodiscard]] std::int64_t rank_after(const std::string& group, std::int64_t shift) const {
    const std::vector<std::int64_t> all = members(group);
    const auto size = static_cast<std::int64_t>(all.size());
    const std::int64_t own = std::ranges::find(all, places().rank) - all.begin();
    return ((own + shift) % size + size) % size;
  }

  /// The address of another rank's arena of a group, as this rank sees it.
  [[nodiscard]] std::uint64_t arena_of(const std::string& group, std::int64_t rank) const {
    const auto arena = static_cast<std::int64_t>(symmetric_arena(group));
    return element(element(places().peer_arenas, arena, "arena", *step_), rank, "rank", *step_);
  }

  [[nodiscard]] std::size_t symmetric_arena(const std::string& group) const {
    for (std::size_t i = 0; i < program_.arenas.size(); ++i) {
      const Arena& arena = program_.arenas[i];
      if (arena.kind == ArenaKind::kSymmetric && arena.group == group) return i;
    }
    throw_internal(step_->name, "there is no arena symmetric:{}", group);
  }

  const Program& program_;
  const Bindings& bindings_;
  std::span<const RankPlaces> ranks_;
  std::uint64_t timeout_ns_;
  LaunchPlan& plan_;
  int streams_, events_;
  IndexRange range_;                              ///< steps of the variant that runs
  int used_ = 1;                                  ///< number of their streams
  std::vector<std::size_t> places_of_arguments_;  ///< offsets in the values
  std::size_t end_of_values_ = 0;
  const Step* step_ = nullptr;
  std::size_t step_index_ = 0;
  std::size_t local_ = 0;
};

LaunchPlan::LaunchPlan(const Program& program, const Bindings& bindings,
                       std::span<const RankPlaces> ranks, std::uint64_t timeout_ns) {
  Builder(program, bindings, ranks, timeout_ns, *this).build();
}

std::vector<LaunchPlan::Work> LaunchPlan::work() const {
  std::vector<Work> all;
  for (const Record& record : records_) {
    if (record.works()) all.push_back(record.work);
    for (const Call& call : calls_of(record)) all.push_back(call.work);
  }
  return all;
}

void LaunchPlan::collect(std::span<const Call> calls, const Lanes& lanes) {
  for (const Call& call : calls) call.communicator->begin(*lanes.streams[call.stream]);
  GroupCall group(*calls.front().communicator);
  for (const Call& call : calls) call.communicator->enqueue(call.call, *lanes.streams[call.stream]);
  group.end();
  for (const Call& call : calls) call.communicator->finish(*lanes.streams[call.stream]);
}

void LaunchPlan::run(const Lanes& lanes, std::span<Event* const> times) const {
  std::size_t next = 0;
  for (const Record& record : records_) {
    const std::span<const Call> calls = calls_of(record);
    Stream& stream = *lanes.streams[record.stream];
    if (record.works()) stream.record(*times[next++]);
    // All of a group call begin before any is enqueued.
    for (std::size_t c = 0; c < calls.size(); ++c) {
      lanes.streams[calls[c].stream]->record(*times[next + 2 * c]);
    }
    enqueue(record, lanes);
    if (record.works()) stream.record(*times[next++]);
    for (std::size_t c = 0; c < calls.size(); ++c) {
      lanes.streams[calls[c].stream]->record(*times[next + 2 * c + 1]);
    }
    next += 2 * calls.size();
  }
}

}  // namespace braid
