// Puts a kernel together from its phases. A kernel whose ranks or blocks meet has a constant grid,
// and its blocks loop over the pieces, so that every block signals in every run, whatever the
// symbols (docs/architecture.md, Communication). Its flags are a slot for each block and meeting,
// then one for each piece that is awaited.

#include <algorithm>

#include "codegen/body/emitter.h"
#include "codegen/kernel/joined.h"
#include "codegen/kernel/kernel.h"
#include "codegen/protocol.h"
#include "codegen/tile/fragments.h"

namespace braid {
namespace {

using protocol::Mark;
using tile::Fn;
using tile::Id;
using tile::kNone;

class Assembly {
 public:
  Assembly(std::span<const Stage> stages, const Target& target, std::int64_t room)
      : stage_(stages.data()), room_(room), b_(program_) {
    program_.target = target;
    for (const Stage& stage : stages) {
      const bool is_joined = &stage != stages.data();
      for (const Phase& phase : stage.kernel.phases) {
        const Meet meet =
            is_joined && &phase == stage.kernel.phases.data() ? Meet::kHere : phase.meet;
        parts_.push_back({stage, phase, meet, phase.work->pieces(stage.facts, stage.config)});
        meetings_ += meet == Meet::kAlike || meet == Meet::kAll ? 1 : 0;
        meets_here_ = meets_here_ || meet == Meet::kHere;
        if (const Role& role = phase.role; role.who == Role::Who::kSome) {
          some_ =
              std::min(stage.config.at(std::string(role.setting)), pieces_for(Role::Who::kSome));
        }
      }
    }
    const auto marks = stage_->config.find(kMarksSetting);
    marks_ = marks != stage_->config.end() && marks->second != 0;
  }

  tile::Program build() {
    set_sizes();
    if (program_.communicates) b_.communicate(facts().group(), static_cast<int>(facts().world()));
    Id closing = stage_->kernel.closes && some_ == 0 ? is_closing() : kNone;
    if (some_ != 0) choose_some();
    const std::span<const Part> parts(parts_);
    if (!has_ring(stage_->config)) {
      run_parts(parts);
      close(closing);
      return std::move(program_);
    }
    // Those who compute in the phase by a ring do all others, too.
    const auto ringed = std::ranges::find_if(
        parts, [](const Part& part) { return part.phase.work->by_ring != nullptr; });
    run_roles(
        *ringed,
        [&] {
          run_parts({parts.begin(), ringed});
        },
        [&] {
          run_parts({ringed + 1, parts.end()});
          close(closing);
        });
    return std::move(program_);
  }

 private:
  struct Part {
    const Stage& stage;
    const Phase& phase;
    Meet meet;
    std::optional<Pieces> pieces;
  };

  void run_parts(std::span<const Part> parts) {
    for (const Part& part : parts) {
      stage_ = &part.stage;
      b_.set_operands(stage_->operands);
      meet(part);
      if (part.pieces) run(part.phase, *part.pieces);
    }
  }

  void close(Id closing) {
    if (stage_->kernel.closes) {
      if (closing == kNone) closing = is_closing();
      mark(Mark::kMeet);
      if (some_ != 0) {
        closing = b_.both(is_some_, b_.less(b_.integer(0), closing));
      }
      meet_alike(b_.program_id(), closing);
    }
    mark(Mark::kEnd);
  }

  const BodyFacts& facts() const { return stage_->facts; }
  Id world() { return b_.integer(facts().world()); }
  Id rank_of(Id number) { return b_.map(Fn::kRem, {number, world()}); }
  Id is_closing() {
    return b_.param({.kind = KernelParam::Kind::kClosing, .group = facts().group()});
  }
  void mark(Mark::What what) {
    if (marks_) b_.mark(what, b_.integer(0), b_.integer(0));
  }

  // --- sizes -------------------------------------------------------------------------------------

