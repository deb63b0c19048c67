#include "lowering/plan/rough_time.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/op_registry.h"

namespace braid {
namespace {

/// The matmuls of a body: one, or two that share an operand.
struct Product {
  double m = 1, n = 1, k = 1, batch = 1;
  double count = 0;
  DType dtype = DType::kF32;
};

Product product_of(const Graph& body, const Bindings& bindings) {
  Product product;
  for (const Node& node : body.nodes()) {
    if (node.op->op_class != OpClass::kMatmul) continue;
    ++product.count;
    const TensorType& result = body.type(node.outputs[0]);
    // addmm's first operand is the bias.
    const bool biased = node.op->matmul == Matmul::kAdd;
    const TensorType& left = body.type(node.inputs[biased ? 1 : 0]);
    const auto extent = [&](const Dim& dim) { return static_cast<double>(dim.evaluate(bindings)); };
    const std::size_t rank = result.shape.size();
    product.m = extent(result.shape[rank - 2]);
    product.n = extent(result.shape[rank - 1]);
    product.k = extent(left.shape.back());
    product.dtype = left.dtype;
    product.batch = 1;
    for (std::size_t d = 0; d + 2 < rank; ++d) product.batch *= extent(result.shape[d]);
  }
  return product;
}

/// What one tile asks of a multiprocessor, in clocks of its units, and of L2 in bytes; what its
/// warps wait for, in nanoseconds.
struct TileWork {
  double matrix, shared, issue;
  double l2_bytes;
  double waiting;
};

TileWork work_of(const Product& p, const Config& config, const DeviceModel& device) {
  const auto setting = [&](const char* name) { return static_cast<double>(config.at(name)); };
  const double m = setting("BLOCK_M"), n = setting("BLOCK_N") * p.count;
  const double step = setting("BLOCK_K"), warps = setting("num_warps");
  const auto size = static_cast<double>(dtype_size(p.dtype));
  const double steps = std::ceil(p.k / step), k = steps * step;
  const bool fma = p.dtype == DType::kF32;
  const double tflops = fma ? device.f32_tflops : device.f16_tflops * 2 / size;
  const double warps_m = m >= 64 && warps >= 4 ? 2 : 1;
  const double warps_n = warps / warps_m;
  // Each warp reads its rows and its columns; what was copied is written once.
  const double read = (m * warps_n + n * warps_m) * size;
  constexpr double kAround = 40;  // instructions of a warp around the loads and products of a step
  const double products = fma ? m * n / 32 : m * n * size / (16 * 8 * 32);
  constexpr double kLatencyNs = 450, kStepNs = 60, kProductNs = 20;
  const double copies = kLatencyNs / std::max(1.0, setting("num_stages") - 1);
  const double chain = kStepNs + (fma ? 0 : kProductNs * step * size / 32);
  return {.matrix = 2 * m * n * k / (tflops * 1e3 / (device.sms * device.ghz)),
          .shared = (read + (m + n) * size) * k / 128,
          .issue = (steps * warps * kAround + k * (products + read / 512)) / 4,
          .l2_bytes = (m + n) * k * size,
          .waiting = steps * std::max(copies, chain)};
}

/// Blocks that a multiprocessor holds.
double room_of(const Product& p, const Config& config, const DeviceModel& device) {
  const auto setting = [&](const char* name) { return static_cast<double>(config.at(name)); };
  const double m = setting("BLOCK_M"), n = setting("BLOCK_N") * p.count;
  const auto size = static_cast<double>(dtype_size(p.dtype));
  const double shared = (m + n) * setting("BLOCK_K") * size * setting("num_stages");
  const double threads = setting("num_warps") * 32;
  constexpr double kOtherRegisters = 64;
  const double registers = std::min(255.0, m * n / threads + kOtherRegisters) * threads;
  return std::max(1.0, std::floor(std::min({device.shared_kib * 1024 / (shared + 1024),
                                            65536 / registers, 2048 / threads})));
}

}  // namespace

double rough_ns(const KernelSpec& spec, const Bindings& bindings, const DeviceModel& device) {
  const Product p = product_of(*spec.body, bindings);
  if (p.count == 0) return device.launch_ns;
  const auto setting = [&](const char* name) { return static_cast<double>(spec.config.at(name)); };
  const double tiles =
      std::ceil(p.m / setting("BLOCK_M")) * std::ceil(p.n / setting("BLOCK_N")) * p.batch;
  const TileWork tile = work_of(p, spec.config, device);
  const auto size = static_cast<double>(dtype_size(p.dtype));
  const double bytes = (p.m * p.k + (p.n * p.k + p.m * p.n) * p.count) * size * p.batch;
  constexpr double kL2Bytes = 47;  // of a multiprocessor, per clock
  // Tiles come in waves of as many as the device holds.
  const double at_once = room_of(p, spec.config, device) * device.sms;
  const auto wave_ns = [&](double blocks) {
    if (blocks == 0) return 0.0;
    const double busiest = std::ceil(blocks / device.sms);
    const double memory = bytes * blocks / tiles / device.hbm_gbs;
    const double l2 =
        tile.l2_bytes * blocks / (kL2Bytes * std::min<double>(blocks, device.sms) * device.ghz);
    double squares = memory * memory + l2 * l2;
    for (const double clocks : {tile.matrix, tile.shared, tile.issue}) {
      squares += std::pow(clocks * busiest / device.ghz, 2);
    }
    return std::max(std::sqrt(squares), tile.waiting);
  };
  const double full = std::floor(tiles / at_once);
  return device.launch_ns + full * wave_ns(at_once) + wave_ns(tiles - full * at_once);
}

}  // namespace braid
