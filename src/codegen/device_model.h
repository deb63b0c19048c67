#pragma once

#include <span>
#include <string>
#include <string_view>

namespace braid {

struct Target;

/// Facts about a device: peak rates of the vendor's data sheet, and two measured costs.
/// kMemoryShare and the shares of an Architecture say what kernels sustain of the peaks.
struct DeviceModel {
  std::string_view name;  ///< "A100", "H100", ...
  int sm;                 ///< its architecture: 90 is sm_90
  int sms;                ///< multiprocessors
  int shared_kib;         ///< shared memory per multiprocessor
  double l2_mib;
  double hbm_gbs;                 ///< GB/s of its memory
  double f32_tflops;              ///< outside the matrix units
  double f16_tflops;              ///< bf16 and f16 matrix units with f32 accumulation, dense
  double nvlink_gbs;              ///< GB/s to another device in one direction: NVLink, else PCIe
  double ghz;                     ///< clock of the multiprocessors, on which f32_tflops is based
  double launch_ns;               ///< launch of one kernel
  double barrier_ns;              ///< barrier among the ranks of a P2P domain
  int load_store_units;           ///< lanes of memory accesses that a multiprocessor handles per
                                  ///< clock
  int f64_lanes;                  ///< f64 operations that a multiprocessor starts per clock
  bool reduces_on_links = false;  ///< multimem instructions work: NVLink SHARP
};

/// Facts shared by all devices of an architecture.
struct Architecture {
  int sm;
  int threads, blocks;  ///< most that are resident on a multiprocessor
  // Latencies in clocks, of idle memory.
  double shared_clocks, l1_clocks, l2_clocks, memory_clocks;
  double matrix_clocks;  ///< latency of an mma.m16n8k16
  // Sustained shares of f16_tflops.
  double matrix_share;    ///< with the fastest instructions: wgmma and tcgen05, else mma.sync
  double mma_sync_share;  ///< with mma.sync and 16-bit operands
  // Factors on that for operands of 8-bit floats, 4-bit integers and bits.
  double f8_width, s4_width, b1_width;
  double f64_width;  ///< of f64 products, a factor on f64_lanes
  // Results of a multiprocessor per clock: conversions between integers and floats, and all from
  // and to f64 or 64-bit integers.
  double conversions, wide_conversions;
};
/// The newest known architecture not above `sm`.
[[nodiscard]] const Architecture& architecture(int sm);

/// The share of hbm_gbs that copies and sums sustain; 80 to 97 % is published.
inline constexpr double kMemoryShare = 0.9;

/// All known devices, by architecture; the first of each represents it.
[[nodiscard]] std::span<const DeviceModel> all_devices();
/// The device of that name ("H200"), or null.
[[nodiscard]] const DeviceModel* find_device_model(std::string_view name);
/// The device for a GPU of architecture `sm`, by the driver's name ("NVIDIA H200", "NVIDIA
/// A100-SXM4-40GB"): the one with the most words among those whose words all occur; or null.
[[nodiscard]] const DeviceModel* device_model_of_gpu(std::string_view gpu, int sm);
/// The device that the target names, else the first of the newest architecture not above it.
[[nodiscard]] const DeviceModel& device_model(const Target& target);
/// How many blocks of that many threads and bytes of shared memory a multiprocessor is sure to hold
/// at a time, however many registers a thread has.
[[nodiscard]] std::int64_t sure_blocks(const DeviceModel& device, int threads,
                                       std::int64_t shared_bytes);
/// "A100, H100, ..."
[[nodiscard]] std::string device_names();

}  // namespace braid
