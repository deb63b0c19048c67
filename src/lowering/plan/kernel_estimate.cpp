#include "lowering/plan/kernel_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/closed_network.h"

namespace braid {
namespace {

/// Conversions take the special units, each kind at a rate of its own; shuffles take the data half
/// of the load/store unit.
enum class Unit : std::uint8_t {
  kNone,
  kFloat,
  kInteger,
  kSpecial,
  kConvert,
  kWideConvert,
  kDouble,
  kShuffle
};
constexpr std::size_t kUnits = 8;

/// Cost of one PTX instruction of a warp: issue slots, and the unit that executes these.
struct Cost {
  double slots = 1;
  Unit unit = Unit::kNone;
};

struct Rule {
  std::string_view name;  ///< prefix of the instruction
  std::string_view type;  ///< suffix of the instruction; empty: any; # is any number
  Cost cost;
};

// How many GPU instructions ptxas makes of one PTX instruction, read off its output for sm_80 and
// sm_90. The first matching rule counts. Without a rule it is one instruction of its class's unit.
constexpr Rule kRules[] = {
    // Renamed registers, and operands from the constant bank.
    {"mov", "", {0}},
    {"cvta", "", {0}},
    {"ld.param", "", {0}},
    // Sequences.
    {"div.rn", "f32", {9, Unit::kFloat}},
    {"div.rn", "f64", {12, Unit::kDouble}},
    {"div.full", "", {3, Unit::kFloat}},
    {"div.approx", "", {2, Unit::kFloat}},
    {"div", "64", {70, Unit::kInteger}},
    {"rem", "64", {70, Unit::kInteger}},
    {"div", "", {20, Unit::kInteger}},
    {"rem", "", {20, Unit::kInteger}},
    {"sqrt.rn", "f64", {8, Unit::kDouble}},
    {"rcp.rn", "f64", {5, Unit::kDouble}},
    {"sqrt.rn", "", {8, Unit::kFloat}},
    {"rcp.rn", "", {7, Unit::kFloat}},
    {"mul.lo", "64", {4, Unit::kInteger}},
    {"mad.lo", "64", {4, Unit::kInteger}},
    {"mul.hi", "64", {6, Unit::kInteger}},
    // Transcendental functions.
    {"ex2", "", {1, Unit::kSpecial}},
    {"lg2", "", {1, Unit::kSpecial}},
    {"sin", "", {1, Unit::kSpecial}},
    {"cos", "", {1, Unit::kSpecial}},
    {"tanh", "", {1, Unit::kSpecial}},
    {"rcp", "", {1, Unit::kSpecial}},
    {"rsqrt", "", {1, Unit::kSpecial}},
    {"sqrt", "", {2, Unit::kSpecial}},
    // Whole bits and warps.
    {"popc", "", {1, Unit::kSpecial}},
    {"clz", "", {1, Unit::kSpecial}},
    {"brev", "", {1, Unit::kSpecial}},
    {"bfind", "", {1, Unit::kSpecial}},
    {"redux", "", {1, Unit::kSpecial}},
    {"vote", "", {1, Unit::kInteger}},
    {"match", "", {1, Unit::kInteger}},
    {"shfl", "", {1, Unit::kShuffle}},
    // Conversions; those between floats of at most 32 bits, and between integers, are as fast as
    // other integer instructions.
    {"cvt", "f64", {1, Unit::kWideConvert}},
    {"cvt", "64.f#", {1, Unit::kWideConvert}},
    {"cvt", "64.bf#", {1, Unit::kWideConvert}},
    {"cvt", "f64.s#", {1, Unit::kWideConvert}},
    {"cvt", "f64.u#", {1, Unit::kWideConvert}},
    {"cvt", "f#.s64", {1, Unit::kWideConvert}},
    {"cvt", "f#.u64", {1, Unit::kWideConvert}},
    {"cvt", "f#.s#", {1, Unit::kConvert}},
    {"cvt", "f#.u#", {1, Unit::kConvert}},
    {"cvt", "s#.f#", {1, Unit::kConvert}},
    {"cvt", "u#.f#", {1, Unit::kConvert}},
    {"cvt", "s#.bf#", {1, Unit::kConvert}},
    {"cvt", "u#.bf#", {1, Unit::kConvert}},
    // Double precision; halves and pairs count as one instruction.
    {"add", "f64", {1, Unit::kDouble}},
    {"sub", "f64", {1, Unit::kDouble}},
    {"mul", "f64", {1, Unit::kDouble}},
    {"fma", "f64", {1, Unit::kDouble}},
    {"min", "f64", {2, Unit::kDouble}},
    {"max", "f64", {2, Unit::kDouble}},
    {"setp", "f64", {1, Unit::kDouble}},
    // 64-bit values in 32-bit registers.
    {"mul.wide", "", {1, Unit::kInteger}},
    {"mad.wide", "", {1, Unit::kInteger}},
    {"add", "64", {2, Unit::kInteger}},
    {"sub", "64", {2, Unit::kInteger}},
    {"and", "64", {2, Unit::kInteger}},
    {"or", "64", {2, Unit::kInteger}},
    {"xor", "64", {2, Unit::kInteger}},
    {"shl", "64", {2, Unit::kInteger}},
    {"shr", "64", {2, Unit::kInteger}},
    {"setp", "64", {2, Unit::kInteger}},
    {"min", "64", {4, Unit::kInteger}},
    {"max", "64", {4, Unit::kInteger}},
    {"selp", "64", {2}},
};

/// Whether the text ends with that pattern.
bool ends_with(std::string_view text, std::string_view pattern) {
  for (; !pattern.empty(); pattern.remove_suffix(1)) {
    if (pattern.back() != '#') {
      if (!text.ends_with(pattern.back())) return false;
      text.remove_suffix(1);
      continue;
    }
    const std::size_t last = text.find_last_not_of("0123456789");
    if (last == std::string_view::npos || last + 1 == text.size()) return false;
    text = text.substr(0, last + 1);
  }
  return true;
}

Cost cost_of(std::string_view instruction, InstructionClass instruction_class) {
  for (const Rule& rule : kRules) {
    const bool starts =
        instruction.starts_with(rule.name) &&
        (instruction.size() == rule.name.size() || instruction[rule.name.size()] == '.');
    if (starts && ends_with(instruction, rule.type)) return rule.cost;
  }
  switch (instruction_class) {
    case InstructionClass::kFloat:
      return {1, Unit::kFloat};
    case InstructionClass::kInteger:
    case InstructionClass::kConvert:
      return {1, Unit::kInteger};
    default:
      return {};
  }
}

/// Warps of 32 lanes that a unit executes per clock.
double warps_per_clock(Unit unit, const DeviceModel& device) {
  constexpr double kWarp = 32;
  switch (unit) {
    case Unit::kFloat:
      return device.f32_tflops * 1e3 / (2 * device.sms * device.ghz) / kWarp;
    case Unit::kInteger:
      return 64 / kWarp;  // 16 in each of the four parts of a multiprocessor
    case Unit::kSpecial:
      return 16 / kWarp;
    case Unit::kConvert:
      return architecture(device.sm).conversions / kWarp;
    case Unit::kWideConvert:
      return architecture(device.sm).wide_conversions / kWarp;
    case Unit::kDouble:
      return device.f64_lanes / kWarp;
    case Unit::kShuffle:
      return 1;
    case Unit::kNone:
      break;
  }
  return 1;
}

/// Operations per clock of a multiprocessor's matrix unit.
double matrix_rate(std::string_view instruction, const DeviceModel& device) {
  const auto has = [&](std::string_view part) {
    return instruction.find(part) != std::string_view::npos;
  };
  const Architecture& known = architecture(device.sm);
  if (has(".f64")) return 2 * device.f64_lanes * known.f64_width;
  const bool by_mma_sync = has("mma.sync");
  const bool of_f8 = has("f8f6f4") || has("e4m3") || has("e5m2");
  const bool of_bytes = has(".s8") || has(".u8") || has("kind::i8") || of_f8;
  const double width = has("tf32")                ? 0.5
                       : has("kind::mxf4")        ? 4
                       : of_f8 && by_mma_sync     ? known.f8_width
                       : has(".s4") || has(".u4") ? known.s4_width
                       : has(".b1")               ? known.b1_width
                       : of_bytes                 ? 2
                                                  : 1;
  const bool by_fastest = has("wgmma") || has("tcgen05");
  const double of_halves = device.f16_tflops * 1e3 / (device.sms * device.ghz);
  return of_halves * width * (by_fastest ? known.matrix_share : known.mma_sync_share);
}

/// Clocks that each unit of a multiprocessor needs for all instructions of a kernel.
struct Clocks {
  double slots = 0;
  std::array<double, kUnits> units{};
  // The two halves of the load/store unit: tag lookup and data.
  double lookups = 0, data = 0;
  double matrix = 0;