  static bool is_by_rank(Order order) {
    return order == Order::kOwnFirst || order == Order::kOwnLast;
  }
  /// Of the first phase that these blocks do: at most so many pieces.
  std::int64_t pieces_for(Role::Who who) const {
    for (const auto& [stage, phase, meet, pieces] : parts_) {
      if (!pieces || phase.role.who != who) continue;
      const std::int64_t ranks = is_by_rank(phase.order) ? stage.facts.world() : 1;
      return (Expr(ranks) * pieces->count).max(stage.facts.body.symbols());
    }
    return 0;
  }

  void set_sizes() {
    for (const auto& [stage, phase, meet, pieces] : parts_) {
      if (!pieces) continue;
      program_.columns = std::min(program_.columns, pieces->columns);
      program_.warps_m = std::max(program_.warps_m, pieces->warps_m);
      program_.scratch_bytes += pieces->scratch_bytes;
      program_.flag_slots += pieces->flags;
    }
    program_.communicates = meetings_ > 0 || program_.scratch_bytes > 0;
    if (meets_here_) return set_grid_of_phases();
    if (!program_.communicates) {
      const Expr& count = parts_.front().pieces->count;
      one_each_ = parts_.front().phase.order != Order::kListed &&
                  count.max(facts().body.symbols()) <= room_;
      program_.grid = one_each_ ? count : min(count, Expr(room_));
      return;
    }
    const std::int64_t least = some_ == 0 ? 1 : 2;
    const std::int64_t wanted =
        pieces_for(Role::Who::kAll) + some_ + pieces_for(Role::Who::kOthers);
    program_.grid = std::clamp(wanted, least, std::max(least, room_));
    const std::int64_t blocks = some_ == 0 ? program_.grid.evaluate({}) : some_;
    first_flag_ = (meetings_ + (stage_->kernel.closes ? 1 : 0)) * blocks;
    program_.flag_slots += first_flag_;
  }

  /// Blocks for the phase with the most pieces, as far as there is room: all wait for each other.
  void set_grid_of_phases() {
    std::int64_t wanted = 1;
    for (const auto& [stage, phase, meet, pieces] : parts_) {
      if (pieces) wanted = std::max(wanted, pieces->count.max(stage.facts.body.symbols()));
    }
    program_.grid = std::min(wanted, std::max<std::int64_t>(1, room_));
  }

  // --- roles and meetings ------------------------------------------------------------------------

  void choose_some() {
    // Few blocks, where many ranks share a device: most of them do the rest all the same.
    const Id quarter = b_.map(Fn::kDiv, {b_.num_programs(), b_.integer(4)});
    some_blocks_ =
        b_.map(Fn::kMin, {b_.integer(some_), b_.map(Fn::kMax, {b_.integer(1), quarter})});
    is_some_ = b_.less(b_.program_id(), some_blocks_);
  }

  void meet(const Part& part) {
    const Phase& phase = part.phase;
    if (part.meet == Meet::kAlike) {
      mark(Mark::kMeet);
      const Id block = phase.role.who == Role::Who::kOne ? b_.integer(0) : b_.program_id();
      meet_alike(block, phase.role.who == Role::Who::kSome ? is_some_ : kNone);
    } else if (part.meet == Meet::kAll) {
      b_.signal(next_slot(b_.program_id()));
      b_.wait_slots(b_.integer(0), b_.num_programs());
    } else if (part.meet == Meet::kHere) {
      b_.meet_blocks();
    }
  }

  /// The blocks of all ranks that have this slot meet, where the predicate holds.
  void meet_alike(Id block, Id predicate) {
    const Id slot = next_slot(block);
    b_.signal(slot, kNone, predicate);
    b_.wait(slot, kNone, predicate);
  }

  /// Each meeting has a slot for each block that meets.
  Id next_slot(Id block) {
    const auto before = [&] { return some_ == 0 ? b_.num_programs() : b_.integer(some_); };
    return slot_ = slot_ == kNone ? block : b_.plus(before(), slot_);
  }

  // --- pieces ------------------------------------------------------------------------------------

  /// Numbers of pieces: first, first + step, ... below `end`; scalars.
  struct Numbers {
    Id first, end, step;
    Id of_rank;  ///< so many are one rank's
  };

  Piece piece(Id number) { return {b_, facts(), stage_->config, number}; }

