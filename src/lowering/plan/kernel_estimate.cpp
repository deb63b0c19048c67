#include "lowering/plan/kernel_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace braid {
namespace {

enum class Unit : std::uint8_t { kNone, kFloat, kInteger, kSpecial, kDouble };
constexpr std::size_t kUnits = 5;

/// What one warp's instruction of PTX takes: issue slots, and the unit that works on these.
struct Cost {
  double slots = 1;
  Unit unit = Unit::kNone;
};

struct Rule {
  std::string_view name;  ///< how the instruction begins
  std::string_view type;  ///< how it ends; empty: in any way
  Cost cost;
};

// How many instructions of the GPU ptxas makes of one: read off its output for sm_80 and sm_90.
// The first rule that fits. What has no rule is one instruction of the unit of its class.
constexpr Rule kRules[] = {
    // Names of registers, and operands that come from the constant bank.
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
    // Double precision; halves and pairs take the place of one.
    {"add", "f64", {1, Unit::kDouble}},
    {"sub", "f64", {1, Unit::kDouble}},
    {"mul", "f64", {1, Unit::kDouble}},
    {"fma", "f64", {1, Unit::kDouble}},
    {"min", "f64", {2, Unit::kDouble}},
    {"max", "f64", {2, Unit::kDouble}},
    {"setp", "f64", {1, Unit::kDouble}},
    // 64 bits in registers of 32.
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
};

Cost cost_of(std::string_view instruction, InstructionClass instruction_class) {
  for (const Rule& rule : kRules) {
    const bool starts =
        instruction.starts_with(rule.name) &&
        (instruction.size() == rule.name.size() || instruction[rule.name.size()] == '.');
    if (starts && instruction.ends_with(rule.type)) return rule.cost;
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

/// Warps of 32 lanes that a unit takes per clock.
double warps_per_clock(Unit unit, const DeviceModel& device) {
  constexpr double kWarp = 32;
  switch (unit) {
    case Unit::kFloat:
      return device.f32_tflops * 1e3 / (2 * device.sms * device.ghz) / kWarp;
    case Unit::kInteger:
      return 64 / kWarp;  // 16 in each of the four parts of a multiprocessor
    case Unit::kSpecial:
      return 16 / kWarp;
    case Unit::kDouble:
      return device.f64_lanes / kWarp;
    case Unit::kNone:
      break;
  }
  return 1;
}

/// Of the rate of 16-bit operands: of the operands' width. wgmma alone has all of a Hopper's; Luo
/// et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture" (2024), measured 62 %
/// of it with mma.sync.
double matrix_rate(std::string_view instruction, const DeviceModel& device) {
  const auto has = [&](std::string_view part) {
    return instruction.find(part) != std::string_view::npos;
  };
  const double width = has("tf32")                                              ? 0.5
                       : has(".s8") || has(".u8") || has("e4m3") || has("e5m2") ? 2
                                                                                : 1;
  return width * (device.sm >= 90 && device.sm < 120 && !has("wgmma") ? 0.62 : 1);
}

/// Clocks of the units of a multiprocessor for all instructions of a kernel.
struct Clocks {
  double slots = 0;
  std::array<double, kUnits> units{};
  // The two halves of the load/store unit: it looks lines up, and moves data.
  double lookups = 0, data = 0;
  double matrix_flops = 0;  ///< at the rate of operands of 16 bits
};

/// Accesses by their wavefronts, or by their lanes. Copies to shared memory bring data there alone.
void add_accesses(const LineCounts& line, const DeviceModel& device, Clocks& clocks) {
  const Counts& c = line.counts;
  const auto clocks_of = [&](std::uint64_t requests, std::uint64_t wavefronts) {
    return std::max(static_cast<double>(requests) * 32 / device.load_store_units,
                    static_cast<double>(wavefronts));
  };
  const double global = clocks_of(c.global_requests, c.global_wavefronts);
  clocks.lookups += global;
  if (!line.instruction.starts_with("cp.async")) clocks.data += global;
  clocks.data += clocks_of(c.issued_shared_requests, c.issued_shared_wavefronts);
}

Clocks clocks_of(const KernelCounts& kernel, const DeviceModel& device) {
  Clocks clocks;
  for (const LineCounts& line : kernel.lines) {
    const Counts& c = line.counts;
    for (std::size_t i = 0; i < kInstructionClasses; ++i) {
      const Cost cost = cost_of(line.instruction, static_cast<InstructionClass>(i));
      const double slots = cost.slots * static_cast<double>(c.instructions[i]);
      clocks.slots += slots;
      clocks.units[static_cast<std::size_t>(cost.unit)] +=
          slots / warps_per_clock(cost.unit, device);
    }
    add_accesses(line, device, clocks);
    clocks.slots -=
        static_cast<double>(c.shared_requests) - static_cast<double>(c.issued_shared_requests);
    if (c.mma_flops != 0) {
      clocks.matrix_flops +=
          static_cast<double>(c.mma_flops) / matrix_rate(line.instruction, device);
    }
  }
  return clocks;
}

}  // namespace

KernelEstimate estimate_kernel(const KernelCounts& counts, const DeviceModel& device) {
  if (counts.launches == 0) return {device.launch_ns, "launch", {}};
  constexpr double kIssues = 4;
  // What copies and sums reach of a data sheet's rate; 80 to 97 % is published.
  constexpr double kMemoryShare = 0.9;
  // Of L2, per multiprocessor and clock: 5120 bytes for 108 of them (NVIDIA A100 whitepaper).
  constexpr double kL2Bytes = 5120.0 / 108;
  const auto launches = static_cast<double>(counts.launches);
  const double blocks = std::max(1.0, static_cast<double>(counts.blocks) / launches);
  const double busiest = std::ceil(blocks / device.sms);  // blocks of one multiprocessor
  // Nanoseconds of one multiprocessor, of what takes that many clocks for all launches.
  const auto unit_ns = [&](double clocks) {
    return clocks / launches / blocks * busiest / device.ghz;
  };
  const double used = std::min(1.0, blocks / device.sms);
  const auto rate_ns = [&](double bytes, double gbs) { return bytes / launches / gbs; };

  const Clocks clocks = clocks_of(counts, device);
  const auto of = [&](Unit unit) { return clocks.units[static_cast<std::size_t>(unit)]; };
  const double matrix_flops_per_clock = device.f16_tflops * 1e3 / (device.sms * device.ghz);
  KernelEstimate estimate;
  estimate.units = {
      {"memory", rate_ns(static_cast<double>(counts.minimum_bytes), kMemoryShare * device.hbm_gbs)},
      {"L2",
       rate_ns(static_cast<double>(counts.block_bytes), kL2Bytes * used * device.sms * device.ghz)},
      {"NVLink", rate_ns(static_cast<double>(counts.total.peer_bytes), device.nvlink_gbs)},
      {"loads and stores", unit_ns(std::max(clocks.lookups, clocks.data))},
      {"matrix unit", unit_ns(clocks.matrix_flops / matrix_flops_per_clock)}};
  const std::array<UnitTime, 5> issued = {{{"issue", unit_ns(clocks.slots / kIssues)},
                                           {"float units", unit_ns(of(Unit::kFloat))},
                                           {"integer units", unit_ns(of(Unit::kInteger))},
                                           {"special units", unit_ns(of(Unit::kSpecial))},
                                           {"f64 units", unit_ns(of(Unit::kDouble))}}};
  const auto slower = [](const UnitTime& a, const UnitTime& b) { return a.ns < b.ns; };
  const double core_ns = std::max_element(issued.begin(), issued.end(), slower)->ns;
  double squares = core_ns * core_ns;
  for (const UnitTime& unit : estimate.units) squares += unit.ns * unit.ns;
  estimate.units.insert(estimate.units.end(), issued.begin(), issued.end());
  const double work_ns = std::sqrt(squares);
  const UnitTime slowest = *std::max_element(estimate.units.begin(), estimate.units.end(), slower);
  estimate.ns = device.launch_ns + work_ns;
  estimate.limiter = work_ns < device.launch_ns ? "launch" : slowest.unit;
  return estimate;
}

}  // namespace braid