  void add(const Clocks& other, double weight) {
    slots += weight * other.slots;
    for (std::size_t u = 0; u < kUnits; ++u) units[u] += weight * other.units[u];
    lookups += weight * other.lookups;
    data += weight * other.data;
    matrix += weight * other.matrix;
  }
};

bool prefetches(const LineCounts& line) {
  return line.instruction.find("prefetch") != std::string::npos;
}

/// Adds accesses by their wavefronts, or by their lanes. Copies to shared memory use only the data
/// half there, and bulk copies do their own lookup.
void add_accesses(const LineCounts& line, const DeviceModel& device, Clocks& clocks) {
  const Counts& c = line.counts;
  const auto clocks_of = [&](std::uint64_t requests, std::uint64_t wavefronts) {
    return std::max(static_cast<double>(requests) * 32 / device.load_store_units,
                    static_cast<double>(wavefronts));
  };
  const double global = clocks_of(c.global_requests, c.global_wavefronts);
  if (!line.instruction.starts_with("cp.async.bulk")) clocks.lookups += global;
  if (!line.instruction.starts_with("cp.async") && !prefetches(line)) clocks.data += global;
  clocks.data += clocks_of(c.issued_shared_requests, c.issued_shared_wavefronts);
}

/// wgmma and tcgen05 read shared memory while the matrix unit multiplies: the slower of the two
/// counts.
void add_matrix(const LineCounts& line, const DeviceModel& device, Clocks& clocks) {
  const double multiplies =
      static_cast<double>(line.counts.mma_flops) / matrix_rate(line.instruction, device);
  const auto reads = static_cast<double>(line.counts.issued_shared_wavefronts);
  clocks.matrix += std::max(multiplies, reads);
}

Clocks clocks_of(const LineCounts& line, const DeviceModel& device) {
  Clocks clocks;
  const Counts& c = line.counts;
  for (std::size_t i = 0; i < kInstructionClasses && !line.joined; ++i) {
    const Cost cost = cost_of(line.instruction, static_cast<InstructionClass>(i));
    const double slots = cost.slots * static_cast<double>(c.instructions[i]);
    clocks.slots += slots;
    clocks.units[static_cast<std::size_t>(cost.unit)] += slots / warps_per_clock(cost.unit, device);
  }
  if (c.mma_flops != 0) {
    add_matrix(line, device, clocks);
  } else {
    add_accesses(line, device, clocks);
  }
  clocks.slots -=
      static_cast<double>(c.shared_requests) - static_cast<double>(c.issued_shared_requests);
  return clocks;
}

/// Averages over launches.
struct Averages {
  double blocks = 0, warps = 0;  ///< blocks of a launch, warps of a block
  double touched = 0;            ///< bytes that a launch's blocks touch, each counted by itself
  double read = 0, written = 0;  ///< bytes of the least sectors
};

Averages averages_of(const KernelCounts& counts) {
  const auto each = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(counts.launches);
  };
  return {.blocks = each(counts.blocks),
          .warps = std::ceil(std::max(1.0, counts.threads / 32.0)),
          .touched = each(counts.block_bytes),
          .read = each(32 * counts.read_sectors),
          .written = each(32 * counts.written_sectors)};
}

/// What a block executes of each line: the average one, or the busiest one of each launch.
class BlockShare {
 public:
  BlockShare(const KernelCounts& counts, bool of_busiest)
      : counts_(counts), of_busiest_(of_busiest) {}

