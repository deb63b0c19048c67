// Rules of kernels whose warps have roles.
//
// - Roles are the last instructions of the program, and together whole groups of four warps, each
//   of which has one number of registers. The first computes; each of the others is one thread, so
//   it has neither tiles nor barriers of the block.
// - A ring is filled by one role and read by another. The bytes that `acquire` expects are those of
//   the copies that follow it for the same step: else its mbarrier never completes.
// - One role multiplies into the memory of a unit, beside the one that fills the rings of operands.
// - All roles together have at most the registers that the block has from its launch on, else some
//   would wait for more for ever; a thread gives some back, or takes more, in steps of 8.
// - Nothing but the next product takes sums that are under way.

#include "codegen/tile/verify_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/tile/fragments.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"

namespace braid::tile {
namespace {

class Roles {
 public:
  explicit Roles(const Program& program) : p_(program) {}

  std::optional<PlacedProblem> check() {
    find_under_way();
    std::size_t role = 0;
    for (const Id id : p_.body) {
      const Inst& inst = p_.at(id);
      if (inst.op != Op::kRole) {
        if (role > 0) fail(id, "an instruction behind a role", "roles alone there");
        for_each_inst(p_, {id}, [&](Id inner) { outside(inner); });
        continue;
      }
      shape(id, role);
      for_each_inst(p_, inst.body,
                    [&](Id inner) { role == 0 ? in_first(inner) : in_other(inner, role); });
      for_each_block(inst.body, [&](const std::vector<Id>& block) { bytes(block); });
      ++role;
    }
    if (role > 0 && warps_ % kWarpsOfGroup != 0) {
      fail(p_.body.back(), fmt::format("{} warps of all roles", warps_), "groups of four");
    }
    const int threads = 32 * warps_;
    const int pool = role == 0 ? 0 : registers_at_launch(threads) * threads;
    if (registers_ > pool) {
      fail(p_.body.back(), fmt::format("{} registers of all roles", registers_),
           fmt::format("at most {}", pool));
    }
    for_each_inst(p_, [&](Id id) { uses(id); });
    columns();
    return problem_;
  }

 private:
  void fail(Id at, std::string found, std::string expected) {
    if (!problem_) problem_ = {at, {std::move(found), std::move(expected)}};
  }

  template <class Body>
  void for_each_block(const std::vector<Id>& block, const Body& body) {
    body(block);
    for (const Id id : block) {
      if (!p_.at(id).body.empty()) for_each_block(p_.at(id).body, body);
    }
  }

  /// That tensor memory has room for all sums.
  void columns() {
    int all = 0;
    for_each_inst(p_, [&](Id id) {
      if (p_.at(id).op == Op::kAllocSums) all += columns_of_sums(p_.at(id));
      if (all > kColumnsOfSums) {
        fail(id, fmt::format("{} columns of sums in all", all),
             fmt::format("at most {}", kColumnsOfSums));
      }
    });
  }

  void shape(Id id, std::size_t role) {
    const Inst& inst = p_.at(id);
    if (role == 0 && (inst.warps % kWarpsOfGroup != 0 || inst.warps != p_.num_warps)) {
      fail(id, fmt::format("{} warps", inst.warps),
           fmt::format("the {} that compute, in groups of four", p_.num_warps));
    }
    if (inst.warps < 1) fail(id, "no warps", "one at least");
    if (warps_ % kWarpsOfGroup != 0 && inst.index != registers_of_group_) {
      fail(id, fmt::format("{} registers", inst.index),
           fmt::format("{}, as others of its four warps have", registers_of_group_));
    }
    warps_ += inst.warps;
    registers_of_group_ = inst.index;
    constexpr int kLeast = 24, kMost = 240, kStep = 8;
    if (inst.index != 0 && (inst.index < kLeast || inst.index > kMost || inst.index % kStep != 0)) {
      fail(id, fmt::format("{} registers", inst.index),
           fmt::format("{} to {}, a multiple of {}", kLeast, kMost, kStep));
    }
    registers_ += inst.warps * 32 * inst.index;
  }

  void outside(Id id) {
    const OpInfo& info = op_info(p_.at(id).op);
    if (info.in_role || p_.at(id).op == Op::kRole) {
      fail(id, "it outside of a role",
           p_.at(id).op == Op::kRole ? "a role in the kernel's own body" : "a role around it");
    }
  }

  void in_first(Id id) {
    const Inst& inst = p_.at(id);
    if (inst.op == Op::kRole) fail(id, "a role in another", "one in the kernel's own body");
    if (fills(inst.op) || inst.op == Op::kDotToSums) {
      fail(id, "it in the first role, which reads", "another role");
    }
    if (reads(inst.op)) read_by(id, 0);
  }

