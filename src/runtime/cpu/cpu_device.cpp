#include "runtime/cpu/cpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "braid/error.h"
#include "runtime/bytes.h"
#include "runtime/cpu/check/counter.h"
#include "runtime/cpu/check/sanitizer.h"
#include "runtime/cpu/run/engine.h"
#include "runtime/cpu/run/fault.h"
#include "runtime/cpu/run/guarded_memory.h"
#include "runtime/cpu/run/multicast.h"
#include "runtime/cpu/translate/jit.h"

namespace braid {
namespace cpu {
namespace {

constexpr std::uint32_t kMaxShared = 227 * 1024;
constexpr std::uint32_t kDefaultShared = 48 * 1024;
constexpr std::uint64_t kMaxThreads = 1024;
constexpr std::size_t kMaxInlineCopy = 64 * 1024;

struct Allocation;

/// The linked code of a program: for each entry the variants that were asked for.
struct Variants {
  explicit Variants(std::size_t entries) : linked(entries) {}
  std::mutex mutex;
  std::vector<std::array<std::unique_ptr<Jit::Linked>, 2>> linked;
};

/// What all objects of one device share; it lives until the last of them is gone.
struct Core {
  Core(const CpuOptions& options, int threads)
      : world(options.world),
        sanitizer(options.checks == 0 ? nullptr : std::make_unique<Sanitizer>(options.checks)),
        scheduler(options.schedule.kind == Schedule::Kind::kTurns || options.checks == 0
                      ? nullptr
                      : std::make_unique<Scheduler>(options.schedule, options.world)),
        counter(options.count ? std::make_unique<Counter>() : nullptr),
        jit(options.cache, {.checks = options.checks != 0, .counts = options.count}),
        faults(options.catch_faults ? std::make_unique<FaultHandler>() : nullptr),
        engine(threads, sanitizer.get(), scheduler.get(), counter.get()) {}

  /// Ranks load the same text: it is parsed once while any of them holds it.
  std::shared_ptr<const Program> parse(const std::string& text) {
    const std::lock_guard lock(mutex);
    std::weak_ptr<const Program>& known = programs[text].program;
    std::shared_ptr<const Program> program = known.lock();
    if (program == nullptr) known = program = std::make_shared<const Program>(text);
    return program;
  }

  /// Where no variable of its own tells one rank's code from another's, ranks share it, too: the
  /// kernel of a process that has many ranks takes few mappings.
  std::shared_ptr<Variants> variants(const Program& program) {
    const std::size_t entries = program.entries().size();
    if (program.globals_bytes() != 0) return std::make_shared<Variants>(entries);
    const std::lock_guard lock(mutex);
    std::weak_ptr<Variants>& known = programs[program.text()].variants;
    std::shared_ptr<Variants> variants = known.lock();
    if (variants == nullptr) known = variants = std::make_shared<Variants>(entries);
    return variants;
  }

  [[nodiscard]] bool watches() const { return sanitizer != nullptr || counter != nullptr; }