  [[nodiscard]] const WarpChain& chain() const {
    return of_busiest_ ? counts_.busiest_chain : counts_.chain;
  }
  /// The block's share of all that the line did.
  [[nodiscard]] double operator()(const LineCounts& line) const {
    const auto all = static_cast<double>(line.counts.total_instructions());
    if (!of_busiest_ || all == 0) return 1 / static_cast<double>(counts_.blocks);
    return static_cast<double>(line.busiest) / static_cast<double>(counts_.launches) / all;
  }
  template <typename F>
  [[nodiscard]] double sum(const F& number) const {
    double all = 0;
    for (const LineCounts& line : counts_.lines) {
      all += (*this)(line) * static_cast<double>(number(line));
    }
    return all;
  }

 private:
  const KernelCounts& counts_;
  bool of_busiest_;
};

/// The share of the blocks' separate reads that remains when shared bytes are read once.
double read_once(const std::vector<double>& shares, double blocks) {
  const double place = std::log2(std::max(1.0, blocks));
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= shares.size()) return shares.back();
  const double part = place - static_cast<double>(below);
  return shares[below] * (1 - part) + shares[below + 1] * part;
}

/// Memory traffic of a launch when `at_once` of its blocks run at a time.
double memory_bytes(const KernelCounts& counts, double at_once, const DeviceModel& device) {
  const Averages launch = averages_of(counts);
  const double cache = device.l2_mib * 1024 * 1024;
  const double reads = launch.touched - launch.written;
  if (counts.shared_reads.empty() || launch.read <= cache || reads <= launch.read) {
    return launch.read + launch.written;
  }
  double row = std::min(launch.blocks, at_once);
  const auto share = [&](double blocks) { return read_once(counts.shared_reads, blocks); };
  while (2 * row <= launch.blocks && reads / launch.blocks * 2 * row * share(2 * row) <= cache) {
    row *= 2;
  }
  return std::clamp(reads * share(row), launch.read, reads) + launch.written;
}

