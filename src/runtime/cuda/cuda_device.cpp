#include "runtime/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "runtime/cuda/check_ranks.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_multicast.h"
#include "runtime/cuda/gpu.h"
#include "runtime/stream_home.h"
#include "runtime/tensor_map.h"

namespace braid {
namespace {

using cuda::Api;
using cuda::Current;
using cuda::Gpu;
using cuda::GpuRef;
using cuda::release;

class CudaFunction final : public Function {
 public:
  CudaFunction(const Gpu& gpu, cuda::FunctionHandle handle) : gpu_(gpu), handle_(handle) {}
  void set_max_dynamic_shared(std::uint32_t bytes) override {
    const Current current(gpu_);
    const cuda::Result result = gpu_.api().cuFuncSetAttribute(
        handle_, cuda::kFunctionMaxDynamicShared, static_cast<int>(bytes));
    if (result == cuda::kInvalidValue) {
      throw_environment(
          "CUDA driver",
          "this GPU cannot give a block {} bytes of dynamic shared memory (cuFuncSetAttribute)",
          bytes);
    }
    gpu_.api().check(result, "cuFuncSetAttribute");
  }
  [[nodiscard]] cuda::FunctionHandle handle() const { return handle_; }

 private:
  const Gpu& gpu_;  // kept alive by the module
  cuda::FunctionHandle handle_;
};

/// CUtensorMapDataType: without the place that `tensormap.replace` leaves free in front of f64.
int driver_type(TensorMap::Type type) {
  const int number = static_cast<int>(type);
  return type < TensorMap::Type::kF64 ? number : number - 1;
}

class CudaModule final : public Module {
 public:
  CudaModule(GpuRef gpu, const KernelImage& image) : gpu_(std::move(gpu)) {
    const Api& api = gpu_->api();
    const Current current(*gpu_);
    std::array<char, 8192> log{};
    std::array<int, 2> options{cuda::kJitErrorLogBuffer, cuda::kJitErrorLogBufferBytes};
    // The driver takes a number in place of the pointer for the size option.
    std::array<void*, 2> values{log.data(),
                                reinterpret_cast<void*>(std::uintptr_t{log.size() - 1})};
    // With this variable of its own, the driver would refuse machine code.
    const bool as_ptx = image.cubin.empty() || environment("CUDA_FORCE_PTX_JIT") == "1";
    const void* code = as_ptx ? static_cast<const void*>(image.ptx.c_str())
                              : static_cast<const void*>(image.cubin.data());
    const cuda::Result result = api.cuModuleLoadDataEx(
        &handle_, code, static_cast<unsigned>(options.size()), options.data(), values.data());
    if (result == cuda::kSuccess) return;
    const char* separator = log[0] == '\0' ? "" : "; ";
    api.check(result, "cuModuleLoadDataEx",
              fmt::format("kernel {}{}{}", image.entry, separator, log.data()));
  }
  ~CudaModule() override {
    release(gpu_, [this](const Api& api) { api.cuModuleUnload(handle_); });
  }
  [[nodiscard]] Function& function(std::string_view entry) override {
    const auto found = functions_.find(entry);
    if (found != functions_.end()) return found->second;
    const Current current(*gpu_);
    const std::string name(entry);
    cuda::FunctionHandle handle = nullptr;
    const cuda::Result result = gpu_->api().cuModuleGetFunction(&handle, handle_, name.c_str());
    if (result == cuda::kNotFound) throw_invalid(name, "the module has no such entry");
    // With lazy loading, errors in the code show only here.
    gpu_->api().check(result, "cuModuleGetFunction", "kernel " + name);
    return functions_.emplace(name, CudaFunction(*gpu_, handle)).first->second;
  }