  int world;
  std::unique_ptr<Sanitizer> sanitizer;  ///< null when nothing is checked
  std::unique_ptr<Scheduler> scheduler;  ///< null to take turns
  std::unique_ptr<Counter> counter;      ///< null when nothing is counted
  Jit jit;
  AddressRange range;
  MulticastTable multicasts;
  std::unique_ptr<FaultHandler> faults;  ///< null where the host has its own
  Engine engine;
  std::mutex mutex;
  struct Known {
    std::weak_ptr<const Program> program;
    std::weak_ptr<Variants> variants;
  };
  std::unordered_map<std::string, Known> programs;  ///< by their text
  /// By address: ranks share memory within the device.
  std::map<std::uint64_t, std::weak_ptr<Allocation>> allocations;
};

/// A stretch of memory, until the last rank that holds it is gone.
struct Allocation {
  Allocation(std::shared_ptr<Core> core_of_it, int rank_of_it, std::size_t bytes)
      : core(std::move(core_of_it)), rank(rank_of_it), memory(core->range, bytes) {
    if (core->sanitizer != nullptr) {
      core->sanitizer->add_memory(rank, address(), bytes, "memory", false);
    }
    if (core->counter != nullptr) core->counter->add_memory(rank, address(), bytes);
  }
  /// That of another device, in another process maybe.
  Allocation(std::shared_ptr<Core> core_of_it, int rank_of_it, std::size_t bytes, MemoryFile shared)
      : core(std::move(core_of_it)),
        rank(rank_of_it),
        memory(core->range, bytes, shared),
        file(std::move(shared)) {}
  ~Allocation() {
    core->multicasts.unbind(address());
    if (core->sanitizer != nullptr) core->sanitizer->remove_memory(address());
    if (core->counter != nullptr) core->counter->remove_memory(address());
    const std::lock_guard lock(core->mutex);
    core->allocations.erase(address());
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  [[nodiscard]] std::uint64_t address() const {
    return reinterpret_cast<std::uint64_t>(memory.data());
  }

  std::shared_ptr<Core> core;
  int rank;  ///< whose it is, here or elsewhere
  GuardedMemory memory;
  MemoryFile file;  ///< not open before the memory is exported
};

constexpr std::string_view kHandleTag = "cpu memory";
constexpr std::uint32_t kHandleFormat = 3;

/// The checks know what the ranks of one device do, and of no other accesses.
constexpr const char* kWatched =
    "a device that checks or counts what kernels do shares none with another one; expected all "
    "ranks in one process";

template <class To, class From>
To& ours(From& object) {
  auto* cast = dynamic_cast<To*>(&object);
  if (cast == nullptr) throw_invalid("cpu", "the object belongs to another device");
  return *cast;
}

/// Addresses that stand for memory of many ranks.
class CpuMulticast final : public Multicast {
 public:
  CpuMulticast(std::shared_ptr<Core> core, std::span<const int> ranks, std::size_t bytes)
      : core_(std::move(core)), range_(core_->range, bytes) {
    range_.forbid();
    core_->multicasts.add(address(), bytes, {ranks.begin(), ranks.end()});
    if (core_->sanitizer != nullptr) core_->sanitizer->add_multicast(address(), bytes);
  }
  ~CpuMulticast() override {
    core_->multicasts.remove(address());
    if (core_->sanitizer != nullptr) core_->sanitizer->remove_memory(address());
  }
  CpuMulticast(const CpuMulticast&) = delete;
  CpuMulticast& operator=(const CpuMulticast&) = delete;
  [[nodiscard]] std::uint64_t address() const override {
    return reinterpret_cast<std::uint64_t>(range_.data());
  }
  [[nodiscard]] std::size_t size() const override { return range_.size(); }
  [[nodiscard]] Core& core() const { return *core_; }

 private:
  std::shared_ptr<Core> core_;
  GuardedMemory range_;
};

class CpuMemory final : public Memory {
 public:
  explicit CpuMemory(std::shared_ptr<Allocation> allocation) : allocation_(std::move(allocation)) {}
  [[nodiscard]] std::uint64_t address() const override { return allocation_->address(); }
  [[nodiscard]] std::size_t size() const override { return allocation_->memory.size(); }
  [[nodiscard]] std::string export_handle() const override {
    Core& core = *allocation_->core;
    MemoryFile& file = allocation_->file;
    const std::lock_guard lock(core.mutex);
    if (!core.watches() && !file.is_open()) file = allocation_->memory.share();
    ByteWriter out;
    out.string(kHandleTag);
    out.value(kHandleFormat);
    out.value<std::int64_t>(::getpid());
    out.value(reinterpret_cast<std::uint64_t>(&core));
    out.value(address());
    out.value<std::uint64_t>(size());
    out.value<std::int64_t>(allocation_->rank);
    out.string(file.is_open() ? file.handle() : "");
    return out.take();
  }
  void bind_multicast(Multicast& multicast, std::size_t offset) override {
    const auto& range = ours<CpuMulticast>(multicast);
    if (&range.core() != allocation_->core.get()) {
      throw_invalid("multicast", "it belongs to another device");
    }
    range.core().multicasts.bind(range.address(), offset, allocation_->rank, address(), size());
  }