  void run(const Phase& phase, const Pieces& pieces) {
    const Work& work = *phase.work;
    if (one_each_) return work.emit(piece(b_.program_id()));
    // What all pieces read comes first, or, where it is worked out who does them, after that: the
    // order of a kernel's parameters.
    const bool is_plain = phase.role.who == Role::Who::kAll && !is_by_rank(phase.order);
    if (is_plain && work.prepare != nullptr) work.prepare(b_, facts());
    Numbers numbers = phase.order == Order::kOwned ? owned(pieces) : dealt(phase, pieces);
    const bool is_listed = phase.order == Order::kListed;
    const Phase::List list = is_listed ? phase.list(b_, facts()) : Phase::List{};
    // However many the list is said to have, there are no more pieces.
    if (is_listed) numbers.end = b_.map(Fn::kMin, {list.count, numbers.end});
    if (!is_plain && work.prepare != nullptr) work.prepare(b_, facts());
    const Id loop = b_.begin_for(numbers.first, numbers.end, numbers.step, {});
    const Id place = b_.induction(loop);
    const Id number = is_listed ? b_.load_scalar(list.numbers, place, kNone, DType::kI32) : place;
    work.emit(piece_of(phase.order, number, numbers.of_rank));
    if (pieces.flags > 0) raise(number, pieces.flags);
    b_.end_for(loop, {});
  }

  /// All do the same pieces in the same order, each its part of them; what is before and after them
  /// is the role's that computes.
  void run_roles(const Part& ringed, const auto& before, const auto& after) {
    const Phase& phase = ringed.phase;
    const Work& work = *phase.work;
    const RingWork& by_ring = *work.by_ring;
    const Numbers numbers = one_each_ ? Numbers{} : dealt(phase, *ringed.pieces);
    if (work.prepare != nullptr) work.prepare(b_, facts());
    const std::vector<Id> shared = by_ring.allocate(b_, facts(), stage_->config);
    bool is_first = true;
    /// `part` is given the steps of so many rings, and returns those that follow.
    const auto role = [&](int warps, int registers, std::size_t rings, const auto& part) {
      const Id role = b_.begin_role(warps, registers);
      if (is_first) before();
      const std::vector<Id> none(rings, b_.integer(0, tile::Kind::kI32));
      if (one_each_) {
        part(piece(b_.program_id()), none);
      } else {
        const Id loop = b_.begin_for(numbers.first, numbers.end, numbers.step, none);
        std::vector<Id> steps;
        for (std::size_t i = 0; i < rings; ++i) {
          steps.push_back(b_.carried(loop, static_cast<int>(i)));
        }
        b_.end_for(loop, part(piece_of(phase.order, b_.induction(loop), numbers.of_rank), steps));
      }
      if (is_first) after();
      is_first = false;
      b_.end_role(role);
    };
    const auto by_one = [&](auto part) {
      return [part, &shared](const Piece& piece, const std::vector<Id>& steps) {
        return std::vector<Id>{part(piece, shared, steps[0])};
      };
    };
    const auto warps = static_cast<int>(stage_->config.at("num_warps"));
    const bool has_sums = std::ranges::any_of(
        shared, [&](Id id) { return program_.at(id).op == tile::Op::kAllocSums; });
    // Of two groups of warps that hold sums, each thread takes registers of the third one.
    const bool moves =
        warps > tile::kWarpsOfGroup &&
        (by_ring.holds_sums == nullptr || by_ring.holds_sums(facts(), program_.target));
    const int few = !moves ? 0 : has_sums ? 56 : 40;
    role(warps, !moves ? 0 : has_sums ? 224 : 232, 1, by_one(by_ring.compute));
    role(has_sums ? 1 : tile::kWarpsOfGroup, few, 1, by_one(by_ring.fill));
    if (!has_sums) return;
    role(tile::kWarpsOfGroup - 1, few, 2, [&](const Piece& piece, const std::vector<Id>& steps) {
      const RingWork::Steps next = by_ring.multiply(piece, shared, {steps[0], steps[1]});
      return std::vector<Id>{next.of_operands, next.of_sums};
    });
  }