/// How many units come before those of a multiprocessor that issue instructions.
constexpr std::size_t kApart = 5;
/// The time of each unit for blocks that run at the same time. `clocks` are those of a block, which
/// moves `touched` bytes between L2 and the multiprocessor, and `moved` to and from memory.
std::vector<UnitTime> wave_ns(const KernelCounts& counts, const Clocks& clocks, double touched,
                              double moved, double blocks, const DeviceModel& device) {
  constexpr double kParts = 4;  // parts of a multiprocessor, each of which issues one instruction
                                // per clock
  // L2 bytes per multiprocessor and clock: 5120 bytes for 108 of them (NVIDIA A100 whitepaper).
  constexpr double kL2Bytes = 5120.0 / 108;
  const double busiest = std::ceil(blocks / device.sms);  // blocks of the busiest multiprocessor
  const double used = std::min<double>(blocks, device.sms);
  const auto all = static_cast<double>(counts.blocks);
  // A warp stays in one part.
  const double uneven = std::max(1.0, kParts / (busiest * averages_of(counts).warps));
  const auto unit_ns = [&](double of_a_block) { return of_a_block * busiest / device.ghz; };
  const auto clocks_of = [&](Unit unit) { return clocks.units[static_cast<std::size_t>(unit)]; };
  const auto part_ns = [&](Unit unit) { return uneven * unit_ns(clocks_of(unit)); };
  const auto rate_ns = [&](std::uint64_t bytes, double gbs) {
    return static_cast<double>(bytes) / all * blocks / gbs;
  };
  return {{"memory", moved * blocks / (kMemoryShare * device.hbm_gbs)},
          {"L2", std::max(rate_ns(counts.block_bytes, kL2Bytes * used * device.ghz),
                          touched / (kL2Bytes * device.ghz))},
          {"NVLink", rate_ns(counts.total.peer_bytes, device.nvlink_gbs)},
          {"loads and stores",
           unit_ns(std::max(clocks.lookups, clocks.data + clocks_of(Unit::kShuffle)))},
          {"matrix unit", uneven * unit_ns(clocks.matrix)},
          {"issue", uneven * unit_ns(clocks.slots / kParts)},
          {"float units", part_ns(Unit::kFloat)},
          {"integer units", part_ns(Unit::kInteger)},
          {"special units",
           part_ns(Unit::kSpecial) + part_ns(Unit::kConvert) + part_ns(Unit::kWideConvert)},
          {"f64 units", part_ns(Unit::kDouble)}};
}