 private:
  std::shared_ptr<Allocation> allocation_;
};

std::unique_ptr<Memory> imported_memory(const std::shared_ptr<Core>& core,
                                        std::string_view handle) {
  ByteReader in(handle);
  if (in.string() != kHandleTag) {
    throw_invalid("memory", "the bytes are no handle of a cpu device's memory");
  }
  const auto format = in.value<std::uint32_t>();
  if (format != kHandleFormat) {
    throw_invalid("memory", "the handle is of format " + std::to_string(format) + "; expected " +
                                std::to_string(kHandleFormat) +
                                ": the same version of braid on all ranks");
  }
  const auto process = in.value<std::int64_t>();
  const auto device = in.value<std::uint64_t>();
  const auto address = in.value<std::uint64_t>();
  const auto bytes = in.value<std::uint64_t>();
  const auto rank = in.value<std::int64_t>();
  const std::string_view file = in.string();
  if (!in.done() || rank < 0 || rank >= core->world)
    throw_invalid("memory", "the handle is damaged");
  if (process != ::getpid() || device != reinterpret_cast<std::uint64_t>(core.get())) {
    if (core->watches() || file.empty()) throw_environment("memory", kWatched);
    return std::make_unique<CpuMemory>(
        std::make_shared<Allocation>(core, static_cast<int>(rank), bytes, MemoryFile::open(file)));
  }
  const std::lock_guard lock(core->mutex);
  const auto found = core->allocations.find(address);
  std::shared_ptr<Allocation> allocation;
  if (found != core->allocations.end()) allocation = found->second.lock();
  if (allocation == nullptr) throw_environment("memory", "was freed before it was imported");
  return std::make_unique<CpuMemory>(std::move(allocation));
}

std::string shape(Dim3 block) {
  return std::to_string(block.x) + " x " + std::to_string(block.y) + " x " +
         std::to_string(block.z);
}

/// The code of one module on one rank, with its global variables.
class Code {
 public:
  Code(std::shared_ptr<Core> core, int rank, const KernelImage& image)
      : core_(std::move(core)),
        program_(core_->parse(image.ptx)),
        file_(image.file),
        variants_(core_->variants(*program_)) {
    if (program_->globals_bytes() != 0) {
      globals_ = GuardedMemory(core_->range, program_->globals_bytes());
      fill_globals();
      if (core_->sanitizer != nullptr) {
        core_->sanitizer->add_memory(rank, reinterpret_cast<std::uint64_t>(globals_.data()),
                                     program_->globals_bytes(), "a variable of the module", true);
      }
    }
    for (std::size_t e = 0; e < program_->entries().size(); ++e) {
      if (program_->entries()[e].name == image.entry) prepare(e);
    }
  }

