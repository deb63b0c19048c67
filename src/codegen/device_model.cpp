#include "codegen/device_model.h"

#include <algorithm>
#include <vector>

#include "codegen/target.h"

namespace braid {
namespace {

// NVIDIA's data sheets and whitepapers: A100 Tensor Core GPU (80 and 40 GB SXM), A10, RTX A6000,
// L4, L20, L40S, "NVIDIA Ada GPU Architecture" (RTX 4090), H100 and H200 Tensor Core GPU (SXM), DGX
// B200, "NVIDIA RTX Blackwell GPU Architecture" (RTX 5090, RTX PRO 6000); load/store units as these
// draw a multiprocessor; shared memory and f64 lanes from the CUDA C++ Programming Guide. Where a
// data sheet names no clock it is f32_tflops over 128 lanes per multiprocessor. The RTX PRO 6000
// Max-Q has the clock that it sustains at 300 W, and rates at that clock (log of
// blackwell-tensorcore-kernels; 2.29 GHz by the data sheet). The cpu device runs an A100's kernels;
// its figures were measured on two cores that two ranks shared; they are only good enough to
// compare orders.
constexpr DeviceModel kDevices[] = {
    {"A100", 80, 108, 164, 40, 2039, 19.5, 312, 300, 1.41, 2500, 2000, 32, 32},
    {"A100-40", 80, 108, 164, 40, 1555, 19.5, 312, 300, 1.41, 2500, 2000, 32, 32},
    {"A10", 86, 72, 100, 6, 600, 31.2, 125, 32, 1.695, 2500, 4000, 16, 2},
    {"RTX A6000", 86, 84, 100, 6, 768, 38.7, 154.8, 32, 1.80, 2500, 4000, 16, 2},
    {"L40S", 89, 142, 100, 96, 864, 91.6, 362, 32, 2.52, 2500, 4000, 16, 2},
    {"L4", 89, 58, 100, 48, 300, 30.3, 121, 32, 2.04, 2500, 4000, 16, 2},
    {"L20", 89, 92, 100, 96, 864, 59.8, 119.5, 32, 2.54, 2500, 4000, 16, 2},
    {"RTX 4090", 89, 128, 100, 72, 1008, 82.6, 165.2, 32, 2.52, 2500, 4000, 16, 2},
    {"H100", 90, 132, 228, 50, 3352, 67, 989, 450, 1.98, 2500, 1500, 32, 64, true},
    {"H200", 90, 132, 228, 50, 4800, 67, 989, 450, 1.98, 2500, 1500, 32, 64, true},
    {"B200", 100, 148, 228, 126.5, 7670, 75, 2225, 900, 1.98, 2500, 1000, 32, 64, true},
    {"RTX 5090", 120, 170, 100, 96, 1792, 104.8, 209.5, 64, 2.41, 2500, 4000, 16, 2},
    {"RTX PRO 6000 Max-Q", 120, 188, 100, 128, 1792, 86.6, 346.5, 64, 1.8, 2500, 4000, 16, 2},
    {"cpu", 80, 108, 164, 40, 1.1, 0.02, 0.02, 1, 0.0015, 20000, 20000, 32, 32},
};

// Residency: CUDA C++ Programming Guide, technical specifications by compute capability. Clocks:
// for sm_80, sm_89 and sm_90 Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
// Architecture" (2024); for sm_120 Jarmusch et al., "Dissecting the NVIDIA Blackwell Architecture
// with Microbenchmarks" (2025); of the matrix units Sun et al., "Dissecting Tensor Cores via
// Microbenchmarks" (2022). sm_86 uses the figures of sm_89, and sm_100 those of sm_90, which have
// the same kinds of memory.
//
// Shares: on Hopper only wgmma reaches the full rate, mma.sync 62 % of it (Luo et al.); and power
// limits the clock of busy matrix units: cuBLAS has 716 to 795 TFLOP/s of an H100's 989 (fast.cu's
// README; blackwell-tensorcore-kernels, results/reference), which is 0.72 to 0.80. sm_100 uses the
// same. No such limit is known for the others. mma.sync of 8-bit floats has instructions of its own
// on sm_89 and sm_120; for sm_90 and sm_100 ptxas turns it into 16-bit products.
//
// Products of 4-bit integers and of bits: "NVIDIA A100 Tensor Core GPU Architecture"; matrix units
// since sm_90 have neither, so they are no faster than those of 8 bits. Those of f64: its data
// sheet and that of the H100 have twice the rate of the f64 lanes. Conversions: CUDA C++
// Programming Guide, throughput of arithmetic instructions.
constexpr Architecture kArchitectures[] = {
    {80, 2048, 32, 29, 38, 262, 466, 33, 1, 1, 1, 4, 16, 2, 16, 16},
    {86, 1536, 16, 30, 43, 273, 542, 33, 1, 1, 1, 4, 16, 1, 16, 2},
    {89, 1536, 24, 30, 43, 273, 542, 33, 1, 1, 2, 4, 16, 1, 16, 2},
    {90, 2048, 32, 29, 41, 263, 479, 33, 0.78, 0.62, 1, 2, 2, 2, 64, 16},
    {100, 2048, 32, 29, 41, 263, 479, 33, 0.78, 0.62, 1, 2, 2, 1, 64, 16},
    {120, 1536, 24, 30, 43, 358, 877, 33, 1, 1, 2, 2, 2, 1, 64, 2}};

/// Splits into runs of letters and digits; "40GB" gives 40.
std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kBetween = " -";
  std::vector<std::string_view> words;
  for (;;) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(kBetween)));
    if (text.empty()) return words;
    std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    if (word.ends_with("GB")) word.remove_suffix(2);
    words.push_back(word);
  }
}

}  // namespace

