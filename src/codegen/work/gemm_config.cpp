// Chooses the tiles of matmuls. The time of each tile size that fits on the hardware is estimated
// in clocks. Its blocks run in waves of as many as the device holds. Each of these needs time:
//
//     matrix    products of whole tiles, rows that do not exist too
//     shared    operands written once, and read by each warp that multiplies them
//     issue     instructions of the loop over K
//     L2        operands of each tile
//     memory    each operand and result once; where L2 does not hold the operands, what blocks that
//               are at work at one time read of them
//
// They combine as in estimate_kernel. Inside, that is on the multiprocessor with the most blocks, a
// warp stays in one of four parts, each of which has a quarter of the matrix unit and its own
// scheduler; the times of the units combine as sqrt(t1^2 + t2^2 + ...). The warps of a part take
// turns: each waits for its operands and for the last product while others work. So do the blocks:
// the warps of each meet at a barrier in every step of K. Outside are L2 and memory, which serve
// all blocks alike. Customers of both are the slots of all rings: a slot is filled, which takes as
// long as memory takes to answer at least, then multiplied, then filled again. So many small blocks
// keep memory busy while others multiply. Exposed time is added: filling the first ring, and
// storing the result.

#include "codegen/work/gemm_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "codegen/body/sources.h"
#include "codegen/closed_network.h"
#include "codegen/device_model.h"
#include "codegen/tile/tile.h"
#include "codegen/units.h"
#include "codegen/work/gemm_tile.h"
#include "codegen/work/work.h"
#include "ir/scales.h"

