#include "runtime/cpu/check/counter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "runtime/cpu/check/access_cost.h"
#include "runtime/cpu/check/joined_instructions.h"
#include "runtime/cpu/check/warp_chain.h"
#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {
namespace {

InstructionClass class_of(const ptx::Instruction& instruction) {
  if (const auto unit = ptx::traits(instruction).unit) return *unit;
  const bool is_float = std::ranges::any_of(instruction.modifiers, [](const std::string& modifier) {
    const auto type = ptx::parse_type(modifier);
    return type && type->is_float();
  });
  return is_float ? InstructionClass::kFloat : InstructionClass::kInteger;
}

/// 2 m n k for "m16n8k16"; a quarter for a warp of a warp group; half for a sparse A.
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
    if (factors != 3) continue;
    if (ptx::is_wgmma(instruction)) product /= 4;
    return ptx::is_sparse(instruction) ? product / 2 : product;
  }
  return 0;
}

}  // namespace

std::shared_ptr<LaunchCount> Counter::start_launch(int rank, const std::string& kernel,
                                                   const ptx::Function& function,
                                                   std::shared_ptr<const void> keep,
                                                   const Shape& shape) {
  const std::lock_guard lock(mutex_);
  auto known = std::ranges::find_if(
      kernels_, [&](const auto& entry) { return entry->function == &function; });
  if (known == kernels_.end()) {
    const ControlFlow flow(function);
    kernels_.push_back(
        std::make_unique<Kernel>(Kernel{.name = kernel,
                                        .function = &function,
                                        .keep = std::move(keep),
                                        .sites = CountSites(function, flow),
                                        .waits = flow.waits_for_blocks(),
                                        .joined = joined_instructions(function, flow)}));
    known = std::prev(kernels_.end());
    (*known)->sum.reset((*known)->sites);
    (*known)->busiest.assign((*known)->sites.blocks().size(), 0);
  }
  std::optional<BlockSample> sample;
  if (sample_ && !shape.clusters && !(*known)->waits) sample.emplace(shape.grid);
  const std::uint64_t run = sample ? sample->blocks().size() : shape.grid.count();
  ++(*known)->launches;
  (*known)->blocks += shape.grid.count();
  (*known)->blocks_run += run;
  (*known)->threads = shape.threads;
  (*known)->shared_bytes = shape.shared_bytes;
  return std::make_shared<LaunchCount>((*known)->sites, memory_, pages_, rank, shape.grid.count(),
                                       std::move(sample));
}

void Counter::end_launch(LaunchCount& launch) {
  const std::lock_guard lock(mutex_);
  const auto kernel = std::ranges::find_if(
      kernels_, [&](const auto& entry) { return &entry->sites == &launch.sites(); });
  const Tally sum = launch.sum();
  (*kernel)->sum += sum;
  (*kernel)->note_busiest(sum.busiest);
  const TouchedBytes::Traffic least = launch.least_traffic();
  (*kernel)->read += least.read;
  (*kernel)->written += least.written;
  (*kernel)->shared_reads = launch.glances().shares();
}

std::vector<KernelCounts> Counter::counts() const {
  const std::lock_guard lock(mutex_);
  std::vector<KernelCounts> all;
  for (const auto& kernel : kernels_) all.push_back(kernel->counts());
  return all;
}

void Counter::forget() {
  const std::lock_guard lock(mutex_);
  kernels_.clear();
}

void Counter::Kernel::note_busiest(const BusiestBlock& block) {
  if (block.instructions == 0) return;
  ++ended;
  if (waits && (ended == 1 || block.instructions < waited_least.instructions)) waited_least = block;
  for (std::size_t b = 0; b < busiest.size(); ++b) {
    busiest[b] = waits ? ended * waited_least.warps[b] : busiest[b] + block.warps[b];
  }
}