bool slower(const UnitTime& a, const UnitTime& b) { return a.ns < b.ns; }

/// Resources outside the multiprocessors: memory, L2, NVLink. They work in parallel, as do the
/// units of a multiprocessor.
constexpr std::size_t kOutside = 3;
struct Busy {
  double outside = 0, inside = 0;
};
Busy together(const std::vector<UnitTime>& units) {
  const auto issued = units.begin() + kApart;
  const double core_ns = std::max_element(issued, units.end(), slower)->ns;
  double outside = 0, inside = core_ns * core_ns;
  for (auto unit = units.begin(); unit != issued; ++unit) {
    (unit < units.begin() + kOutside ? outside : inside) += unit->ns * unit->ns;
  }
  return {std::sqrt(outside), std::sqrt(inside)};
}

/// Waiting times in nanoseconds.
struct Waiting {
  double warp = 0;             ///< per warp, while others of its block go on
  double loads_under_way = 1;  ///< loads that a warp has in flight
  double block = 0;            ///< per block, at its barriers
  /// Waiting for a block's copies that it needs next, and how many are in flight.
  double copies = 0, copies_under_way = 1;
};

/// Bytes that bulk copies bring to a block, and how often it waits for them.
struct BulkCopies {
  double bytes = 0, waits = 0;
};

BulkCopies bulk_copies_of(const BlockShare& block) {
  return {.bytes = block.sum([](const LineCounts& line) {
            const bool copies = line.instruction.starts_with("cp.async.bulk") && !prefetches(line);
            return copies ? line.counts.global_bytes : 0;
          }),
          .waits = block.sum([](const LineCounts& line) {
            const bool waits = line.instruction.find("expect_tx") != std::string::npos;
            return waits ? line.counts.total_instructions() : 0;
          })};
}

/// Whether something waits for what it brings from global memory.
bool loads(const LineCounts& line) {
  const std::string_view name = line.instruction;
  return !name.starts_with("cp.async") && !name.starts_with("st") && !name.starts_with("red") &&
         !prefetches(line);
}