  ~Code() {
    if (core_->sanitizer == nullptr || globals_.size() == 0) return;
    core_->sanitizer->remove_memory(reinterpret_cast<std::uint64_t>(globals_.data()));
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  [[nodiscard]] const Program& program() const { return *program_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] AddressRange& memory() const { return core_->range; }
  [[nodiscard]] const MulticastTable& multicasts() const { return core_->multicasts; }
  [[nodiscard]] std::shared_ptr<const Program> shared_program() const { return program_; }

  /// Compiles the variant of an entry that its launches most likely want. Throws when it cannot
  /// run.
  void prepare(std::size_t entry) { kernel(entry, !program_->entries()[entry].needs_general); }

  /// The variant for full rows of 32 threads, or for any block; compiled on first use.
  const Kernel& kernel(std::size_t entry, bool aligned) {
    const std::lock_guard lock(variants_->mutex);
    auto& variant = variants_->linked[entry][aligned ? 1 : 0];
    if (variant == nullptr) variant = core_->jit.load(*program_, entry, aligned, globals_.data());
    return variant->kernel();
  }

 private:
  void fill_globals() {
    const auto& variables = program_->module().variables;
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (variables[v].init.empty()) continue;
      std::uint8_t* at = globals_.data() + program_->offsets()[v];
      std::memcpy(at, variables[v].init.data(), variables[v].init.size());
      for (const ptx::Variable::Relocation& relocation : variables[v].relocations) {
        const std::uint64_t target =
            reinterpret_cast<std::uint64_t>(globals_.data()) +
            static_cast<std::uint64_t>(
                program_->offsets()[static_cast<std::size_t>(relocation.variable)]) +
            static_cast<std::uint64_t>(relocation.addend);
        std::memcpy(at + relocation.offset, &target, sizeof(target));
      }
    }
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<const Program> program_;
  std::string file_;
  std::shared_ptr<Variants> variants_;
  GuardedMemory globals_;  ///< none for a module without variables
};

class CpuFunction final : public Function {
 public:
  CpuFunction(std::shared_ptr<Code> code, std::size_t entry)
      : code_(std::move(code)), entry_(entry) {}

  void set_max_dynamic_shared(std::uint32_t bytes) override {
    const std::uint32_t fixed = code_->program().shared_bytes(static_cast<int>(entry_));
    if (bytes > kMaxShared || fixed > kMaxShared - bytes) {
      throw_environment(name(), std::to_string(bytes) + " bytes of dynamic and " +
                                    std::to_string(fixed) +
                                    " of static shared memory are above the limit of " +
                                    std::to_string(kMaxShared));
    }
    max_shared_ = std::max(max_shared_, bytes);
  }

  [[nodiscard]] std::vector<std::size_t> parameter_sizes() const override {
    std::vector<std::size_t> sizes;
    for (const Program::Parameter& parameter : entry().parameters) sizes.push_back(parameter.size);
    return sizes;
  }

  [[nodiscard]] const std::string& name() const { return entry().name; }

  std::unique_ptr<LaunchOp> prepare(const LaunchConfig& config, std::span<const void* const> args) {
    const Dim3 block = config.block;
    check(config, args.size());
    auto op = std::make_unique<LaunchOp>();
    Launch& launch = op->launch;
    launch.aligned = block.x % 32 == 0;
    const Kernel*& kernel = kernels_[launch.aligned ? 1 : 0];
    if (kernel == nullptr) kernel = &code_->kernel(entry_, launch.aligned);
    launch.kernel = *kernel;
    launch.grid = config.grid;
    launch.block = block;
    launch.dynamic_shared = config.shared_bytes;
    launch.memory = &code_->memory();
    launch.multicasts = &code_->multicasts();
    launch.params.reserve_bytes(entry().parameter_bytes + std::size_t{1});
    std::uint8_t* bytes = launch.params.data();
    for (std::size_t p = 0; p < args.size(); ++p) {
      if (entry().parameters[p].size > sizeof(std::uint64_t)) {
        launch.addressed_params = entry().parameter_bytes;
      }
      std::memcpy(bytes + entry().parameters[p].offset, args[p], entry().parameters[p].size);
    }
    op->name = name();
    op->file = code_->file();
    op->program = code_->shared_program();
    op->function = &op->program->module().functions[static_cast<std::size_t>(entry().function)];
    op->keep = code_;
    return op;
  }

 private:
  [[nodiscard]] const Program::Entry& entry() const { return code_->program().entries()[entry_]; }