 private:
  GpuRef gpu_;
  cuda::ModuleHandle handle_ = nullptr;
  std::map<std::string, CudaFunction, std::less<>> functions_;
};

class CudaEvent final : public TimedEvent {
 public:
  CudaEvent(GpuRef gpu, int rank, bool timed) : gpu_(std::move(gpu)), rank_(rank) {
    const Current current(*gpu_);
    const Api& api = gpu_->api();
    api.run(api.cuEventCreate, &handle_, timed ? 0 : cuda::kEventDisableTiming);
  }
  ~CudaEvent() override {
    release(gpu_, [this](const Api& api) { api.cuEventDestroy(handle_); });
  }
  [[nodiscard]] double ns_since(const TimedEvent& earlier) const override {
    const Current current(*gpu_);
    float milliseconds = 0;
    const Api& api = gpu_->api();
    api.run(api.cuEventElapsedTime, &milliseconds, static_cast<const CudaEvent&>(earlier).handle(),
            handle_);
    return static_cast<double>(milliseconds) * 1e6;
  }
  [[nodiscard]] cuda::EventHandle handle() const { return handle_; }
  [[nodiscard]] Stream::Home home() const { return {gpu_->context(), rank_}; }

 private:
  GpuRef gpu_;
  int rank_;
  cuda::EventHandle handle_ = nullptr;
};

class CudaGraph final : public RecordedGraph, NonCopyable {
 public:
  /// Instantiates a capture that ended with `graph`, which is then destroyed.
  CudaGraph(GpuRef gpu, int rank, cuda::GraphHandle graph) : gpu_(std::move(gpu)), rank_(rank) {
    const Api& api = gpu_->api();
    const cuda::Result result = api.require(api.cuGraphInstantiateWithFlags)(&handle_, graph, 0);
    api.cuGraphDestroy(graph);
    api.check(result, "cuGraphInstantiate");
  }
  ~CudaGraph() override {
    release(gpu_, [this](const Api& api) { api.cuGraphExecDestroy(handle_); });
  }
  [[nodiscard]] cuda::GraphExecHandle handle() const { return handle_; }
  [[nodiscard]] Stream::Home home() const { return {gpu_->context(), rank_}; }

 private:
  GpuRef gpu_;
  int rank_;
  cuda::GraphExecHandle handle_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  CudaStream(GpuRef gpu, int rank) : gpu_(std::move(gpu)), api_(gpu_->api()), rank_(rank) {
    const Current current(*gpu_);
    api_.run(api_.cuStreamCreate, &handle_, cuda::kStreamNonBlocking);
  }
  // Wraps the caller's stream.
  CudaStream(GpuRef gpu, int rank, cuda::StreamHandle handle)
      : gpu_(std::move(gpu)), api_(gpu_->api()), rank_(rank), handle_(handle), owned_(false) {
    if (api_.cuStreamGetCtx == nullptr) return;
    const Current current(*gpu_);  // context of the default streams, which have none of their own
    cuda::Context context = nullptr;
    const cuda::Result result = api_.cuStreamGetCtx(handle_, &context);
    const bool known = result != cuda::kInvalidHandle && result != cuda::kInvalidContext;
    if (known && (result != cuda::kSuccess || context == gpu_->context())) return;
    throw_invalid("stream", "it is none of the rank's GPU, in its primary context");
  }
  ~CudaStream() override {
    if (!owned_) return;
    release(gpu_, [this](const Api& api) { api.cuStreamDestroy(handle_); });
  }
  [[nodiscard]] Home home() const override { return {gpu_->context(), rank_}; }

