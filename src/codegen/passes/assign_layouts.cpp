// Layout assignment. Tiles whose elements meet (operands and result of a map; offsets, values and
// masks of an access; a loop's carried values; a dot's accumulator) form a class and share one
// layout. A class with a dot's result takes the layout of the matrix instruction. A copy into
// shared memory takes 16-byte pieces; what is made of tiles there that have one element for runs of
// rows has these rows in one thread. Packets of neighbouring threads are neighbours, so that a
// warp's are sent together. All others are blocked rows, with as many adjacent columns per thread
// as the program says, eight by default. A tile [rows, 1] that is reduced from a class, or
// broadcast into it (also as a mask), takes that class's layout sliced over columns. Tiles that are
// recomputed at each use have no layout. A column that a loop carries has the layout of the loop's
// body: it meets neither a computed column that the loop begins with nor what its result meets.
//
// Where a value is used in another layout than its own (one column under tiles of two layouts, a
// dot's operand in registers) it is converted just before: an index by recomputing it, everything
// else by `convert_layout`.

#include "codegen/passes/assign_layouts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "braid/error.h"
#include "codegen/passes/recomputed.h"
#include "codegen/tile/dot_layouts.h"
#include "codegen/tile/fragments.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"

namespace braid::tile {
namespace {

class Classes {
 public:
  explicit Classes(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  Id find(Id id) {
    auto at = static_cast<std::size_t>(id);
    while (parent_[at] != static_cast<Id>(at)) {
      parent_[at] = parent_[parent_[at]];
      at = static_cast<std::size_t>(parent_[at]);
    }
    return static_cast<Id>(at);
  }
  void join(Id a, Id b) { parent_[find(a)] = find(b); }

 private:
  std::vector<Id> parent_;
};

/// The operands that meet an instruction's elements: those of its result or, if none, of its
/// access.
std::vector<std::size_t> elementwise_operands(const Inst& inst) {
  std::vector<std::size_t> out;
  const int first = op_info(inst.op).elements;
  if (first < 0) return out;
  for (auto i = static_cast<std::size_t>(first); i < inst.args.size(); ++i) out.push_back(i);
  return out;
}

/// The shape of the elements that an instruction works on.
Type domain(const Program& p, const Inst& inst) {
  const OpInfo& info = op_info(inst.op);
  if (info.has_result || info.elements < 0) return inst.type;
  return p.at(inst.args[info.elements]).type;
}

class Assigner {
 public:
  explicit Assigner(Program& p)
      : p_(p),
        recomputed_(recomputed_tiles(p)),
        classes_(p.insts.size()),
        layout_(p.insts.size()) {}

  void run() {
    for_each_inst(p_, [&](Id id) { join_operands(id); });
    seed();
    spread_to_columns();
    for_each_inst(p_, [&](Id id) {
      give(id);
      for (Id arg : p_.at(id).body_args) give(arg);
    });
    block(p_.body);
  }

 private:
  bool has_class(Id id) const { return id != kNone && !recomputed_[id] && !is_apart(id); }
  /// Whether its elements are in no registers.
  [[nodiscard]] bool is_apart(Id id) const {
    const Kind kind = p_.at(id).type.kind;
    return kind == Kind::kShared || kind == Kind::kSums;
  }
  void join(Id a, Id b) {
    if (!has_class(a) || !has_class(b)) return;
    const Type x = domain(p_, p_.at(a));
    const Type y = domain(p_, p_.at(b));
    if (!x.is_scalar() && x.rows == y.rows && x.cols == y.cols) classes_.join(a, b);
  }

  /// What a loop carries for one of its results.
  [[nodiscard]] Id carried_of(const Inst& result) const {
    return p_.at(result.args[0]).body_args[static_cast<std::size_t>(result.index) + 1];
  }

  /// Whether what a loop begins with is converted once, so that the loop keeps its own layout.
  bool is_computed_column(Id start) const {
    return p_.at(start).type.cols == 1 && p_.at(start).op != Op::kConstant;
  }

  void join_operands(Id id) {
    const Inst& inst = p_.at(id);
    for (std::size_t i : elementwise_operands(inst)) join(inst.args[i], id);
    if (inst.op == Op::kFor) {
      for (std::size_t i = 1; i < inst.body_args.size(); ++i) {
        if (!is_computed_column(inst.args[i + 2])) join(inst.args[i + 2], inst.body_args[i]);
        join(inst.yields[i - 1], inst.body_args[i]);
      }
    }
    if (inst.op == Op::kForResult && inst.type.cols > 1) join(carried_of(inst), id);
  }

  std::optional<Layout>& slot(Id id) { return layout_[classes_.find(id)]; }