const Architecture& architecture(int sm) {
  const Architecture* best = &kArchitectures[0];
  for (const Architecture& known : kArchitectures) {
    if (known.sm <= sm) best = &known;
  }
  return *best;
}

std::span<const DeviceModel> all_devices() { return kDevices; }

const DeviceModel* find_device_model(std::string_view name) {
  for (const DeviceModel& device : kDevices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

const DeviceModel* device_model_of_gpu(std::string_view gpu, int sm) {
  const std::vector<std::string_view> given = words_of(gpu);
  const DeviceModel* best = nullptr;
  std::size_t most = 0;
  for (const DeviceModel& device : kDevices) {
    const std::vector<std::string_view> words = words_of(device.name);
    const auto is_given = [&](std::string_view word) {
      return std::find(given.begin(), given.end(), word) != given.end();
    };
    if (device.sm != sm || words.size() <= most ||
        !std::all_of(words.begin(), words.end(), is_given)) {
      continue;
    }
    best = &device;
    most = words.size();
  }
  return best;
}

const DeviceModel& device_model(const Target& target) {
  if (const DeviceModel* named = find_device_model(target.device)) return *named;
  const DeviceModel* best = &kDevices[0];
  for (const DeviceModel& device : kDevices) {
    if (device.sm <= target.sm && device.sm > best->sm) best = &device;
  }
  return *best;
}

std::int64_t sure_blocks(const DeviceModel& device, int threads, std::int64_t shared_bytes) {
  constexpr std::int64_t kRegisters = 65536, kMostOfThread = 256, kReservedShared = 1024;
  const Architecture& limits = architecture(device.sm);
  const std::int64_t blocks =
      std::min({kRegisters / (kMostOfThread * threads), std::int64_t{limits.threads / threads},
                std::int64_t{limits.blocks},
                device.shared_kib * std::int64_t{1024} / (shared_bytes + kReservedShared)});
  return std::max<std::int64_t>(1, blocks);
}

std::string device_names() {
  std::string names;
  for (const DeviceModel& device : kDevices) {
    if (!names.empty()) names += ", ";
    names += device.name;
  }
  return names;
}

}  // namespace braid
