#include "runtime/cpu/check/counter.h"

#include <algorithm>
#include <bit>
#include <set>

#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {
namespace {

constexpr std::uint64_t kSectorBytes = 32;
constexpr std::uint64_t kPageBytes = 4096;

InstructionClass class_of(const ptx::Instruction& instruction) {
  if (const auto unit = ptx::traits(instruction).unit) return *unit;
  const bool is_float = std::any_of(instruction.modifiers.begin(), instruction.modifiers.end(),
                                    [](const std::string& modifier) {
                                      const auto type = ptx::parse_type(modifier);
                                      return type && type->is_float();
                                    });
  return is_float ? InstructionClass::kFloat : InstructionClass::kInteger;
}

/// 2 m n k of "m16n8k16".
std::uint64_t mma_flops(const ptx::Instruction& instruction) {
  if (class_of(instruction) != InstructionClass::kMatrix) return 0;
  for (const std::string& modifier : instruction.modifiers) {
    std::uint64_t product = 2;
    unsigned factors = 0;
    std::uint64_t number = 0;
    for (const char c : modifier + " ") {
      if (c >= '0' && c <= '9') {
        number = number * 10 + static_cast<std::uint64_t>(c - '0');
      } else if (number != 0) {
        product *= number;
        number = 0;
        ++factors;
      }
    }
    if (factors == 3) return product;
  }
  return 0;
}

bool is_atomic(AccessCode code) {
  return code.kind == AccessCode::kAtomic || code.kind == AccessCode::kSwap;
}

std::uint64_t lanes_of(std::uint32_t mask) {
  return static_cast<std::uint64_t>(std::popcount(mask));
}

}  // namespace

void Counter::add_memory(int rank, std::uint64_t address, std::size_t bytes) {
  regions_[address] = {bytes, rank};
}

void Counter::remove_memory(std::uint64_t address) { regions_.erase(address); }

std::shared_ptr<LaunchCount> Counter::start_launch(int rank, const std::string& kernel,
                                                   const ptx::Function& function,
                                                   std::shared_ptr<const void> keep,
                                                   std::uint64_t blocks) {
  auto launch = std::make_shared<LaunchCount>();
  launch->rank = rank;
  for (const auto& known : kernels_) {
    if (known->function == &function) launch->kernel = known;
  }
  if (launch->kernel == nullptr) {
    launch->kernel = std::make_shared<KernelCounter>();
    launch->kernel->kernel = kernel;
    launch->kernel->function = &function;
    launch->kernel->keep = std::move(keep);
    const ControlFlow flow(function);
    std::set<std::uint32_t> starts;
    for (const cpu::Block& block : flow.blocks()) starts.insert(block.first);
    for (const cpu::Block& block : flow.blocks()) {
      // What stands at the end of a block is its terminator, unless the next block starts there.
      const bool ends = block.last < function.body.size() &&
                        (block.first == block.last || !starts.contains(block.last));
      launch->kernel->blocks.push_back({block.first, block.last + (ends ? 1 : 0)});
    }
    kernels_.push_back(launch->kernel);
  }
  ++launch->kernel->launches;
  launch->kernel->grid_blocks += blocks;
  return launch;
}

void Counter::end_launch(LaunchCount& launch) {
  for (const auto& [page, bytes] : launch.pages) {
    launch.kernel->minimum_bytes += bytes.read.count() + bytes.written.count();
  }
  launch.pages.clear();
}

void Counter::block(LaunchCount& launch, std::uint32_t index, std::uint32_t mask) {
  KernelCounter::Block& block = launch.kernel->blocks[index];
  ++block.warps;
  block.lanes += lanes_of(mask);
}

void Counter::branch(LaunchCount& launch, std::uint32_t line, std::uint32_t taken,
                     std::uint32_t mask) {
  Counts& counts = launch.kernel->lines[line];
  ++counts.branches;
  const std::uint32_t here = taken & mask;
  if (here != 0 && here != mask) ++counts.divergent_branches;
}

void Counter::barrier(LaunchCount& launch, std::uint32_t line) {
  ++launch.kernel->lines[line].barriers;
}

/// Which bytes of memory come and go.
void Counter::touch(LaunchCount& launch, std::uint64_t address, AccessCode code) {
  const bool reads =
      code.kind == AccessCode::kLoad || code.kind == AccessCode::kCopyFrom || is_atomic(code);
  const bool writes = code.kind == AccessCode::kStore || is_atomic(code);
  LaunchCount::Page& page = launch.pages[address / kPageBytes];
  for (std::uint64_t byte = address % kPageBytes;
       byte < std::min<std::uint64_t>(address % kPageBytes + code.bytes, kPageBytes); ++byte) {
    if (reads && !page.written[byte]) page.read.set(byte);
    if (writes) page.written.set(byte);
  }
}