  Numbers dealt(const Phase& phase, const Pieces& pieces) {
    const Id of_rank = b_.scalar(pieces.count, pieces.divisor);
    const Id end = is_by_rank(phase.order) ? b_.times(world(), of_rank) : of_rank;
    const Id block = b_.program_id();
    if (phase.role.who == Role::Who::kAll) return {block, end, b_.num_programs(), of_rank};
    if (phase.role.who == Role::Who::kSome) {
      return {b_.map(Fn::kSelect, {is_some_, block, end}), end, some_blocks_, of_rank};
    }
    return {b_.map(Fn::kSelect, {is_some_, end, b_.minus(block, some_blocks_)}), end,
            b_.minus(b_.num_programs(), some_blocks_), of_rank};
  }

  Numbers owned(const Pieces& pieces) {
    const Id rank = own_rank(b_, facts().group());
    const Id ranks = world();
    const Id block = b_.map(Fn::kRem, {b_.program_id(), ranks});
    const Id turn = b_.map(Fn::kRem, {b_.minus(b_.plus(rank, ranks), block), ranks});
    const Id first = b_.plus(b_.program_id(), b_.times(turn, b_.num_programs()));
    const Id step = b_.times(b_.num_programs(), ranks);
    const Id count = b_.scalar(pieces.count, pieces.divisor);
    return {first, count, step, count};
  }

  Piece piece_of(Order order, Id number, Id of_rank) {
    Piece result = piece(number);
    if (order == Order::kOfOwners) {
      result.rank = [this, number] {
        const Id turn = b_.map(Fn::kDiv, {number, b_.num_programs()});
        return rank_of(b_.plus(b_.program_id(), turn));
      };
    } else if (is_by_rank(order)) {
      // 32 bits wide, for a 64-bit division is a call.
      const auto narrow = [&](Id id) { return b_.map(Fn::kToI32, {id}); };
      const Id whole = narrow(number);
      const Id turn = result.turn = b_.map(Fn::kDiv, {whole, narrow(of_rank)});
      result.number = b_.map(Fn::kRem, {whole, narrow(of_rank)});
      result.rank = [this, order, turn] {
        const Id own = own_rank(b_, facts().group());
        return rank_of(
            b_.plus(order == Order::kOwnFirst ? own : b_.plus(own, b_.integer(1)), turn));
      };
      result.await = [this, turn](Id number) { await(turn, number); };
    }
    return result;
  }

  // Blocks with a role copy, or make, pieces rank by rank, from the next one on, and raise a flag
  // of this rank's own for each.

  void raise(Id number, std::int64_t flags) {
    const Id end = b_.integer(flags);
    const Id is_awaited = b_.less(number, end);
    b_.signal(b_.plus(b_.integer(first_flag_), number), own_rank(b_, facts().group()), is_awaited);
  }

  void await(Id turn, Id piece) {
    const Id remote = b_.less(b_.integer(0), turn);
    const Id of_rank = b_.integer(pieces_for(Role::Who::kSome) / facts().world());
    const Id arrival = b_.plus(b_.times(b_.minus(turn, b_.integer(1)), of_rank), piece);
    b_.wait(b_.plus(b_.integer(first_flag_), arrival), own_rank(b_, facts().group()), remote);
  }

  const Stage* stage_;  ///< whose phases are emitted
  std::int64_t room_;
  tile::Program program_;
  tile::Builder b_;
  std::vector<Part> parts_;
  std::int64_t meetings_ = 0;    ///< before phases
  std::int64_t some_ = 0;        ///< blocks with a role of their own, at most
  std::int64_t first_flag_ = 0;  ///< slot of that of the first piece that is awaited
  bool meets_here_ = false;      ///< all blocks of the grid meet
  bool marks_ = false;
  bool one_each_ = false;   ///< a block for each piece
  Id slot_ = kNone;         ///< this block's in the last meeting
  Id some_blocks_ = kNone;  ///< a scalar
  Id is_some_ = kNone;      ///< whether this block is one of them
};

}  // namespace

tile::Program build_phases(std::span<const Stage> stages, const Target& target, std::int64_t room) {
  return Assembly(stages, target, room).build();
}

}  // namespace braid