Waiting waiting_of(const KernelCounts& counts, const BlockShare& block, double moved,
                   const DeviceModel& device) {
  const Architecture& clocks = architecture(device.sm);
  const auto requests_of = [&](bool (*wanted)(const LineCounts&)) {
    return block.sum(
        [&](const LineCounts& line) { return wanted(line) ? line.counts.global_requests : 0; });
  };
  const double copies = requests_of([](const LineCounts& line) {
    const std::string_view name = line.instruction;
    return name.starts_with("cp.async") && !name.starts_with("cp.async.bulk");
  });
  const double requests = requests_of(loads);
  const double requests_past_l1 =
      requests_of([](const LineCounts& line) { return line.past_l1 && loads(line); });
  const auto blocks = static_cast<double>(counts.blocks);
  const double warps = averages_of(counts).warps;
  const auto sent = static_cast<double>(counts.block_bytes);
  std::uint64_t sectors = counts.total.global_sectors;
  for (const LineCounts& line : counts.lines) {
    if (prefetches(line)) sectors -= line.counts.global_sectors;
  }
  const auto asked = static_cast<double>(sectors) * 32;
  // The share of requests that miss L1, and the share of these that miss L2.
  const double past_l1 = asked == 0 ? 0 : std::min(1.0, sent / asked);
  const double past_l2 = sent == 0 ? 0 : std::min(1.0, moved * blocks / sent);
  // Among simultaneous requests, one slow one is enough to wait for.
  const auto trip = [&](double at_once, double nearest, double missing) {
    const double missed = std::max(1.0, at_once) * missing;
    return nearest + std::min(1.0, missed) * (clocks.l2_clocks - nearest) +
           std::min(1.0, missed * past_l2) * (clocks.memory_clocks - clocks.l2_clocks);
  };
  constexpr double kArithmetic = 4 - 1;  // latency after Luo et al., less its own issue slot
  const WarpChain& chain = block.chain();
  Waiting waiting{.warp = chain.shared * clocks.shared_clocks + chain.arithmetic * kArithmetic +
                          chain.matrix * clocks.matrix_clocks};
  const double barriers =
      block.sum([](const LineCounts& line) { return line.counts.barriers; }) / warps;
  double waits = 0, in_turn = 0;  // waits, and those of them with nothing else in flight
  if (chain.loads > 0) {
    const double nearest = clocks.l1_clocks + requests_past_l1 / std::max(1e-9, requests) *
                                                  (clocks.l2_clocks - clocks.l1_clocks);
    const double each = trip(requests / warps / chain.loads, nearest, past_l1);
    if (barriers >= chain.loads) {  // all warps of the block wait at barriers for the loads
      waiting.copies += chain.loads * each;
      waits += chain.loads;
      in_turn += chain.loads;
    } else {
      waiting.warp += chain.loads * each;
      waiting.loads_under_way = std::max(1.0, requests / warps / chain.loads);
    }
  }
  if (chain.copies > 0 && chain.copy_waits > 0) {
    waiting.copies += chain.copies * trip(copies / warps / chain.copy_waits, clocks.l2_clocks, 1);
    waits += chain.copy_waits;
    in_turn += chain.copies;
  }
  if (const BulkCopies bulk = bulk_copies_of(block); bulk.waits > 0 && bulk.bytes > 0) {
    // The ring fills the block's shared memory. A multiprocessor accepts 64 bytes per clock.
    constexpr double kBytesPerClock = 64;
    const double step = bulk.bytes / bulk.waits;
    const double stages = std::max(1.0, std::floor(counts.shared_bytes / step));
    const double each = trip(step / 128.0, clocks.l2_clocks, 1) + step / kBytesPerClock;
    waiting.copies += bulk.waits / stages * each;
    waits += bulk.waits;
    in_turn += bulk.waits / stages;
  }
  if (in_turn > 0) waiting.copies_under_way = waits / in_turn;
  // All warps start together behind a barrier, and the last one ends the phase before it.
  waiting.block = barriers * (clocks.shared_clocks + (chain.matrix > 0 ? clocks.matrix_clocks : 0));
  waiting.warp /= device.ghz;
  waiting.block /= device.ghz;
  waiting.copies /= device.ghz;
  return waiting;
}

/// The time of a wave, given the blocks per multiprocessor. The customers of the queueing model are
/// the copies of blocks, or warps where there are no copies.
double wave_with_waiting(const Busy& busy, const Waiting& waiting, double blocks, double warps) {
  const double queued = std::ceil(blocks * warps / 4);
  const auto by_blocks = [&](double ns) {
    return closed_network_round(blocks, ns / blocks, waiting.block);
  };
  if (waiting.copies == 0) {
    const double loads = std::ceil(queued * waiting.loads_under_way);
    return by_blocks(
        closed_network_round(loads, {busy.outside / loads, busy.inside / loads}, waiting.warp));
  }
  const double inside = by_blocks(closed_network_round(queued, busy.inside / queued, waiting.warp));
  const double copies = std::round(blocks * waiting.copies_under_way);
  return closed_network_round(copies, {busy.outside / copies, inside / copies}, waiting.copies);
}

