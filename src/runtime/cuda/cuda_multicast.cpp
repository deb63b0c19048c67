#include "runtime/cuda/cuda_multicast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "runtime/bytes.h"
#include "runtime/cuda/cuda_memory.h"

namespace braid::cuda {
namespace {

constexpr const char* kPlace = "multicast";
constexpr std::string_view kMulticastTag = "cuda multicast";

/// Encodes Multicast::export_handle.
std::string encode(const PhysicalMemory& object) {
  ByteWriter out;
  out.string(kMulticastTag);
  out.value<std::uint64_t>(object.size());
  out.string(object.share());
  return out.take();
}

class CudaMulticast final : public Multicast, NonCopyable {
 public:
  CudaMulticast(std::span<const GpuRef> gpus, std::size_t bytes, unsigned members)
      : gpus_(gpus.begin(), gpus.end()), bytes_(bytes) {
    const std::size_t unit = multicast_unit(*gpus_.front(), members);
    const std::size_t whole = (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
    object_.emplace(gpus_.front(), PhysicalMemory::MulticastOf{members, whole});
  }
  /// Opens another process's multicast.
  CudaMulticast(std::span<const GpuRef> gpus, std::size_t bytes, std::string_view handle)
      : gpus_(gpus.begin(), gpus.end()), bytes_(bytes) {
    ByteReader in(handle);
    const bool known = in.string() == kMulticastTag;
    const auto whole = in.value<std::uint64_t>();
    const std::string_view shared = in.string();
    if (!known || !in.done() || whole < bytes) {
      throw_invalid(kPlace, "the bytes are no handle of a cuda device's multicast");
    }
    object_.emplace(gpus_.front(), shared, whole);
  }
  ~CudaMulticast() override {
    mapping_.reset();
    for (const Part& part : parts_) {
      release(gpus_.front(), [&](const Api& api) {
        api.cuMulticastUnbind(object_->handle(), part.device, part.offset, part.bytes);
      });
    }
  }

  [[nodiscard]] std::uint64_t address() const override {
    if (!mapping_) throw_internal(kPlace, "no memory is bound to it yet");
    return mapping_->address();
  }
  [[nodiscard]] std::size_t size() const override { return bytes_; }
  [[nodiscard]] std::string export_handle() const override { return encode(*object_); }
  void add_rank(int rank) override {
    const GpuRef& gpu = gpus_.at(static_cast<std::size_t>(rank));
    const Current current(*gpu);
    const Api& api = gpu->api();
    api.check(api.require(api.cuMulticastAddDevice)(object_->handle(), gpu->device()),
              "cuMulticastAddDevice", fmt::format("rank {}", rank));
    here_.push_back(gpu);
  }
  void bind(const PhysicalMemory& memory, std::size_t offset) {
    const Current current(*memory.gpu());
    const Api& api = memory.gpu()->api();
    const Part part{memory.gpu()->device(), offset,
                    std::min(memory.size(), object_->size() - std::min(offset, object_->size()))};
    api.check(api.require(api.cuMulticastBindMem)(object_->handle(), offset, memory.handle(), 0,
                                                  part.bytes, 0),
              "cuMulticastBindMem", fmt::format("{} bytes at {}", part.bytes, offset));
    parts_.push_back(part);
    if (!mapping_) mapping_.emplace(*object_, here_);
  }

 private:
  /// A part that this process has bound.
  struct Part {
    Ordinal device;
    std::size_t offset, bytes;
  };
  std::vector<GpuRef> gpus_;  ///< by rank
  std::vector<GpuRef> here_;  ///< GPUs of the ranks added here
  std::size_t bytes_;
  std::optional<PhysicalMemory> object_;
  std::vector<Part> parts_;
  std::optional<Mapping> mapping_;
};

constexpr const char* kMulticastEntry = "braid_multicast";
// Reduces one word of all GPUs and stores the sum to another word of all GPUs.
constexpr const char* kMulticastPtx = R"(
.version 8.1
.target sm_90
.address_size 64
.visible .entry braid_multicast(.param .u64 operand, .param .u64 result)
{
  .reg .f32 %f<2>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [operand];
  ld.param.u64 %rd2, [result];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  multimem.ld_reduce.relaxed.sys.global.add.f32 %f1, [%rd3];
  multimem.st.relaxed.sys.global.f32 [%rd4], %f1;
  ret;
}
)";

/// Each GPU in turn reduces and stores; all check what all have stored.
void use(Device& device, std::span<const std::unique_ptr<Memory>> memory,
         const Multicast& multicast) {
  std::vector<float> words(memory.size() + 1);
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    words[0] = static_cast<float>(rank + 1);
    const auto stream = device.create_stream(static_cast<int>(rank));
    stream->copy_from_host(memory[rank]->address(), words.data(), words.size() * sizeof(float));
    stream->synchronize();
  }
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    const auto module =
        device.load(static_cast<int>(rank), {kMulticastEntry, kMulticastPtx, {}, {}});
    const auto stream = device.create_stream(static_cast<int>(rank));
    const std::uint64_t operand = multicast.address();
    const std::uint64_t result = operand + (rank + 1) * sizeof(float);
    const std::array<const void*, 2> args{&operand, &result};
    stream->launch(module->function(kMulticastEntry), {{1}, {1}}, args);
    stream->synchronize();
  }
  const std::size_t ranks = memory.size();
  const auto sum = static_cast<float>(ranks * (ranks + 1) / 2);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto stream = device.create_stream(static_cast<int>(rank));
    stream->copy_to_host(words.data(), memory[rank]->address(), words.size() * sizeof(float));
    stream->synchronize();
    if (std::count(words.begin() + 1, words.end(), sum) == static_cast<std::ptrdiff_t>(ranks)) {
      continue;
    }
    throw_environment(kPlace, "GPU {} does not find what was written to all", rank);
  }
}

}  // namespace

MulticastSupport try_multicast(Device& device, std::span<const GpuRef> gpus) {
  if (!std::ranges::all_of(gpus, [](const GpuRef& gpu) { return gpu->has_multicast(); })) {
    return {};
  }
  try {
    const std::size_t unit = multicast_unit(*gpus.front(), static_cast<unsigned>(gpus.size()));
    std::vector<std::unique_ptr<Memory>> memory;
    for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
      memory.push_back(allocate_shared_memory(gpus, rank, unit, unit));
    }
    std::vector<int> ranks(gpus.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto multicast = create_multicast(gpus, ranks, unit, {});
    for (const int rank : ranks) multicast->add_rank(rank);
    for (const auto& each : memory) each->bind_multicast(*multicast, 0);
    use(device, memory, *multicast);
    return {unit, {}};
  } catch (const Error& error) {
    return {0, fmt::format("no multicast: {}", error.what())};
  }
}

std::unique_ptr<Multicast> create_multicast(std::span<const GpuRef> gpus,
                                            std::span<const int> ranks, std::size_t bytes,
                                            std::string_view handle) {
  if (!handle.empty()) return std::make_unique<CudaMulticast>(gpus, bytes, handle);
  return std::make_unique<CudaMulticast>(gpus, bytes, static_cast<unsigned>(ranks.size()));
}

void bind(Multicast& multicast, const PhysicalMemory& memory, std::size_t offset) {
  auto* ours = dynamic_cast<CudaMulticast*>(&multicast);
  if (ours == nullptr)
    throw_invalid(kPlace, "is not of a cuda device; expected one of the memory's");
  ours->bind(memory, offset);
}

}  // namespace braid::cuda
