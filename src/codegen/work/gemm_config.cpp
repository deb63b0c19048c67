// The tiles of matmuls. Each one that the hardware has room for is reckoned in clocks. Its blocks
// come in waves of as many as the device holds; of each wave it is what the multiprocessor with the
// most of these blocks needs of its units, and what memory and its latency need for all:
//
//     matrix    products of whole tiles, rows that do not exist too
//     shared    operands written once, and read by each warp that multiplies them
//     issue     instructions of the loop over K
//     L2        operands of each tile
//     memory    each operand and result once; where L2 does not hold the operands, what blocks that
//               are at work at one time read of them
//     latency   a block's ring brings stages - 1 steps of K in the time that memory takes to answer
//
// As in estimate_kernel a warp stays in one of a multiprocessor's four parts, each of which has a
// quarter of its matrix unit and issues for itself, and the slowest counts most:
// sqrt(t1^2 + t2^2 + ...). The warps of a part take turns: each waits for what it multiplies and
// for the last product, while others work. To it comes what nothing hides: filling the ring, and
// storing the result.

#include "codegen/work/gemm_config.h"

#include <algorithm>
#include <cmath>

#include "codegen/closed_network.h"
#include "codegen/device_model.h"
#include "codegen/tile/tile.h"
#include "codegen/work/gemm_tile.h"

