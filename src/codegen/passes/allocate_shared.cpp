// Shared memory. Every ring of tiles, every reduction across warps and every layout change across
// warps gets a range, at multiples of 128 bytes. Tiles and layout changes that are not live at the
// same time may have the same bytes: a ring is dead behind its loop, where the result changes its
// layout.
//
// A byte gets a new owner behind a block barrier, since all warps must have read what the last
// owner left there. If that was a tile, asynchronous copies into it may still be under way: the
// last steps of a ring fill slots with zeros. So the barrier is `wait_group 0`, which this pass
// inserts where the pipeliner has put none.
//
// A reduction keeps its few bytes for itself, because sharing them would cost a barrier. Roles run
// side by side, so there nothing is shared. The warps of the first role, which compute, meet by a
// barrier of their own.

#include "codegen/passes/allocate_shared.h"

#include <algorithm>
#include <set>
#include <vector>

#include "codegen/tile/layout.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"
#include "ir/fail.h"
#include "pack/pack.h"

namespace braid::tile {
namespace {

constexpr std::int64_t kAlignment = 128;
/// There are few ranges, so that a search ends soon.
constexpr std::int64_t kNodes = 1000;

int scratch_bytes(const Program& p, const Inst& inst) {
  const auto layout = [&](const Inst& of) -> const Layout& { return p.layouts[of.layout]; };
  switch (inst.op) {
    case Op::kAllocShared:
      return inst.stages * inst.type.rows * inst.type.cols *
             static_cast<int>(dtype_size(inst.dtype));
    case Op::kAllocRing:
      return inst.stages * 16;
    case Op::kAllocSums:
      return 4;
    case Op::kReduce: {
      // One partial result for each row and each part of its columns.
      const ReductionParts parts = reduction_parts(layout(p.at(inst.args[0])));
      if (parts.of_warps == 1) return 0;
      return inst.type.rows * parts.count() * value_bytes(inst.type.kind);
    }
    case Op::kConvertLayout: {
      const Conversion conversion = convert(layout(p.at(inst.args[0])), layout(inst));
      if (conversion.change != LayoutChange::kShared) return 0;
      const int bytes = inst.type.kind == Kind::kF32
                            ? static_cast<int>(dtype_size(moved_dtype(p, inst)))
                            : value_bytes(inst.type.kind);
      return inst.type.rows * inst.type.cols * bytes;
    }
    default:
      return 0;
  }
}

/// What has a range of bytes: a tile or a scratch. Time counts instructions in their order.
struct Owner {
  Id id;
  Interval live;
  Id loop;  ///< the outermost loop around it, or kNone
  std::int64_t offset = 0;
};

class Allocator {
 public:
  explicit Allocator(Program& p) : p_(p) {}

  void run() {
    visit(p_.body, kNone, /*meets=*/true);
    keep();
    place();
    for (const Owner& owner : owners_) guard(owner);
    insert_waits(p_.body);
  }

 private:
  /// `meets`: the warps that run it can meet.
  void visit(const std::vector<Id>& block, Id loop, bool meets) {
    bool first_role = true;
    for (Id id : block) {
      const Inst& inst = p_.at(id);
      const std::int64_t at = now_++;
      for (Id arg : inst.args) {
        if (Owner* const tile = find_tile(arg)) tile->live.upper = now_;
      }
      if (const int bytes = scratch_bytes(p_, inst); bytes > 0) {
        if (!meets) {
          throw_invalid(std::string(op_info(inst.op).name),
                        "needs all warps that compute; expected none such in a role of one thread");
        }
        // Where the hardware's swizzle begins anew.
        const bool panels = inst.op == Op::kAllocShared && inst.index == SharedLayout::kPanels;
        owners_.push_back(
            {id, {at, now_, round_up(bytes, kAlignment), panels ? 1024 : kAlignment}, loop});
      }
      if (inst.body.empty()) continue;
      const std::size_t outside = owners_.size();
      visit(inst.body, loop == kNone && inst.op == Op::kFor ? id : loop,
            meets && (inst.op != Op::kRole || first_role));
      first_role = first_role && inst.op != Op::kRole;
      // The next turn uses again what this one has used.
      for (std::size_t i = 0; i < outside; ++i) {
        if (owners_[i].live.upper > at + 1) owners_[i].live.upper = now_;
      }
    }
  }

