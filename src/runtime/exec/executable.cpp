#include "braid/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include "braid/error.h"
#include "ir/expr.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "ir/poison.h"
#include "lowering/plan/cache_pages.h"
#include "lowering/plan/lay_out.h"
#include "lowering/plan/variants.h"
#include "pack/interval.h"
#include "runtime/compile/artifact.h"
#include "runtime/compile/compile_program.h"
#include "runtime/exec/bound_tensor.h"
#include "runtime/exec/executable_impl.h"

namespace braid {
namespace {

// A grid that waits runs only if it is resident together with those it waits for: it needs a
// multiprocessor per block, and a hardware queue per rank of a GPU. The cpu device runs any grid.
void check_resident(const Program& program, const Device& device) {
  const bool waits = std::ranges::any_of(
      program.kernels, [](const ProgramKernel& k) { return !k.needs.comm_group.empty(); });
  if (!waits || device.kind() == "cpu") return;
  if (device.ranks_per_device() <= kMaxCollectiveBlocks) return;
  throw_invalid(program.name,
                "{} ranks share a GPU, where the kernels of at most {} can wait for each other; "
                "expected fewer ranks, more GPUs or the cpu device",
                device.ranks_per_device(), kMaxCollectiveBlocks);
}

// A cubin runs on GPUs of the same major version and an equal or later minor one; sm_90a only on
// sm_90.
void check_target(const Program& program, const Device& device) {
  if (device.kind() == "cpu") return;
  const Target gpu = Target::parse(device.target());
  const int plan = program.target.sm;
  const bool runs =
      program.target.arch_specific ? plan == gpu.sm : plan / 10 == gpu.sm / 10 && plan <= gpu.sm;
  if (runs) return;
  throw_invalid(program.name,
                "its kernels are for {}, the GPU is {}; expected a plan that was made for it",
                program.target.arch(), gpu.arch());
}

void check_fits(const Program& program, const Device& device) {
  check_ranks(program.name, program.world, device);
  check_target(program, device);
  check_resident(program, device);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<std::int64_t> shape_of(const TensorType& type, const Bindings& bindings) {
  return mapped(type.shape, [&](const Dim& dim) { return dim.evaluate(bindings); });
}

const ProgramTensor* find(const std::vector<ProgramTensor>& tensors, std::string_view name) {
  for (const ProgramTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::vector<ArenaReport> arena_reports(const Program& program) {
  return mapped(program.arenas, [](const Arena& arena) {
    return ArenaReport{arena.name(), arena.bytes};
  });
}

}  // namespace

const Bindings& Executable::Plan::bindings() const {
  if (impl_ == nullptr) throw_invalid("plan", "is empty; expected one of prepare()");
  return impl_->bindings;
}

Executable Executable::compile(const Graph& graph, const World& world, const PassConfig& passes) {
  World::Impl& w = world.impl();
  Program program;
  ProgramCode printed;
  do {
    std::vector<UnitFinding> found;
    w.take_part([&] {
      program = w.lower(graph, passes);
      check_fits(program, *w.device);  // before anything is compiled
      printed = print_program(program);
      found = w.try_units(program, printed);
    });
    w.settle_units(program, std::move(found));
  } while (w.failed_units(printed) != 0);
  std::shared_ptr<const LoadedProgram> loaded;
  w.take_part([&] { loaded = w.compile(std::move(program), std::move(printed)); });
  return Impl::make(world, std::move(loaded));
}

Executable Executable::load(const std::string& path, const World& world) {
  World::Impl& w = world.impl();
  Program program;
  std::optional<ProgramCode> made;
  ProgramCode printed;
  std::vector<UnitFinding> found;
  w.take_part([&] {
    program = load_program(path);
    check_fits(program, *w.device);
    made = read_code(program, std::filesystem::path(path).parent_path());
    if (!made) printed = print_program(program);
    found = w.try_units(program, made ? *made : printed);
  });
  w.settle_units(program, std::move(found));
  w.refuse_failed_units(program, made ? *made : printed);
  std::shared_ptr<const LoadedProgram> loaded;
  w.take_part([&] {
    loaded = made ? w.load(std::move(program), *std::move(made))
                  : w.compile(std::move(program), std::move(printed));
  });
  return Impl::make(world, std::move(loaded));
}

std::vector<ArenaReport> Executable::memory_estimate(const Graph& graph, const World& world,
                                                     const PassConfig& passes) {
  return arena_reports(world.impl().lower(graph, passes));
}

std::int64_t Executable::pages_that_fit(const Graph& graph, const World& world, std::int64_t bytes,
                                        const PassConfig& passes) {
  const CachePages caches = cache_pages(graph);
  std::int64_t room = bytes, of_one = 0;
  for (const ArenaReport& arena : memory_estimate(graph, world, passes)) room -= arena.bytes;
  for (const std::int64_t page : caches.bytes) {
    room += caches.pages * page;
    of_one += page;
  }
  const auto all = [&](std::int64_t pages) {
    std::int64_t sum = 0;
    for (const std::int64_t page : caches.bytes) sum += round_up(pages * page, kBufferAlignment);
    return sum;
  };
  std::int64_t pages = std::max<std::int64_t>(0, room / of_one);
  while (pages > 0 && all(pages) > room) --pages;
  return pages;
}

void Executable::save(const std::string& directory) const {
  if (directory.empty()) throw_invalid("directory", "is empty; expected one to write into");
  (void)write_artifact(impl().program, impl().loaded->code(), directory);
}

Executable Executable::Impl::make(const World& world, std::shared_ptr<const LoadedProgram> loaded) {
  std::unique_ptr<Impl> made;
  world.impl().take_part([&] { made = std::make_unique<Impl>(world.impl_, std::move(loaded)); });
  made->meet();
  return Executable(std::move(made));
}

Executable Executable::Impl::make(const World& world, Program program, ProgramCode code) {
  World::Impl& w = world.impl();
  std::shared_ptr<const LoadedProgram> loaded;
  w.take_part([&] {
    check_fits(program, *w.device);
    loaded = w.load(std::move(program), std::move(code));
  });
  return make(world, std::move(loaded));
}

void Executable::Impl::accept_unset(Executable& executable) {
  for (const auto& of_rank : executable.impl().current->unset) {
    for (const RankContext::Unset& input : of_rank) *input.is_set = true;
  }
}

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Executable Executable::another() {
  std::unique_ptr<Impl> made;
  impl().world->take_part([&] {
    made = std::make_unique<Impl>(impl().world, impl().loaded);
    for (std::size_t local = 0; local < made->ranks.size(); ++local) {
      made->ranks[local]->share_parameters(*impl().ranks[local]);
    }
  });
  made->meet();
  return Executable(std::move(made));
}

Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() {
  // A fork lacks the threads that destruction would wait for.
  if (impl_ != nullptr && impl_->world->is_fork()) (void)impl_.release();
}

Executable::Impl& Executable::impl() const {
  if (impl_ == nullptr) throw_invalid("executable", "was moved from; expected one that is there");
  impl_->world->refuse_fork();
  return *impl_;
}

void Executable::bind(int rank, std::string_view name, const DeviceTensor& tensor) {
  const std::size_t local = impl().local_of(rank);
  const Program& program = impl().program;
  const ProgramTensor* bound = find(program.inputs, name);
  if (bound == nullptr) bound = find(program.outputs, name);
  if (bound == nullptr) throw_invalid(std::string(name), "is no input or output of the program");
  check_bound(bound->name, bound->type, tensor);
  const auto buffer = static_cast<std::size_t>(bound->buffer);
  const Arena& arena = program.arenas[program.buffers[buffer].arena];
  if (arena.kind == ArenaKind::kWorkspace || arena.kind == ArenaKind::kSymmetric) {
    throw_invalid(bound->name, "lies in arena {} and cannot be bound", arena.name());
  }
  try {
    impl().world->device->check_memory(rank, tensor.address, dense_bytes(tensor));
  } catch (const Error& error) {
    throw Error(error.code(), bound->name, error.what());
  }
  impl().ranks[local]->bind(*bound, tensor);
  impl().current = nullptr;
  impl().last_run = nullptr;
}

Executable::Plan Executable::prepare(const Bindings& bindings) {
  Plan plan;
  plan.impl_ = impl().make_plan(bindings);
  impl().make_current(plan.impl_);
  return plan;
}

bool Executable::ready(const Bindings& bindings) const {
  return impl().loaded->is_compiled(variant_at(impl().program, impl().checked(bindings)));
}

void Executable::set_input(int rank, std::string_view name, const HostTensor& tensor) {
  const Plan::Impl& plan = impl().require_prepared("set_input");
  const std::size_t local = impl().local_of(rank);
  const ProgramTensor* input = find(impl().program.inputs, name);
  if (input == nullptr) throw_invalid(std::string(name), "is no input of the program");
  const std::vector<std::int64_t> shape = shape_of(input->type, plan.bindings);
  if (tensor.dtype != input->type.dtype || tensor.shape != shape) {
    throw_invalid(std::string(name), "is {}{}; expected {}{}", dtype_name(tensor.dtype),
                  shape_text(tensor.shape), dtype_name(input->type.dtype), shape_text(shape));
  }
  const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype);
  if (tensor.data.size() != bytes) {
    throw_invalid(std::string(name), "has {} bytes of data; expected {}", tensor.data.size(),
                  bytes);
  }
  if (bytes != 0) {
    Stream& stream = impl().ranks[local]->stream_after_runs();
    stream.copy_from_host(plan.addresses[local][input->buffer], tensor.data.data(), bytes);
    stream.synchronize();  // the tensor is the caller's and may go away
  }
  for (const RankContext::Unset& unset : plan.unset[local]) {
    if (unset.input == input) *unset.is_set = true;
  }
}

void Executable::run() { run(std::span<Stream* const>()); }

void Executable::run(std::span<Stream* const> streams) {
  Impl& own = impl();
  (void)own.require_prepared("run");
  own.run(streams);
}

void Executable::run(const Plan& plan, std::span<Stream* const> streams) {
  Impl& own = impl();
  own.check_own(plan.impl_.get(), "run");
  own.make_current(plan.impl_);
  own.run(streams);
}

void Executable::run_rank(const Plan& plan, int rank, Stream* stream) {
  Impl& own = impl();
  own.check_own(plan.impl_.get(), "run_rank");
  own.run_rank(plan.impl_, own.local_of(rank), stream);
}

std::vector<StepTime> Executable::trace() {
  (void)impl().require_prepared("trace");
  return impl().trace();
}

void Executable::cancel() { impl().cancel(); }

void Executable::synchronize() { impl().synchronize(); }

void Executable::recover() { impl().recover(); }

void Executable::poison_outputs() {
  const Plan::Impl& plan = impl().require_prepared("poison_outputs");
  for (std::size_t local = 0; local < impl().ranks.size(); ++local) {
    Stream& stream = impl().ranks[local]->stream_after_runs();
    for (const ProgramTensor& output : impl().program.outputs) {
      const std::size_t size = dtype_size(output.type.dtype);
      const std::uint64_t element = poison_bits(output.type.dtype);
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(numel(output.type.shape).evaluate(plan.bindings)) * size);
      for (std::size_t at = 0; at < bytes.size(); at += size) {
        std::memcpy(bytes.data() + at, &element, size);
      }
      if (bytes.empty()) continue;
      stream.copy_from_host(plan.addresses[local][output.buffer], bytes.data(), bytes.size());
      stream.synchronize();  // the bytes go away
    }
  }
}

HostTensor Executable::output(int rank, std::string_view name) {
  const std::size_t local = impl().local_of(rank);
  const ProgramTensor* output = find(impl().program.outputs, name);
  if (output == nullptr) output = find(impl().program.inputs, name);
  if (output == nullptr) throw_invalid(std::string(name), "is no output or input of the program");
  impl().synchronize();
  if (impl().last_run == nullptr) {
    throw_invalid(std::string(name), "there is no output before a run");
  }
  const Plan::Impl& plan = *impl().last_run;
  HostTensor tensor;
  tensor.dtype = output->type.dtype;
  tensor.shape = shape_of(output->type, plan.bindings);
  tensor.data.resize(static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype));
  if (tensor.data.empty()) return tensor;
  Stream& stream = impl().ranks[local]->stream();
  stream.copy_to_host(tensor.data.data(), plan.addresses[local][output->buffer],
                      tensor.data.size());
  stream.synchronize();
  return tensor;
}

std::vector<GraphInput> Executable::inputs() const {
  return mapped(impl().program.inputs, [](const ProgramTensor& input) {
    return GraphInput{input.name, input.type, input.kind, input.per_rank};
  });
}

std::vector<ExecutableOutput> Executable::outputs() const {
  return mapped(impl().program.outputs, [](const ProgramTensor& output) {
    return ExecutableOutput{output.name, output.type};
  });
}

const SymbolTable& Executable::symbols() const { return impl().program.symbols; }

std::vector<KernelReport> Executable::kernels() const {
  const auto& current = impl().current;
  return kernel_reports(impl().program, impl().loaded->code(),
                        current == nullptr ? nullptr : &current->bindings);
}

std::vector<ArenaReport> Executable::arenas() const { return arena_reports(impl().program); }

std::vector<BufferReport> Executable::buffers() const {
  std::vector<BufferReport> reports;
  for (const Buffer& buffer : impl().program.buffers) {
    if (buffer.slice) continue;
    const Arena& arena = impl().program.arenas[buffer.arena];
    reports.push_back({buffer.name, arena.name(), buffer.offset, buffer.bytes});
  }
  return reports;
}

int Executable::launches() const {
  const Program& program = impl().program;
  const std::vector<Variant> variants = variants_of(program);
  const auto& current = impl().current;
  const std::size_t v =
      current == nullptr ? variants.size() - 1 : variant_at(program, current->bindings);
  int count = 0;
  for (int s = variants[v].steps.first; s < variants[v].steps.end; ++s) {
    count += program.steps[s].kernel >= 0 ? 1 : 0;
  }
  return count;
}

bool Executable::batch_invariant() const { return impl().program.batch_invariant; }
const std::string& Executable::program_hash() const { return impl().program.hash; }
std::string Executable::program_json() const { return to_json(impl().program); }

}  // namespace braid