  void launch(Function& function, const LaunchConfig& config,
              std::span<const void* const> args) override {
    const Current current(*gpu_);
    const auto handle = static_cast<CudaFunction&>(function).handle();
    const auto& [grid, block, shared, attributes] = config;
    if (attributes != LaunchAttributes{}) return launch_with_attributes(handle, config, args);
    api_.run(api_.cuLaunchKernel, handle, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
             handle_, const_cast<void**>(args.data()), nullptr);
  }
  void copy(std::uint64_t dst, std::uint64_t src, std::size_t bytes) override {
    run(api_.cuMemcpyAsync, dst, src, bytes, handle_);
  }
  void copy_from_host(std::uint64_t dst, const void* src, std::size_t bytes) override {
    run(api_.cuMemcpyHtoDAsync, dst, src, bytes, handle_);
  }
  void copy_to_host(void* dst, std::uint64_t src, std::size_t bytes) override {
    run(api_.cuMemcpyDtoHAsync, dst, src, bytes, handle_);
  }
  void fill(std::uint64_t dst, std::uint8_t value, std::size_t bytes) override {
    run(api_.cuMemsetD8Async, dst, value, bytes, handle_);
  }
  void record(Event& event) override {
    auto& recorded = static_cast<CudaEvent&>(event);
    check_same_home("event", recorded.home(), home());
    run(api_.cuEventRecord, recorded.handle(), handle_);
  }
  void wait(Event& event) override {
    run(api_.cuStreamWaitEvent, handle_, static_cast<CudaEvent&>(event).handle(), 0);
  }
  void write_value(std::uint64_t address, std::uint32_t value) override {
    run(api_.cuStreamWriteValue32, handle_, address, value, 0);
  }
  void wait_value(std::uint64_t address, std::uint32_t value) override {
    run(api_.cuStreamWaitValue32, handle_, address, value, cuda::kWaitValueGeq);
  }
  void synchronize() override { run(api_.cuStreamSynchronize, handle_); }
  [[nodiscard]] bool is_capturing() const override {
    int status = 0;
    run(api_.cuStreamIsCapturing, handle_, &status);
    return status != 0;
  }
  void begin_capture() override {
    // Relaxed: other threads' work, and this one's on other streams, does not matter.
    run(api_.cuStreamBeginCapture, handle_, cuda::kCaptureRelaxed);
  }
  [[nodiscard]] std::unique_ptr<RecordedGraph> end_capture() override {
    if (!is_capturing()) {
      throw_invalid("stream", "is not being captured; expected begin_capture() first");
    }
    const Current current(*gpu_);
    cuda::GraphHandle graph = nullptr;
    api_.run(api_.cuStreamEndCapture, handle_, &graph);
    return std::make_unique<CudaGraph>(gpu_, rank_, graph);
  }
  void replay(RecordedGraph& graph) override {
    const auto& recorded = static_cast<CudaGraph&>(graph);
    check_same_home("graph", recorded.home(), home());
    run(api_.cuGraphLaunch, recorded.handle(), handle_);
  }
  [[nodiscard]] void* handle() const override { return handle_; }

