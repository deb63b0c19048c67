#include "runtime/exec/rank_context.h"

#include <algorithm>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "lowering/plan/variants.h"
#include "runtime/exec/bound_tensor.h"
#include "runtime/name_memory.h"

namespace braid {
namespace {

constexpr std::uint64_t kArenaAlignment = 256;

/// Memory from the caller's allocator.
class CallersMemory final : public Memory, NonCopyable {
 public:
  CallersMemory(const Device& device, const Allocator& allocator, int rank, std::size_t bytes)
      : allocator_(allocator), rank_(rank), bytes_(bytes) {
    address_ = allocator.allocate(rank, bytes);
    try {
      check(device);
    } catch (const Error&) {
      if (address_ != 0) allocator.free(rank, address_, bytes);
      throw;
    }
  }
  ~CallersMemory() override { allocator_.free(rank_, address_, bytes_); }
  [[nodiscard]] std::uint64_t address() const override { return address_; }
  [[nodiscard]] std::size_t size() const override { return bytes_; }

 private:
  void check(const Device& device) const {
    if (address_ == 0) {
      throw_environment("allocator", "has no {} bytes for rank {}", bytes_, rank_);
    }
    if (address_ % kArenaAlignment != 0) {
      throw_invalid("allocator", "gave address {:#x}; expected a multiple of {}", address_,
                    kArenaAlignment);
    }
    try {
      device.check_memory(rank_, address_, bytes_);
    } catch (const Error& error) {
      throw Error(error.code(), "allocator", error.what());
    }
  }

  const Allocator& allocator_;
  int rank_;
  std::size_t bytes_;
  std::uint64_t address_ = 0;
};

}  // namespace

RankContext::RankContext(Device& device, const Allocator& allocator, const LoadedProgram& loaded,
                         const SymmetricHeap& heap, std::size_t local, int rank)
    : device_(device),
      allocator_(allocator),
      loaded_(loaded),
      program_(loaded.program()),
      heap_(heap),
      local_(local),
      rank_(rank),
      arenas_(program_.arenas.size()),
      bound_(program_.buffers.size()),
      is_set_(program_.buffers.size()) {
  for (int s = 0; s < stream_count(program_); ++s) {
    streams_.push_back(device.create_stream(rank));
  }
  for (const ProgramTensor& input : program_.inputs) {
    is_set_[input.buffer] =
        std::make_shared<std::atomic<bool>>(input.kind == InputKind::kState);  // to zeros
  }
  for (int e = 0; e < events_needed(program_); ++e) events_.push_back(device.create_event(rank));
  end_of_run_ = device.create_event(rank);
  record_ = device.allocate_host(rank, sizeof(protocol::Record));
  name_memory(device, *record_, sizeof(protocol::Record), "record");
  allocate_marks();
  for (std::size_t a = 0; a < program_.arenas.size(); ++a) {
    if (program_.arenas[a].kind == ArenaKind::kWorkspace) allocate(a);
  }
}

void RankContext::allocate_marks() {
  std::vector<std::int64_t> ends;  // in marks
  for (const Step& step : program_.steps) {
    std::int64_t count = 0;
    if (step.kernel >= 0) {
      const Requirements& needs = program_.kernels[step.kernel].needs;
      const bool notes = std::ranges::any_of(needs.params, [](const KernelParam& param) {
        return param.kind == KernelParam::Kind::kMarks;
      });
      if (notes) count = needs.grid.max(program_.symbols) * protocol::kMarksOfBlock;
    }
    ends.push_back(count + (ends.empty() ? 0 : ends.back()));
  }
  marks_of_.resize(ends.size());
  if (ends.empty() || ends.back() == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(ends.back()) * sizeof(protocol::Mark);
  marks_ = device_.allocate_host(rank_, bytes);
  name_memory(device_, *marks_, bytes, "marks");
  auto* const all = reinterpret_cast<protocol::Mark*>(marks_->address());
  for (std::size_t s = 0; s < ends.size(); ++s) {
    marks_of_[s] = {all + (s == 0 ? 0 : ends[s - 1]), all + ends[s]};
  }
  clear_marks();
}

std::span<const protocol::Mark> RankContext::marks(std::size_t step) const {
  return marks_of_[step];
}

void RankContext::clear_marks() {
  if (marks_ != nullptr) stream().fill(marks_->address(), 0, marks_->size());
}

void RankContext::allocate(std::size_t arena) {
  if (arenas_[arena] != nullptr || program_.arenas[arena].kind == ArenaKind::kSymmetric) return;
  const auto bytes = static_cast<std::size_t>(program_.arenas[arena].bytes);
  if (allocator_.allocate && bytes > 0) {
    arenas_[arena] = std::make_shared<CallersMemory>(device_, allocator_, rank_, bytes);
  } else {
    arenas_[arena] = device_.allocate(rank_, bytes);
  }
  if (program_.arenas[arena].kind == ArenaKind::kState) {
    stream().fill(arenas_[arena]->address(), 0, bytes);
  }
}

void RankContext::check_bound(const Bindings& bindings) const {
  for (const auto& bound : bound_) {
    if (bound) check_bound_at(bound->as->name, bound->as->type, bound->tensor, bindings);
  }
}

Stream& RankContext::begin_run(Stream* callers, bool recorded) {
  Stream& lane = callers == nullptr ? stream() : *callers;
  if (recorded) return lane;
  if (callers != nullptr && !foreign_) stream().record(*end_of_run_);
  if (callers != nullptr || foreign_) lane.wait(*end_of_run_);
  foreign_ = callers != nullptr;
  return lane;
}

void RankContext::end_run(Stream& stream, bool recorded) {
  if (foreign_ && !recorded) stream.record(*end_of_run_);
}

Stream& RankContext::stream_after_runs() {
  if (foreign_) stream().wait(*end_of_run_);
  foreign_ = false;
  return stream();
}

std::vector<RankContext::Unset> RankContext::unset() const {
  std::vector<Unset> inputs;
  for (const ProgramTensor& input : program_.inputs) {
    if (bound_[input.buffer] || *is_set_[input.buffer]) continue;
    inputs.push_back({&input, is_set_[input.buffer]});
  }
  return inputs;
}

void RankContext::share_parameters(RankContext& other) {
  for (const ProgramTensor& input : program_.inputs) {
    if (input.kind != InputKind::kParameter) continue;
    const auto buffer = static_cast<std::size_t>(input.buffer);
    const auto arena = static_cast<std::size_t>(program_.buffers[buffer].arena);
    bound_[buffer] = other.bound_[buffer];
    if (bound_[buffer] || program_.arenas[arena].kind != ArenaKind::kParameters) continue;
    other.allocate(arena);
    arenas_[arena] = other.arenas_[arena];
    is_set_[buffer] = other.is_set_[buffer];
  }
}

void RankContext::allocate_unbound() {
  for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
    if (!bound_[b] && !program_.buffers[b].slice)
      allocate(static_cast<std::size_t>(program_.buffers[b].arena));
  }
}

std::uint64_t RankContext::arena_address(std::size_t arena) const {
  const auto& memory = arenas_[arena];
  return memory != nullptr ? memory->address() : heap_.own(arena, local_);
}

std::uint64_t RankContext::address(std::size_t buffer) const {
  if (bound_[buffer]) return bound_[buffer]->tensor.address;
  const Buffer& b = program_.buffers[buffer];
  return arena_address(static_cast<std::size_t>(b.arena)) + static_cast<std::uint64_t>(b.offset);
}

RankPlaces RankContext::places() {
  RankPlaces places;
  places.rank = rank_;
  places.record_address = record_->address();
  for (const auto& marks : marks_of_) {
    places.marks.push_back(reinterpret_cast<std::uint64_t>(marks.data()));
  }
  places.peer_arenas = heap_.peers(local_);
  places.multicasts = heap_.multicasts(local_);
  for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
    places.buffer_addresses.push_back(address(b));
  }
  places.functions = loaded_.functions(local_);
  places.encode = [&device = device_](const MatrixMap& map, std::span<std::uint8_t> bytes) {
    device.encode(map, bytes);
  };
  return places;
}

