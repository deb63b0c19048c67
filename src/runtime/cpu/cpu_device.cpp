#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "ir/non_copyable.h"
#include "runtime/cpu/cpu_memory.h"
#include "runtime/cpu/run/capture.h"
#include "runtime/stream_home.h"
#include "runtime/tensor_map.h"

namespace braid {
namespace cpu {
namespace {

constexpr std::uint32_t kMaxShared = 227 * 1024;
constexpr std::uint32_t kDefaultShared = 48 * 1024;
constexpr std::uint64_t kMaxThreads = 1024;
constexpr std::size_t kMaxInlineCopy = 64 * 1024;

std::string shape(Dim3 block) {
  return std::to_string(block.x) + " x " + std::to_string(block.y) + " x " +
         std::to_string(block.z);
}

/// The code of one module on one rank, with its global variables.
class Code : NonCopyable {
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

  [[nodiscard]] const Program& program() const { return *program_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] AddressRange& memory() const { return core_->range; }
  [[nodiscard]] const MulticastTable& multicasts() const { return core_->multicasts; }
  [[nodiscard]] std::shared_ptr<const Program> shared_program() const { return program_; }

  /// Compiles the variant that launches will most likely use. Throws if the entry cannot run.
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
            static_cast<std::uint64_t>(program_->offsets()[relocation.variable]) +
            static_cast<std::uint64_t>(relocation.addend);
        const std::uint64_t part = target >> relocation.shift;
        std::memcpy(at + relocation.offset, &part, relocation.bytes);
      }
    }
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<const Program> program_;
  std::string file_;
  std::shared_ptr<Variants> variants_;
  GuardedMemory globals_;  ///< empty for a module without variables
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

  [[nodiscard]] std::vector<FunctionParameter> parameters() const override {
    const ptx::Module& module = code_->program().module();
    std::vector<FunctionParameter> parameters;
    for (const int p : module.functions[entry().function].params) {
      const ptx::Variable& variable = module.variables[p];
      parameters.push_back({variable.size, variable.type, variable.name, variable.line});
      if (variable.size != variable.element) {
        parameters.back().type += "[" + std::to_string(variable.size / variable.element) + "]";
      }
    }
    return parameters;
  }

  [[nodiscard]] const std::string& name() const { return entry().name; }

  std::unique_ptr<LaunchOp> prepare(std::unique_ptr<LaunchOp> op, const LaunchConfig& config,
                                    std::span<const void* const> args) {
    const Dim3 block = config.block;
    check(config, args.size());
    Launch& launch = op->launch;
    launch.aligned = block.x % 32 == 0;
    std::atomic<const Kernel*>& kernel = kernels_[launch.aligned ? 1 : 0];
    if (kernel.load() == nullptr) kernel = &code_->kernel(entry_, launch.aligned);
    launch.kernel = *kernel.load();
    launch.grid = config.grid;
    launch.block = block;
    launch.cluster = cluster_of(config);
    launch.explicit_cluster =
        config.attributes.cluster != Dim3{} || declared().required_cluster[0] != 0;
    launch.dynamic_shared = config.shared_bytes;
    launch.shared_align = entry().shared_align;
    launch.generic_shared = entry().generic_shared;
    launch.reserved_shared = entry().reserved_shared;
    launch.straight_length = entry().straight_length;
    launch.thread_registers = registers_per_thread(block);
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
    op->function = &op->program->module().functions[entry().function];
    op->keep = code_;
    return op;
  }

 private:
  [[nodiscard]] const Program::Entry& entry() const { return code_->program().entries()[entry_]; }

