#include "braid/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
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
#include "runtime/exec/launch_plan.h"
#include "runtime/exec/run_record.h"
#include "runtime/exec/world.h"

namespace braid {
namespace {

constexpr std::uint32_t kSharedBytesWithoutOptIn = 48 << 10;
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
  if (device.kind() == "cpu") return;
  if (program.ranks_per_device < device.ranks_per_device()) {
    throw_invalid(program.name, fmt::format("planned for {} rank(s) of a GPU, where {} share one",
                                            program.ranks_per_device, device.ranks_per_device()));
  }
  const Target target = Target::parse(device.target());
  if (program.target.sm > target.sm ||
      (program.target.arch_specific && program.target.sm != target.sm)) {
    throw_invalid(program.name, fmt::format("its kernels are for {}, the GPU is {}",
                                            program.target.str(), target.str()));
  }
}

Program lower_for(const Graph& graph, const Device& device, const std::string& target,
                  const PassConfig& passes) {
  check_ranks(graph.name(), world_size(graph), device);
  PassContext context;
  // The cpu device runs what was compiled for any target.
  const bool any = device.kind() == "cpu";
  context.target = choose_target(graph, target.empty() && !any ? device.target() : target);
  context.ranks_per_device = device.ranks_per_device();
  context.config = passes;
  return lower(graph, context);
}

// Ranks that disagree about layout, grids or kernels would hang or read garbage: refuse before the
// first launch.
void check_equal_hashes(std::span<const std::string> hashes) {
  for (std::size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank] != hashes[0]) {
      throw_internal("program", fmt::format("rank 0 has the plan {}, rank {} has {}", hashes[0],
                                            rank, hashes[rank]));
    }
  }
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

struct Executable::Impl {
  // What one rank owns. Destroyed in reverse: streams before modules before memory.
  struct Rank {
    std::unique_ptr<Memory> record;                ///< a protocol::Record that the host sees
    std::vector<std::unique_ptr<Memory>> arenas;   ///< null until needed
    std::vector<std::unique_ptr<Module>> modules;  ///< of each source
    std::vector<std::uint64_t> bound;              ///< the caller's address of each buffer, or 0
    std::unique_ptr<Stream> stream;
    std::vector<std::unique_ptr<Stream>> more_streams;  ///< of the program, from its stream 1 on
    std::vector<std::unique_ptr<Event>> events;
  };