  void check(const LaunchConfig& config, std::size_t args) const {
    const auto& [grid, block, shared, attributes] = config;
    // A kernel that may begin early may also begin late: attributes.programmatic asks for nothing.
    if (attributes.cluster != Dim3{}) {
      throw_environment(name(), "is launched in clusters of " + shape(attributes.cluster) +
                                    " blocks; the cpu device has none");
    }
    if (args != entry().parameters.size()) {
      throw_invalid(name(), "takes " + std::to_string(entry().parameters.size()) +
                                " parameters, not " + std::to_string(args));
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 ||
        grid.x > 0x7fffffffU) {
      throw_invalid(name(),
                    "a grid has 1 to 2147483647 x 65535 x 65535 blocks, not " + shape(grid));
    }
    if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > kMaxThreads ||
        block.y > kMaxThreads || block.z > 64 || block.count() > kMaxThreads) {
      throw_invalid(name(), "a block has 1 to 1024 threads, not " + shape(block));
    }
    check_declared_shape(block);
    const std::uint32_t fixed = code_->program().shared_bytes(static_cast<int>(entry_));
    const std::uint32_t limit =
        std::max(max_shared_, kDefaultShared > fixed ? kDefaultShared - fixed : 0);
    if (fixed > kDefaultShared) {  // ptxas refuses it
      throw_invalid(name(), std::to_string(fixed) +
                                " bytes of static shared memory are above the limit of " +
                                std::to_string(kDefaultShared) + "; expected dynamic ones");
    }
    if (shared > limit) {
      throw_invalid(name(), std::to_string(shared) + " bytes of dynamic shared memory are above " +
                                std::to_string(limit) + " (see set_max_dynamic_shared)");
    }
  }

  /// What the kernel promised the compiler about its blocks, which the registers of a GPU and our
  /// code count on. As in CUDA, .maxntid bounds the product of the extents only.
  void check_declared_shape(Dim3 block) const {
    const auto function = static_cast<std::size_t>(entry().function);
    const ptx::Function& declared = code_->program().module().functions[function];
    const auto& [x, y, z] = declared.required_threads;
    if (x != 0 && (block.x != x || block.y != y || block.z != z)) {
      throw_invalid(name(), "needs a block of " + shape({x, y, z}) + " threads (.reqntid), not " +
                                shape(block));
    }
    const auto& most = declared.max_threads;
    const std::uint64_t threads = std::uint64_t{most[0]} * most[1] * most[2];
    if (threads != 0 && block.count() > threads) {
      throw_invalid(name(), "declares at most " + std::to_string(threads) +
                                " threads of a block (.maxntid, __launch_bounds__), not " +
                                std::to_string(block.count()));
    }
  }

  std::shared_ptr<Code> code_;
  std::size_t entry_;
  std::uint32_t max_shared_ = 0;
  const Kernel* kernels_[2] = {nullptr, nullptr};
};

class CpuModule final : public Module {
 public:
  explicit CpuModule(std::shared_ptr<Code> code)
      : code_(std::move(code)), functions_(code_->program().entries().size()) {}

  Function& function(std::string_view entry) override {
    const auto& entries = code_->program().entries();
    for (std::size_t e = 0; e < entries.size(); ++e) {
      if (entries[e].name != entry) continue;
      code_->prepare(e);
      if (functions_[e] == nullptr) functions_[e] = std::make_unique<CpuFunction>(code_, e);
      return *functions_[e];
    }
    throw_invalid(std::string(entry), "the module has no such entry");
  }

 private:
  std::shared_ptr<Code> code_;
  std::vector<std::unique_ptr<CpuFunction>> functions_;  ///< by entry
};

class CpuEvent final : public TimedEvent {
 public:
  explicit CpuEvent(bool timed) { state->timed = timed; }
  [[nodiscard]] double ns_since(const TimedEvent& earlier) const override {
    return std::chrono::duration<double, std::nano>(state->at -
                                                    ours<const CpuEvent>(earlier).state->at)
        .count();
  }
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

class CpuStream final : public Stream {
 public:
  CpuStream(std::shared_ptr<Core> core, int rank) : core_(std::move(core)) {
    state_->rank = rank;
    if (core_->sanitizer != nullptr) state_->clock = core_->sanitizer->open_stream(rank);
  }
  ~CpuStream() override { core_->engine.drain(state_); }
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  void launch(Function& function, const LaunchConfig& config,
              std::span<const void* const> args) override {
    core_->engine.submit(state_, ours<CpuFunction>(function).prepare(config, args));
  }

