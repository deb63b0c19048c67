#include "runtime/cpu/check/warp_chain.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "runtime/cpu/ptx/opcodes.h"

namespace braid::cpu {
namespace {

enum class Step : std::uint8_t { kNone, kArithmetic, kShared, kMatrix, kLoad };
constexpr std::size_t kSteps = 5;
// Approximate clocks of each step: the longest chain is much the same on all GPUs.
constexpr std::array<double, kSteps> kClocks = {0, 4, 30, 33, 500};

/// The chain of steps that leads to a result.
struct Path {
  double clocks = 0;
  std::array<float, kSteps> steps{};
  Step last = Step::kNone;

  [[nodiscard]] Path then(Step step, double times = 1) const {
    Path next = *this;
    const auto s = static_cast<std::size_t>(step);
    next.clocks += times * kClocks[s];
    next.steps[s] += static_cast<float>(times);
    if (step != Step::kNone) next.last = step;
    return next;
  }
  /// What remains of it `after` so many clocks, counted from its last step.
  [[nodiscard]] Path left(double after) const {
    if (clocks <= after || last == Step::kNone) return {};
    const double part = (clocks - after) / kClocks[static_cast<std::size_t>(last)];
    return Path{}.then(last, std::min(part, 1.0));
  }
};

void wait_for(Path& path, const Path& other) {
  if (other.clocks > path.clocks) path = other;
}

bool begins(const ptx::Instruction& instruction, std::string_view name) {
  return std::string_view(instruction.name).starts_with(name);
}

bool waits_for_copies(const ptx::Instruction& instruction) {
  return instruction.is(ptx::Op::kCpAsyncWait) || instruction.is(ptx::Op::kCpAsyncWaitAll);
}

/// The kind of step that users of the result wait for.
Step step_of(const ptx::Instruction& instruction) {
  const auto unit = ptx::traits(instruction).unit;
  if (ptx::is_wgmma(instruction)) return Step::kNone;  // its wait is counted where it is waited for
  if (instruction.is(ptx::Op::kWgmmaWait)) {
    return instruction.operands[0].bits == 0 ? Step::kMatrix : Step::kNone;
  }
  if (begins(instruction, "tcgen05")) {
    return instruction.is(ptx::Op::kTensorLoad) ? Step::kShared : Step::kNone;
  }
  if (!unit) return Step::kArithmetic;
  switch (*unit) {
    case InstructionClass::kMemory:
      if (ptx::has_modifier(instruction, "param") || ptx::has_modifier(instruction, "const")) {
        return Step::kNone;
      }
      // Nothing waits for the results of these.
      for (const std::string_view name : {"cp", "st", "red", "prefetch"}) {
        if (begins(instruction, name)) return Step::kNone;
      }
      return ptx::has_modifier(instruction, "shared") ||
                     ptx::has_modifier(instruction, "shared::cta") ||
                     ptx::has_modifier(instruction, "local") || begins(instruction, "ldmatrix")
                 ? Step::kShared
                 : Step::kLoad;
    case InstructionClass::kMatrix:
      return Step::kMatrix;
    case InstructionClass::kWarp:
      return Step::kShared;
    case InstructionClass::kSync:
      return begins(instruction, "bar") || begins(instruction, "mbarrier") ? Step::kShared
                                                                           : Step::kNone;
    case InstructionClass::kMove:
    case InstructionClass::kControl:
      return Step::kNone;
    default:
      return Step::kArithmetic;
  }
}

/// The number of GPU instructions of one PTX instruction.
double times(const ptx::Instruction& instruction) {
  return begins(instruction, "div") || begins(instruction, "rem") || begins(instruction, "sqrt")
             ? 8
             : 1;
}

/// Simulates one warp running through blocks.
class Walk {
 public:
  Walk(const ptx::Function& function, const std::vector<RegisterUse>& uses,
       std::span<const double> asks)
      : function_(function), uses_(uses), asks_(asks) {}

  /// Runs a block behind the previous one; returns the time until its last instruction begins.
  Path through(const Block& block) {
    for (auto result = results_.begin(); result != results_.end();) {
      result->second = result->second.left(end_.clocks);
      result = result->second.last == Step::kNone ? results_.erase(result) : std::next(result);
    }
    end_ = ordered_ = stored_ = {};
    copies_ = copy_waits_ = 0;
    copied_last_ = false;
    for (std::uint32_t i = block.first; i < block.last; ++i) {
      step(function_.body[i], uses_[i], asks_[i]);
    }
    if (block.predicate >= 0) wait_for(end_, results_[block.predicate]);
    return end_;
  }
  /// In the last block: waits for asynchronous copies, and their sum as WarpChain defines it.
  [[nodiscard]] double copy_waits() const { return copy_waits_; }
  [[nodiscard]] double copies() const { return copies_; }