namespace braid {
namespace {

/// A tuner chooses from so many, the best by the reckoning.
constexpr std::size_t kMostCandidates = 96;

/// Tiles that blocks go down before they go across; others where that makes a difference.
constexpr std::int64_t kGroup = 8;
constexpr std::int64_t kOtherGroups[] = {1, 16};

/// Of a multiprocessor.
constexpr std::int64_t kParts = 4;

/// Memory moves 64 bytes at a time, a cache line is 128: columns of a weight that are read together
/// where its rows lie in memory, by a product of no more rows than this.
constexpr std::int64_t kLineColumns = 64;
constexpr std::int64_t kFewRows = 64;

struct Product {
  std::int64_t tiles;  ///< products of these extents, side by side
  std::int64_t m, n, k;
  std::int64_t right;    ///< right operands
  std::int64_t weights;  ///< elements of these
  std::int64_t element;  ///< bytes
  bool f32;
  std::int64_t met;  ///< what registers hold beside each sum: an operand, what the result meets
  bool by_columns;   ///< neighbours along N lie side by side in memory, of a right operand
};

struct Tile {
  std::int64_t m, n, k, stages, warps, group;
};

/// `value` gives a size's.
template <class Value>
Product product_of(const Graph& body, const BodyInfo& info, const GemmUse& use,
                   const Value& value) {
  const Node& mm = *info.matmuls[0];
  const std::size_t first = first_matrix(mm);
  const TensorType& left = body.type(mm.inputs[first]);
  const auto matrices = static_cast<std::int64_t>(
      std::count_if(body.inputs().begin(), body.inputs().end(),
                    [](const GraphInput& input) { return input.type.shape.size() > 1; }));
  const Shape& result = body.type(mm.outputs[0]).shape;
  const auto extent = [&](const Dim& dim) { return std::max<std::int64_t>(1, value(dim)); };
  std::int64_t tiles = use.chunks;
  for (std::size_t d = 0; d + 2 < result.size(); ++d) tiles *= extent(result[d]);
  // What is gathered is loaded as an input is.
  const bool left_computed = info.gathered < 0 && !is_moved_input(body, mm.inputs[first]);
  const bool computed = left_computed || !is_moved_input(body, mm.inputs[first + 1]);
  auto weights = static_cast<std::int64_t>(info.matmuls.size());
  for (const Dim& dim : body.type(mm.inputs[first + 1]).shape) weights *= extent(dim);
  return {.tiles = tiles,
          .m = extent(use.rows),
          .n = extent(result.back()),
          .k = extent(left.shape.back()),
          .right = static_cast<std::int64_t>(info.matmuls.size()),
          .weights = weights,
          .element = static_cast<std::int64_t>(dtype_size(left.dtype)),
          .f32 = left.dtype == DType::kF32,
          .met = matrices - 1 - static_cast<std::int64_t>(info.matmuls.size()) + (computed ? 1 : 0),
          .by_columns = is_contiguous(body, mm.inputs[first + 1],
                                      body.type(mm.inputs[first + 1]).shape.size() - 1)};
}

/// At the symbols' largest values.
Product largest(const Graph& body, const BodyInfo& info, const GemmUse& use) {
  return product_of(body, info, use, [&](const Dim& dim) { return dim.max(body.symbols()); });
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

/// Columns of a warp's part of a tile.
std::int64_t columns_of_warp(const Tile& t) {
  constexpr std::int64_t kFragment = 8;  // warps that find none have copies
  return std::max(t.n * warps_along_m(t.m, t.n, t.warps) / t.warps, kFragment);
}

/// Whether 8-bit operands become f16 on their way to the matrix unit.
bool is_widened(const Product& p, const DeviceModel& device) {
  return p.element == 1 && architecture(device.sm).f8_width == 1;
}

/// Of a thread: its sums, the fragments that they are made of, addresses and the like.
std::int64_t registers_of(const Product& p, const Tile& t, const DeviceModel& device) {
  constexpr std::int64_t kOther = 48;
  const std::int64_t m = t.m / warps_along_m(t.m, t.n, t.warps);
  const std::int64_t n = columns_of_warp(t);
  return p.right * m * n / 32 + (m + n) / 4 * (is_widened(p, device) ? 3 : 1) + kOther;
}

/// A tile's blocks, and what one asks of a multiprocessor's units, in clocks.
struct TileWork {
  double blocks;
  double at_once;  ///< blocks that a multiprocessor holds
  double matrix, shared, issue, l2;
  double latency;  ///< until its copies have come
  double waiting;  ///< of a warp for its fragments and products, where it can do nothing else
};

TileWork work_of(const Product& p, const Tile& t, const DeviceModel& device, const GemmUse& use) {
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const std::int64_t warps_m = warps_along_m(t.m, t.n, t.warps);
  const std::int64_t warps_n = t.warps / warps_m;
  const std::int64_t warp_m = t.m / warps_m;
  const std::int64_t warp_n = columns_of_warp(t);

  const Architecture& known = architecture(device.sm);
  const bool widened = is_widened(p, device);
  constexpr std::int64_t kPartRegisters = 16384;  // of which a warp has its own in one part
  const std::int64_t registers = registers_of(p, t, device);
  const std::int64_t room =
      std::min({kParts * (kPartRegisters / (registers * 32)) / t.warps,
                device.shared_kib * std::int64_t{1024} / (shared_bytes(p, t, use) + 1024),
                std::int64_t{48} / t.warps});

  const double steps = number(divide_up(p.k, t.k));
  const double k = steps * number(t.k);
  const double width = p.element == 1 ? known.f8_width : 1;
  const double tflops =
      p.f32 ? device.f32_tflops : device.f16_tflops * known.mma_sync_share * width;
  const double flops = tflops * 1e3 / (device.sms * device.ghz);
  const double products = number(t.warps * warp_m * warp_n * p.right);
  const double read = number(warps_n * t.m + p.right * warps_m * t.n) * number(p.element);
  const double written = number((t.m + p.right * t.n) * p.element);
  const std::int64_t rows = std::min(t.m, p.m), cols = std::min(t.n, p.n);
  const double loaded = number((rows + p.right * cols) * p.element);  // bytes for each k

  const double fragments = number(t.k * p.element) / 32;  // steps of the matrix unit in one of K
  const double loads = fragments * number(warp_m + p.right * warp_n) / 16;
  const double multiplies = fragments * number(warp_m * warp_n * p.right) / 128 * (widened ? 2 : 1);
  // Pairs of elements, two slots each.
  const double conversions = widened ? fragments * number(warp_m + p.right * warp_n) : 0;
  const double copies = written * number(t.k) / 16 / number(32 * t.warps);
  constexpr double kAround = 24;  // instructions of a step beside these
  return {.blocks = number(p.tiles * divide_up(p.m, t.m) * divide_up(p.n, t.n)),
          .at_once = number(use.waits ? 1 : std::max<std::int64_t>(1, room)),
          .matrix = 2 * products * k / flops,
          .shared = k * (written + read) / 128,
          .issue = steps * number(t.warps) *
                   (multiplies + conversions + 2 * loads + 4 * copies + kAround) / 4,
          .l2 = (number(p.k) * loaded + number(rows * cols) * 2) * 108 / 5120,
          .latency = steps / number(std::max<std::int64_t>(1, t.stages - 1)) * known.memory_clocks,
          .waiting = steps * fragments * (known.shared_clocks + known.matrix_clocks)};
}

/// Whether memory brings some of the operands again and again.
bool exceeds_cache(const Product& p, const DeviceModel& device) {
  const auto operands = static_cast<double>((p.tiles * p.m * p.k + p.weights) * p.element);
  return operands > device.l2_mib * 1024 * 1024;
}

/// Bytes to and from memory. Blocks one after the other go down `group` tiles, then across. Those
/// that are at work at one time share what they read, and so do as many as L2 holds operands for.
double memory_bytes(const Product& p, const Tile& t, double at_once, const DeviceModel& device) {
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const double element = number(p.element);
  const double written = number(p.tiles * p.m * p.n) * element;
  const double least = number(p.tiles * p.m * p.k + p.weights) * element;
  if (!exceeds_cache(p, device)) return least + written;
  const double down = number(divide_up(p.m, t.m)), across = number(divide_up(p.n, t.n));
  const double group = std::min(number(t.group), down);
  const auto read_by = [&](double blocks) {
    const double rows = std::max(group, blocks / across);
    const double columns = std::min(across, blocks / group);
    return number(p.k) * element * (rows * number(t.m) + columns * number(p.right * t.n));
  };
  double blocks = std::min(at_once, down * across);
  while (2 * blocks <= down * across && read_by(2 * blocks) <= device.l2_mib * 1024 * 1024) {
    blocks *= 2;
  }
  return written + std::max(least, number(p.tiles) * down * across / blocks * read_by(blocks));
}

/// Clocks, by the file's head.
double clocks(const Product& p, const Tile& t, const Target& target, const GemmUse& use) {
  constexpr double kBlock = 1500;  // of a block's first loads and last stores
  const DeviceModel& device = device_model(target);
  const TileWork work = work_of(p, t, device, use);
  const auto warps = static_cast<double>(t.warps);
  const auto sms = static_cast<double>(device.sms - use.copying);
  const double most = work.at_once * sms;
  const double memory =
      memory_bytes(p, t, most, device) / (kMemoryShare * device.hbm_gbs) * device.ghz;
  const auto wave = [&](double blocks) {
    if (blocks == 0) return 0.0;
    const double busiest = std::ceil(blocks / sms);
    const double uneven = std::max(1.0, kParts / (busiest * warps));
    double squares = std::pow(memory * blocks / work.blocks, 2);
    for (const double unit : {busiest * uneven * work.matrix, busiest * work.shared,
                              busiest * uneven * work.issue, busiest * work.l2, work.latency}) {
      squares += unit * unit;
    }
    const double queued = std::ceil(busiest * warps / kParts);
    return closed_network_round(queued, std::sqrt(squares) / queued, work.waiting) + kBlock;
  };
  const double full = std::floor(work.blocks / most);
  return full * wave(most) + wave(work.blocks - full * most);
}

/// All that have room, the quickest first.
std::vector<Tile> tiles_of(const Product& p, const Target& target, const GemmUse& use) {
  std::vector<std::pair<double, Tile>> all;
  // One block alone has a warp for each part of its multiprocessor.
  const std::int64_t fewest = use.warps != 0 ? use.warps : use.waits ? 4 : 1;
  const std::int64_t most_warps = use.warps != 0 ? use.warps : 8;
  const std::int64_t fragments = divide_up(p.m, 16) * divide_up(p.n, 16);
  const bool reordered = exceeds_cache(p, device_model(target));
  // No tile is twice as large as what it is for.
  const auto fits = [](std::int64_t block, std::int64_t extent) {
    return block == 16 || block < 2 * extent;
  };
  const auto add = [&](const Tile& t) {
    const std::int64_t sums = t.m * t.n * p.right / (32 * t.warps);
    const std::int64_t registers = tile::registers_of_thread(static_cast<int>(t.warps));
    const std::int64_t met = std::max<std::int64_t>(p.f32 ? 1 : 0, p.met);
    const std::int64_t most = registers / (2 + 2 * met);
    // A fragment for each warp, where there are as many, and the kernel does not need more warps.
    const std::int64_t busy = t.warps > fewest ? t.warps : std::min(t.warps, fragments);
    if (sums > most || registers_of(p, t, device_model(target)) > registers) return;
    if (use.warps == 0 && t.m * t.n < busy * 16 * 16) return;
    if (shared_bytes(p, t, use) > target.max_shared_bytes()) return;
    const double time = clocks(p, t, target, use);
    all.emplace_back(time, t);
    if (!reordered) return;
    for (const std::int64_t group : kOtherGroups) {
      const Tile other{t.m, t.n, t.k, t.stages, t.warps, group};
      const double other_time = clocks(p, other, target, use);
      if (other_time != time) all.emplace_back(other_time, other);
    }
  };
  // Where few rows leave a kernel to its weights, it reads whole lines of them.
  const bool by_lines = p.by_columns && p.m <= kFewRows && p.n >= kLineColumns;
  for (std::int64_t m = 16; m <= 256 && fits(m, p.m); m *= 2) {
    for (std::int64_t n = 16; n <= 256 && fits(n, p.n); n *= 2) {
      if (by_lines && n < kLineColumns) continue;
      for (const std::int64_t row_bytes : {64, 128}) {
        for (const std::int64_t stages : {2, 3, 4, 5, 6, 8}) {
          for (std::int64_t warps = fewest; warps <= most_warps; warps *= 2) {
            add({m, n, row_bytes / p.element, stages, warps, kGroup});
          }
        }
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Tile> tiles;
  tiles.reserve(all.size());
  for (const auto& [time, tile] : all) tiles.push_back(tile);
  return tiles;
}

void set(const Tile& tile, Config& config) {
  config["BLOCK_M"] = tile.m;
  config["BLOCK_N"] = tile.n;
  config["BLOCK_K"] = tile.k;
  config["GROUP_M"] = tile.group;
  config["num_stages"] = tile.stages;
  config["num_warps"] = tile.warps;
}

}  // namespace

Config gemm_config(const Graph& body, const BodyInfo& info, const Target& target,
                   const GemmUse& use) {
  Config config;
  set(tiles_of(largest(body, info, use), target, use).front(), config);
  return config;
}

std::vector<Config> gemm_candidates(const Graph& body, const BodyInfo& info, const Target& target,
                                    const GemmUse& use, const Config& base) {
  std::vector<Config> all{base};
  for (const Tile& tile : tiles_of(largest(body, info, use), target, use)) {
    Config config = base;
    set(tile, config);
    if (config != base) all.push_back(std::move(config));
    if (all.size() == kMostCandidates) break;
  }
  return all;
}

double gemm_ns(const KernelSpec& spec, const BodyInfo& info, const Bindings& bindings,
               const Target& target, const GemmUse& use) {
  const auto setting = [&](const char* name) { return spec.config.at(name); };
  const Product p =
      product_of(*spec.body, info, use, [&](const Dim& dim) { return dim.evaluate(bindings); });
  const Tile tile{.m = setting("BLOCK_M"),
                  .n = setting("BLOCK_N"),
                  .k = setting("BLOCK_K"),
                  .stages = setting("num_stages"),
                  .warps = setting("num_warps"),
                  .group = setting("GROUP_M")};
  return clocks(p, tile, target, use) / device_model(target).ghz;
}

int gemm_warps_m(const Config& config) {
  return static_cast<int>(
      warps_along_m(config.at("BLOCK_M"), config.at("BLOCK_N"), config.at("num_warps")));
}

}  // namespace braid
