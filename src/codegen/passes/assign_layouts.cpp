// Layout assignment. Tiles that meet element by element (operands and result of a map, offsets,
// values and masks of an access, a loop's carried values, a dot's accumulator) share one layout. A
// class that holds a dot's result takes the layout of the matrix instruction; the offsets of a copy
// into shared memory take 16-byte pieces; all others are blocked rows of eight. A tile [rows, 1]
// that is reduced from a class, or broadcast into it (as a mask, too), takes that class's layout
// without its columns.

#include "codegen/passes/assign_layouts.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "braid/error.h"

namespace braid::tile {
namespace {

class Classes {
 public:
  explicit Classes(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  Id find(Id id) {
    auto at = static_cast<std::size_t>(id);
    while (parent_[at] != static_cast<Id>(at)) {
      parent_[at] = parent_[static_cast<std::size_t>(parent_[at])];
      at = static_cast<std::size_t>(parent_[at]);
    }
    return static_cast<Id>(at);
  }
  void join(Id a, Id b) { parent_[static_cast<std::size_t>(find(a))] = find(b); }

 private:
  std::vector<Id> parent_;
};

Layout accumulator_layout(const Program& p, const Inst& dot) {
  const int warps_n = p.num_warps / p.warps_m;
  if (dot.dtype != DType::kF32) {
    return Layout::mma_accumulator(dot.type.rows, dot.type.cols, p.warps_m, warps_n);
  }
  // FMA: four columns per thread, lanes 4 x 8 over each warp's part, the rest in registers.
  Layout out{dot.type.rows,
             dot.type.cols,
             {{0, 1}, {0, 2}},
             {{0, 4}, {0, 8}, {0, 16}, {1, 0}, {2, 0}},
             {}};
  int row = 4;
  int col = 32;
  for (int w = 1; w < p.num_warps; w *= 2) {
    if (row < dot.type.rows) {
      out.warp.push_back({row, 0});
      row *= 2;
    } else if (col < dot.type.cols) {
      out.warp.push_back({0, col});
      col *= 2;
    } else {
      out.warp.push_back({});
    }
  }
  for (; col < dot.type.cols; col *= 2) out.reg.push_back({0, col});
  for (; row < dot.type.rows; row *= 2) out.reg.push_back({row, 0});
  return out;
}

/// Calls body(narrow, wide) for each pair that may be a [rows, 1] tile broadcast into another.
template <class Body>
void for_each_broadcast(const Inst& inst, Id id, const Body& body) {
  switch (inst.op) {
    case Op::kMap:
      for (Id arg : inst.args) body(arg, id);
      break;
    case Op::kLoad:
      if (inst.args.size() > 2) body(inst.args[2], id);
      break;
    case Op::kStore:
    case Op::kCheckIndex:
      for (std::size_t i = 2; i < inst.args.size(); ++i) body(inst.args[i], inst.args[1]);
      break;
    case Op::kCopyToShared:
      if (inst.args[4] != kNone) body(inst.args[4], inst.args[3]);
      break;
    default:
      break;
  }
}

int layout_index(Program& p, const Layout& layout) {
  const auto it = std::find(p.layouts.begin(), p.layouts.end(), layout);
  if (it != p.layouts.end()) return static_cast<int>(it - p.layouts.begin());
  p.layouts.push_back(layout);
  return static_cast<int>(p.layouts.size()) - 1;
}

}  // namespace

void assign_layouts(Program& p) {
  Classes classes(p.insts.size());
  const auto same_shape = [&](Id a, Id b) {
    const Type& x = p.at(a).type;
    const Type& y = p.at(b).type;
    return !x.is_scalar() && x.rows == y.rows && x.cols == y.cols;
  };
  const auto join = [&](Id a, Id b) {
    if (same_shape(a, b)) classes.join(a, b);
  };
  const Id count = static_cast<Id>(p.insts.size());
  for (Id id = 0; id < count; ++id) {
    const Inst& inst = p.at(id);
    switch (inst.op) {
      case Op::kMap:
        for (Id arg : inst.args) join(arg, id);
        break;
      case Op::kLoad:
        join(inst.args[1], id);
        if (inst.args.size() > 2) join(inst.args[2], id);
        break;
      case Op::kStore:
      case Op::kCheckIndex:
        for (std::size_t i = 2; i < inst.args.size(); ++i) join(inst.args[i], inst.args[1]);
        break;
      case Op::kCopyToShared:
        if (inst.args[4] != kNone) join(inst.args[4], inst.args[3]);
        break;
      case Op::kDot:
        join(inst.args[2], id);
        break;
      case Op::kFor:
        for (std::size_t i = 1; i < inst.body_args.size(); ++i) {
          join(inst.args[i + 2], inst.body_args[i]);
          join(inst.yields[i - 1], inst.body_args[i]);
        }
        break;
      case Op::kForResult:
        join(p.at(inst.args[0]).body_args[static_cast<std::size_t>(inst.index) + 1], id);
        break;
      default:
        break;
    }
  }

  std::vector<std::optional<Layout>> layout(p.insts.size());
  const auto slot = [&](Id id) -> std::optional<Layout>& {
    return layout[static_cast<std::size_t>(classes.find(id))];
  };
  for (Id id = 0; id < count; ++id) {
    const Inst& inst = p.at(id);
    if (inst.op == Op::kDot) slot(id) = accumulator_layout(p, inst);
    if (inst.op == Op::kCopyToShared) {
      const Type& tile = p.at(inst.args[3]).type;
      const int piece = 16 / static_cast<int>(dtype_size(inst.dtype));
      slot(inst.args[3]) = Layout::blocked(tile.rows, tile.cols, piece, p.num_warps);
    }
    if (inst.op == Op::kStoreShared) {
      const Type& tile = p.at(inst.args[2]).type;
      const int piece = 16 / static_cast<int>(dtype_size(inst.dtype));
      slot(inst.args[2]) = Layout::blocked(tile.rows, tile.cols, piece, p.num_warps);
    }
  }
  // Full tiles first: what is left [rows, 1] hangs on one of them.
  for (Id id = 0; id < count; ++id) {
    const Type& type = p.at(id).type;
    if (type.is_scalar() || type.cols == 1 || slot(id)) continue;
    slot(id) = Layout::blocked(type.rows, type.cols, 8, p.num_warps);
  }
  const auto hang = [&](Id narrow, Id wide) {
    const Type& type = p.at(narrow).type;
    if (!type.is_scalar() && type.cols == 1 && p.at(wide).type.cols > 1 && !slot(narrow)) {
      slot(narrow) = slot(wide)->slice_columns();
    }
  };
  for (Id id = 0; id < count; ++id) {
    const Inst& inst = p.at(id);
    if (inst.op == Op::kReduce) hang(id, inst.args[0]);
    for_each_broadcast(inst, id, hang);
  }
  for (Id id = 0; id < count; ++id) {
    Inst& inst = p.at(id);
    if (inst.type.is_scalar()) continue;
    if (!slot(id)) slot(id) = Layout::blocked(inst.type.rows, inst.type.cols, 1, p.num_warps);
    inst.layout = layout_index(p, *slot(id));
  }
  for (Id id = 0; id < count; ++id) {
    for_each_broadcast(p.at(id), id, [&](Id narrow, Id wide) {
      const Type& type = p.at(narrow).type;
      if (type.is_scalar() || type.cols != 1 || p.at(wide).type.cols <= 1) return;
      if (*slot(narrow) != slot(wide)->slice_columns()) {
        throw_internal(
            "", "a column of " + std::to_string(type.rows) + " rows meets tiles of two layouts");
      }
    });
  }
}

}  // namespace braid::tile