 private:
  /// Calls a function in the GPU's context.
  template <class... Parameters>
  void run(const LibraryFunction<cuda::Result(Parameters...)>& function,
           std::type_identity_t<Parameters>... args) const {
    const Current current(*gpu_);
    api_.run(function, args...);
  }
  void launch_with_attributes(cuda::FunctionHandle function, const LaunchConfig& config,
                              std::span<const void* const> args) {
    const auto& [grid, block, shared, attributes] = config;
    const Dim3 cluster = attributes.cluster;
    if (cluster.count() == 0 || grid.x % cluster.x != 0 || grid.y % cluster.y != 0 ||
        grid.z % cluster.z != 0) {
      throw_invalid(
          "launch",
          "a grid of {} x {} x {} blocks in clusters of {} x {} x {}; expected whole clusters",
          grid.x, grid.y, grid.z, cluster.x, cluster.y, cluster.z);
    }
    std::array<cuda::LaunchAttribute, 2> list{};
    unsigned count = 0;
    if (cluster != Dim3{}) {
      list[count].id = cuda::kLaunchClusterDimension;
      list[count++].value.cluster = {cluster.x, cluster.y, cluster.z};
    }
    if (attributes.programmatic) {
      list[count].id = cuda::kLaunchProgrammatic;
      list[count++].value.programmatic = 1;
    }
    const cuda::LaunchConfig driver{
        {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, handle_, list.data(), count};
    api_.run(api_.cuLaunchKernelEx, &driver, function, const_cast<void**>(args.data()), nullptr);
  }

  GpuRef gpu_;
  const Api& api_;
  int rank_;
  cuda::StreamHandle handle_ = nullptr;
  bool owned_ = true;
};

// Maps the memory of GPU `to` into the context of GPU `from`.
void enable_peer_access(const std::vector<GpuRef>& gpus, std::size_t from, std::size_t to) {
  const Api& api = gpus[from]->api();
  int can = 0;
  api.run(api.cuDeviceCanAccessPeer, &can, gpus[from]->device(), gpus[to]->device());
  if (can == 0) cuda::throw_no_peer_access(from, to, "the driver offers no peer access");
  const Current current(*gpus[from]);
  const cuda::Result result = api.cuCtxEnablePeerAccess(gpus[to]->context(), 0);
  if (result == cuda::kPeerAccessUnsupported) {
    cuda::throw_no_peer_access(from, to, "peer access cannot be enabled");
  }
  if (result != cuda::kPeerAccessAlreadyEnabled) {
    api.check(result, "cuCtxEnablePeerAccess", fmt::format("from GPU {} to GPU {}", from, to));
  }
}

class CudaDevice final : public Device {
 public:
  CudaDevice(int world, GpuPlace place) : api_(Api::get(world > 1)), world_(world) {
    if (world > 1) cuda::refuse_blocking_launches();
    const int used = std::min(world, api_.gpus);
    target_ = cuda::gpu_target(api_, 0);
    const int first = place.gpu - place.rank % used;
    std::set<std::string_view> models;
    for (int index = 0; index < used; ++index) {
      const int ordinal = ((first + index) % api_.gpus + api_.gpus) % api_.gpus;
      if (const std::string other = cuda::gpu_target(api_, ordinal); other != target_) {
        throw_environment(
            "CUDA driver",
            "GPU 0 is {} and GPU {} is {}; choose equal GPUs with CUDA_VISIBLE_DEVICES", target_,
            ordinal, other);
      }
      gpus_.push_back(std::make_shared<const Gpu>(api_, ordinal));
      models.insert(cuda::gpu_model(api_, ordinal));
    }
    // Plans are made for the GPUs' model, if it is known and the same for all.
    if (models.size() == 1 && !models.begin()->empty()) target_ = *models.begin();
    for (std::size_t from = 0; from < gpus_.size(); ++from) {
      for (std::size_t to = 0; to < gpus_.size(); ++to) {
        if (from != to) enable_peer_access(gpus_, from, to);
      }
    }
    cuda::check_ranks_meet(*this, static_cast<int>(gpus_.size()));
    // A multicast needs one GPU per rank.
    if (world > 1 && ranks_per_device() == 1) multicast_ = cuda::try_multicast(*this, gpus_);
  }

