#pragma once

#include <span>
#include <string>
#include <string_view>

namespace braid {

struct Target;

/// What is known of a device: peaks of the vendor's data sheet, and two measured costs.
struct DeviceModel {
  std::string_view name;  ///< "A100", "H100", ...
  int sm;                 ///< its architecture: 90 is sm_90
  int sms;                ///< multiprocessors
  int shared_kib;         ///< shared memory per multiprocessor
  double l2_mib;
  double hbm_gbs;                 ///< GB/s of its memory
  double f32_tflops;              ///< outside the matrix units
  double f16_tflops;              ///< bf16 and f16 in the matrix units, f32 sums, dense
  double nvlink_gbs;              ///< GB/s to another device, one way: NVLink, else PCIe
  double ghz;                     ///< clock of the multiprocessors that f32_tflops is reckoned with
  double launch_ns;               ///< of one kernel
  double barrier_ns;              ///< among the ranks of a P2P domain
  int load_store_units;           ///< lanes that a multiprocessor's memory accesses take per clock
  int f64_lanes;                  ///< f64 operations that a multiprocessor begins per clock
  bool reduces_on_links = false;  ///< multimem instructions work: NVLink SHARP
};

/// What is the same for all devices of one architecture.
struct Architecture {
  int sm;
  int threads, blocks;  ///< that a multiprocessor holds at one time, at most
  // Clocks until a result is there, of memory that does nothing else.
  double shared_clocks, l1_clocks, l2_clocks, memory_clocks;
  double matrix_clocks;  ///< of an mma.m16n8k16
};
/// The newest one that is not above `sm`.
[[nodiscard]] const Architecture& architecture(int sm);

/// Of f16_tflops, what mma.sync reaches. wgmma alone has all of a Hopper's; Luo et al.,
/// "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture" (2024), measured 62 % of it.
[[nodiscard]] double mma_sync_share(const DeviceModel& device);

/// All of them, by architecture; the first of an architecture stands for it.
[[nodiscard]] std::span<const DeviceModel> all_devices();
/// By name ("H200"); nothing when there is none.
[[nodiscard]] const DeviceModel* find_device_model(std::string_view name);
/// The device that the target names, else the first of its architecture, or of the newest one not
/// above it.
[[nodiscard]] const DeviceModel& device_model(const Target& target);
/// "A100, H100, ..."
[[nodiscard]] std::string device_names();

}  // namespace braid
