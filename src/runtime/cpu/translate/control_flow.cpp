#include "runtime/cpu/translate/control_flow.h"

#include <algorithm>

#include "runtime/cpu/ptx/opcodes.h"

namespace braid::cpu {
namespace {

using ptx::Flow;
using ptx::Instruction;
using ptx::Operand;

Flow flow_of(const Instruction& i) { return ptx::traits(i).flow; }
bool is_exit(const Instruction& i) { return flow_of(i) == Flow::kExit; }
bool traps(const Instruction& i) { return i.is(ptx::Op::kTrap) && i.guard < 0; }
bool is_branch(const Instruction& i) { return flow_of(i) == Flow::kBranch; }

/// A barrier without a result: a warp can leave the kernel function there and return later.
bool parks(const Instruction& i) { return flow_of(i) == Flow::kBarrier && i.guard < 0; }

/// Whether polled state is visible to this block only: shared memory, an mbarrier, a block-scope
/// fence.
bool stays_in_block(const Instruction& instruction) {
  if (instruction.name == "mbarrier") return true;
  return std::ranges::any_of(instruction.modifiers, [](const std::string& modifier) {
    return modifier == "shared" || modifier == "shared::cta" || modifier == "proxy" ||
           modifier == "mbarrier_init" || modifier == "cta";
  });
}

bool reads_time(const Operand& operand) {
  using ptx::Special;
  if (operand.form == Operand::Form::kSpecial) {
    const auto special = static_cast<Special>(operand.index);
    return special >= Special::kClock && special <= Special::kGlobalTimerHi;
  }
  return std::ranges::any_of(operand.elements, reads_time);
}

/// Whether its results depend only on registers and memory, and it does not change memory.
bool only_looks(const Instruction& i) {
  using ptx::Op;
  using ptx::Unit;
  if (std::ranges::any_of(i.operands, reads_time)) return false;
  for (const Op op : {Op::kLd, Op::kStrongLd, Op::kMbarrierTest, Op::kFence, Op::kFenceRestricted,
                      Op::kMembar, Op::kNanosleep}) {
    if (i.is(op)) return true;
  }
  const auto unit = ptx::traits(i).unit;
  return unit != Unit::kMemory && unit != Unit::kSync && unit != Unit::kControl &&
         unit != Unit::kMatrix;
}

}  // namespace

void collect_registers(const Operand& operand, std::vector<int>& out) {
  if (operand.is_register()) out.push_back(operand.index);
  for (const Operand& element : operand.elements) collect_registers(element, out);
}

bool has_result(const Instruction& instruction) {
  return instruction.entry != nullptr && instruction.entry->has_result();
}

const Operand* member_mask(const Instruction& instruction) {
  using ptx::Op;
  constexpr Op kTogether[] = {Op::kShflSync, Op::kVoteSync,   Op::kMatchAny, Op::kMatchAll,
                              Op::kRedux,    Op::kReduxFloat, Op::kElect,    Op::kBarWarp};
  const bool has = std::ranges::any_of(kTogether, [&](Op op) { return instruction.is(op); });
  return has && !instruction.operands.empty() ? &instruction.operands.back() : nullptr;
}

RegisterUse register_use(const Instruction& instruction) {
  RegisterUse use;
  std::size_t first = 0;
  if (has_result(instruction) && !instruction.operands.empty()) {
    collect_registers(instruction.operands[0], use.writes);
    if (!instruction.entry->updates()) first = 1;
  }
  for (std::size_t i = first; i < instruction.operands.size(); ++i) {
    collect_registers(instruction.operands[i], use.reads);
  }
  if (instruction.guard >= 0) {
    use.reads.push_back(instruction.guard);
    use.reads.insert(use.reads.end(), use.writes.begin(), use.writes.end());
  }
  return use;
}

bool BitSet::merge(const BitSet& in, const BitSet* without) {
  bool grew = false;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::uint64_t add =
        without != nullptr ? in.words_[i] & ~without->words_[i] : in.words_[i];
    grew = grew || (add & ~words_[i]) != 0;
    words_[i] |= add;
  }
  return grew;
}

ControlFlow::ControlFlow(const ptx::Function& function) {
  build(function);
  order_blocks(function);
  require_known(function);
  find_post_dominators();
  find_liveness(function);
  find_spins(function);
}

void ControlFlow::require_known(const ptx::Function& function) const {
  for (const Block& block : blocks_) {
    for (std::uint32_t i = block.first; i < block.last; ++i) ptx::require_known(function.body[i]);
  }
}