  void copy(std::uint64_t dst, std::uint64_t src, std::size_t bytes) override {
    run(bytes, [=, this] {
      std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
      wrote(dst, bytes);
    });
  }

  /// The bytes are taken before the call returns.
  void copy_from_host(std::uint64_t dst, const void* src, std::size_t bytes) override {
    if (bytes == 0) return;
    const bool done = core_->engine.run_if_idle(state_, [&] {
      std::memcpy(reinterpret_cast<void*>(dst), src, bytes);
      wrote(dst, bytes);
    });
    if (done) return;
    const auto* from = static_cast<const std::uint8_t*>(src);
    auto data = std::make_shared<std::vector<std::uint8_t>>(from, from + bytes);
    core_->engine.submit(state_, HostOp{[this, dst, data] {
                           std::memcpy(reinterpret_cast<void*>(dst), data->data(), data->size());
                           wrote(dst, data->size());
                         }});
  }

  void copy_to_host(void* dst, std::uint64_t src, std::size_t bytes) override {
    run(bytes, [=] { std::memcpy(dst, reinterpret_cast<const void*>(src), bytes); });
  }

  void fill(std::uint64_t dst, std::uint8_t value, std::size_t bytes) override {
    run(bytes, [=, this] {
      std::memset(reinterpret_cast<void*>(dst), value, bytes);
      wrote(dst, bytes);
    });
  }

  void record(Event& event) override { core_->engine.record(state_, ours<CpuEvent>(event).state); }
  void wait(Event& event) override { core_->engine.wait(state_, ours<CpuEvent>(event).state); }

  void write_value(std::uint64_t address, std::uint32_t value) override {
    check_word(address);
    run(sizeof value, [=, this] {
      const std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(address));
      // First: whoever sees the value knows what this stream knows.
      if (core_->sanitizer != nullptr) core_->sanitizer->told(*state_->clock, address);
      word.store(value, std::memory_order_release);
    });
  }
  void wait_value(std::uint64_t address, std::uint32_t value) override {
    check_word(address);
    core_->engine.submit(state_, ValueOp{address, value});
  }

  void synchronize() override {
    const std::string error = core_->engine.drain(state_);
    if (!error.empty()) throw_internal("", "kernel " + error);
  }

 private:
  static void check_word(std::uint64_t address) {
    if (address % sizeof(std::uint32_t) == 0) return;
    throw_invalid("cpu", "the address of a value is no multiple of 4");
  }
  void wrote(std::uint64_t dst, std::size_t bytes) {
    if (core_->sanitizer != nullptr) core_->sanitizer->host_wrote(*state_->clock, dst, bytes);
  }

  /// Small work on an idle stream is done at once, the rest by a worker.
  template <class Body>
  void run(std::size_t bytes, Body body) {
    if (bytes == 0) return;
    if (bytes <= kMaxInlineCopy && core_->engine.run_if_idle(state_, body)) return;
    core_->engine.submit(state_, HostOp{body});
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<StreamState> state_ = std::make_shared<StreamState>();
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options) {
    if (options.world < 1) throw_invalid("cpu", "the number of ranks must be at least 1");
    int threads = options.threads;
    if (options.checks != 0 || options.count) threads = 1;
    if (threads <= 0) threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    core_ = std::make_shared<Core>(options, threads);
  }

  [[nodiscard]] std::string_view kind() const override { return "cpu"; }
  [[nodiscard]] std::string description() const override {
    return std::to_string(core_->world) + " virtual ranks on " +
           std::to_string(core_->engine.threads()) + " threads of " + core_->jit.host();
  }
  [[nodiscard]] std::string target() const override { return "sm_80"; }
  [[nodiscard]] int world() const override { return core_->world; }
  [[nodiscard]] int ranks_per_device() const override { return core_->world; }