  void check(const LaunchConfig& config, std::size_t args) const {
    const auto& [grid, block, shared, attributes] = config;
    // A kernel that may begin early may also begin late, so attributes.programmatic is ignored.
    check_cluster(config);
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
      throw_invalid(name(),
                    "a block has 1 to 1024 threads, at most 64 along z, not " + shape(block));
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

  [[nodiscard]] const ptx::Function& declared() const {
    const auto function = static_cast<std::size_t>(entry().function);
    return code_->program().module().functions[function];
  }

  /// Those of each thread at its start, where the kernel changes how many: as many as it may have.
  /// They come in eights, so that a thread which may use 255 has 256.
  [[nodiscard]] std::uint32_t registers_per_thread(Dim3 block) const {
    constexpr std::uint64_t kRegisters = 65536, kMost = 256;
    const std::uint64_t threads = block.count() * std::max(1U, declared().min_blocks);
    const std::uint64_t most =
        std::min(kRegisters / std::max<std::uint64_t>(1, threads) / 8 * 8, kMost);
    const std::uint64_t declares = (declared().max_registers + 7) / 8 * 8;
    return static_cast<std::uint32_t>(declares == 0 ? most : std::min(most, declares));
  }

  /// The launch's cluster, else the declared one.
  [[nodiscard]] Dim3 cluster_of(const LaunchConfig& config) const {
    const auto& [x, y, z] = declared().required_cluster;
    return x != 0 && config.attributes.cluster == Dim3{} ? Dim3{x, y, z}
                                                         : config.attributes.cluster;
  }

  void check_cluster(const LaunchConfig& config) const {
    const auto& [x, y, z] = declared().required_cluster;
    const Dim3 cluster = cluster_of(config);
    if (x != 0 && cluster != Dim3{x, y, z}) {
      throw_invalid(name(), "needs clusters of " + shape({x, y, z}) +
                                " blocks (.reqnctapercluster), not " + shape(cluster));
    }
    const std::uint32_t most =
        declared().max_cluster == 0 ? ptx::kMaxClusterBlocks : declared().max_cluster;
    if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0 || cluster.count() > most) {
      throw_invalid(
          name(), "a cluster has 1 to " + std::to_string(most) + " blocks, not " + shape(cluster));
    }
    const Dim3 grid = config.grid;
    if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
      throw_invalid(name(), "a grid of " + shape(grid) + " blocks is launched in clusters of " +
                                shape(cluster) + "; expected whole clusters");
    }
  }

  /// Checks promises of the kernel about its blocks, on which register allocation on GPUs and our
  /// code rely. As in CUDA, .maxntid bounds only the product of the extents.
  void check_declared_shape(Dim3 block) const {
    const auto& [x, y, z] = declared().required_threads;
    if (x != 0 && (block.x != x || block.y != y || block.z != z)) {
      throw_invalid(name(), "needs a block of " + shape({x, y, z}) + " threads (.reqntid), not " +
                                shape(block));
    }
    const auto& most = declared().max_threads;
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
  std::atomic<const Kernel*> kernels_[2] = {nullptr, nullptr};  ///< used by several launching
                                                                ///< threads
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
    std::string names;
    for (const Program::Entry& known : entries) names += (names.empty() ? "" : ", ") + known.name;
    throw_invalid(std::string(entry),
                  "the module has no such entry; it has " + (names.empty() ? "none" : names));
  }

 private:
  std::shared_ptr<Code> code_;
  std::vector<std::unique_ptr<CpuFunction>> functions_;  ///< by entry
};

class CpuEvent final : public TimedEvent {
 public:
  CpuEvent(Stream::Home of, bool timed) : home(of) { state->timed = timed; }
  [[nodiscard]] double ns_since(const TimedEvent& earlier) const override {
    return std::chrono::duration<double, std::nano>(state->at -
                                                    ours<const CpuEvent>(earlier).state->at)
        .count();
  }
  const Stream::Home home;
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

class CpuGraph final : public RecordedGraph, NonCopyable {
 public:
  CpuGraph(std::shared_ptr<Core> core, int rank, Recording recorded)
      : home{core.get(), rank}, recording(std::move(recorded)), core_(std::move(core)) {}
  ~CpuGraph() override {
    for (const auto& lane : recording.lanes) (void)core_->engine.drain(lane);
  }
  const Stream::Home home;
  const Recording recording;

 private:
  std::shared_ptr<Core> core_;
};

class CpuStream final : public Stream, NonCopyable {
 public:
  CpuStream(std::shared_ptr<Core> core, int rank) : core_(std::move(core)) {
    state_->rank = rank;
    if (core_->sanitizer != nullptr) state_->clock = core_->sanitizer->open_stream(rank);
  }
  ~CpuStream() override { core_->engine.close(state_); }

  [[nodiscard]] Home home() const override { return {core_.get(), state_->rank}; }

  void launch(Function& function, const LaunchConfig& config,
              std::span<const void* const> args) override {
    Engine& engine = core().engine;
    engine.submit(state_, ours<CpuFunction>(function).prepare(engine.new_launch(), config, args));
  }

