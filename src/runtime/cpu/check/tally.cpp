#include "runtime/cpu/check/tally.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "braid/error.h"
#include "runtime/cpu/ptx/opcodes.h"

namespace braid::cpu {
namespace {

std::uint64_t times(std::uint64_t count, double weight) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * weight));
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
  return {.full = times(full, weight),
          .partial = times(partial, weight),
          .lanes = times(lanes, weight),
          .parted = times(parted, weight)};
}

LineTally& LineTally::operator+=(const LineTally& other) {
  global_requests += other.global_requests;
  global_sectors += other.global_sectors;
  global_bytes += other.global_bytes;
  peer_bytes += other.peer_bytes;
  global_wavefronts += other.global_wavefronts;
  shared_requests += other.shared_requests;
  shared_wavefronts += other.shared_wavefronts;
  bank_conflicts += other.bank_conflicts;
  issued_requests += other.issued_requests;
  issued_wavefronts += other.issued_wavefronts;
  atomics += other.atomics;
  barriers += other.barriers;
  reach(other.from, other.to);
  return *this;
}

LineTally LineTally::scaled(double weight) const {
  return {.global_requests = times(global_requests, weight),
          .global_sectors = times(global_sectors, weight),
          .global_bytes = times(global_bytes, weight),
          .peer_bytes = times(peer_bytes, weight),
          .global_wavefronts = times(global_wavefronts, weight),
          .shared_requests = times(shared_requests, weight),
          .shared_wavefronts = times(shared_wavefronts, weight),
          .bank_conflicts = times(bank_conflicts, weight),
          .issued_requests = times(issued_requests, weight),
          .issued_wavefronts = times(issued_wavefronts, weight),
          .atomics = times(atomics, weight),
          .barriers = times(barriers, weight),
          .from = from,
          .to = to};
}

Counts LineTally::counts() const {
  return {.global_requests = global_requests,
          .global_sectors = global_sectors,
          .global_bytes = global_bytes,
          .peer_bytes = peer_bytes,
          .global_wavefronts = global_wavefronts,
          .shared_requests = shared_requests,
          .shared_wavefronts = shared_wavefronts,
          .bank_conflicts = bank_conflicts,
          .issued_shared_requests = issued_requests,
          .issued_shared_wavefronts = issued_wavefronts,
          .atomics = atomics,
          .barriers = barriers};
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
  std::sort(lines_.begin(), lines_.end());
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
  past_l1_.assign(lines_.size(), false);
  for (const ptx::Instruction& instruction : function.body) {
    const std::string name = instruction.full_name();
    if (!name.starts_with("cp.async.bulk") && !name.starts_with("cp.async.cg")) continue;
    const auto place = std::lower_bound(lines_.begin(), lines_.end(), instruction.line);
    if (place != lines_.end() && *place == instruction.line) {
      past_l1_[static_cast<std::size_t>(place - lines_.begin())] = true;
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
  followed = sectors = busiest = 0;
}

Tally Tally::scaled(double weight) const {
  Tally result;
  result.blocks.reserve(blocks.size());
  for (const BlockTally& block : blocks) result.blocks.push_back(block.scaled(weight));
  result.lines.reserve(lines.size());
  for (const LineTally& line : lines) result.lines.push_back(line.scaled(weight));
  result.followed = times(followed, weight);
  result.sectors = times(sectors, weight);
  result.busiest = busiest;
  return result;
}

Tally& Tally::operator+=(const Tally& other) {
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] += other.blocks[i];
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i] += other.lines[i];
  followed += other.followed;
  sectors += other.sectors;
  busiest = std::max(busiest, other.busiest);
  return *this;
}

std::uint64_t Tally::instructions(const CountSites& sites) const {
  std::uint64_t sum = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const CountSites::Block& block = sites.blocks()[b];
    sum += (blocks[b].full + blocks[b].partial) * (block.end - block.first);
  }
  return sum;
}

}  // namespace braid::cpu
