#include "lowering/plan/lay_out.h"

#include <algorithm>
#include <map>
#include <vector>

#include "codegen/protocol.h"
#include "ir/mapped.h"
#include "lowering/plan/in_place.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/plan_memory.h"

namespace braid {
namespace {

constexpr ReasonCode kTight{"plan_memory.tight",
                            "{bytes} bytes, the most that live at one time; buffers: {buffers}"};
constexpr ReasonCode kLoose{
    "plan_memory.loose",
    "{bytes} bytes, {percent:.1f} % above the {bound} that live at one time; buffers: {buffers}"};

constexpr ReasonCode kInPlace{
    "plan_memory.in_place", "in the place of '{input}', which its kernel reads for the last time"};

void add_arenas(Program& program, std::span<const ArenaKey> places) {
  std::map<ArenaKey, int> arenas;
  for (const ArenaKey& place : places) arenas.emplace(place, 0);
  for (auto& [place, index] : arenas) {
    index = program.arenas.size();
    program.arenas.push_back({place.kind, place.group, 0});
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    program.buffers[i].arena = arenas.find(places[i])->second;
  }
}

void set_lifetimes(Program& program, const StepOrder& order) {
  const std::vector<StepRange> ranges = lifetimes(program, order);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    program.buffers[i].first_step = ranges[i].first;
    program.buffers[i].last_step = ranges[i].last;
  }
}

MemoryPlan side_by_side(std::span<const Lifetime> buffers) {
  MemoryPlan plan;
  for (const Lifetime& b : buffers) {
    plan.offsets.push_back(plan.total);
    plan.total += round_up(b.size, b.alignment);
  }
  plan.bound = plan.total;
  return plan;
}

/// Buffers that are placed as one, each taking the place of the one before it.
struct Chain {
  std::vector<int> buffers;
  Lifetime life;
};

/// The chains of an arena. Slices are left out: they lie inside the buffer that they are part of.
/// `taken` is as in places_to_take.
std::vector<Chain> chains_in(const Program& program, int arena, std::span<const int> taken) {
  std::vector<int> next(program.buffers.size(), -1);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] >= 0) next[taken[i]] = i;
  }
  std::vector<Chain> chains;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& first = program.buffers[i];
    if (first.arena != arena || first.slice || taken[i] >= 0) continue;
    Chain& chain = chains.emplace_back();
    for (int id = i; id >= 0; id = next[id]) chain.buffers.push_back(id);
    const Buffer& last = program.buffers[chain.buffers.back()];
    chain.life = {first.bytes, first.first_step, last.last_step, kBufferAlignment};
  }
  return chains;
}

std::vector<Lifetime> lives_of(std::span<const Chain> chains) {
  return mapped(chains, &Chain::life);
}

/// Whether the caller may replace the arena, so that its buffers cannot share bytes.
bool is_fixed(const Arena& arena) {
  return arena.kind == ArenaKind::kParameters || arena.kind == ArenaKind::kIo;
}

std::int64_t head_of(const Arena& arena) {
  return arena.kind == ArenaKind::kSymmetric ? protocol::kHeadBytes : 0;
}

void remark(const Program& program, const Arena& arena, std::span<const Chain> chains,
            const MemoryPlan& plan, PassContext& context) {
  std::size_t buffers = 0;
  for (const Chain& chain : chains) {
    buffers += chain.buffers.size();
    for (std::size_t i = 1; i < chain.buffers.size(); ++i) {
      const auto name = [&](std::size_t at) -> const std::string& {
        return program.buffers[chain.buffers[at]].name;
      };
      context.applied("plan_memory", name(i), Reason(kInPlace, name(i - 1)));
    }
  }
  if (plan.total == plan.bound) {
    return context.applied("plan_memory", arena.name(), Reason(kTight, plan.total, buffers));
  }
  const double percent =
      100 * (static_cast<double>(plan.total) / static_cast<double>(plan.bound) - 1);
  context.missed("plan_memory", arena.name(),
                 Reason(kLoose, plan.total, percent, plan.bound, buffers));
}