void ControlFlow::build(const ptx::Function& function) {
  const auto& body = function.body;
  const auto size = static_cast<std::uint32_t>(body.size());
  // Splits at labels, after terminators and barriers, and before barriers of a warp, at which its
  // lanes meet; one empty exit block stands for the end.
  std::vector<int> block_at(size + 1, -1);
  std::vector<std::uint32_t> starts{0, size};
  for (const std::uint32_t label : function.labels) starts.push_back(label);
  for (std::uint32_t i = 0; i < size; ++i) {
    if (is_branch(body[i]) || is_exit(body[i]) || parks(body[i])) starts.push_back(i + 1);
    if (body[i].is(ptx::Op::kBarWarp)) starts.push_back(i);
  }
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  for (std::size_t b = 0; b < starts.size(); ++b) block_at[starts[b]] = static_cast<int>(b);
  blocks_.resize(starts.size());
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
    Block& block = blocks_[b];
    block.first = starts[b];
    block.last = starts[b + 1];
    const Instruction& last = body[block.last - 1];
    block.line = last.line;
    block.next = static_cast<int>(b) + 1;
    block.end = BlockEnd::kJump;
    block.parks = parks(last);
    if (!is_branch(last) && !is_exit(last)) continue;
    --block.last;
    block.predicate = last.guard;
    block.negated = last.guard_negated;
    if (is_exit(last)) {
      block.end = last.guard >= 0 ? BlockEnd::kGuardedExit : BlockEnd::kExit;
      if (last.guard < 0) block.next = -1;
      continue;
    }
    if (last.operands.size() != 1 || last.operands[0].form != Operand::Form::kLabel) {
      ptx::fail(last.line, "bad operands of '" + last.full_name() + "'");
    }
    const int target = block_at[function.labels[last.operands[0].index]];
    if (last.guard >= 0 && target != block.next) {
      block.end = BlockEnd::kBranch;
      block.taken = target;
    } else {
      block.predicate = -1;
      block.next = target;
    }
  }
  // A branch to a bare return is a guarded exit, so that it does not count as divergence.
  const auto returns = [&](int b) {
    const Block& block = blocks_[b];
    return block.end == BlockEnd::kExit && block.first == block.last;
  };
  for (Block& block : blocks_) {
    if (block.end == BlockEnd::kBranch && (returns(block.taken) || returns(block.next))) {
      if (!returns(block.taken)) {
        std::swap(block.taken, block.next);
        block.negated = !block.negated;
      }
      block.taken = -1;
      block.end = returns(block.next) ? BlockEnd::kExit : BlockEnd::kGuardedExit;
    } else if (block.end == BlockEnd::kGuardedExit && returns(block.next)) {
      block.end = BlockEnd::kExit;
    }
    if (block.end == BlockEnd::kExit) {
      block.next = block.taken = -1;
      block.predicate = -1;
    }
  }
}

void ControlFlow::order_blocks(const ptx::Function& function) {
  // Lanes that trap, such as those of a failed assertion, go before others come to a barrier.
  const auto is_trap = [&](int b) {
    const auto first = function.body.begin();
    return std::any_of(first + blocks_[b].first, first + blocks_[b].last, traps);
  };
  // Iterative depth-first search; `taken` goes first, so that the fall-through gets the earlier
  // number.
  std::vector<int> post;
  std::vector<std::uint8_t> state(blocks_.size());
  std::vector<int> stack{0};
  while (!stack.empty()) {
    const int b = stack.back();
    const Block& block = blocks_[b];
    auto& step = state[b];
    if (step == 0 || step == 1) {
      const bool swapped = block.taken >= 0 && is_trap(block.taken);
      const int target = (step == 0) != swapped ? block.taken : block.next;
      ++step;
      if (target >= 0 && state[target] == 0) stack.push_back(target);
      continue;
    }
    if (step == 2) {
      step = 3;
      post.push_back(b);
    }
    stack.pop_back();
  }
  std::vector<int> position(blocks_.size(), -1);
  for (std::size_t i = 0; i < post.size(); ++i) {
    position[post[post.size() - 1 - i]] = static_cast<int>(i);
  }
  std::vector<Block> ordered(post.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (position[b] < 0) continue;
    Block& block = ordered[position[b]];
    block = std::move(blocks_[b]);
    if (block.taken >= 0) block.taken = position[block.taken];
    if (block.next >= 0) block.next = position[block.next];
  }
  blocks_ = std::move(ordered);
  for (int b = 0; b < size(); ++b) {
    for (const int target : {blocks_[b].taken, blocks_[b].next}) {
      if (target >= 0) blocks_[target].predecessors.push_back(b);
    }
  }
}