  void copy(std::uint64_t dst, std::uint64_t src, std::size_t bytes) override {
    check_memory(core(), dst, bytes, "copy, destination");
    check_memory(core(), src, bytes, "copy, source");
    run(bytes, [=, core = core_.get()](StreamState& on) {
      std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
      wrote(*core, on, dst, bytes);
    });
  }

  /// The bytes are copied before the call returns; in a capture, at each replay.
  void copy_from_host(std::uint64_t dst, const void* src, std::size_t bytes) override {
    check_memory(core(), dst, bytes, "copy_from_host");
    if (bytes == 0) return;
    check_host("copy_from_host", src);
    const auto copy = [=, core = core_.get()](StreamState& on, const void* from) {
      std::memcpy(reinterpret_cast<void*>(dst), from, bytes);
      wrote(*core, on, dst, bytes);
    };
    if (core().engine.run_if_idle(state_, [&](StreamState& on) { copy(on, src); })) return;
    if (is_capturing()) {
      core().engine.submit(state_, HostOp{[=](StreamState& on) { copy(on, src); }});
      return;
    }
    const auto* from = static_cast<const std::uint8_t*>(src);
    auto data = std::make_shared<std::vector<std::uint8_t>>(from, from + bytes);
    core().engine.submit(state_, HostOp{[=](StreamState& on) { copy(on, data->data()); }});
  }

  void copy_to_host(void* dst, std::uint64_t src, std::size_t bytes) override {
    if (bytes != 0) check_host("copy_to_host", dst);
    check_memory(core(), src, bytes, "copy_to_host");
    run(bytes, [=](StreamState&) { std::memcpy(dst, reinterpret_cast<const void*>(src), bytes); });
  }

  void fill(std::uint64_t dst, std::uint8_t value, std::size_t bytes) override {
    check_memory(core(), dst, bytes, "fill");
    run(bytes, [=, core = core_.get()](StreamState& on) {
      std::memset(reinterpret_cast<void*>(dst), value, bytes);
      wrote(*core, on, dst, bytes);
    });
  }

  void record(Event& event) override {
    const auto& recorded = ours<CpuEvent>(event);
    check_same_home("event", recorded.home, home());
    core().engine.record(state_, recorded.state);
  }
  void wait(Event& event) override {
    const auto& awaited = ours<CpuEvent>(event);
    check_same_home("event", {awaited.home.device, state_->rank}, home());  // any rank's event
    core().engine.wait(state_, awaited.state);
  }

  void write_value(std::uint64_t address, std::uint32_t value) override {
    check_word(address);
    run(sizeof value, [=, core = core_.get()](StreamState& on) {
      const std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(address));
      // Comes first: whoever sees the value knows what this stream knows.
      if (core->sanitizer != nullptr) core->sanitizer->told(*on.clock, address);
      word.store(value, std::memory_order_release);
    });
  }
  void wait_value(std::uint64_t address, std::uint32_t value) override {
    check_word(address);
    core().engine.submit(state_, ValueOp{address, value});
  }

  void synchronize() override {
    const std::string error = core().engine.drain(state_);
    if (!error.empty()) throw_internal("", "kernel " + error);
  }

  [[nodiscard]] bool is_capturing() const override { return core().engine.is_capturing(state_); }
  void begin_capture() override { core().engine.begin_capture(state_); }
  [[nodiscard]] std::unique_ptr<RecordedGraph> end_capture() override {
    return std::make_unique<CpuGraph>(core_, state_->rank, core().engine.end_capture(state_));
  }
  void replay(RecordedGraph& graph) override {
    const auto& recorded = ours<CpuGraph>(graph);
    check_same_home("graph", recorded.home, home());
    core().engine.replay(state_, recorded.recording);
  }

 private:
  /// For every call but destruction: a fork has no threads that would do the work.
  [[nodiscard]] Core& core() const {
    core_->engine.refuse_fork();
    return *core_;
  }
  void check_word(std::uint64_t address) const {
    if (address % sizeof(std::uint32_t) != 0) {
      throw_invalid("cpu", "the address of a value is no multiple of 4");
    }
    check_memory(core(), address, sizeof(std::uint32_t), "value");
  }
  static void check_host(const char* where, const void* memory) {
    if (memory == nullptr) throw_invalid(where, "the host's memory is null");
  }
  static void wrote(Core& core, const StreamState& on, std::uint64_t dst, std::size_t bytes) {
    if (core.sanitizer != nullptr) core.sanitizer->host_wrote(*on.clock, dst, bytes);
  }