  /// Sets the layouts that instructions demand, then blocked rows for all other wide tiles.
  void seed() {
    for_each_inst(p_, [&](Id id) {
      const Inst& inst = p_.at(id);
      if (op_info(inst.op).multiplies) {
        const Layout wanted = dot_layouts(p_, inst).accumulator;
        if (slot(id) && *slot(id) != wanted) {
          throw_invalid("dot", "two dots of different kinds accumulate into one tile");
        }
        slot(id) = wanted;
      } else if (inst.op == Op::kLoadSums) {
        slot(id) = sums_layout(inst.type.rows, inst.type.cols, p_.num_warps);
      }
    });
    // What a product beside the threads takes from registers is made where it takes it.
    for_each_inst(p_, [&](Id id) {
      const Inst& inst = p_.at(id);
      if (inst.op != Op::kAsyncDot || !has_class(inst.args[0]) || slot(inst.args[0])) return;
      slot(inst.args[0]) = dot_layouts(p_, inst).a;
    });
    // A thread has the rows that are made of one element.
    std::map<Id, int> runs;  // by class
    for_each_inst(p_, [&](Id id) {
      const Inst& inst = p_.at(id);
      if (inst.op != Op::kLoadShared) return;
      const int run = inst.type.rows / p_.at(inst.args[0]).type.rows;
      const auto [known, is_new] = runs.try_emplace(classes_.find(id), run);
      if (!is_new) known->second = std::min(known->second, run);
    });
    for_each_inst(p_, [&](Id id) {
      const Inst& inst = p_.at(id);
      const bool packet = op_info(inst.op).packets;
      if (slot(id) || (!packet && !op_info(inst.op).fills_shared)) return;
      const Type over = domain(p_, inst);
      const int piece = packet ? packet_elements(inst.dtype, over.cols)
                               : 16 / static_cast<int>(dtype_size(inst.dtype));
      const auto run = runs.find(classes_.find(id));
      slot(id) = Layout::blocked(over.rows, over.cols, piece, p_.num_warps,
                                 run == runs.end() ? 1 : run->second);
    });
    const auto wide = [&](Id id) {
      const Type over = domain(p_, p_.at(id));
      if (over.is_scalar() || over.cols == 1 || slot(id) || !has_class(id)) return;
      slot(id) = Layout::blocked(over.rows, over.cols, p_.columns, p_.num_warps);
    };
    for_each_inst(p_, [&](Id id) {
      wide(id);
      for (Id arg : p_.at(id).body_args) wide(arg);
    });
  }

  /// Calls body(leaf) for each column with registers that an operand is computed from.
  template <class Body>
  void for_each_column(Id value, const Body& body) {
    if (value == kNone || p_.at(value).type.is_scalar()) return;
    if (recomputed_[value]) {
      for (Id arg : p_.at(value).args) for_each_column(arg, body);
    } else if (p_.at(value).type.cols == 1) {
      body(value);
    }
  }

  void spread_to_columns() {
    const auto hang = [&](Id narrow, Id wide) {
      if (domain(p_, p_.at(wide)).cols > 1 && !slot(narrow))
        slot(narrow) = slot(wide)->slice_columns();
    };
    for_each_inst(p_, [&](Id id) {
      const Inst& inst = p_.at(id);
      if (recomputed_[id]) return;
      if (inst.op == Op::kReduce && has_class(inst.args[0])) hang(id, inst.args[0]);
      for (std::size_t i : elementwise_operands(inst)) {
        for_each_column(inst.args[i], [&](Id column) { hang(column, id); });
      }
    });
  }

  int index_of(const Layout& layout) {
    const auto it = std::find(p_.layouts.begin(), p_.layouts.end(), layout);
    if (it != p_.layouts.end()) return static_cast<int>(it - p_.layouts.begin());
    p_.layouts.push_back(layout);
    return static_cast<int>(p_.layouts.size()) - 1;
  }

  void give(Id id) {
    Inst& inst = p_.at(id);
    const Type over = domain(p_, inst);
    if (over.is_scalar() || !has_class(id)) return;
    const Id owner = inst.op == Op::kForResult ? carried_of(inst) : id;
    if (!slot(owner)) slot(owner) = Layout::blocked(over.rows, over.cols, 1, p_.num_warps);
    inst.layout = index_of(*slot(owner));
  }

