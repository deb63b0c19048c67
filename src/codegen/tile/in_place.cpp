#include "codegen/tile/in_place.h"

#include <algorithm>
#include <map>
#include <vector>

#include "codegen/tile/op_info.h"

namespace braid::tile {
namespace {

using ParamKind = KernelParam::Kind;

/// A load or store of an operand of the body.
struct Access {
  Id id;
  Id turn;              ///< the innermost enclosing loop, or kNone
  std::size_t order;    ///< position in program order
  std::vector<Id> way;  ///< values added to the operand's address
};
struct Accesses {
  std::vector<Access> known;
  bool others = false;
};

class Search {
 public:
  explicit Search(const Program& p) : p_(p) {
    for (const Param& param : p.params) {
      if (param.what.kind == ParamKind::kOffset) inputs_[param.what.index].others = true;
      if (param.what.kind == ParamKind::kResultOffset) outputs_[param.what.index].others = true;
      by_maps_ = by_maps_ || param.what.kind == ParamKind::kBytes || param.what.is_map();
    }
    visit(p.body, kNone);
  }

  [[nodiscard]] std::vector<InPlace> pairs() const {
    std::vector<InPlace> result;
    if (by_maps_) return result;
    for (const auto& [output, stores] : outputs_) {
      for (const auto& [input, loads] : inputs_) {
        if (fits(stores, loads)) result.push_back({output, input});
      }
    }
    return result;
  }

 private:
  void visit(const std::vector<Id>& block, Id turn) {
    for (const Id id : block) {
      const Inst& inst = p_.at(id);
      ++order_;
      if (turn != kNone) loop_of_[id] = turn;
      for (std::size_t i = 0; i < inst.args.size(); ++i) {
        if (inst.args[i] != kNone && p_.at(inst.args[i]).type.kind == Kind::kPtr) use(id, i, turn);
      }
      if (inst.op == Op::kFor) visit(inst.body, id);
    }
  }

  void use(Id id, std::size_t arg, Id turn) {
    const Inst& inst = p_.at(id);
    if (inst.op == Op::kPtrAdd) return;  // the users of the sum count
    Access access{id, turn, order_, {}};
    Id pointer = inst.args[arg];
    for (; p_.at(pointer).op == Op::kPtrAdd; pointer = p_.at(pointer).args[0]) {
      access.way.push_back(p_.at(pointer).args[1]);
    }
    if (p_.at(pointer).op != Op::kParam) return;  // an address at a peer, known by its offset
    const KernelParam& what = p_.params[p_.at(pointer).index].what;
    const bool input = what.kind == ParamKind::kInput;
    if (!input && what.kind != ParamKind::kOutput) return;
    Accesses& all = (input ? inputs_ : outputs_)[what.index];
    if (inst.op == (input ? Op::kLoad : Op::kStore) && arg == 0) {
      all.known.push_back(std::move(access));
    } else {
      all.others = true;
    }
  }

  /// Whether no two threads hold the same element.
  [[nodiscard]] bool without_copies(const Inst& inst) const {
    if (inst.layout < 0) return false;
    const Layout& layout = p_.layouts[inst.layout];
    constexpr int kLanes = 32;
    return layout.covers_tile() &&
           layout.registers() * kLanes * layout.warps() == layout.rows * layout.cols;
  }

  [[nodiscard]] bool fits(const Accesses& stores, const Accesses& loads) const {
    if (stores.others || loads.others || stores.known.size() != 1 || loads.known.empty()) {
      return false;
    }
    const Access& store = stores.known[0];
    const Inst& to = p_.at(store.id);
    if (!without_copies(to)) return false;
    return std::all_of(loads.known.begin(), loads.known.end(), [&](const Access& load) {
      const Inst& from = p_.at(load.id);
      return load.order < store.order && from.layout == to.layout &&
             dtype_size(from.dtype) == dtype_size(to.dtype) && is_for_turn_of(load, store);
    });
  }