  Impl(std::shared_ptr<World::Impl> world_impl, Program plan_of_it, ProgramCode code_of_it)
      : world(std::move(world_impl)),
        program(std::move(plan_of_it)),
        code(std::move(code_of_it)),
        ranks(static_cast<std::size_t>(world->device->world())) {
    check_fits(program, *world->device);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      Rank& rank = ranks[r];
      rank.arenas.resize(program.arenas.size());
      rank.bound.resize(program.buffers.size());
      rank.stream = world->device->create_stream(static_cast<int>(r));
      for (int s = 1; s < stream_count(program); ++s) {
        rank.more_streams.push_back(world->device->create_stream(static_cast<int>(r)));
      }
      for (int e = 0; e < events_needed(program); ++e) {
        rank.events.push_back(world->device->create_event(static_cast<int>(r)));
      }
      rank.record = world->device->allocate_host(static_cast<int>(r), sizeof(protocol::Record));
      world->device->name_parts(
          rank.record->address(),
          std::vector<MemoryPart>{{rank.record->address(), sizeof(protocol::Record), "record"}});
      for (const CompiledKernel& kernel : code.compiled) {
        rank.modules.push_back(world->device->load(static_cast<int>(r), kernel.image));
      }
      for (std::size_t a = 0; a < program.arenas.size(); ++a) {
        const ArenaKind kind = program.arenas[a].kind;
        if (kind == ArenaKind::kSymmetric || kind == ArenaKind::kWorkspace) allocate(r, a);
      }
    }
    reset();
    check_equal_hashes(std::vector<std::string>(ranks.size(), program.hash));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    // Work in flight uses the memory that goes away now; its errors have no one left to tell.
    for (Rank& rank : ranks) {
      try {
        rank.stream->synchronize();
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      }
    }
  }

  void allocate(std::size_t rank, std::size_t arena) {
    std::unique_ptr<Memory>& memory = ranks[rank].arenas[arena];
    if (memory != nullptr) return;
    memory = world->device->allocate(static_cast<int>(rank),
                                     static_cast<std::size_t>(program.arenas[arena].bytes));
  }

  // Zeroes flags, scratch, abort words and records on all ranks. Nothing may be in flight.
  void reset() {
    for (Rank& rank : ranks) {
      rank.stream->fill(rank.record->address(), 0, sizeof(protocol::Record));
    }
    for (std::size_t a = 0; a < program.arenas.size(); ++a) {
      if (program.arenas[a].kind != ArenaKind::kSymmetric) continue;
      for (Rank& rank : ranks) {
        rank.stream->fill(rank.arenas[a]->address(), 0, protocol::kHeadBytes);
      }
    }
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      if (buffer.kind == BufferKind::kTensor) continue;
      for (Rank& rank : ranks) {
        rank.stream->fill(address(rank, b), 0, static_cast<std::size_t>(buffer.bytes));
      }
    }
    synchronize_streams();
  }

  // Waits for every rank, then throws the first error.
  void synchronize_streams() {
    std::exception_ptr first;
    for (Rank& rank : ranks) {
      try {
        rank.stream->synchronize();
      } catch (const std::exception&) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
  }

  // Reads the records; throws when something went wrong in a run since the last check, with
  // everything reset for another run.
  void check_records() {
    std::vector<protocol::Record> records;
    for (const Rank& rank : ranks) {
      records.push_back(*reinterpret_cast<const protocol::Record*>(rank.record->address()));
    }
    const std::optional<Error> error = run_error(program, records, world->timeout_ns);
    if (!error) return;
    has_run = false;
    reset();
    throw Error(*error);
  }

  // Ranks that stopped at different places would wait for epochs that never come.
  void recover() {
    has_run = unchecked = false;
    try {
      reset();
    } catch (const std::exception&) {
      // A device that is lost says so at every call.
    }
  }

  void synchronize() {
    try {
      synchronize_streams();
    } catch (const std::exception&) {
      recover();
      throw;
    }
    if (!unchecked) return;
    unchecked = false;
    check_records();
  }

  Rank& rank_at(int rank) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= ranks.size()) {
      throw_invalid("rank", fmt::format("{} is not in a world of {}", rank, ranks.size()));
    }
    return ranks[static_cast<std::size_t>(rank)];
  }

  [[nodiscard]] static const ProgramTensor* find(const std::vector<ProgramTensor>& tensors,
                                                 std::string_view name) {
    for (const ProgramTensor& tensor : tensors) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }

  // Where a buffer is on a rank: the caller's memory or its arena.
  [[nodiscard]] std::uint64_t address(const Rank& rank, std::size_t index) const {
    if (rank.bound[index] != 0) return rank.bound[index];
    const Buffer& buffer = program.buffers[index];
    const auto& memory = rank.arenas[static_cast<std::size_t>(buffer.arena)];
    if (memory == nullptr) return 0;
    return memory->address() + static_cast<std::uint64_t>(buffer.offset);
  }

  /// Tells the device what lies where at these bindings.
  void name_memory(const Rank& rank, const Bindings& values) const {
    std::vector<std::vector<MemoryPart>> parts(program.arenas.size());
    for (std::size_t a = 0; a < program.arenas.size(); ++a) {
      if (program.arenas[a].kind != ArenaKind::kSymmetric || rank.arenas[a] == nullptr) continue;
      parts[a].push_back(
          {rank.arenas[a]->address(), protocol::kHeadBytes, program.arenas[a].name() + " head"});
    }
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      if (rank.bound[b] != 0) continue;  // the caller's memory, and the caller's to name
      const std::int64_t bytes = numel(buffer.type.shape).evaluate(values) *
                                 static_cast<std::int64_t>(dtype_size(buffer.type.dtype));
      parts[static_cast<std::size_t>(buffer.arena)].push_back(
          {address(rank, b), static_cast<std::size_t>(bytes), buffer.name});
    }
    for (std::size_t a = 0; a < parts.size(); ++a) {
      if (rank.arenas[a] != nullptr) {
        world->device->name_parts(rank.arenas[a]->address(), parts[a]);
      }
    }
  }

  [[nodiscard]] std::vector<std::int64_t> shape_of(const TensorType& type) const {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(dim.evaluate(*bindings));
    return shape;
  }

  void require_prepared(const char* call) const {
    if (!bindings) throw_invalid(call, "prepare() must be called first");
  }

  void prepare(const Bindings& values) {
    // The graph is gone; its symbol table suffices to check values for it.
    Graph interface(program.name);
    for (const auto& [name, symbol] : program.symbols) interface.add_symbol(name, symbol);
    Bindings complete = check_bindings(interface, values);

    // A plan in use must not lose its arguments.
    synchronize();
    bindings.reset();
    has_run = false;
    std::vector<RankPlaces> places(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      Rank& rank = ranks[r];
      // Parameters and io need no arena where the caller has bound all of it.
      for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        if (rank.bound[b] == 0) allocate(r, static_cast<std::size_t>(program.buffers[b].arena));
      }
      name_memory(rank, complete);
      places[r].streams = {rank.stream.get()};
      for (const auto& stream : rank.more_streams) places[r].streams.push_back(stream.get());
      for (const auto& event : rank.events) places[r].events.push_back(event.get());
      places[r].record_address = rank.record->address();
      for (const auto& memory : rank.arenas) {
        places[r].arena_addresses.push_back(memory == nullptr ? 0 : memory->address());
      }
      for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        places[r].buffer_addresses.push_back(address(rank, b));
      }
      for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        const std::size_t source = code.code_of[k];
        Function& function = rank.modules[source]->function(code.sources[source].entry);
        const auto shared = static_cast<std::uint32_t>(program.kernels[k].needs.shared_bytes);
        if (shared > kSharedBytesWithoutOptIn) function.set_max_dynamic_shared(shared);
        places[r].functions.push_back(&function);
      }
    }
    plan = LaunchPlan(program, complete, places, world->timeout_ns);
    bindings = std::move(complete);
  }

  std::shared_ptr<World::Impl> world;
  Program program;
  ProgramCode code;
  std::vector<Rank> ranks;
  std::optional<Bindings> bindings;  ///< complete; none when prepare() is due
  LaunchPlan plan;
  bool has_run = false;    ///< outputs are there, or under way
  bool unchecked = false;  ///< runs whose records were not looked at yet
};