  std::unique_ptr<Memory> allocate(int rank, std::size_t bytes) override {
    check(rank);
    auto allocation = std::make_shared<Allocation>(core_, rank, bytes);
    const std::lock_guard lock(core_->mutex);
    core_->allocations[allocation->address()] = allocation;
    return std::make_unique<CpuMemory>(std::move(allocation));
  }
  std::unique_ptr<Memory> allocate_host(int rank, std::size_t bytes) override {
    return CpuDevice::allocate(rank, bytes);
  }
  std::unique_ptr<Memory> import_memory(int rank, std::string_view handle) override {
    check(rank);
    return imported_memory(core_, handle);
  }
  std::unique_ptr<Memory> find_memory(int rank, std::uint64_t address) override {
    check(rank);
    std::shared_ptr<Allocation> allocation;  // freed, if it is the last hold, without the lock
    const std::lock_guard lock(core_->mutex);
    const auto next = core_->allocations.upper_bound(address);
    if (next != core_->allocations.begin()) allocation = std::prev(next)->second.lock();
    if (allocation == nullptr || address - allocation->address() >= allocation->memory.size()) {
      throw_invalid("memory", "no allocation of the cpu device holds the address");
    }
    return std::make_unique<CpuMemory>(std::move(allocation));
  }
  [[nodiscard]] bool has_multicast() const override { return true; }
  std::unique_ptr<Multicast> create_multicast(std::span<const int> ranks,
                                              std::size_t bytes) override {
    std::set<int> distinct;
    for (const int rank : ranks) {
      check(rank);
      if (!distinct.insert(rank).second) {
        throw_invalid("multicast", "rank " + std::to_string(rank) + " twice; expected it once");
      }
    }
    if (ranks.empty() || bytes == 0) {
      throw_invalid("multicast", std::to_string(bytes) + " bytes for " +
                                     std::to_string(ranks.size()) + " ranks; expected some");
    }
    return std::make_unique<CpuMulticast>(core_, ranks, bytes);
  }
  std::unique_ptr<Module> load(int rank, const KernelImage& image) override {
    check(rank);
    return std::make_unique<CpuModule>(std::make_shared<Code>(core_, rank, image));
  }
  std::unique_ptr<Stream> create_stream(int rank) override {
    check(rank);
    return std::make_unique<CpuStream>(core_, rank);
  }
  std::unique_ptr<Event> create_event(int rank) override {
    check(rank);
    return std::make_unique<CpuEvent>(false);
  }
  std::unique_ptr<TimedEvent> create_timed_event(int rank) override {
    check(rank);
    return std::make_unique<CpuEvent>(true);
  }

  [[nodiscard]] bool watches() const override { return core_->watches(); }
  void name_parts(std::uint64_t memory, std::span<const MemoryPart> parts) override {
    if (core_->sanitizer != nullptr) core_->sanitizer->name_parts(memory, parts);
  }
  [[nodiscard]] std::vector<Finding> findings() override {
    if (core_->sanitizer == nullptr) return {};
    return core_->sanitizer->findings();
  }
  bool next_interleaving() override { return core_->engine.next_interleaving(); }
  [[nodiscard]] std::vector<KernelCounts> counts() override {
    if (core_->counter == nullptr) return {};
    return core_->counter->counts();
  }

 private:
  void check(int rank) const {
    if (rank < 0 || rank >= core_->world) {
      throw_invalid("cpu", "rank " + std::to_string(rank) + " of " + std::to_string(core_->world));
    }
  }

  std::shared_ptr<Core> core_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Device> create_cpu_device(const CpuOptions& options) {
  return std::make_unique<cpu::CpuDevice>(options);
}

}  // namespace braid

extern "C" braid::Device* braid_create_cpu_device(const braid::CpuOptions* options) {
  return braid::create_cpu_device(*options).release();
}

extern "C" const char* braid_cpu_llvm_version() { return braid::cpu::llvm_version(); }