std::vector<double> Counter::Kernel::asks() const {
  const std::vector<std::uint64_t> ran = sum.warps();
  std::map<std::uint32_t, std::uint64_t> executions;  // by line
  for (std::size_t b = 0; b < ran.size(); ++b) {
    const CountSites::Block& block = sites.blocks()[b];
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      executions[function->body[i].line] += ran[b];
    }
  }
  std::vector<double> asks(function->body.size(), 1);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const ptx::Instruction& instruction = function->body[i];
    const bool loads = ptx::traits(instruction).unit == InstructionClass::kMemory;
    const std::uint64_t times = executions[instruction.line];
    if (!loads || instruction.guard < 0 || times == 0) continue;
    const LineTally& line = sum.lines[sites.place_of(instruction.line)];
    asks[i] = static_cast<double>(line.global_requests + line.shared_requests) /
              static_cast<double>(times);
  }
  return asks;
}

KernelCounts Counter::Kernel::counts() const {
  const std::vector<WarpChain> chains = warp_chains(*function, ControlFlow(*function), asks());
  KernelCounts result{.kernel = name,
                      .launches = launches,
                      .blocks = blocks,
                      .threads = threads,
                      .shared_bytes = shared_bytes,
                      .blocks_run = blocks_run,
                      .minimum_bytes = read.bytes + written.bytes,
                      .read_sectors = read.sectors,
                      .written_sectors = written.sectors,
                      .chain = chain(chains, sum.warps(), blocks),
                      .busiest_chain = chain(chains, busiest, launches),
                      .shared_reads = shared_reads};
  std::map<std::uint32_t, LineCounts> by_line;
  for (std::size_t b = 0; b < sites.blocks().size(); ++b) {
    const CountSites::Block& block = sites.blocks()[b];
    const BlockTally& tally = sum.blocks[b];
    const std::uint64_t warps = tally.warps();
    if (warps == 0) continue;
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      const ptx::Instruction& instruction = function->body[i];
      LineCounts& line = by_line[instruction.line];
      line.cuda_line = instruction.source_line;
      line.instruction = instruction.full_name();
      line.joined = joined[i];
      line.counts.instructions[static_cast<std::size_t>(class_of(instruction))] += warps;
      line.busiest += busiest[b];
      line.counts.lanes += 32 * tally.full + tally.lanes;
      line.counts.mma_flops += mma_flops(instruction) * warps;
    }
    if (!block.branches) continue;
    by_line[block.line].counts.branches += warps;
    by_line[block.line].counts.divergent_branches += tally.parted;
  }
  for (std::size_t l = 0; l < sites.lines().size(); ++l) {
    const auto line = by_line.find(sites.lines()[l]);
    if (line == by_line.end()) continue;
    line->second.counts += sum.lines[l].counts();
    line->second.past_l1 = sites.route(l) == CountSites::Route::kPastL1;
  }
  std::uint64_t past_l1 = 0, asked = 0;
  for (std::size_t l = 0; l < sites.lines().size(); ++l) {
    const std::uint64_t sectors = sum.lines[l].global_sectors;
    if (sites.route(l) == CountSites::Route::kPastL1) past_l1 += sectors;
    if (sites.route(l) == CountSites::Route::kThroughL1) asked += sectors;
  }
  // Others find in L1 as much as those that were followed.
  const double missed =
      sum.asked == 0 ? 1 : static_cast<double>(sum.sectors) / static_cast<double>(sum.asked);
  const auto sent = static_cast<std::uint64_t>(std::llround(missed * static_cast<double>(asked)));
  result.block_bytes = (past_l1 + sent) * SectorSet::kBytes;
  for (auto& [number, line] : by_line) {
    line.ptx_line = number;
    result.total += line.counts;
    result.lines.push_back(std::move(line));
  }
  return result;
}

WarpChain Counter::Kernel::chain(const std::vector<WarpChain>& chains,
                                 const std::vector<std::uint64_t>& ran,
                                 std::uint64_t blocks) const {
  WarpChain sum_of_warps;
  const double warps = static_cast<double>(blocks) * ((threads + 31) / 32);
  for (std::size_t b = 0; b < chains.size(); ++b) {
    const double often = static_cast<double>(ran[b]) / warps;
    for (const auto step : {&WarpChain::loads, &WarpChain::copies, &WarpChain::copy_waits,
                            &WarpChain::shared, &WarpChain::arithmetic, &WarpChain::matrix}) {
      sum_of_warps.*step += often * chains[b].*step;
    }
  }
  return sum_of_warps;
}

}  // namespace braid::cpu