void ControlFlow::find_post_dominators() {
  // Post-dominators by Cooper, Harvey and Kennedy's iteration on the reversed graph. A guarded exit
  // does not count as a path to the end, except in loops that have no other.
  const int n = size();
  const int end = n;
  std::vector<int> order;  // post order of the reversed graph
  std::vector<int> rank(static_cast<std::size_t>(n) + 1, -1);
  std::vector<int> roots;
  for (const BlockEnd kind : {BlockEnd::kExit, BlockEnd::kGuardedExit}) {
    for (int b = 0; b < n; ++b) {
      if (block(b).end == kind) roots.push_back(b);
    }
  }
  std::vector<std::pair<int, std::size_t>> stack;
  std::vector<bool> seen(static_cast<std::size_t>(n));
  std::vector<bool> leaves(static_cast<std::size_t>(n));
  for (const int root : roots) {
    if (seen[root]) continue;
    seen[root] = true;
    leaves[root] = true;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [b, step] = stack.back();
      const auto& predecessors = block(b).predecessors;
      if (step < predecessors.size()) {
        const int p = predecessors[step++];
        if (!seen[p]) {
          seen[p] = true;
          stack.emplace_back(p, 0);
        }
        continue;
      }
      rank[b] = static_cast<int>(order.size());
      order.push_back(b);
      stack.pop_back();
    }
  }
  for (int b = 0; b < n; ++b) {
    blocks_[b].endless = !seen[b];
  }
  rank[end] = static_cast<int>(order.size());
  post_dominator_.assign(static_cast<std::size_t>(n) + 1, -1);
  post_dominator_[end] = end;
  const auto meet = [&](int a, int b) {
    while (a != b) {
      while (rank[a] < rank[b]) {
        a = post_dominator_[a];
      }
      while (rank[b] < rank[a]) {
        b = post_dominator_[b];
      }
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Block& current = block(*it);
      int result = -1;
      if (leaves[*it]) result = end;
      for (const int target : {current.taken, current.next}) {
        if (target < 0 || post_dominator_[target] < 0) continue;
        result = result < 0 ? target : meet(result, target);
      }
      if (result >= 0 && post_dominator_[*it] != result) {
        post_dominator_[*it] = result;
        changed = true;
      }
    }
  }
  post_dominator_.resize(static_cast<std::size_t>(n));
  for (int& p : post_dominator_) {
    if (p == end) p = -1;
  }
}

int ControlFlow::divergent_region(int from, std::vector<int>& region) const {
  const int stop = post_dominator_[from];
  std::vector<bool> seen(blocks_.size());
  std::vector<int> work{block(from).taken, block(from).next};
  while (!work.empty()) {
    const int b = work.back();
    work.pop_back();
    if (b < 0 || b == stop || seen[b]) continue;
    seen[b] = true;
    region.push_back(b);
    work.push_back(block(b).taken);
    work.push_back(block(b).next);
  }
  return stop;
}

void ControlFlow::find_liveness(const ptx::Function& function) {
  const std::size_t registers = function.registers.size();
  std::vector<BitSet> killed(blocks_.size(), BitSet(registers));
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    block.live_in = BitSet(registers);
    block.live_out = BitSet(registers);
    for (std::uint32_t i = block.first; i < block.last; ++i) {
      const RegisterUse use = register_use(function.body[i]);
      for (const int r : use.reads) {
        if (!killed[b].has(r)) block.live_in.add(r);
      }
      for (const int r : use.writes) killed[b].add(r);
    }
    if (block.predicate >= 0 && !killed[b].has(block.predicate)) {
      block.live_in.add(block.predicate);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = blocks_.size(); b-- > 0;) {
      Block& block = blocks_[b];
      for (const int target : {block.taken, block.next}) {
        if (target < 0) continue;
        block.live_out.merge(blocks_[target].live_in);
      }
      if (block.live_in.merge(block.live_out, &killed[b])) changed = true;
    }
  }
}

void ControlFlow::find_spins(const ptx::Function& function) {
  std::vector<bool> waits(blocks_.size()), polls(blocks_.size()), acts(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    for (std::uint32_t i = blocks_[b].first; i < blocks_[b].last; ++i) {
      const Instruction& instruction = function.body[i];
      const Flow flow = flow_of(instruction);
      acts[b] = acts[b] || !only_looks(instruction);
      if (flow == Flow::kPolls && instruction.entry->has_address()) {
        blocks_[b].poll_line = instruction.line;
      }
      const bool barrier = flow == Flow::kBarrier && !parks(instruction);
      if (flow == Flow::kPolls || flow == Flow::kSleeps) waits[b] = true;
      if (flow == Flow::kPolls && !stays_in_block(instruction)) polls[b] = true;
      if (flow == Flow::kSleeps || flow == Flow::kWaits || barrier) waits_ = Waits::kAnywhere;
      if (flow == Flow::kArrives || parks(instruction)) {
        waits_ = std::max(waits_, Waits::kAtBarriers);
      }
    }
  }
  for (int b = 0; b < size(); ++b) {
    for (const int target : {block(b).taken, block(b).next}) {
      if (target < 0 || target > b) continue;
      Block& last = blocks_[b];
      bool acts_there = false;
      for (int inside = target; inside <= b; ++inside) {
        const auto n = static_cast<std::size_t>(inside);
        if (waits[n]) {
          last.spins = true;
          waits_ = Waits::kAnywhere;
        }
        if (polls[n]) waits_for_blocks_ = true;
        if (last.poll_line == 0) last.poll_line = blocks_[n].poll_line;
        acts_there = acts_there || acts[n];
      }
      if (!last.spins || acts_there) continue;
      looks_ = true;
      for (int inside = target; inside <= b; ++inside) {
        blocks_[inside].looks = true;
      }
    }
  }
}

}  // namespace braid::cpu
