#include "codegen/device_model.h"

#include "codegen/target.h"

namespace braid {
namespace {

// NVIDIA's data sheets and whitepapers: A100 Tensor Core GPU (80 and 40 GB SXM), A10, RTX A6000,
// L4, L20, L40S, "NVIDIA Ada GPU Architecture" (RTX 4090), H100 and H200 Tensor Core GPU (SXM), DGX
// B200, "NVIDIA RTX Blackwell GPU Architecture" (RTX 5090, RTX PRO 6000); load/store units as these
// draw a multiprocessor; shared memory and f64 lanes from the CUDA C++ Programming Guide. Where a
// data sheet names no clock it is f32_tflops over 128 lanes of each multiprocessor. The cpu device
// runs an A100's kernels; its figures were measured on two cores that two ranks shared, and are
// good for a choice between orders, no more.
constexpr DeviceModel kDevices[] = {
    {"A100", 80, 108, 164, 2039, 19.5, 312, 300, 1.41, 2500, 2000, 32, 32},
    {"A100-40", 80, 108, 164, 1555, 19.5, 312, 300, 1.41, 2500, 2000, 32, 32},
    {"A10", 86, 72, 100, 600, 31.2, 125, 32, 1.695, 2500, 4000, 16, 2},
    {"RTX A6000", 86, 84, 100, 768, 38.7, 154.8, 32, 1.80, 2500, 4000, 16, 2},
    {"L40S", 89, 142, 100, 864, 91.6, 362, 32, 2.52, 2500, 4000, 16, 2},
    {"L4", 89, 58, 100, 300, 30.3, 121, 32, 2.04, 2500, 4000, 16, 2},
    {"L20", 89, 92, 100, 864, 59.8, 119.5, 32, 2.54, 2500, 4000, 16, 2},
    {"RTX 4090", 89, 128, 100, 1008, 82.6, 165.2, 32, 2.52, 2500, 4000, 16, 2},
    {"H100", 90, 132, 228, 3352, 67, 989, 450, 1.98, 2500, 1500, 32, 64, true},
    {"H200", 90, 132, 228, 4800, 67, 989, 450, 1.98, 2500, 1500, 32, 64, true},
    {"B200", 100, 148, 228, 7670, 75, 2225, 900, 1.98, 2500, 1000, 32, 64, true},
    {"RTX 5090", 120, 170, 100, 1792, 104.8, 209.5, 64, 2.41, 2500, 4000, 16, 2},
    {"RTX PRO 6000 Max-Q", 120, 188, 100, 1792, 110, 438.9, 64, 2.29, 2500, 4000, 16, 2},
    {"cpu", 80, 108, 164, 1.1, 0.02, 0.02, 1, 0.0015, 20000, 20000, 32, 32},
};

}  // namespace

std::span<const DeviceModel> all_devices() { return kDevices; }

const DeviceModel* find_device_model(std::string_view name) {
  for (const DeviceModel& device : kDevices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

const DeviceModel& device_model(const Target& target) {
  if (const DeviceModel* named = find_device_model(target.device)) return *named;
  const DeviceModel* best = &kDevices[0];
  for (const DeviceModel& device : kDevices) {
    if (device.sm <= target.sm && device.sm > best->sm) best = &device;
  }
  return *best;
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