void Counter::global_access(LaunchCount& launch, const std::uint64_t* addresses, std::uint32_t mask,
                            AccessCode code, std::uint32_t line) {
  if (mask == 0) return;
  std::array<std::uint64_t, 64> sectors{};
  std::size_t touched = 0;
  Counts counts;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const std::uint64_t address = addresses[std::countr_zero(left)];
    auto region = regions_.upper_bound(address);
    // Constants and what else is no memory of a rank.
    if (region == regions_.begin()) continue;
    --region;
    if (address >= region->first + region->second.bytes) continue;
    if (region->second.rank != launch.rank) counts.peer_bytes += code.bytes;
    counts.global_bytes += code.bytes;
    if (is_atomic(code)) ++counts.atomics;
    for (std::uint64_t sector = address / kSectorBytes;
         sector <= (address + code.bytes - 1) / kSectorBytes; ++sector) {
      if (touched < sectors.size()) sectors[touched++] = sector;
    }
    touch(launch, address, code);
  }
  if (counts.global_bytes == 0) return;
  std::sort(sectors.begin(), sectors.begin() + static_cast<std::ptrdiff_t>(touched));
  counts.global_requests = 1;
  counts.global_sectors = static_cast<std::uint64_t>(
      std::unique(sectors.begin(), sectors.begin() + static_cast<std::ptrdiff_t>(touched)) -
      sectors.begin());
  launch.kernel->lines[line] += counts;
}

void Counter::multicast_access(LaunchCount& launch, const MulticastPlaces& places,
                               std::uint32_t mask, AccessCode code, std::uint32_t line) {
  if (mask == 0) return;
  Counts counts;
  counts.global_requests = 1;
  counts.global_bytes = lanes_of(mask) * code.bytes;
  counts.global_sectors = (counts.global_bytes + kSectorBytes - 1) / kSectorBytes;
  if (is_atomic(code)) counts.atomics = lanes_of(mask);
  counts.peer_bytes = counts.global_bytes * (code.kind == AccessCode::kLoad ? 1 : places.size());
  for (const auto& place : places) {
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      touch(launch, place[static_cast<std::size_t>(std::countr_zero(left))], code);
    }
  }
  launch.kernel->lines[line] += counts;
}

void Counter::shared_access(LaunchCount& launch, const std::uint64_t* addresses, std::uint32_t mask,
                            AccessCode code, std::uint32_t line) {
  if (mask == 0) return;
  Counts counts;
  counts.shared_requests = 1;
  if (is_atomic(code)) counts.atomics = lanes_of(mask);
  const std::uint32_t phase_lanes = code.bytes >= 16 ? 8 : code.bytes >= 8 ? 16 : 32;
  for (std::uint32_t first = 0; first < 32; first += phase_lanes) {
    std::vector<std::uint64_t> words;
    for (std::uint32_t lane = first; lane < first + phase_lanes; ++lane) {
      if ((mask >> lane & 1U) == 0) continue;
      for (std::uint64_t word = addresses[lane] / 4; word <= (addresses[lane] + code.bytes - 1) / 4;
           ++word) {
        words.push_back(word);
      }
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<std::uint64_t, 32> in_bank{};
    for (const std::uint64_t word : words) ++in_bank[word % 32];
    const std::uint64_t most = *std::max_element(in_bank.begin(), in_bank.end());
    if (most == 0) continue;
    counts.shared_wavefronts += most;
    counts.bank_conflicts += most - 1;
  }
  launch.kernel->lines[line] += counts;
}

std::vector<KernelCounts> Counter::counts() const {
  std::vector<KernelCounts> all;
  for (const auto& kernel : kernels_) {
    KernelCounts result{.kernel = kernel->kernel,
                        .launches = kernel->launches,
                        .blocks = kernel->grid_blocks,
                        .minimum_bytes = kernel->minimum_bytes};
    std::map<std::uint32_t, LineCounts> lines;
    for (const KernelCounter::Block& block : kernel->blocks) {
      if (block.warps == 0) continue;
      for (std::uint32_t i = block.first; i < block.end; ++i) {
        const ptx::Instruction& instruction = kernel->function->body[i];
        LineCounts& line = lines[instruction.line];
        line.ptx_line = instruction.line;
        line.cuda_line = instruction.source_line;
        line.instruction = instruction.full_name();
        line.counts.instructions[static_cast<std::size_t>(class_of(instruction))] += block.warps;
        line.counts.lanes += block.lanes;
        line.counts.mma_flops += mma_flops(instruction) * block.warps;
      }
    }
    for (const auto& [number, counts] : kernel->lines) lines[number].counts += counts;
    for (auto& [number, line] : lines) {
      line.ptx_line = number;
      result.total += line.counts;
      result.lines.push_back(std::move(line));
    }
    all.push_back(std::move(result));
  }
  return all;
}

}  // namespace braid::cpu