Executable Executable::compile(const Graph& graph, const World& world, const PassConfig& passes) {
  const World::Impl& w = *world.impl_;
  Program program = lower_for(graph, *w.device, w.target, passes);
  check_fits(program, *w.device);  // before anything is compiled
  ProgramCode code = compile_program(program, w.cache.get(), w.progress, w.line_info);
  return {world, std::move(program), std::move(code)};
}

Executable Executable::load(const std::string& path, const World& world) {
  const World::Impl& w = *world.impl_;
  Program program = load_program(path);
  check_fits(program, *w.device);
  std::optional<ProgramCode> code = read_code(program, std::filesystem::path(path).parent_path());
  if (!code) code = compile_program(program, w.cache.get(), w.progress, w.line_info);
  return {world, std::move(program), *std::move(code)};
}

Executable::Executable(const World& world, Program program, ProgramCode code)
    : impl_(std::make_unique<Impl>(world.impl_, std::move(program), std::move(code))) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

void Executable::bind(int rank, std::string_view name, std::uint64_t address) {
  Impl::Rank& place = impl_->rank_at(rank);
  const ProgramTensor* tensor = Impl::find(impl_->program.inputs, name);
  if (tensor == nullptr) tensor = Impl::find(impl_->program.outputs, name);
  if (tensor == nullptr) throw_invalid(std::string(name), "is no input or output of the program");
  if (address == 0 || address % kBoundAlignment != 0) {
    throw_invalid(std::string(name),
                  fmt::format("address {:#x}; expected a multiple of {} other than 0", address,
                              kBoundAlignment));
  }
  const auto buffer = static_cast<std::size_t>(tensor->buffer);
  const Arena& arena =
      impl_->program.arenas[static_cast<std::size_t>(impl_->program.buffers[buffer].arena)];
  if (arena.kind != ArenaKind::kParameters && arena.kind != ArenaKind::kIo) {
    throw_invalid(std::string(name),
                  fmt::format("lies in arena {} and cannot be bound", arena.name()));
  }
  impl_->synchronize();  // a run under way still uses the old address
  place.bound[buffer] = address;
  impl_->bindings.reset();
  impl_->has_run = false;
}