  /// Small work on an idle stream is done at once, other work by a worker.
  template <class Body>
  void run(std::size_t bytes, Body body) {
    if (bytes == 0) return;
    if (bytes <= kMaxInlineCopy && core_->engine.run_if_idle(state_, body)) return;
    core_->engine.submit(state_, HostOp{body});
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<StreamState> state_ = std::make_shared<StreamState>();
};

class CpuDevice final : public Device, Inspector {
 public:
  explicit CpuDevice(const CpuOptions& options) {
    if (options.world < 1) throw_invalid("cpu", "the number of ranks must be at least 1");
    int threads = options.threads;
    if (options.checks != 0 || options.sample) threads = 1;
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
    return allocate_memory(core_, rank, bytes);
  }
  std::unique_ptr<Memory> allocate_host(int rank, std::size_t bytes) override {
    return CpuDevice::allocate(rank, bytes);
  }
  std::unique_ptr<Memory> import_memory(int rank, std::string_view handle) override {
    check(rank);
    return cpu::import_memory(core_, handle);
  }
  std::unique_ptr<Memory> find_memory(int rank, std::uint64_t address) override {
    check(rank);
    return cpu::find_memory(core_, address);
  }
  void check_memory(int rank, std::uint64_t address, std::size_t bytes) const override {
    check(rank);
    cpu::check_memory(*core_, address, bytes, "");
  }
  void encode(const MatrixMap& map, std::span<std::uint8_t> bytes) const override {
    const auto encoded = TensorMap::of(map).encoded();
    std::memcpy(bytes.data(), encoded.data(), encoded.size());
  }
  [[nodiscard]] bool has_multicast() const override { return true; }
  std::unique_ptr<Multicast> create_multicast(std::span<const int> ranks, std::size_t bytes,
                                              std::string_view) override {
    for (const int rank : ranks) check(rank);
    return cpu::create_multicast(core_, ranks, bytes);
  }
  std::unique_ptr<Module> load(int rank, const KernelImage& image) override {
    check(rank);
    return std::make_unique<CpuModule>(std::make_shared<Code>(core_, rank, image));
  }
  std::unique_ptr<Stream> create_stream(int rank) override {
    check(rank);
    return std::make_unique<CpuStream>(core_, rank);
  }
  void with_current(int rank, const std::function<void()>& work) override {
    check(rank);
    check_callback(work);
    work();
  }
  std::unique_ptr<Event> create_event(int rank) override {
    check(rank);
    return std::make_unique<CpuEvent>(Stream::Home{core_.get(), rank}, false);
  }
  std::unique_ptr<TimedEvent> create_timed_event(int rank) override {
    check(rank);
    return std::make_unique<CpuEvent>(Stream::Home{core_.get(), rank}, true);
  }

  [[nodiscard]] Inspector* inspector() override { return core_->watches() ? this : nullptr; }

 private:
  void name_parts(std::uint64_t memory, std::span<const MemoryPart> parts) override {
    if (core_->sanitizer != nullptr) core_->sanitizer->name_parts(memory, parts);
  }
  std::unique_ptr<Memory> lend(int rank, const MemoryPart& memory) override {
    check(rank);
    return lend_memory(core_, rank, memory);
  }
  [[nodiscard]] std::vector<Finding> findings() override {
    if (core_->sanitizer == nullptr) return {};
    return core_->sanitizer->findings();
  }
  [[nodiscard]] std::vector<Finding> notes() override {
    if (core_->sanitizer == nullptr) return {};
    return core_->sanitizer->notes();
  }
  bool next_interleaving() override { return core_->engine.next_interleaving(); }
  [[nodiscard]] std::vector<KernelCounts> counts() override {
    if (core_->counter == nullptr) return {};
    return core_->counter->counts();
  }
  void forget() override {
    if (core_->sanitizer != nullptr) core_->sanitizer->forget();
    if (core_->counter != nullptr) core_->counter->forget();
  }

  void check(int rank) const {
    core_->engine.refuse_fork();
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