std::vector<RankContext::NamedMemory> RankContext::named_memory(const Bindings& bindings) const {
  std::vector<NamedMemory> named(program_.arenas.size());
  for (std::size_t a = 0; a < named.size(); ++a) named[a].address = arena_address(a);
  for (const MemoryPart& head : heap_.heads(local_)) {
    for (std::size_t a = 0; a < named.size(); ++a) {
      const std::uint64_t offset = head.address - named[a].address;  // huge if it lies before
      if (offset < static_cast<std::uint64_t>(program_.arenas[a].bytes)) {
        named[a].parts.push_back(head);
      }
    }
  }
  const IndexRange own = variants_of(program_)[variant_at(program_, bindings)].buffers;
  for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
    const Buffer& buffer = program_.buffers[b];
    const bool shared =
        program_.variants.empty() || static_cast<int>(b) < program_.variants.front().buffers.first;
    if (!shared && !own.has(static_cast<int>(b))) continue;  // of a variant that does not run
    if (buffer.slice) continue;
    if (bound_[b]) continue;  // the caller's memory is named by the caller
    const std::int64_t bytes = numel(buffer.type.shape).evaluate(bindings) *
                               static_cast<std::int64_t>(dtype_size(buffer.type.dtype));
    named[buffer.arena].parts.push_back({address(b), static_cast<std::size_t>(bytes), buffer.name});
  }
  std::erase_if(named, [](const NamedMemory& memory) { return memory.address == 0; });
  return named;
}

protocol::Record RankContext::record() const {
  return *reinterpret_cast<const protocol::Record*>(record_->address());
}

void RankContext::reset() {
  stream().fill(record_->address(), 0, sizeof(protocol::Record));
  heap_.zero_flags(local_, stream());
  for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
    const Buffer& buffer = program_.buffers[b];
    const auto arena = static_cast<std::size_t>(buffer.arena);
    if (buffer.kind == BufferKind::kTensor || arenas_[arena] == nullptr) continue;
    stream().fill(address(b), 0, static_cast<std::size_t>(buffer.bytes));
  }
}

}  // namespace braid