  /// The value as an operand in this layout: itself, or a conversion of it.
  Id in_layout(Id value, const Layout& wide) {
    if (value == kNone) return value;
    const Inst inst = p_.at(value);
    if (inst.type.is_scalar() || is_apart(value)) return value;
    if (is_recomputed(value)) {
      std::vector<Id> args = inst.args;
      for (Id& arg : args) arg = in_layout(arg, wide);
      return args == inst.args ? value : again(inst, std::move(args), -1);
    }
    const Layout wanted = inst.type.cols == 1 && wide.cols > 1 ? wide.slice_columns() : wide;
    if (p_.layouts[inst.layout] == wanted) return value;
    if (const auto known = converted_.find({value, index_of(wanted)}); known != converted_.end()) {
      return known->second;
    }
    Id out = kNone;
    if (is_index(value)) {
      std::vector<Id> args = inst.args;
      for (Id& arg : args) arg = in_layout(arg, wanted);
      out = again(inst, std::move(args), index_of(wanted));
    } else {
      Inst convert{.op = Op::kConvertLayout, .type = inst.type, .args = {value}};
      convert.layout = index_of(wanted);
      out = insert(std::move(convert));
    }
    converted_[{value, index_of(wanted)}] = out;
    return out;
  }

  bool is_recomputed(Id id) const {
    const auto at = static_cast<std::size_t>(id);
    return at < recomputed_.size() && recomputed_[at];
  }
  /// Whether it is a map over scalars and recomputed values.
  bool is_index(Id id) const {
    const Inst& inst = p_.at(id);
    return inst.op == Op::kMap && inst.type.kind != Kind::kF32 &&
           std::all_of(inst.args.begin(), inst.args.end(), [&](Id arg) {
             return p_.at(arg).type.is_scalar() || is_recomputed(arg) || is_index(arg);
           });
  }

  Id again(Inst inst, std::vector<Id> args, int layout) {
    const bool inlined = layout < 0;
    inst.args = std::move(args);
    inst.layout = layout;
    const Id id = insert(std::move(inst));
    if (inlined) {
      recomputed_.resize(p_.insts.size(), false);
      recomputed_[id] = true;
    }
    return id;
  }

  Id insert(Inst inst) {
    p_.insts.push_back(std::move(inst));
    const Id id = static_cast<Id>(p_.insts.size()) - 1;
    out_->push_back(id);
    return id;
  }

  /// Rewrites the block, with conversions in front of the instructions that need them.
  void block(std::vector<Id>& ids) {
    std::vector<Id> out;
    std::vector<Id>* const outer = std::exchange(out_, &out);
    const auto known = converted_;
    for (Id id : ids) {
      convert_operands(id);
      if (p_.at(id).op == Op::kReduce) slice_first(id);
      out.push_back(id);
      if (!p_.at(id).body.empty()) {
        std::vector<Id> body = std::move(p_.at(id).body);
        block(body);
        p_.at(id).body = std::move(body);
      }
    }
    ids = std::move(out);
    converted_ = known;
    out_ = outer;
  }

  /// A reduction leaves rows where they were. Where others want another layout, a conversion
  /// follows and replaces it.
  void slice_first(Id id) {
    const Inst reduce = p_.at(id);
    const Layout from = p_.layouts[p_.at(reduce.args[0]).layout];
    const int natural = index_of(from.slice_columns());
    if (natural == reduce.layout) return;
    Inst first = reduce;
    first.layout = natural;
    Inst convert{.op = Op::kConvertLayout, .type = reduce.type, .args = {insert(std::move(first))}};
    convert.layout = reduce.layout;
    p_.at(id) = std::move(convert);
  }

  void convert_operands(Id id) {
    if (is_recomputed(id)) return;
    const Inst inst = p_.at(id);
    std::vector<Id> args = inst.args;
    if (op_info(inst.op).multiplies) {
      const DotLayouts wanted = dot_layouts(p_, inst);
      if (p_.at(args[0]).type.kind != Kind::kShared) args[0] = in_layout(args[0], wanted.a);
      if (p_.at(args[1]).type.kind != Kind::kShared) args[1] = in_layout(args[1], wanted.b);
    }
    if (inst.layout >= 0) {
      const Layout own = p_.layouts[inst.layout];
      for (std::size_t i : elementwise_operands(inst)) args[i] = in_layout(args[i], own);
    }
    if (inst.op == Op::kFor) {
      for (std::size_t i = 1; i < inst.body_args.size(); ++i) {
        const int layout = p_.at(inst.body_args[i]).layout;
        if (layout < 0 || !is_computed_column(args[i + 2])) continue;
        args[i + 2] = in_layout(args[i + 2], Layout(p_.layouts[layout]));
      }
    }
    p_.at(id).args = std::move(args);
  }

  Program& p_;
  std::vector<bool> recomputed_;
  Classes classes_;
  std::vector<std::optional<Layout>> layout_;
  std::map<std::pair<Id, int>, Id> converted_;  ///< in this block and enclosing ones
  std::vector<Id>* out_ = nullptr;
};

}  // namespace

void assign_layouts(Program& program) { Assigner(program).run(); }

}  // namespace braid::tile
