// The tiles of matmuls. Each one that the hardware has room for is reckoned in clocks of the
// multiprocessor that has the most tiles: what the matrix units, the shared memory, the scheduler
// and L2 need for them, and what memory and its latency need for all:
//
//     matrix    products of whole tiles, rows that do not exist too
//     shared    operands written once, and read by each warp that multiplies them
//     issue     instructions of the loop over K
//     L2        operands of each tile
//     memory    each operand and result once
//     latency   a block's ring brings stages - 1 steps of K in the time that memory takes to answer
//
// As in estimate_kernel the slowest counts most: sqrt(t1^2 + t2^2 + ...). To it comes what nothing
// hides: filling the ring, the barrier of each step, and storing the result.

#include "codegen/templates/gemm_config.h"

#include <algorithm>
#include <cmath>

#include "codegen/device_model.h"
#include "codegen/tile/tile.h"
#include "ir/numel.h"

namespace braid {
namespace {

/// A tuner chooses from so many, the best by the reckoning.
constexpr std::size_t kMostCandidates = 96;

struct Product {
  std::int64_t tiles;  ///< products of these extents, side by side
  std::int64_t m, n, k;
  std::int64_t right;    ///< right operands
  std::int64_t element;  ///< bytes
  bool f32;
  bool crowded;  ///< registers hold more than sums: an operand, or what the result meets
};

struct Tile {
  std::int64_t m, n, k, stages, warps;
};

Product product_of(const Graph& body, const BodyInfo& info, const GemmUse& use) {
  const Node& mm = *info.matmuls[0];
  const std::size_t first = first_matrix(mm);
  const TensorType& left = body.type(mm.inputs[first]);
  const auto matrices = static_cast<std::size_t>(
      std::count_if(body.inputs().begin(), body.inputs().end(),
                    [](const GraphInput& input) { return input.type.shape.size() > 1; }));
  const Shape& result = body.type(mm.outputs[0]).shape;
  const Shape batch(result.begin(), result.end() - 2);
  const auto most = [&](const Dim& dim) {
    return std::max<std::int64_t>(1, dim.max(body.symbols()));
  };
  return {.tiles = std::max<std::int64_t>(1, max_numel(batch, body.symbols())) * use.chunks,
          .m = std::max<std::int64_t>(1, use.rows),
          .n = most(result.back()),
          .k = most(left.shape.back()),
          .right = static_cast<std::int64_t>(info.matmuls.size()),
          .element = static_cast<std::int64_t>(dtype_size(left.dtype)),
          .f32 = left.dtype == DType::kF32,
          .crowded = !is_moved_input(body, mm.inputs[first]) ||
                     !is_moved_input(body, mm.inputs[first + 1]) ||
                     matrices > 1 + info.matmuls.size()};
}

std::int64_t warps_along_m(std::int64_t m, std::int64_t n, std::int64_t warps) {
  std::int64_t best = 1;
  // Each has 16 columns; those that find none have rows, or copies.
  const auto edges = [&](std::int64_t r) {
    return m / r + std::max<std::int64_t>(16, n * r / warps);
  };
  for (std::int64_t rows = 2; rows <= warps && rows * 16 <= m; rows *= 2) {
    if (edges(rows) < edges(best)) best = rows;
  }
  return best;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t shared_bytes(const Product& p, const Tile& t, const GemmUse& use) {
  constexpr std::int64_t kReductions = 4096;  // of what else the kernel does
  const std::int64_t ring = (t.m + p.right * t.n) * t.k * p.element * t.stages;
  return ring + (use.changes_layout ? t.m * t.n * 4 + kReductions : 0);
}

/// Clocks, by the file's head.
double clocks(const Product& p, const Tile& t, const Target& target, const GemmUse& use) {
  const DeviceModel& device = device_model(target);
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const double clock_rate = device.sms * device.ghz;  // of all multiprocessors, in 1/ns
  const std::int64_t rows = std::min(t.m, p.m);
  const std::int64_t cols = std::min(t.n, p.n);
  const std::int64_t blocks = p.tiles * divide_up(p.m, t.m) * divide_up(p.n, t.n);
  const std::int64_t busiest = divide_up(blocks, device.sms);
  const std::int64_t warps_m = warps_along_m(t.m, t.n, t.warps);
  const std::int64_t warps_n = t.warps / warps_m;
  const std::int64_t warp_m = t.m / warps_m;
  const std::int64_t warp_n = t.n / warps_n;

  // How many blocks are at work at one time, and how often others follow them.
  constexpr std::int64_t kRegisters = 65536;
  constexpr std::int64_t kOther = 48;  // registers of addresses and the like
  const std::int64_t registers = p.right * warp_m * warp_n / 32 + warp_m / 4 + warp_n / 4 + kOther;
  const std::int64_t room =
      std::min({kRegisters / (registers * 32 * t.warps),
                device.shared_kib * std::int64_t{1024} / (shared_bytes(p, t, use) + 1024),
                std::int64_t{48} / t.warps});
  const std::int64_t resident = std::clamp<std::int64_t>(room, 1, busiest);
  const double rounds = number(busiest) / number(resident);

  const double all = number(busiest);
  const double k = number(p.k);
  const double loaded = number((rows + p.right * cols) * p.element);  // bytes for each k
  const double tflops = p.f32 ? device.f32_tflops : device.f16_tflops;
  const double width = p.element == 1 ? 2 : 1;
  const double share = p.f32 ? 1 : mma_sync_share(device);
  const double flops = tflops * width * share * 1e3 / clock_rate;
  const double matrix = all * 2 * number(t.m * t.n * p.right) * k / flops;
  const double read = number(warps_n * t.m + p.right * warps_m * t.n) * number(p.element);
  const double shared = all * k * (number((t.m + p.right * t.n) * p.element) + read) / 128;
  const double l2 = all * (k * loaded + number(rows * cols) * 2) * 108 / 5120;
  const double hbm = number(p.tiles * (p.m * p.k + p.m * p.n) + p.right * p.k * p.n) *
                     number(p.element) / (0.9 * device.hbm_gbs) * device.ghz;

  const double steps = std::ceil(k / number(t.k));
  const double fragments = number(t.k * p.element) / 32;  // steps of the matrix unit in one of K
  const double loads = fragments * number(warp_m + p.right * warp_n) / 16;
  const double products = fragments * number(warp_m * warp_n * p.right) / 128;
  const double copies = number((t.m + p.right * t.n) * t.k * p.element / 16) / number(32 * t.warps);
  const double issue = all * steps * number(t.warps) * (products + 2 * loads + 4 * copies + 24) / 4;

  constexpr double kLatency = 700;
  constexpr double kStep = 150;    // of a barrier and of the first fragments
  constexpr double kBlock = 1500;  // of a block's first loads and last stores
  const double latency = std::ceil(rounds) * (steps / number(t.stages - 1)) * kLatency;
  const double apart = rounds * (kBlock + steps * kStep * 4 / number(4 * resident + t.warps));
  double squares = 0;
  for (const double unit : {matrix, shared, issue, l2, hbm, latency}) squares += unit * unit;
  return std::sqrt(squares) + apart;
}

/// All that have room, the quickest first.
std::vector<Tile> tiles_of(const Product& p, const Target& target, const GemmUse& use) {
  std::vector<std::pair<double, Tile>> all;
  // No tile is twice as large as what it is for.
  const auto fits = [](std::int64_t block, std::int64_t extent) {
    return block == 16 || block < 2 * extent;
  };
  const auto add = [&](const Tile& t) {
    const std::int64_t sums = t.m * t.n * p.right / (32 * t.warps);
    const std::int64_t registers = tile::registers_of_thread(static_cast<int>(t.warps));
    const std::int64_t most = registers / (p.f32 || p.crowded ? 4 : 2);
    // A fragment for each warp, unless the rest of the kernel needs more of them.
    if (sums > most || (use.warps == 0 && t.m * t.n < t.warps * 16 * 16)) return;
    if (shared_bytes(p, t, use) > target.max_shared_bytes()) return;
    all.emplace_back(clocks(p, t, target, use), t);
  };
  for (std::int64_t m = 16; m <= 256 && fits(m, p.m); m *= 2) {
    for (std::int64_t n = 16; n <= 256 && fits(n, p.n); n *= 2) {
      for (const std::int64_t row_bytes : {64, 128}) {
        for (const std::int64_t stages : {2, 3, 4, 5, 6, 8}) {
          if (use.warps != 0) add({m, n, row_bytes / p.element, stages, use.warps});
          for (std::int64_t warps = 1; warps <= 8 && use.warps == 0; warps *= 2) {
            add({m, n, row_bytes / p.element, stages, warps});
          }
        }
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Tile> tiles;
  for (const auto& [time, tile] : all) tiles.push_back(tile);
  return tiles;
}

void set(const Tile& tile, Config& config) {
  config["BLOCK_M"] = tile.m;
  config["BLOCK_N"] = tile.n;
  config["BLOCK_K"] = tile.k;
  config["num_stages"] = tile.stages;
  config["num_warps"] = tile.warps;
}

}  // namespace

Config gemm_config(const Graph& body, const BodyInfo& info, const Target& target,
                   const GemmUse& use) {
  Config config{{"GROUP_M", 8}};
  set(tiles_of(product_of(body, info, use), target, use).front(), config);
  return config;
}

std::vector<Config> gemm_candidates(const Graph& body, const BodyInfo& info, const Target& target,
                                    const GemmUse& use, const Config& base) {
  std::vector<Config> all{base};
  for (const Tile& tile : tiles_of(product_of(body, info, use), target, use)) {
    Config config = base;
    set(tile, config);
    if (config != base) all.push_back(std::move(config));
    if (all.size() == kMostCandidates) break;
  }
  return all;
}

int gemm_warps_m(const Config& config) {
  return static_cast<int>(
      warps_along_m(config.at("BLOCK_M"), config.at("BLOCK_N"), config.at("num_warps")));
}

}  // namespace braid