/// The time of blocks that run in waves of `at_once`.
struct WorkTime {
  double ns = 0, busy_ns = 0;  ///< with and without waiting
  std::vector<UnitTime> units;
};

WorkTime work_time(const KernelCounts& counts, const BlockShare& block, double blocks,
                   double at_once, double memory_bytes, const DeviceModel& device) {
  const Averages launch = averages_of(counts);
  const double moved = memory_bytes / launch.blocks;
  Clocks clocks;
  for (const LineCounts& line : counts.lines) clocks.add(clocks_of(line, device), block(line));
  const Waiting waiting = waiting_of(counts, block, moved, device);
  const double sectors =
      block.sum([](const LineCounts& line) { return line.counts.global_sectors; });
  const double touched = static_cast<double>(counts.block_bytes) * sectors /
                         std::max(1.0, static_cast<double>(counts.total.global_sectors));
  WorkTime work;
  const auto add = [&](double waves, double together_blocks) {
    if (waves == 0 || together_blocks == 0) return;
    const std::vector<UnitTime> units =
        wave_ns(counts, clocks, touched, moved, together_blocks, device);
    const Busy busy = together(units);
    work.ns += waves * wave_with_waiting(busy, waiting, std::ceil(together_blocks / device.sms),
                                         launch.warps);
    work.busy_ns += waves * std::max(busy.outside, busy.inside);
    work.units.resize(units.size());
    for (std::size_t u = 0; u < units.size(); ++u) {
      work.units[u].unit = units[u].unit;
      work.units[u].ns += waves * units[u].ns;
    }
  };
  const double full = std::floor(blocks / at_once);
  add(full, at_once);
  add(1, blocks - full * at_once);
  return work;
}

}  // namespace

KernelEstimate estimate_kernel(const KernelCounts& counts, const DeviceModel& device) {
  if (counts.launches == 0 || counts.blocks == 0) {
    return {.ns = device.launch_ns, .limiter = "launch"};
  }
  const Averages launch = averages_of(counts);
  KernelEstimate estimate{.occupancy = occupancy(counts, device)};
  const double at_once = static_cast<double>(estimate.occupancy.blocks) * device.sms;
  estimate.waves = launch.blocks / at_once;
  estimate.memory_bytes = memory_bytes(counts, at_once, device);
  const bool knows_busiest =
      std::ranges::any_of(counts.lines, [](const LineCounts& line) { return line.busiest != 0; });
  // Where each multiprocessor has at most one block, all wait for the busiest one.
  const bool one_each = launch.blocks <= device.sms;
  WorkTime work = work_time(counts, {counts, knows_busiest && one_each}, launch.blocks, at_once,
                            estimate.memory_bytes, device);
  if (knows_busiest && !one_each) {
    const WorkTime alone =
        work_time(counts, {counts, true}, 1, at_once, estimate.memory_bytes, device);
    if (alone.ns > work.ns) {
      work.ns = alone.ns;
      work.busy_ns = std::max(work.busy_ns, alone.busy_ns);
      for (std::size_t u = 0; u < work.units.size(); ++u) {
        work.units[u].ns = std::max(work.units[u].ns, alone.units[u].ns);
      }
    }
  }
  estimate.units = std::move(work.units);
  // Sums of the same times may differ in their last digits.
  estimate.units.push_back({"latency", std::max(0.0, work.ns - work.busy_ns)});
  const UnitTime slowest = *std::ranges::max_element(estimate.units, slower);
  estimate.ns = device.launch_ns + work.ns;
  estimate.limiter = work.ns < device.launch_ns ? "launch" : slowest.unit;
  return estimate;
}

}  // namespace braid