/// A chain is harder to place than its buffers. Where chains cost bytes, the buffers are placed
/// apart, and `taken` forgets them.
MemoryPlan plan_arena(const Program& program, int arena, std::vector<int>& taken,
                      std::vector<Chain>& chains) {
  chains = chains_in(program, arena, taken);
  MemoryPlan plan = plan_memory(lives_of(chains));
  if (plan.total == plan.bound) return plan;
  std::vector<int> apart = taken;
  for (const Chain& chain : chains) {
    for (const int id : chain.buffers) apart[id] = -1;
  }
  if (apart == taken) return plan;
  std::vector<Chain> singles = chains_in(program, arena, apart);
  MemoryPlan other = plan_memory(lives_of(singles));
  if (plan.total <= other.total) return plan;
  taken = std::move(apart);
  chains = std::move(singles);
  return other;
}

/// Buffers that outlive runs are placed behind all others, where variants can keep them apart
/// (variants.h).
MemoryPlan plan_symmetric(std::vector<Chain>& chains, const std::vector<bool>& outlive) {
  const auto behind = std::stable_partition(chains.begin(), chains.end(), [&](const Chain& chain) {
    return !outlive[chain.buffers.front()];
  });
  const std::vector<Lifetime> lives = lives_of(chains);
  const std::size_t count = behind - chains.begin();
  MemoryPlan plan = plan_memory(std::span(lives).first(count));
  const MemoryPlan last = side_by_side(std::span(lives).subspan(count));
  for (const std::int64_t offset : last.offsets) plan.offsets.push_back(plan.total + offset);
  plan.total += last.total;
  plan.bound += last.total;
  return plan;
}

void place_buffers(Program& program, const StepOrder& order, std::vector<int>& taken,
                   PassContext& context) {
  const std::vector<bool> outlive = outlive_runs(program, order);
  for (std::size_t a = 0; a < program.arenas.size(); ++a) {
    Arena& arena = program.arenas[a];
    std::vector<Chain> chains = chains_in(program, a, taken);
    const bool symmetric = arena.kind == ArenaKind::kSymmetric;
    const MemoryPlan plan = is_fixed(arena) ? side_by_side(lives_of(chains))
                            : symmetric     ? plan_symmetric(chains, outlive)
                                            : plan_arena(program, a, taken, chains);
    for (std::size_t i = 0; i < chains.size(); ++i) {
      for (const int id : chains[i].buffers) {
        program.buffers[id].offset = head_of(arena) + plan.offsets[i];
      }
    }
    if (symmetric || arena.kind == ArenaKind::kWorkspace) {
      remark(program, arena, chains, plan, context);
    }
    arena.bytes = round_up(head_of(arena) + plan.total, symmetric ? kSymmetricAlignment : 1);
  }
  for (Buffer& b : program.buffers) {
    if (b.slice) b.offset = program.buffers[b.slice->of].offset;
  }
}

}  // namespace

void lay_out(Program& program, std::span<const ArenaKey> places, PassContext& context) {
  const StepOrder order(program.steps);
  add_arenas(program, places);
  set_lifetimes(program, order);
  std::vector<int> taken = places_to_take(program, order);
  place_buffers(program, order, taken, context);
  allow_in_place(program, taken);
}

ArenaUse arena_use(const Program& program, int arena) {
  const Arena& of = program.arenas[arena];
  const std::vector<Chain> chains = chains_in(program, arena, places_taken(program));
  ArenaUse use{head_of(of), head_of(of)};
  for (const Chain& chain : chains) {
    const Buffer& b = program.buffers[chain.buffers[0]];
    use.peak = std::max(use.peak, b.offset + round_up(b.bytes, kBufferAlignment));
  }
  use.bound = is_fixed(of) ? use.peak : head_of(of) + memory_bound(lives_of(chains));
  return use;
}

}  // namespace braid
