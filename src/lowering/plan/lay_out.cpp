#include "lowering/plan/lay_out.h"

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

void place_buffers(Program& program, PassContext& context) {
  std::vector<std::vector<Buffer*>> in_arena(program.arenas.size());
  for (Buffer& b : program.buffers) {
    if (!b.slice) in_arena[static_cast<std::size_t>(b.arena)].push_back(&b);
  }
  for (std::size_t a = 0; a < in_arena.size(); ++a) {
    Arena& arena = program.arenas[a];
    std::vector<Lifetime> lives;
    for (const Buffer* b : in_arena[a]) {
      lives.push_back({b->bytes, b->first_step, b->last_step, kAlignment});
    }
    const bool symmetric = arena.kind == ArenaKind::kSymmetric;
    const std::int64_t head = symmetric ? protocol::kHeadBytes : 0;
    const bool fixed = arena.kind == ArenaKind::kParameters || arena.kind == ArenaKind::kIo;
    const MemoryPlan plan = fixed ? side_by_side(lives) : plan_memory(lives);
    for (std::size_t i = 0; i < lives.size(); ++i) in_arena[a][i]->offset = head + plan.offsets[i];
    if (symmetric || arena.kind == ArenaKind::kWorkspace) {
      remark(arena, lives.size(), plan, context);
    }
    arena.bytes = round_up(head + plan.total, symmetric ? kSymmetricAlignment : 1);
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

}  // namespace braid
