#include "lowering/plan/lay_out.h"

#include <algorithm>
#include <map>
#include <vector>

#include "codegen/protocol.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/plan_memory.h"

namespace braid {
namespace {

constexpr std::int64_t kSymmetricAlignment = std::int64_t{2} << 20U;
constexpr std::int64_t kAlignment = 256;

constexpr ReasonCode kTight{"plan_memory.tight",
                            "{bytes} bytes, the most that live at one time; buffers: {buffers}"};
constexpr ReasonCode kLoose{"plan_memory.loose",
                            "{bytes} bytes, {percent:.1f} % above the {bound} that live at one "
                            "time; buffers: {buffers}"};

void add_arenas(Program& program, std::span<const Place> places) {
  std::map<Place, int> arenas;
  for (const Place& place : places) arenas.emplace(place, 0);
  for (auto& [place, index] : arenas) {
    index = static_cast<int>(program.arenas.size());
    program.arenas.push_back({place.kind, place.group, 0});
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    program.buffers[i].arena = arenas.find(places[i])->second;
  }
}

void set_lifetimes(Program& program) {
  const std::vector<StepRange> ranges = lifetimes(program, StepOrder(program.steps));
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

void remark(const Arena& arena, std::size_t buffers, const MemoryPlan& plan, PassContext& context) {
  if (plan.total == plan.bound) {
    return context.applied("plan_memory", arena.name(), Reason(kTight, plan.total, buffers));
  }
  const double percent =
      100 * (static_cast<double>(plan.total) / static_cast<double>(plan.bound) - 1);
  context.missed("plan_memory", arena.name(),
                 Reason(kLoose, plan.total, percent, plan.bound, buffers));
}

/// Those that have a place of their own: slices lie where what they are a part of does.
std::vector<int> buffers_in(const Program& program, int arena) {
  std::vector<int> ids;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    if (b.arena == arena && !b.slice) ids.push_back(static_cast<int>(i));
  }
  return ids;
}

std::vector<Lifetime> lives_of(const Program& program, std::span<const int> ids) {
  std::vector<Lifetime> lives;
  lives.reserve(ids.size());
  for (const int id : ids) {
    const Buffer& b = program.buffers[static_cast<std::size_t>(id)];
    lives.push_back({b.bytes, b.first_step, b.last_step, kAlignment});
  }
  return lives;
}

/// The caller may replace it, so that nothing else may lie there.
bool is_fixed(const Arena& arena) {
  return arena.kind == ArenaKind::kParameters || arena.kind == ArenaKind::kIo;
}

std::int64_t head_of(const Arena& arena) {
  return arena.kind == ArenaKind::kSymmetric ? protocol::kHeadBytes : 0;
}

void place_buffers(Program& program, PassContext& context) {
  for (std::size_t a = 0; a < program.arenas.size(); ++a) {
    Arena& arena = program.arenas[a];
    const std::vector<int> ids = buffers_in(program, static_cast<int>(a));
    const std::vector<Lifetime> lives = lives_of(program, ids);
    const MemoryPlan plan = is_fixed(arena) ? side_by_side(lives) : plan_memory(lives);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      program.buffers[static_cast<std::size_t>(ids[i])].offset = head_of(arena) + plan.offsets[i];
    }
    const bool symmetric = arena.kind == ArenaKind::kSymmetric;
    if (symmetric || arena.kind == ArenaKind::kWorkspace) {
      remark(arena, lives.size(), plan, context);
    }
    arena.bytes = round_up(head_of(arena) + plan.total, symmetric ? kSymmetricAlignment : 1);
  }
  for (Buffer& b : program.buffers) {
    if (b.slice) b.offset = program.buffers[static_cast<std::size_t>(b.slice->of)].offset;
  }
}

}  // namespace

void lay_out(Program& program, std::span<const Place> places, PassContext& context) {
  add_arenas(program, places);
  set_lifetimes(program);
  place_buffers(program, context);
}

ArenaUse arena_use(const Program& program, int arena) {
  const Arena& of = program.arenas[static_cast<std::size_t>(arena)];
  const std::vector<int> ids = buffers_in(program, arena);
  ArenaUse use{head_of(of), head_of(of)};
  for (const int id : ids) {
    const Buffer& b = program.buffers[static_cast<std::size_t>(id)];
    use.peak = std::max(use.peak, b.offset + round_up(b.bytes, kAlignment));
  }
  use.bound = is_fixed(of) ? use.peak : head_of(of) + memory_bound(lives_of(program, ids));
  return use;
}

}  // namespace braid