  Owner* find_tile(Id id) {
    const auto it = std::ranges::find(owners_, id, &Owner::id);
    return it == owners_.end() || !is_tile(*it) ? nullptr : &*it;
  }
  [[nodiscard]] bool is_tile(const Owner& owner) const {
    return p_.at(owner.id).op == Op::kAllocShared;
  }

  /// Extends the lifetimes of those that share nothing.
  void keep() {
    const bool roles =
        std::ranges::any_of(p_.body, [&](Id id) { return p_.at(id).op == Op::kRole; });
    for (Owner& owner : owners_) {
      const bool shares = is_tile(owner) || p_.at(owner.id).op == Op::kConvertLayout;
      if (roles || !shares) owner.live.lower = 0, owner.live.upper = now_;
    }
  }

  /// In program order, unless some can share.
  void place() {
    std::vector<Interval> intervals;
    for (const Owner& owner : owners_) intervals.push_back(owner.live);
    std::int64_t end = 0;
    for (Owner& owner : owners_) {
      owner.offset = round_up(end, owner.live.alignment);
      end = owner.offset + owner.live.size;
    }
    if (end > most_live(intervals)) {
      const PackResult packed = pack(intervals, {.nodes = kNodes});
      if (packed.packing.total < end) {
        end = packed.packing.total;
        for (std::size_t i = 0; i < owners_.size(); ++i) {
          owners_[i].offset = packed.packing.offsets[i];
        }
      }
    }
    for (const Owner& owner : owners_) {
      p_.at(owner.id).shared_offset = static_cast<int>(owner.offset);
    }
    p_.shared_bytes = static_cast<int>(end);
  }

  /// Whether `other` may have had some of its bytes before.
  [[nodiscard]] static bool follows(const Owner& owner, const Owner& other) {
    const bool meets = owner.offset < other.offset + other.live.size &&
                       other.offset < owner.offset + owner.live.size;
    return meets && (other.live.lower < owner.live.lower ||
                     (owner.loop != kNone && owner.loop == other.loop));
  }

  /// Decides which barrier stands before the first write.
  void guard(const Owner& owner) {
    bool after_tile = false, after_scratch = false;
    for (const Owner& other : owners_) {
      if (other.id == owner.id || !follows(owner, other)) continue;
      (is_tile(other) ? after_tile : after_scratch) = true;
    }
    if (is_tile(owner)) {
      if (after_tile || after_scratch) waiting_.insert(owner.id);
    } else if (after_tile) {
      waiting_.insert(owner.id);
    } else {
      p_.at(owner.id).barrier = after_scratch || owner.loop != kNone;
    }
  }

  void insert_waits(std::vector<Id>& block) {
    std::vector<Id> out;
    std::set<Id> tiles;  // that nothing has used so far
    for (Id id : block) {
      const Op op = p_.at(id).op;
      if (op == Op::kWaitGroup && p_.at(id).index == 0) tiles.clear();
      const bool waits = waiting_.contains(id);
      if ((waits && op != Op::kAllocShared) || uses(id, tiles)) {
        p_.insts.push_back({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = 0});
        out.push_back(static_cast<Id>(p_.insts.size()) - 1);
        tiles.clear();
      }
      if (waits && op == Op::kAllocShared) tiles.insert(id);
      out.push_back(id);
      std::vector<Id> body = std::move(p_.at(id).body);
      if (!body.empty()) insert_waits(body);
      p_.at(id).body = std::move(body);
    }
    block = std::move(out);
  }

  [[nodiscard]] bool uses(Id id, const std::set<Id>& tiles) const {
    bool found = false;
    if (tiles.empty()) return found;
    for_each_inst(p_, {id}, [&](Id inner) {
      found = found ||
              std::ranges::any_of(p_.at(inner).args, [&](Id arg) { return tiles.contains(arg); });
    });
    return found;
  }

  Program& p_;
  std::int64_t now_ = 0;
  std::vector<Owner> owners_;
  std::set<Id> waiting_;  ///< owners with `wait_group 0` before their first write
};

}  // namespace

void allocate_shared(Program& p) { Allocator(p).run(); }

}  // namespace braid::tile
