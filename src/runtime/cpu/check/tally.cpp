#include "runtime/cpu/check/tally.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "braid/error.h"
#include "runtime/cpu/ptx/opcodes.h"

namespace braid::cpu {
namespace {

std::uint64_t times(std::uint64_t count, double weight) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * weight));
}

/// A number of a line, here and as it is told.
struct Counted {
  std::uint64_t LineTally::*member;
  std::uint64_t Counts::*told;
};
constexpr Counted kCounted[] = {
    {&LineTally::global_requests, &Counts::global_requests},
    {&LineTally::global_sectors, &Counts::global_sectors},
    {&LineTally::global_bytes, &Counts::global_bytes},
    {&LineTally::peer_bytes, &Counts::peer_bytes},
    {&LineTally::global_wavefronts, &Counts::global_wavefronts},
    {&LineTally::shared_requests, &Counts::shared_requests},
    {&LineTally::shared_wavefronts, &Counts::shared_wavefronts},
    {&LineTally::bank_conflicts, &Counts::bank_conflicts},
    {&LineTally::issued_requests, &Counts::issued_shared_requests},
    {&LineTally::issued_wavefronts, &Counts::issued_shared_wavefronts},
    {&LineTally::atomics, &Counts::atomics},
    {&LineTally::barriers, &Counts::barriers},
    {&LineTally::mma_flops, &Counts::mma_flops},
};

bool is_any(std::string_view name, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts,
                             [&](std::string_view start) { return name.starts_with(start); });
}

/// What other multiprocessors write, L1 does not see.
CountSites::Route route_of(const ptx::Instruction& instruction) {
  using enum CountSites::Route;
  const auto has = [&](std::string_view name) { return ptx::has_modifier(instruction, name); };
  if (instruction.is(ptx::Op::kStrongLd)) return has("cta") ? kThroughL1 : kPastL1;
  if (instruction.is(ptx::Op::kLd)) return has("cg") || has("cv") ? kPastL1 : kThroughL1;
  const std::string name = instruction.full_name();
  if (is_any(name, {"prefetch", "cp.async.bulk.prefetch"})) {
    return name.find(".L2") != std::string::npos ? kToL2 : kThroughL1;
  }
  return is_any(name, {"atom.", "red.", "multimem.", "cp.async.cg.", "cp.async.bulk.",
                       "cp.reduce.async.bulk."})
             ? kPastL1
             : kThroughL1;
}

}  // namespace

BlockTally& BlockTally::operator+=(const BlockTally& other) {
  full += other.full;
  partial += other.partial;
  lanes += other.lanes;
  parted += other.parted;
  return *this;
}

BlockTally BlockTally::scaled(double weight) const {
  return {times(full, weight), times(partial, weight), times(lanes, weight), times(parted, weight)};
}

LineTally& LineTally::operator+=(const LineTally& other) {
  for (const Counted& it : kCounted) this->*it.member += other.*it.member;
  reach(other.from, other.to);
  return *this;
}

LineTally LineTally::scaled(double weight) const {
  LineTally result = *this;
  for (const Counted& it : kCounted) result.*it.member = times(this->*it.member, weight);
  return result;
}

Counts LineTally::counts() const {
  Counts result;
  for (const Counted& it : kCounted) result.*it.told = this->*it.member;
  return result;
}

CountSites::CountSites(const ptx::Function& function, const ControlFlow& flow) {
  std::set<std::uint32_t> starts;
  for (const cpu::Block& block : flow.blocks()) starts.insert(block.first);
  for (const cpu::Block& block : flow.blocks()) {
    // A block ends with its terminator, unless the next block starts there.
    const bool ends = block.last < function.body.size() &&
                      (block.first == block.last || !starts.contains(block.last));
    const bool branches = block.end == BlockEnd::kBranch || block.end == BlockEnd::kGuardedExit;
    blocks_.push_back({block.first, block.last + (ends ? 1 : 0), block.line, branches});
    for (std::uint32_t i = block.first; i < block.last; ++i) {
      const ptx::Instruction& instruction = function.body[i];
      const auto unit = ptx::traits(instruction).unit;
      if (unit == ptx::Unit::kMemory || unit == ptx::Unit::kSync || ptx::is_wgmma(instruction) ||
          (instruction.entry != nullptr && instruction.entry->has_address())) {
        lines_.push_back(instruction.line);
      }
    }
  }
  std::ranges::sort(lines_);
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
  routes_.assign(lines_.size(), Route::kThroughL1);
  for (const ptx::Instruction& instruction : function.body) {
    const Route route = route_of(instruction);
    if (route == Route::kThroughL1) continue;  // as is what else a line may hold
    const auto place = std::lower_bound(lines_.begin(), lines_.end(), instruction.line);
    if (place != lines_.end() && *place == instruction.line) {
      routes_[place - lines_.begin()] = route;
    }
  }
}

std::size_t CountSites::place_of(std::uint32_t line) const {
  const auto place = std::lower_bound(lines_.begin(), lines_.end(), line);
  if (place == lines_.end() || *place != line) {
    throw_internal("cpu", "nothing is counted at line " + std::to_string(line));
  }
  return static_cast<std::size_t>(place - lines_.begin());
}

void Tally::reset(const CountSites& sites) {
  blocks.assign(sites.blocks().size(), {});
  lines.assign(sites.lines().size(), {});
  asked = sectors = 0;
  busiest = {};
}

Tally Tally::scaled(double weight) const {
  Tally result;
  for (const BlockTally& block : blocks) result.blocks.push_back(block.scaled(weight));
  for (const LineTally& line : lines) result.lines.push_back(line.scaled(weight));
  result.asked = times(asked, weight);
  result.sectors = times(sectors, weight);
  result.busiest = busiest;
  return result;
}

Tally& Tally::operator+=(const Tally& other) {
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] += other.blocks[i];
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i] += other.lines[i];
  asked += other.asked;
  sectors += other.sectors;
  if (other.busiest.instructions > busiest.instructions) busiest = other.busiest;
  return *this;
}

std::vector<std::uint64_t> Tally::warps() const {
  std::vector<std::uint64_t> result;
  result.reserve(blocks.size());
  for (const BlockTally& block : blocks) result.push_back(block.warps());
  return result;
}

}  // namespace braid::cpu