  static bool fills(Op op) {
    return op == Op::kAcquire || op == Op::kCopyTile || op == Op::kPublish;
  }
  static bool reads(Op op) { return op == Op::kAwait || op == Op::kRelease; }
  void read_by(Id id, std::size_t role) {
    const Id ring = p_.at(id).args[0];
    if (reader_.try_emplace(ring, role).first->second != role) {
      fail(id, fmt::format("two roles that read %{}", ring), "one");
    }
  }

  void in_other(Id id, std::size_t role) {
    const Inst& inst = p_.at(id);
    const bool moves = fills(inst.op) || reads(inst.op);
    const bool multiplies = inst.op == Op::kDotToSums;
    const bool scalar =
        inst.type.is_scalar() && inst.type.kind != Kind::kShared && op_info(inst.op).pure;
    const bool loop = inst.op == Op::kFor || inst.op == Op::kForResult;
    const bool waits = inst.op == Op::kWait && inst.args[1] != kNone;
    if (!moves && !multiplies && !scalar && !loop && !waits && inst.op != Op::kLoadScalar) {
      fail(id, "it in a role of one thread",
           "scalars, loops, dot_to_sums, waits for one rank, and what fills and reads rings");
    }
    if (fills(inst.op) && filler_.try_emplace(inst.args[0], role).first->second != role) {
      fail(id, fmt::format("two roles that fill %{}", inst.args[0]), "one");
    }
    if (reads(inst.op)) read_by(id, role);
    if (multiplies) {
      if (multiplier_ == 0) multiplier_ = role;
      if (multiplier_ != role) fail(id, "two roles that multiply", "one");
    }
  }

  int bytes_of(const Inst& copy) const {
    const Inst& shared = p_.at(copy.args[2]);
    return shared.type.rows * shared.type.cols * static_cast<int>(dtype_size(shared.dtype));
  }

  void bytes(const std::vector<Id>& block) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      const Inst& acquire = p_.at(block[i]);
      if (acquire.op != Op::kAcquire) continue;
      int copied = 0;
      for (std::size_t j = i + 1; j < block.size() && p_.at(block[j]).op != Op::kAcquire; ++j) {
        const Inst& copy = p_.at(block[j]);
        if (copy.op != Op::kCopyTile) continue;
        if (copy.args[0] != acquire.args[0] || copy.args[1] != acquire.args[1]) {
          fail(block[j], "another ring or step than that of the `acquire` before it", "the same");
        }
        copied += bytes_of(copy);
      }
      if (copied != acquire.index) {
        fail(block[i], fmt::format("{} bytes, and copies of {}", acquire.index, copied), "as many");
      }
    }
  }

  /// Sums that are under way: results of products, and what loops make of them.
  void find_under_way() {
    for (bool more = true; more;) {
      const std::size_t before = under_way_.size();
      for_each_inst(p_, [&](Id id) {
        const Inst& inst = p_.at(id);
        if (inst.op == Op::kAsyncDot) under_way_.insert(id);
        for (std::size_t i = 0; i < inst.yields.size(); ++i) {
          const Id carried = inst.body_args[i + 1];
          if (under_way_.contains(inst.yields[i]) || under_way_.contains(inst.args[i + 3])) {
            under_way_.insert(carried);
          }
        }
        if (inst.op == Op::kForResult) {
          const Id carried =
              p_.at(inst.args[0]).body_args[static_cast<std::size_t>(inst.index) + 1];
          if (under_way_.contains(carried)) under_way_.insert(id);
        }
      });
      more = under_way_.size() != before;
    }
  }

  void uses(Id id) {
    const Inst& inst = p_.at(id);
    for (std::size_t i = 0; i < inst.args.size(); ++i) {
      const Id arg = inst.args[i];
      if (arg == kNone) continue;
      constexpr std::size_t kFirstCarried = 3;
      const bool begins = inst.op == Op::kFor && i >= kFirstCarried &&
                          under_way_.contains(inst.body_args[i - kFirstCarried + 1]);
      const bool takes = begins || inst.op == Op::kSettled || (inst.op == Op::kAsyncDot && i == 2);
      if (under_way_.contains(arg) && !takes) {
        fail(id, fmt::format("operand %{}, a product that is under way", arg), "settled of it");
      }
      const bool fills = inst.op == Op::kAsyncDot && i == 2;
      if (p_.at(arg).op == Op::kUndefined && !begins && !fills) {
        fail(id, fmt::format("operand %{}, which is undefined", arg),
             "it as the initial value of products");
      }
    }
  }

  const Program& p_;
  std::optional<PlacedProblem> problem_;
  std::set<Id> under_way_;
  std::map<Id, std::size_t> filler_, reader_;
  std::size_t multiplier_ = 0;  ///< the role; 0: none
  int registers_ = 0;
  int warps_ = 0;               ///< of the roles so far
  int registers_of_group_ = 0;  ///< of the last of them
};

}  // namespace

std::optional<PlacedProblem> roles_problem(const Program& program) {
  return Roles(program).check();
}

}  // namespace braid::tile