  [[nodiscard]] std::string_view kind() const override { return "cuda"; }
  [[nodiscard]] std::string description() const override {
    const char* separator = multicast_.remark.empty() ? "" : "; ";
    return fmt::format("{} rank(s) on {} GPU(s), driver {}; {}{}{}", world_, gpus_.size(),
                       api_.version, cuda::describe_gpu(api_, 0), separator, multicast_.remark);
  }
  [[nodiscard]] std::string name() const override { return cuda::gpu_name(api_, 0); }
  [[nodiscard]] std::string target() const override { return target_; }
  [[nodiscard]] int world() const override { return world_; }
  [[nodiscard]] int ranks_per_device() const override {
    const int gpus = static_cast<int>(gpus_.size());
    return (world_ + gpus - 1) / gpus;
  }
  [[nodiscard]] std::unique_ptr<Memory> allocate(int rank, std::size_t bytes) override {
    return cuda::allocate_memory(gpu(rank), bytes);
  }
  [[nodiscard]] std::unique_ptr<Memory> allocate_shared(int rank, std::size_t bytes) override {
    return cuda::allocate_shared_memory(gpus_, index(rank), bytes, multicast_.unit);
  }
  [[nodiscard]] std::unique_ptr<Memory> allocate_host(int rank, std::size_t bytes) override {
    return cuda::allocate_host_memory(gpu(rank), bytes);
  }
  [[nodiscard]] bool has_multicast() const override { return multicast_.unit != 0; }
  [[nodiscard]] std::unique_ptr<Multicast> create_multicast(std::span<const int> ranks,
                                                            std::size_t bytes,
                                                            std::string_view handle) override {
    if (!has_multicast()) return Device::create_multicast(ranks, bytes, handle);
    for (const int rank : ranks) (void)gpu(rank);
    return cuda::create_multicast(gpus_, ranks, bytes, handle);
  }
  void encode(const MatrixMap& matrix, std::span<std::uint8_t> bytes) const override {
    const TensorMap map = TensorMap::of(matrix);
    constexpr int kNoInterleave = 0, kPromoteTo128 = 2, kZeros = 0;
    alignas(TensorMap::kAlign) std::array<std::uint8_t, TensorMap::kBytes> encoded{};
    const Current current(*gpus_.front());
    const Api& api = gpus_.front()->api();
    api.run(api.cuTensorMapEncodeTiled, encoded.data(), driver_type(map.type), map.rank,
            reinterpret_cast<void*>(map.address), map.dims.data(), map.strides.data(),
            map.box.data(), map.steps.data(), kNoInterleave, static_cast<int>(map.swizzle),
            kPromoteTo128, kZeros);
    std::ranges::copy(encoded, bytes.begin());
  }
  [[nodiscard]] std::unique_ptr<Module> load(int rank, const KernelImage& image) override {
    return std::make_unique<CudaModule>(gpu(rank), image);
  }
  [[nodiscard]] std::unique_ptr<Stream> create_stream(int rank) override {
    return std::make_unique<CudaStream>(gpu(rank), rank);
  }
  [[nodiscard]] std::unique_ptr<Stream> wrap_stream(int rank, void* handle) override {
    return std::make_unique<CudaStream>(gpu(rank), rank, static_cast<cuda::StreamHandle>(handle));
  }
  void with_current(int rank, const std::function<void()>& work) override {
    check_callback(work);
    const Current current(*gpu(rank));
    work();
  }
  [[nodiscard]] std::unique_ptr<Memory> import_memory(int rank, std::string_view handle) override {
    return cuda::import_memory(gpu(rank), handle);
  }
  [[nodiscard]] std::unique_ptr<Memory> find_memory(int rank, std::uint64_t address) override {
    return cuda::find_memory(gpu(rank), address);
  }
  void check_memory(int rank, std::uint64_t address, std::size_t bytes) const override {
    cuda::check_memory(gpus_, index(rank), address, bytes);
  }
  [[nodiscard]] std::unique_ptr<Event> create_event(int rank) override {
    return std::make_unique<CudaEvent>(gpu(rank), rank, false);
  }
  [[nodiscard]] std::unique_ptr<TimedEvent> create_timed_event(int rank) override {
    return std::make_unique<CudaEvent>(gpu(rank), rank, true);
  }

 private:
  [[nodiscard]] std::size_t index(int rank) const {
    if (rank < 0 || rank >= world_) {
      throw_invalid("rank", "{} is not in a world of {}", rank, world_);
    }
    return static_cast<std::size_t>(rank) % gpus_.size();
  }
  [[nodiscard]] const GpuRef& gpu(int rank) const { return gpus_[index(rank)]; }

  const Api& api_;
  int world_;
  std::string target_;
  std::vector<GpuRef> gpus_;
  cuda::MulticastSupport multicast_;
};

}  // namespace

std::unique_ptr<Device> create_cuda_device(int world, GpuPlace place) {
  if (world < 1) throw_invalid("world", "{} ranks; expected 1 or more", world);
  return std::make_unique<CudaDevice>(world, place);
}

}  // namespace braid