 private:
  void step(const ptx::Instruction& instruction, const RegisterUse& use, double asks) {
    Path start;
    for (const int r : use.reads) wait_for(start, results_[r]);
    const Step kind = step_of(instruction);
    const auto unit = ptx::traits(instruction).unit;
    // Where branches around loads meet, registers are copied: ptxas gives both the same one.
    if (unit == InstructionClass::kMove) {
      for (const int r : use.writes) results_[r] = start;
      return;
    }
    const bool accesses = unit == InstructionClass::kMemory;
    const bool synchronizes = unit == InstructionClass::kSync || unit == InstructionClass::kWarp;
    if (accesses || synchronizes) wait_for(start, ordered_);
    if (kind == Step::kLoad && !ptx::has_modifier(instruction, "nc")) wait_for(start, stored_);
    if (unit == InstructionClass::kSync) wait_for(start, end_);
    if (waits_for_copies(instruction)) return wait_for_copies(instruction, start);
    if (instruction.is(ptx::Op::kCpAsync)) {
      copied_last_ = true;
    } else if (kind == Step::kShared || kind == Step::kMatrix) {
      copied_last_ = false;
    }
    wait_for(end_, start);
    const Path result = start.then(kind, kind == Step::kLoad ? asks : times(instruction));
    for (const int r : use.writes) results_[r] = result;
    if (accesses && begins(instruction, "st") && !ptx::has_modifier(instruction, "shared")) {
      wait_for(stored_, start);
    }
    if (unit == InstructionClass::kSync) wait_for(ordered_, result);
    if (kind == Step::kMatrix && use.writes.empty()) wait_for(ordered_, result);
  }

  /// Besides the groups that stay in flight, one is used from here on; if the next copies are
  /// issued behind the wait, so is their destination.
  void wait_for_copies(const ptx::Instruction& instruction, const Path& start) {
    double under_way = 0;
    if (instruction.is(ptx::Op::kCpAsyncWait)) {
      under_way = static_cast<double>(instruction.operands[0].bits);
    }
    copies_ += 1 / (under_way + (copied_last_ ? 1 : 2));
    ++copy_waits_;
    wait_for(end_, start);
    wait_for(ordered_, start);
  }

  const ptx::Function& function_;
  const std::vector<RegisterUse>& uses_;   ///< by instruction
  std::span<const double> asks_;           ///< likewise
  std::unordered_map<int, Path> results_;  ///< by register
  Path end_, ordered_, stored_;
  double copies_ = 0, copy_waits_ = 0;
  bool copied_last_ = false;
};

/// The path of blocks to this one, which is last; loops, whose back edges come from below, run many
/// times.
std::vector<int> way_to(int block, const ControlFlow& flow) {
  constexpr std::size_t kMost = 64, kMostInstructions = 1 << 14;
  std::vector<int> way{block};
  std::size_t instructions = 0;
  while (way.size() < 2 || (way.size() < kMost && instructions < kMostInstructions)) {
    const Block& last = flow.block(way.back());
    const auto before = std::ranges::max_element(last.predecessors);
    if (before == last.predecessors.end()) break;
    way.push_back(*before);
    instructions += flow.block(*before).last - flow.block(*before).first;
  }
  std::ranges::reverse(way);
  return way;
}

}  // namespace

std::vector<WarpChain> warp_chains(const ptx::Function& function, const ControlFlow& flow,
                                   std::span<const double> asks) {
  std::vector<RegisterUse> uses;
  for (const ptx::Instruction& instruction : function.body) {
    uses.push_back(register_use(instruction));
  }
  std::vector<WarpChain> chains(flow.blocks().size());
  std::vector<bool> known(chains.size());
  // From the end, so that the last block of a loop represents all of them: loads issued turns ahead
  // are waited for only in some turns and blocks.
  for (int b = flow.size() - 1; b >= 0; --b) {
    if (known[b]) continue;
    const std::vector<int> way = way_to(b, flow);
    const auto turns = static_cast<std::size_t>(std::ranges::count(way, b));
    const auto counted = std::bit_floor(std::max<std::size_t>(1, turns / 2));
    const auto before = std::find(way.rbegin() + 1, way.rend(), b);
    const auto length = static_cast<std::size_t>(turns == 1 ? 1 : before - way.rbegin());
    Walk walk(function, uses, asks);
    for (std::size_t i = 0; i < way.size(); ++i) {
      const auto at = static_cast<std::size_t>(way[i]);
      const Path path = walk.through(flow.block(way[i]));
      if (i + counted * length < way.size() || known[at]) continue;
      const auto of = [&](Step step) {
        return path.steps[static_cast<std::size_t>(step)] / static_cast<double>(counted);
      };
      chains[at].loads += of(Step::kLoad);
      chains[at].copies += walk.copies() / static_cast<double>(counted);
      chains[at].copy_waits += walk.copy_waits() / static_cast<double>(counted);
      chains[at].shared += of(Step::kShared);
      chains[at].arithmetic += of(Step::kArithmetic);
      chains[at].matrix += of(Step::kMatrix);
    }
    for (std::size_t i = way.size() - counted * length; i < way.size(); ++i) {
      known[way[i]] = true;
    }
  }
  return chains;
}

}  // namespace braid::cpu
