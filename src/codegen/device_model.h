#pragma once

#include <span>
#include <string>
#include <string_view>

namespace braid {

struct Target;

/// What is known of a device: peaks of the vendor's data sheet, and two measured costs. What
/// kernels sustain of these peaks: kMemoryShare, and the shares of an Architecture.
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
  // Of f16_tflops, what matrix units sustain.
  double matrix_share;    ///< by their quickest instructions: wgmma and tcgen05, else mma.sync
  double mma_sync_share;  ///< by mma.sync, operands of 16 bits
  double f8_width;        ///< times that where operands are 8-bit floats
};
/// The newest one that is not above `sm`.
[[nodiscard]] const Architecture& architecture(int sm);

/// Of hbm_gbs, what copies and sums sustain; 80 to 97 % is published.
inline constexpr double kMemoryShare = 0.9;

/// All of them, by architecture; the first of an architecture stands for it.
[[nodiscard]] std::span<const DeviceModel> all_devices();
/// By name ("H200"); nothing when there is none.
[[nodiscard]] const DeviceModel* find_device_model(std::string_view name);
/// By what the driver calls a GPU of architecture `sm` ("NVIDIA H200", "NVIDIA A100-SXM4-40GB"):
/// the device of most words, all of which are there; nothing when there is none.
[[nodiscard]] const DeviceModel* device_model_of_gpu(std::string_view gpu, int sm);
/// The device that the target names, else the first of its architecture, or of the newest one not
/// above it.
[[nodiscard]] const DeviceModel& device_model(const Target& target);
/// "A100, H100, ..."
[[nodiscard]] std::string device_names();

}  // namespace braid