  /// Whether the load reads what the store's turn overwrites: in that turn, or ahead of it in an
  /// earlier turn or in front of the loop (passes/prefetch.h).
  [[nodiscard]] bool is_for_turn_of(const Access& load, const Access& store) const {
    if (load.turn == store.turn && is_same_place(load, store, kNone, kNone)) return true;
    if (store.turn == kNone) return false;
    const Inst& loop = p_.at(store.turn);
    const Id position = loop.body_args[0];
    const auto around = loop_of_.find(store.turn);
    if (load.turn == (around == loop_of_.end() ? kNone : around->second)) {
      return is_same_place(load, store, loop.args[0], position) ||
             is_turns_after(loop.args[0], load, store);
    }
    return load.turn == store.turn && is_turns_after(position, load, store);
  }

  /// Whether the load reads what the store writes some turns after the one at `position`.
  [[nodiscard]] bool is_turns_after(Id position, const Access& load, const Access& store) const {
    const Inst& loop = p_.at(store.turn);
    const Id step = loop.args[2];
    const auto is_turns = [&](Id distance) {
      if (distance == step) return true;
      const Inst& inst = p_.at(distance);
      const Inst& of = p_.at(step);
      if (inst.op == Op::kConstant) {
        return of.op == Op::kConstant && of.integer > 0 && inst.integer > 0 &&
               inst.integer % of.integer == 0;
      }
      return inst.op == Op::kMap && inst.fn == Fn::kMul && inst.args[0] == step &&
             p_.at(inst.args[1]).op == Op::kConstant && p_.at(inst.args[1]).integer > 0;
    };
    for (std::size_t id = 0; id < p_.insts.size(); ++id) {
      const Inst& inst = p_.insts[id];
      if (inst.op == Op::kMap && inst.fn == Fn::kAdd && inst.args[0] == position &&
          is_turns(inst.args[1]) &&
          is_same_place(load, store, static_cast<Id>(id), loop.body_args[0])) {
        return true;
      }
    }
    return false;
  }

  /// Whether the addresses are equal when `now` is replaced by `then`.
  [[nodiscard]] bool is_same_place(const Access& load, const Access& store, Id now, Id then) const {
    const auto same = [&](Id a, Id b) { return is_same({a, now}, {b, then}, kDepth); };
    return std::equal(load.way.begin(), load.way.end(), store.way.begin(), store.way.end(), same) &&
           same(p_.at(load.id).args[1], p_.at(store.id).args[1]);
  }

  /// A value, and a replacement for its counterpart on the other side.
  struct Side {
    Id id, variable;
  };

  /// Whether two values are equal: passes duplicate instructions that layouts shared.
  [[nodiscard]] bool is_same(Side of_a, Side of_b, int depth) const {
    const auto [a, a_variable] = of_a;
    const auto [b, b_variable] = of_b;
    if (b != kNone && b == b_variable) return a == a_variable;
    if (a == b) return b_variable == kNone || !depends(a, b_variable, depth);
    if (a == kNone || b == kNone) return false;
    const Inst& x = p_.at(a);
    const Inst& y = p_.at(b);
    if (!op_info(x.op).pure || depth == 0 || x.op != y.op || x.type != y.type || x.fn != y.fn ||
        x.dtype != y.dtype || x.index != y.index || x.number != y.number ||
        x.integer != y.integer || x.args.size() != y.args.size()) {
      return false;
    }
    for (std::size_t i = 0; i < x.args.size(); ++i) {
      if (!is_same({x.args[i], a_variable}, {y.args[i], b_variable}, depth - 1)) return false;
    }
    return true;
  }
  /// Whether a value depends, or may depend, on the loop position at hand.
  [[nodiscard]] bool depends(Id value, Id position, int depth) const {
    if (value == position) return true;
    const auto loop = loop_of_.find(value);
    if (loop == loop_of_.end() || p_.at(loop->second).body_args[0] != position) return false;
    const std::vector<Id>& args = p_.at(value).args;
    return depth == 0 || std::any_of(args.begin(), args.end(),
                                     [&](Id arg) { return depends(arg, position, depth - 1); });
  }
  static constexpr int kDepth = 12;  ///< limit of nested duplicated maps; one or two occur

  const Program& p_;
  std::map<Id, Id> loop_of_;                  ///< enclosing loop of instructions
  std::map<int, Accesses> inputs_, outputs_;  ///< by index in the body
  bool by_maps_ = false;
  std::size_t order_ = 0;
};

}  // namespace

std::vector<InPlace> in_place_operands(const Program& program) { return Search(program).pairs(); }

}  // namespace braid::tile