void Executable::prepare(const Bindings& bindings) { impl_->prepare(bindings); }

void Executable::set_input(int rank, std::string_view name, const HostTensor& tensor) {
  impl_->require_prepared("set_input");
  Impl::Rank& place = impl_->rank_at(rank);
  const ProgramTensor* input = Impl::find(impl_->program.inputs, name);
  if (input == nullptr) throw_invalid(std::string(name), "is no input of the program");
  const std::vector<std::int64_t> shape = impl_->shape_of(input->type);
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
  const auto buffer = static_cast<std::size_t>(input->buffer);
  place.stream->copy_from_host(impl_->address(place, buffer), tensor.data.data(), bytes);
  place.stream->synchronize();  // the tensor is the caller's and may go away
}

void Executable::run() {
  impl_->require_prepared("run");
  impl_->has_run = true;
  impl_->unchecked = true;
  const std::lock_guard lock(impl_->world->enqueue);
  impl_->plan.run();
}

void Executable::synchronize() { impl_->synchronize(); }

void Executable::poison_outputs() {
  impl_->require_prepared("poison_outputs");
  for (Impl::Rank& rank : impl_->ranks) {
    for (const ProgramTensor& output : impl_->program.outputs) {
      const std::size_t size = dtype_size(output.type.dtype);
      const std::uint64_t element = poison_bits(output.type.dtype);
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(numel(output.type.shape).evaluate(*impl_->bindings)) * size);
      for (std::size_t at = 0; at < bytes.size(); at += size) {
        std::memcpy(bytes.data() + at, &element, size);
      }
      if (bytes.empty()) continue;
      rank.stream->copy_from_host(impl_->address(rank, static_cast<std::size_t>(output.buffer)),
                                  bytes.data(), bytes.size());
      rank.stream->synchronize();  // the bytes go away
    }
  }
}

HostTensor Executable::output(int rank, std::string_view name) {
  Impl::Rank& place = impl_->rank_at(rank);
  const ProgramTensor* output = Impl::find(impl_->program.outputs, name);
  if (output == nullptr) throw_invalid(std::string(name), "is no output of the program");
  impl_->synchronize();
  impl_->require_prepared("output");
  if (!impl_->has_run) throw_invalid(std::string(name), "there is no output before a run");
  HostTensor tensor;
  tensor.dtype = output->type.dtype;
  tensor.shape = impl_->shape_of(output->type);
  tensor.data.resize(static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype));
  if (tensor.data.empty()) return tensor;
  const auto buffer = static_cast<std::size_t>(output->buffer);
  place.stream->copy_to_host(tensor.data.data(), impl_->address(place, buffer), tensor.data.size());
  place.stream->synchronize();
  return tensor;
}

std::vector<KernelReport> Executable::kernels() const {
  return kernel_reports(impl_->program, impl_->code, impl_->bindings ? &*impl_->bindings : nullptr);
}

std::vector<ArenaReport> Executable::arenas() const {
  std::vector<ArenaReport> reports;
  for (const Arena& arena : impl_->program.arenas) reports.push_back({arena.name(), arena.bytes});
  return reports;
}

std::vector<BufferReport> Executable::buffers() const {
  std::vector<BufferReport> reports;
  for (const Buffer& buffer : impl_->program.buffers) {
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