namespace braid {
namespace {

/// The most candidates for a tuner, best by the estimate.
constexpr std::size_t kMostCandidates = 96;

/// GROUP_M, the tiles that blocks go down before they go across; others are tried where it matters.
constexpr std::int64_t kGroup = 8;
constexpr std::int64_t kOtherGroups[] = {1, 16};

/// Shared memory of the other work of a kernel with rows that follow.
constexpr std::int64_t kReductions = 4096;

/// Parts of a multiprocessor.
constexpr std::int64_t kParts = 4;

/// Memory moves 64 bytes at a time, and a cache line has 128. So a product with at most kFewRows
/// rows reads this many columns of a weight together where its rows are contiguous.
constexpr std::int64_t kLineColumns = 64;

/// What a slot of a ring holds of an operand: one element for runs of its rows and columns, which
/// are powers of two; 0: for all.
struct Copied {
  bool is_left;
  std::int64_t rows = 1, columns = 1;
  std::int64_t bytes;  ///< of an element
};

struct Product {
  std::int64_t tiles;   ///< products of these extents, side by side
  std::int64_t chunks;  ///< so many of them in a row share their right operands
  std::int64_t m, n, k;
  std::int64_t right;    ///< number of right operands
  std::int64_t weights;  ///< elements of the right operands
  std::int64_t element;  ///< bytes per element
  double stored;         ///< of a right operand in memory: fewer where it is computed from less
  double unpacked;       ///< read of what is copied, to make an element of a right operand
  std::vector<Copied> copies;
  std::int64_t made;    ///< right operands made in shared memory of what is copied there
  std::int64_t making;  ///< instructions of one of their elements
  bool is_left_made;
  std::int64_t result;  ///< bytes per element of the result
  bool by_fma;          ///< not by a matrix unit
  bool widened;         ///< 8-bit operands become f16 on their way to the matrix unit
  std::int64_t met;     ///< registers per sum besides the sum: an operand, epilogue inputs
  bool by_columns;      ///< neighbours along N of a right operand are adjacent in memory
  /// Where the target multiplies and copies its operands beside the threads: what multiplies; else
  /// null.
  const Unit* beside;
  std::int64_t chain;   ///< of K, which a step has then; 0: all of K, in any steps
  bool scales_steps;    ///< sums of steps are multiplied by numbers of their rows
  bool scales_columns;  ///<   and of each of their columns
};

struct Tile {
  std::int64_t m, n, k, stages, warps, group;
  std::int64_t ring = 0;  ///< whether its warps have roles
};

double number(std::int64_t n) { return static_cast<double>(n); }
std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What the pipeliner copies for an operand, of inputs that it may have to make the operand of in
/// shared memory; nothing where the operand goes through registers.
std::vector<Copied> copies_of(const Graph& body, const Node& matmul, std::size_t input) {
  const bool is_left = input == first_matrix(matmul);
  const auto bytes = [&](ValueId value) {
    return static_cast<std::int64_t>(dtype_size(body.type(value).dtype));
  };
  if (is_moved_input(body, matmul.inputs[input])) {
    return {{.is_left = is_left, .bytes = bytes(matmul.inputs[input])}};
  }
  std::vector<Copied> copies;
  for (const Source& source : copied_sources(body, matmul, input).value_or(std::vector<Source>())) {
    const auto run = [](const Source::Along& along) { return along.alike & -along.alike; };
    copies.push_back({.is_left = is_left,
                      .rows = run(source.rows),
                      .columns = run(source.columns),
                      .bytes = bytes(source.value)});
  }
  return copies;
}

/// The elementwise nodes that an operand is computed by.
std::vector<const Node*> nodes_in_front(const Graph& graph, ValueId operand,
                                        const std::function<bool(NodeId)>& is_inside) {
  std::set<NodeId> seen;
  std::vector<ValueId> next{operand};
  std::vector<const Node*> nodes;
  while (!next.empty()) {
    const NodeId id = graph.value(next.back()).producer;
    next.pop_back();
    if (id < 0 || !is_inside(id) || !seen.insert(id).second) continue;
    const Node& node = graph.node(id);
    next.insert(next.end(), node.inputs.begin(), node.inputs.end());
    if (node.op->op_class != OpClass::kView && !node.inputs.empty()) nodes.push_back(&node);
  }
  return nodes;
}

/// Bytes in memory for each element of an operand.
double stored_bytes(const Graph& body, ValueId value, const auto& extent) {
  const auto size = static_cast<double>(dtype_size(body.type(value).dtype));
  if (is_moved_input(body, value)) return size;
  const auto count = [&](ValueId of) {
    double elements = 1;
    for (const Dim& dim : body.type(of).shape) elements *= static_cast<double>(extent(dim));
    return elements;
  };
  double bytes = 0;
  std::set<ValueId> seen;
  const auto add = [&](const auto& self, ValueId of) -> void {
    if (!seen.insert(of).second) return;
    const NodeId producer = body.value(of).producer;
    if (producer < 0) {
      bytes += std::min(count(of), count(value)) *  // it may be a part
               static_cast<double>(dtype_size(body.type(of).dtype));
      return;
    }
    for (const ValueId input : body.node(producer).inputs) self(self, input);
  };
  add(add, value);
  return bytes / count(value);
}

/// Whether an input is more than numbers of rows, or of columns, which are few.
bool is_matrix(const GraphInput& input) {
  const std::span<const Dim> shape = input.type.shape;
  return shape.size() > 1 && shape.back() != Dim(1) && shape[shape.size() - 2] != Dim(1);
}
std::int64_t matrices(const Graph& body) { return std::ranges::count_if(body.inputs(), is_matrix); }

/// How many inputs the right operands are, of which several may be parts of one.
std::int64_t weights_of(const Graph& body, const std::vector<const Node*>& matmuls) {
  std::set<ValueId> seen;
  std::int64_t found = 0;
  const auto visit = [&](const auto& self, ValueId value) -> void {
    if (!seen.insert(value).second) return;
    const Value& of = body.value(value);
    if (of.producer < 0) {
      found += is_matrix(body.inputs()[static_cast<std::size_t>(of.result)]) ? 1 : 0;
      return;
    }
    for (const ValueId input : body.node(of.producer).inputs) self(self, input);
  };
  for (const Node* matmul : matmuls) visit(visit, matmul->inputs[first_matrix(*matmul) + 1]);
  return std::min<std::int64_t>(found, std::ssize(matmuls));
}

/// `value` gives a size's.
Product product_of(const BodyFacts& facts, const Target& target, const GemmUse& use,
                   const auto& value) {
  const Graph& body = facts.body;
  const std::vector<const Node*> matmuls = matmuls_of(body);
  const Node& mm = *matmuls[0];
  const std::size_t first = first_matrix(mm);
  const TensorType& left = body.type(mm.inputs[first]);
  const std::int64_t scales = std::ssize(block_scales_of(body));
  const std::int64_t met =  // none where both operands are one
      std::max<std::int64_t>(0, matrices(body) - 1 - weights_of(body, matmuls) - scales);
  const Shape& result = body.type(mm.outputs[0]).shape;
  const auto extent = [&](const Dim& dim) { return std::max<std::int64_t>(1, value(dim)); };
  // With few rows, not all groups have one.
  const std::int64_t groups = std::min(extent(use.groups), extent(use.rows));
  std::int64_t tiles = use.chunks * groups;
  for (std::size_t d = 0; d + 2 < result.size(); ++d) tiles *= extent(result[d]);
  const auto element = static_cast<std::int64_t>(dtype_size(left.dtype));
  const auto all = [](NodeId) { return true; };
  std::vector<Copied> copies;
  bool computed = false;
  /// Whether the operand is made of what is copied.
  const auto is_made = [&](const Node& matmul, std::size_t input) {
    std::vector<Copied> own = copies_of(body, matmul, input);
    const bool is_copied = !own.empty();
    computed = computed || !is_copied;
    if (!is_copied) own = {{.is_left = input == first, .bytes = element}};
    copies.insert(copies.end(), own.begin(), own.end());
    return is_copied && !is_moved_input(body, matmul.inputs[input]);
  };
  bool is_left_made = false;
  if (use.gathers || row_selection(body, mm) != nullptr) {
    copies.push_back({.is_left = true, .bytes = element});
  } else {
    is_left_made = is_made(mm, first);
  }
  std::int64_t made = 0, making = 0;
  double stored = 0;
  for (const Node* matmul : matmuls) {
    const ValueId right = matmul->inputs[first + 1];
    constexpr std::int64_t kLeastOfMade = 3;
    made += is_made(*matmul, first + 1) ? 1 : 0;
    making = std::max({making, kLeastOfMade, 1 + std::ssize(nodes_in_front(body, right, all))});
    stored += stored_bytes(body, right, extent);
  }
  double unpacked = 0;
  for (const Copied& copied : copies) {
    if (copied.is_left || copied.columns == 0) continue;
    unpacked += number(copied.bytes) / number(copied.columns) / number(std::ssize(matmuls));
  }
  const Unit* const unit = multiplier(target, left.dtype);
  const Unit* const beside = multiplier(target, left.dtype, /*asynchronous=*/true);
  auto weights = static_cast<std::int64_t>(matmuls.size());
  for (const Dim& dim : body.type(mm.inputs[first + 1]).shape) weights *= extent(dim);
  return {.tiles = tiles,
          .chunks = use.chunks,
          .m = divide_up(extent(use.rows), groups),
          .n = extent(result.back()),
          .k = extent(left.shape.back()),
          .right = static_cast<std::int64_t>(matmuls.size()),
          .weights = weights,
          .element = element,
          .stored = stored / static_cast<double>(matmuls.size()),
          .unpacked = unpacked,
          .copies = std::move(copies),
          .made = made,
          .making = making,
          .is_left_made = is_left_made,
          .result = static_cast<std::int64_t>(dtype_size(body.type(mm.outputs[0]).dtype)),
          .by_fma = unit == &units::kFma,
          .widened = unit != nullptr && unit->multiplies->widens(left.dtype, target.sm),
          .met = met + (computed ? 1 : 0),
          .by_columns = is_contiguous(body, mm.inputs[first + 1],
                                      body.type(mm.inputs[first + 1]).shape.size() - 1),
          .beside = has(target, units::kBulkTensor) ? beside : nullptr,
          .chain = chain_of(body, target),
          .scales_steps = scales > 0,
          .scales_columns = mm.op->matmul == Matmul::kScaled && is_scale_in_blocks(body, mm, 3) &&
                            body.type(mm.inputs[3]).shape[1] == result.back()};
}

std::int64_t warps_along_m(std::int64_t m, std::int64_t n, std::int64_t warps) {
  std::int64_t best = 1;
  // Each warp has 16 columns; warps beyond the columns take rows, or copies.
  const auto edges = [&](std::int64_t r) {
    return m / r + std::max<std::int64_t>(16, n * r / warps);
  };
  for (std::int64_t rows = 2; rows <= warps && rows * 16 <= m; rows *= 2) {
    if (edges(rows) < edges(best)) best = rows;
  }
  return best;
}

std::int64_t shared_bytes(const Product& p, const Tile& t, const GemmUse& use) {
  std::int64_t slot = 0;
  for (const Copied& copied : p.copies) {
    const auto runs = [](std::int64_t extent, std::int64_t run) {
      return run == 0 ? 1 : std::max<std::int64_t>(1, extent / run);
    };
    slot += runs(copied.is_left ? t.m : t.k, copied.rows) *
            runs(copied.is_left ? t.k : t.n, copied.columns) * copied.bytes;
  }
  const std::int64_t made = ((p.is_left_made ? t.m : 0) + p.made * t.n) * t.k * p.element;
  const std::int64_t ring = slot * t.stages + made;
  if (!use.rows_follow) return ring;
  // The result changes its layout where the ring was.
  return std::max(ring, t.m * t.n * p.result) + kReductions;
}

/// Columns of a warp's part of a tile.
std::int64_t columns_of_warp(const Tile& t) {
  constexpr std::int64_t kFragment = 8;  // warps beyond the columns have copies
  return std::max(t.n * warps_along_m(t.m, t.n, t.warps) / t.warps, kFragment);
}

/// Registers per thread: its sums, their fragments, addresses and the like.
std::int64_t registers_of(const Product& p, const Tile& t) {
  constexpr std::int64_t kOther = 48;
  const std::int64_t m = t.m / warps_along_m(t.m, t.n, t.warps);
  const std::int64_t n = columns_of_warp(t);
  const std::int64_t sums = p.right * m * n / 32 * (p.chain != 0 ? 2 : 1);
  // Numbers of rows, where they lie, and those of the next steps: NVRTC unrolls the loop over K.
  const std::int64_t scales = (p.scales_steps ? m / 4 + 48 : 0) + (p.scales_columns ? n / 4 : 0);
  return sums + scales + (m + n) / 4 * (p.widened ? 3 : 1) + kOther;
}

/// The blocks of a tile size, and what one block demands of a multiprocessor's units, in clocks.
struct TileWork {
  double blocks;
  double at_once;  ///< blocks resident on a multiprocessor
  double matrix, shared, issue, l2;
  double latency;  ///< until what a slot of its ring takes has arrived, for all steps
  double waiting;  ///< of a warp for its fragments and products, when it can do nothing else
  double meeting;  ///< of its warps at barriers
};

TileWork work_of(const Product& p, const Tile& t, const DeviceModel& device, const GemmUse& use) {
  const std::int64_t warps_m = warps_along_m(t.m, t.n, t.warps);
  const std::int64_t warps_n = t.warps / warps_m;
  const std::int64_t warp_m = t.m / warps_m;
  const std::int64_t warp_n = columns_of_warp(t);

  const Architecture& known = architecture(device.sm);
  constexpr std::int64_t kPartRegisters = 16384;  // registers of one part, shared by its warps
  const std::int64_t registers = registers_of(p, t);
  const std::int64_t room =
      std::min({kParts * (kPartRegisters / (registers * 32)) / t.warps,
                device.shared_kib * std::int64_t{1024} / (shared_bytes(p, t, use) + 1024),
                std::int64_t{use.resident ? 8 : 48} / t.warps});

  const double steps = number(divide_up(p.k, t.k));
  const double k = steps * number(t.k);
  const double width = p.element == 1 ? known.f8_width : 1;
  const double tflops =
      p.by_fma ? device.f32_tflops : device.f16_tflops * known.mma_sync_share * width;
  const double flops = tflops * 1e3 / (device.sms * device.ghz);
  const double products = number(t.warps * warp_m * warp_n * p.right);
  const double read = number(warps_n * t.m + p.right * warps_m * t.n) * number(p.element);
  const double made = number(p.made * t.n);
  const double written = number((t.m + p.right * t.n) * p.element) + made * (p.stored + p.unpacked);
  const std::int64_t rows = std::min(t.m, p.m), cols = std::min(t.n, p.n);
  const double loaded = number(rows * p.element) + number(p.right * cols) * p.stored;  // per k

  const double fragments = number(t.k * p.element) / 32;  // matrix steps per step of K
  const double loads = fragments * number(warp_m + p.right * warp_n) / 16;
  const double multiplies =
      fragments * number(warp_m * warp_n * p.right) / 128 * (p.widened ? 2 : 1);
  // Two slots per pair of elements.
  const double conversions = p.widened ? fragments * number(warp_m + p.right * warp_n) : 0;
  const double copies = written * number(t.k) / 16 / number(32 * t.warps);
  const double turn = known.shared_clocks + known.matrix_clocks;  // of a warp with nobody beside it
  constexpr double kOfIntegers = 2;                               // turns: half as many lanes
  constexpr double kAround = 24;                                  // other instructions per step
  return {.blocks = number(p.tiles * divide_up(p.m, t.m) * divide_up(p.n, t.n)),
          .at_once = number(use.waits ? 1 : std::max<std::int64_t>(1, room)),
          .matrix = 2 * products * k / flops,
          .shared = k * (written + read) / 128,
          .issue = steps * number(t.warps) *
                       (multiplies + conversions + 2 * loads + 4 * copies + kAround) / 4 +
                   k * made * number(p.making) * kOfIntegers / 32 / 4,
          .l2 = (number(p.k) * loaded + number(rows * cols) * 2) * 108 / 5120,
          .latency = steps / number(t.stages) * known.memory_clocks,
          .waiting = steps * fragments * turn,
          .meeting = steps * turn};
}

double operand_bytes(const Product& p) {
  return number(p.tiles * p.m * p.k * p.element) + number(p.weights) * p.stored;
}

/// Whether some operands are read from memory repeatedly.
bool exceeds_cache(const Product& p, const DeviceModel& device) {
  const double operands = operand_bytes(p);
  return operands > device.l2_mib * 1024 * 1024;
}

/// Memory traffic in bytes. Consecutive blocks go down `group` tiles, then across. Blocks that run
/// at the same time share what they read, and so do as many as have their operands in L2.
double memory_bytes(const Product& p, const Tile& t, double at_once, const DeviceModel& device) {
  const double element = number(p.element);
  const double written = number(p.tiles * p.m * p.n) * element;
  const double least = operand_bytes(p);
  if (!exceeds_cache(p, device)) return least + written;
  const double down = number(p.chunks * divide_up(p.m, t.m));
  const double across = number(divide_up(p.n, t.n));
  const double group = std::min(number(t.group), number(divide_up(p.m, t.m)));
  const auto read_by = [&](double blocks) {
    const double rows = std::max(group, blocks / across);
    const double columns = std::min(across, blocks / group);
    return number(p.k) *
           (rows * number(t.m) * element + columns * number(p.right * t.n) * p.stored);
  };
  double blocks = std::min(at_once, down * across);
  while (2 * blocks <= down * across && read_by(2 * blocks) <= device.l2_mib * 1024 * 1024) {
    blocks *= 2;
  }
  return written +
         std::max(least, number(p.tiles / p.chunks) * down * across / blocks * read_by(blocks));
}

/// Whether sums have a memory of their own.
bool has_slots(const Product& p) { return p.beside != nullptr && has_own_sums(*p.beside); }

/// Of tiles whose copies and products are beside the threads: on each multiprocessor a block goes
/// from tile to tile, and the slowest of its units holds it up; its results are stored in between.
double ring_clocks(const Product& p, const Tile& t, const DeviceModel& device, double sms) {
  constexpr double kBlock = 1500;    // the first copies and the last stores
  constexpr double kL2Share = 0.85;  // of its rate, as an H100's copies for tiles of 128 x 128 take
  const Architecture& known = architecture(device.sm);
  const double width = p.element == 1 ? 2 : 1;
  const double flops =
      device.f16_tflops * known.matrix_share * width * 1e3 / (device.sms * device.ghz);
  const double steps = number(divide_up(p.k, t.k));
  const double row_bytes = number(t.k * p.element);
  const double operands = number(t.m + p.right * t.n) * row_bytes;
  const double matrix = 2 * number(t.m * t.n * p.right * t.k) / flops;
  const double read =
      (number(t.m) + number(p.right * t.n * t.m) / number(p.beside->multiplies->rows)) * row_bytes;
  const double shared = (operands + read) / 128;
  const double l2 = operands * 108 / 5120 / kL2Share;
  const double latency = known.memory_clocks / number(t.stages);
  const double sums = steps * std::max({matrix, shared, l2, latency});
  const double results = number(t.m * t.n * p.result) / 64;
  const double tiles = number(p.tiles * divide_up(p.m, t.m) * divide_up(p.n, t.n));
  const double turns = std::ceil(tiles / sms);
  // With two slots for sums the next ones are made while results are stored.
  const bool overlaps = has_slots(p) && slots_of_sums(t.m, t.n, p.right) > 1;
  const double all =
      overlaps ? turns * std::max(sums, results) + std::min(sums, results) + known.memory_clocks
               : turns * (sums + results + known.memory_clocks);
  const double memory =
      memory_bytes(p, t, sms, device) / (kMemoryShare * device.hbm_gbs) * device.ghz;
  return std::max(all, memory) + kBlock;
}

/// The estimate described at the top of the file.
double clocks(const Product& p, const Tile& t, const Target& target, const GemmUse& use) {
  constexpr double kBlock = 1500;  // first loads and last stores of a block
  const DeviceModel& device = device_model(target);
  const auto sms = static_cast<double>(device.sms - use.copying);
  if (t.ring != 0) return ring_clocks(p, t, device, sms);
  const TileWork work = work_of(p, t, device, use);
  const auto warps = static_cast<double>(t.warps);
  const double most = work.at_once * sms;
  const double memory =
      memory_bytes(p, t, most, device) / (kMemoryShare * device.hbm_gbs) * device.ghz;
  const auto wave = [&](double blocks) {
    if (blocks == 0) return 0.0;
    const double busiest = std::ceil(blocks / sms);
    const double uneven = std::max(1.0, kParts / (busiest * warps));
    const double units = std::hypot(busiest * uneven * work.matrix, busiest * work.shared,
                                    busiest * uneven * work.issue);
    const double queued = std::ceil(busiest * warps / kParts);
    const double turns = closed_network_round(queued, units / queued, work.waiting);
    const double inside = closed_network_round(busiest, turns / busiest, work.meeting);
    const double l2 = blocks / std::min(blocks, sms) * work.l2;
    const double outside = std::hypot(memory * blocks / work.blocks, l2);
    const double slots = busiest * number(t.stages);
    return closed_network_round(slots, {outside / slots, inside / slots}, work.latency) + kBlock;
  };
  const double full = std::floor(work.blocks / most);
  return full * wave(most) + wave(work.blocks - full * most);
}

/// Tiles of whole groups of warps, each with as long a ring as there is room for.
std::vector<Tile> ring_tiles(const Product& p, const Target& target, const GemmUse& use) {
  constexpr std::int64_t kBytes = 128;         // of a row of operands
  constexpr std::int64_t kMostSums = 128;      // of a thread, with the values that meet them
  constexpr std::int64_t kMostOfChains = 192;  // with a part's products, or what meets these
  constexpr std::int64_t kMostStages = 8;
  constexpr std::int64_t kSignals = 1024;  // bytes of mbarriers, and up to where tiles are aligned
  const std::int64_t rows = p.beside->multiplies->rows;  // of one product
  std::vector<Tile> tiles;
  for (std::int64_t m = rows; m <= 256; m *= 2) {
    for (std::int64_t n = 64; n <= 256; n *= 2) {
      const std::int64_t of_sums = use.warps == tile::kWarpsOfGroup ? 1 : 2;
      const std::int64_t groups = has_slots(p) ? of_sums : std::min<std::int64_t>(2, m / rows);
      const std::int64_t warps = tile::kWarpsOfGroup * groups;
      const std::int64_t sums = m * n * p.right / (groups * 128);
      const bool fits = (m == rows || m < 2 * p.m) && (n == 64 || n < 2 * p.n);
      // Of chains each step has sums of its own.
      const bool has_columns =
          !has_slots(p) || slots_of_sums(m, n, p.right) >= (p.chain == 0 ? 1 : 2);
      const std::int64_t parts = p.right * parts_of_tile(p.chain, n, p.right);
      const std::int64_t of_columns = p.scales_columns ? n * p.right / parts / 4 : 0;
      const bool has_registers =
          has_slots(p) && p.chain == 0 ? true
          : p.chain == 0               ? sums * (1 + p.met) <= kMostSums
                         : sums + sums / parts * std::max<std::int64_t>(1, p.met) + of_columns <=
                               kMostOfChains;
      // Other numbers of warps would add up rows that follow in another order.
      const bool has_warps = use.warps == 0 || use.warps == warps;
      if (!fits || !has_columns || !has_registers || !has_warps) continue;
      const std::int64_t taken =
          has_slots(p) ? columns_taken(m, n, warps, p.right) : std::min(n, kStagedColumns);
      // What rows that follow need: a whole tile changes its layout.
      const std::int64_t staged =
          use.rows_follow ? m * n * p.result + kReductions : m * taken * p.result;
      const std::int64_t stage = (m + p.right * n) * kBytes;
      const std::int64_t room = (target.max_shared_bytes() - staged - kSignals) / stage;
      const std::int64_t stages = std::min(kMostStages, room);
      if (stages >= 2) tiles.push_back({m, n, kBytes / p.element, stages, warps, kGroup, 1});
    }
  }
  return tiles;
}

/// All that have room with their clocks, the quickest first.
std::vector<std::pair<double, Tile>> tiles_of(const Product& p, const Target& target,
                                              const GemmUse& use) {
  std::vector<std::pair<double, Tile>> all;
  // A block that is alone has a warp for each part of its multiprocessor.
  const std::int64_t fewest = use.warps != 0 ? use.warps : use.waits ? 4 : 1;
  const std::int64_t most_warps = use.warps != 0 ? use.warps : 8;
  const std::int64_t fragments = divide_up(p.m, 16) * divide_up(p.n, 16);
  const bool reordered = exceeds_cache(p, device_model(target));
  // No tile is twice as large as the extent it covers.
  const auto fits = [](std::int64_t block, std::int64_t extent) {
    return block == 16 || block < 2 * extent;
  };
  const auto has_room = [&](const Tile& t) {
    const std::int64_t sums = t.m * t.n * p.right / (32 * t.warps);
    const std::int64_t registers = tile::registers_of_thread(static_cast<int>(t.warps));
    const std::int64_t met = std::max<std::int64_t>(p.by_fma ? 1 : 0, p.met);
    const std::int64_t most = registers / (2 + 2 * met);
    // Each warp has a fragment, as far as there are enough and the kernel does not need more warps.
    const std::int64_t busy = t.warps > fewest ? t.warps : std::min(t.warps, fragments);
    if (sums > most || registers_of(p, t) > registers) return false;
    if (use.warps == 0 && t.m * t.n < busy * 16 * 16) return false;
    return shared_bytes(p, t, use) <= target.max_shared_bytes();
  };
  const auto add = [&](const Tile& t) {
    const double time = clocks(p, t, target, use);
    all.emplace_back(time, t);
    if (!reordered) return;
    for (const std::int64_t group : kOtherGroups) {
      Tile other = t;
      other.group = group;
      const double other_time = clocks(p, other, target, use);
      if (other_time != time) all.emplace_back(other_time, other);
    }
  };
  // With few rows a kernel is bound by its weights, and reads whole lines of them.
  const bool by_lines = p.by_columns && p.m <= kFewRows && p.n >= kLineColumns;
  const auto add_others = [&] {
    for (std::int64_t m = 16; m <= 256 && fits(m, p.m); m *= 2) {
      for (std::int64_t n = 16; n <= 256 && fits(n, p.n); n *= 2) {
        if (by_lines && n < kLineColumns) continue;
        for (const std::int64_t row_bytes : {64, 128}) {
          if (p.chain != 0 && row_bytes / p.element != p.chain) continue;
          for (const std::int64_t stages : {2, 3, 4, 5, 6, 8}) {
            for (std::int64_t warps = fewest; warps <= most_warps; warps *= 2) {
              const Tile tile{m, n, row_bytes / p.element, stages, warps, kGroup};
              if (has_room(tile)) add(tile);
            }
          }
        }
      }
    }
  };
  const auto add_rings = [&] {
    if (!use.rings || p.beside == nullptr) return;
    for (const Tile& tile : ring_tiles(p, target, use)) add(tile);
  };
  // Other units may have other sums on a GPU: in chains all rows are for rings, or none.
  if (p.chain != 0) add_rings();
  if (all.empty()) add_others();
  // Few rows leave most of its products' 64 idle, and it has few blocks, which memory can wait for.
  if (p.chain == 0 && (p.chunks * p.m > kFewRows || all.empty())) add_rings();
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

constexpr std::pair<const char*, std::int64_t Tile::*> kNumbers[] = {
    {"BLOCK_M", &Tile::m},     {"BLOCK_N", &Tile::n},         {"BLOCK_K", &Tile::k},
    {"GROUP_M", &Tile::group}, {"num_stages", &Tile::stages}, {"num_warps", &Tile::warps},
};

}  // namespace

std::optional<std::vector<Source>> made_of(const Graph& graph, const Node& matmul,
                                           std::size_t input, const Target& target,
                                           const std::function<bool(NodeId)>& is_inside) {
  const std::size_t first = first_matrix(matmul);
  const DType dtype = graph.type(matmul.inputs[first]).dtype;
  const Shape& product = graph.type(matmul.outputs[0]).shape;
  const bool is_grouped = matmul.op->matmul == Matmul::kGrouped;
  const Shape& weights = graph.type(matmul.inputs[first + 1]).shape;
  const std::int64_t groups = is_grouped ? weights.front().max(graph.symbols()) : 1;
  const bool has_few_rows = product[product.size() - 2].max(graph.symbols()) <= kFewRows * groups;
  const bool is_copied_as_is = multiplier(target, dtype, /*asynchronous=*/true) != nullptr &&
                               has(target, units::kBulkTensor);
  if (!has_few_rows && is_copied_as_is) return std::nullopt;
  // Each element of a right operand that is another one in each batch, or of each group.
  const bool is_once = has_few_rows && input != first &&
                       (is_grouped || std::equal(weights.begin(), weights.end() - 2,
                                                 product.begin(), product.end() - 2));
  const auto nodes = nodes_in_front(graph, matmul.inputs[input], is_inside);
  const bool is_light = std::ranges::all_of(
      nodes, [](const Node* node) { return node->op_name() == "to" || node->op_name() == "mul"; });
  return is_light || is_once ? copied_sources(graph, matmul, input, is_inside) : std::nullopt;
}

std::int64_t chain_of(const Graph& body, const Target& target) {
  if (!block_scales_of(body).empty()) return kScaleBlock;
  const Node& matmul = *matmuls_of(body)[0];
  return chain_along_k(target, body.type(matmul.inputs[first_matrix(matmul)]).dtype);
}

std::vector<Config> gemm_configs(const BodyFacts& facts, const Target& target, const GemmUse& use) {
  std::vector<Config> all;
  const Product largest =
      product_of(facts, target, use, [&](const Dim& dim) { return dim.max(facts.body.symbols()); });
  for (const auto& [time, tile] : tiles_of(largest, target, use)) {
    Config& config = all.emplace_back();
    for (const auto& [name, member] : kNumbers) config[name] = tile.*member;
    if (use.waits) config[std::string(kLeavesSetting)] = 0;
    if (tile.ring != 0) config[kRingSetting] = 1;
    if (all.size() == kMostCandidates) break;
  }
  return all;
}

double gemm_ns(const BodyFacts& facts, const Config& config, const Bindings& bindings,
               const Target& target, const GemmUse& use) {
  const Product p =
      product_of(facts, target, use, [&](const Dim& dim) { return dim.evaluate(bindings); });
  Tile tile{};
  for (const auto& [name, member] : kNumbers) tile.*member = config.at(name);
  tile.ring = has_ring(config) ? 1 : 0;
  return clocks(p, tile, target, use) / device_model(target).ghz;
}

int gemm_warps_m(const Config& config) {
  return static_cast<int>(
      warps_along_m(config.at("BLOCK_M"), config.at("BLOCK_N"), config.at("num_warps")));
}

}  // namespace braid
