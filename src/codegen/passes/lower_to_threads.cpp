// Lowering to threads. For each instruction in a block it decides
//
// - where its values live: in registers of their own; inline, where they are computed again anyway
//   or used once by an instruction of the same block and shape; or in another's registers: a dot
//   works in its accumulator's when nothing else reads those, a loop's result lies in the carried
//   value, a store rounds by itself;
// - how wide an access is, which of the threads that hold copies make it, and how far its loop over
//   registers is unrolled;
// - a reduction: the lanes and warps to combine over, and the scratch between warps;
// - a vote of the block where something visible to peers follows packets that may be missing, so
//   that a failed run sends nothing;
// - a layout change: a permutation of registers, shuffles, or through shared memory;
// - addresses in shared memory: the layout of the instruction, composed with the swizzle.

#include "codegen/passes/lower_to_threads.h"

#include <fmt/format.h>

#include <algorithm>

#include "braid/error.h"
#include "codegen/passes/axis_info.h"
#include "codegen/passes/recomputed.h"
#include "codegen/tile/dot_layouts.h"
#include "codegen/tile/fragments.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"
#include "codegen/units.h"

namespace braid::tile {
namespace {

int log2_of(int power) {
  int bits = 0;
  while ((1 << bits) < power) ++bits;
  return bits;
}

/// The mask of the basis bits that pass a test.
template <class Test>
int bits_where(const std::vector<Coord>& basis, const Test& test) {
  int mask = 0;
  for (std::size_t i = 0; i < basis.size(); ++i) mask |= test(basis[i]) ? 1 << i : 0;
  return mask;
}

class Lowering {
 public:
  explicit Lowering(Program& p) : p_(p), axis_(p), uses_(p.insts.size()) {}

  void run() {
    count_uses(p_.body, kNone);
    const std::vector<bool> recomputed = recomputed_tiles(p_);
    for_each_inst(p_, [&](Id id) {
      if (recomputed[id]) p_.at(id).place = Place::kInline;
    });
    for_each_inst(p_, [&](Id id) { alias(id); });
    for_each_inst(p_, [&](Id id) {
      if (p_.at(id).place == Place::kRegisters && is_inlined(id)) p_.at(id).place = Place::kInline;
    });
    block(p_.body);
  }

 private:
  struct Uses {
    int count = 0;
    Id user = kNone;   ///< the last user
    Id block = kNone;  ///< the loop whose body contains it
  };
  Uses& uses(Id id) { return uses_[id]; }

  void count_uses(const std::vector<Id>& ids, Id loop) {
    for (Id id : ids) {
      uses(id).block = loop;
      const Inst& inst = p_.at(id);
      for (const auto* list : {&inst.args, &inst.yields}) {
        for (Id arg : *list) {
          if (arg == kNone) continue;
          ++uses(arg).count;
          uses(arg).user = id;
        }
      }
      count_uses(inst.body, id);
    }
  }

  void alias(Id id) {
    Inst& inst = p_.at(id);
    Id in = kNone;
    if (op_info(inst.op).multiplies && owns_accumulator(inst)) in = inst.args[2];
    if (inst.op == Op::kSettled) in = inst.args[0];
    if (inst.op == Op::kForResult) {
      in = p_.at(inst.args[0]).body_args[static_cast<std::size_t>(inst.index) + 1];
    }
    if (inst.op == Op::kMap && inst.fn == Fn::kRound && is_rounded_by_store(id)) in = inst.args[0];
    if (in == kNone) return;
    inst.place = Place::kAlias;
    inst.storage = p_.at(in).place == Place::kAlias ? p_.at(in).storage : in;
  }

  bool owns_accumulator(const Inst& dot) {
    return p_.at(dot.args[2]).place != Place::kInline && uses(dot.args[2]).count == 1 &&
           p_.at(dot.args[2]).op != Op::kForResult;
  }

  /// Whether the store can round the value itself: its registers must not change before the store.
  bool is_rounded_by_store(Id id) {
    const Inst& inst = p_.at(id);
    if (uses(id).count != 1 || inst.type.kind != Kind::kF32) return false;
    const Inst& by = p_.at(uses(id).user);
    const Inst& from = p_.at(inst.args[0]);
    // A layout change that has a scratch stores there.
    const bool moves = by.op == Op::kConvertLayout && by.shared_offset >= 0;
    return op_info(from.op).stays && from.place != Place::kInline &&
           (moves || (stores(by, id) && by.dtype == inst.dtype));
  }

  /// A map used once, by an instruction of the same block and shape that writes it once, is inlined
  /// into that one's expression: less text, and less for the compiler to unroll.
  bool is_inlined(Id id) {
    const Inst& inst = p_.at(id);
    if (inst.op != Op::kMap || uses(id).count != 1 || uses(id).user == kNone) return false;
    const Inst& by = p_.at(uses(id).user);
    if (by.place == Place::kAlias && by.op == Op::kMap) return false;
    if (uses(id).block != uses(uses(id).user).block) return false;
    const OpInfo& info = op_info(by.op);
    if (!info.inlines || info.elements < 0) return info.inlines;
    if (by.op == Op::kMap) return by.type.rows == inst.type.rows && by.type.cols == inst.type.cols;
    if (stores(by, id)) return false;
    // A mask of one column is kept, and broadcast over the columns of the access.
    const Id element = by.args[info.elements];
    return inst.type.is_scalar() || inst.type.cols == p_.at(element).type.cols;
  }

  static bool stores(const Inst& inst, Id value) {
    const int stored = op_info(inst.op).value;
    return stored >= 0 && inst.args[stored] == value;
  }

  const Layout& layout(const Inst& inst) const { return p_.layouts[inst.layout]; }
  int index_of(const Layout& layout) {
    const auto it = std::find(p_.layouts.begin(), p_.layouts.end(), layout);
    if (it != p_.layouts.end()) return static_cast<int>(it - p_.layouts.begin());
    p_.layouts.push_back(layout);
    return static_cast<int>(p_.layouts.size()) - 1;
  }

  void block(const std::vector<Id>& ids) {
    for (Id id : ids) {
      Inst& inst = p_.at(id);
      switch (inst.op) {
        case Op::kLoad:
          inst.width = width(inst, 0, 2, layout(inst));
          break;
        case Op::kStore:
          inst.width = width(inst, 0, 3, layout(inst));
          one_of_copies(inst);
          break;
        case Op::kLlStore:
          whole_packets(id);
          one_of_copies(inst);
          vote(inst);
          break;
        case Op::kLlLoad:
          whole_packets(id);
          packets_ = true;
          break;
        case Op::kMultimemReduce:
          multimem(inst, 2);
          break;
        case Op::kMultimemStore:
          multimem(inst, 3);
          one_of_copies(inst);
          break;
        case Op::kSignal:
          vote(inst);
          break;
        case Op::kCopyToShared:
          inst.width = width(inst, 2, 4, layout(inst));
          one_of_copies(inst);
          // Narrow pieces are many; unrolling them costs more compile time than it gains. Others
          // may find their rows in registers, which a loop that stays would put in local memory.
          if (layout(inst).registers() / inst.width > 8 &&
              inst.width * static_cast<int>(dtype_size(inst.dtype)) < 16) {
            inst.unroll = 4;
          }
          inst.addresses = {bytes_in_shared(inst.args[0], layout(inst))};
          break;
        case Op::kLoadShared:
        case Op::kStoreShared:
          inst.width =
              std::min(layout(inst).vector_width(), 16 / static_cast<int>(dtype_size(inst.dtype)));
          if (p_.at(inst.args[0]).type.cols < layout(inst).cols) inst.width = 1;
          if (inst.op == Op::kStoreShared) one_of_copies(inst);
          inst.addresses = {in_shared(inst.args[0], layout(inst))};
          break;
        case Op::kCastShared:
          inst.width = layout(inst).vector_width();
          one_of_copies(inst);
          inst.addresses = {in_shared(inst.args[0], layout(inst)),
                            in_shared(inst.args[2], layout(inst))};
          break;
        case Op::kReduce:
          reduce(inst);
          break;
        case Op::kConvertLayout:
          change(inst);
          break;
        case Op::kDot:
          dot(inst);
          break;
        case Op::kPushTile:
          push_tile(inst);
          break;
        case Op::kRole:
          block(inst.body);
          break;
        case Op::kFor:
          check_yields(id);
          loop(inst.body);
          break;
        default:
          break;
      }
    }
  }

  /// The body may run repeatedly, or not at all.
  void loop(const std::vector<Id>& body) {
    for_each_inst(p_, body, [&](Id id) { packets_ = packets_ || p_.at(id).op == Op::kLlLoad; });
    const bool packets = packets_;
    block(body);
    packets_ = packets;
  }

  /// Inserts a vote before anything that peers may see.
  void vote(Inst& inst) {
    inst.barrier = packets_;
    packets_ = false;
  }

  /// The elements of a packet are adjacent in registers and in the scratch.
  void whole_packets(Id id) {
    Inst& inst = p_.at(id);
    const auto refuse = [&](const std::string& what) {
      throw_invalid(fmt::format("%{} ({})", id, op_info(inst.op).name), what);
    };
    const std::int64_t alignment = axis_.pointer_alignment(inst.args[0]);
    if (alignment < kPacketBytes) {
      refuse(
          fmt::format("found a pointer aligned to {} bytes, expected {}", alignment, kPacketBytes));
    }
    inst.width = packet_elements(inst.dtype, layout(inst).cols);
    const AxisInfo offset = axis_.of(inst.args[1]);
    const std::int64_t run = std::min<std::int64_t>(
        {offset.contiguity, offset.divisibility, layout(inst).vector_width()});
    if (run < inst.width) {
      refuse(
          fmt::format("found offsets in runs of {}, expected {} of each packet", run, inst.width));
    }
  }

  int width(const Inst& inst, std::size_t pointer, std::size_t mask, const Layout& layout) {
    const Id masked = inst.args.size() > mask ? inst.args[mask] : kNone;
    return axis_.access_width(inst.args[pointer], inst.args[pointer + 1], masked, inst.dtype,
                              layout.vector_width());
  }

  /// An access is as wide as possible. It is split into elements where their masks differ, or where
  /// it has less than the unit's least bytes.
  void multimem(Inst& inst, std::size_t mask) {
    inst.width = axis_.access_width(inst.args[0], inst.args[1], kNone, inst.dtype,
                                    layout(inst).vector_width());
    const bool alike =
        inst.args.size() <= mask || axis_.of(inst.args[mask]).constancy >= inst.width;
    const int bytes = inst.width * static_cast<int>(dtype_size(inst.dtype));
    inst.whole = alike && bytes >= units::kMultimem.copies->least_bytes;
  }

  void one_of_copies(Inst& inst) {
    const auto is_copy = [](Coord c) { return c == Coord{}; };
    inst.lanes = bits_where(layout(inst).lane, is_copy);
    inst.warps = bits_where(layout(inst).warp, is_copy);
  }

  /// Carried values are written one after another, so none may overwrite what a later one reads.
  void check_yields(Id id) {
    const Inst& loop = p_.at(id);
    for (std::size_t i = 0; i < loop.yields.size(); ++i) {
      for (std::size_t j = 1; j <= i; ++j) {
        if (loop.yields[i] == loop.body_args[j]) {
          throw_invalid(fmt::format("%{} (for)", id), "yields a carried value that is overwritten");
        }
      }
    }
  }

  static LinearMap swizzle(const Inst& tile) {
    return SharedLayout::swizzled(tile.type.rows, tile.type.cols,
                                  static_cast<int>(dtype_size(tile.dtype)), tile.index)
        .to_offset;
  }
  /// Of a tile that has one element for runs of the layout's rows or columns, that of the run.
  int in_shared(Id tile, const Layout& layout) {
    const Type& shared = p_.at(tile).type;
    LinearMap at = swizzle(p_.at(tile));
    const auto repeat = [&](int extent, int of, int position) {
      at.images.insert(at.images.begin() + position, static_cast<std::size_t>(log2_of(extent / of)),
                       0U);
    };
    repeat(layout.rows, shared.rows, log2_of(shared.cols));
    repeat(layout.cols, shared.cols, 0);
    return index_of(layout.in_buffer(at, shared.rows * shared.cols));
  }
  int bytes_in_shared(Id tile, const Layout& layout) {
    const Inst& shared = p_.at(tile);
    const auto bytes = static_cast<int>(dtype_size(shared.dtype));
    LinearMap at = swizzle(shared);
    for (std::uint32_t& image : at.images) image *= static_cast<std::uint32_t>(bytes);
    return index_of(layout.in_buffer(at, shared.type.rows * shared.type.cols * bytes));
  }

  void reduce(Inst& inst) {
    const Layout from = layout(p_.at(inst.args[0]));
    const auto moves_column = [](Coord c) { return c.col != 0; };
    inst.lanes = bits_where(from.lane, moves_column);
    inst.warps = bits_where(from.warp, moves_column);
    if (inst.warps == 0) return;
    // One partial result for each row and each part of its columns, with the columns' adjacent.
    const int columns = reduction_parts(from).count();
    const Layout result = layout(inst);
    const int size = inst.type.rows * columns;
    const LinearMap by_row{[&] {
      std::vector<std::uint32_t> images;
      for (int row = 1; row < inst.type.rows; row *= 2) {
        images.push_back(static_cast<std::uint32_t>(row * columns));
      }
      return images;
    }()};
    const Layout read = result.in_buffer(by_row, size);
    Layout write = read;
    int next = 1;
    for (std::size_t i = 0; i < from.warp.size(); ++i) {
      if (from.warp[i].col == 0) continue;
      write.warp[i].col ^= next;
      next *= 2;
    }
    inst.addresses = {index_of(write), index_of(read)};
  }

  void change(Inst& inst) {
    const Layout from = layout(p_.at(inst.args[0]));
    const Layout to = layout(inst);
    const Conversion conversion = convert(from, to);
    inst.change = conversion.change;
    const auto part = [&](std::uint32_t mask, int shift, int size) {
      Layout out{1, size, {}, {}, {}};
      std::size_t at = 0;
      const auto take = [&](std::size_t count, std::vector<Coord>& basis) {
        for (std::size_t i = 0; i < count; ++i, ++at) {
          basis.push_back({0, static_cast<int>((conversion.source.images[at] & mask) >> shift)});
        }
      };
      take(to.reg.size(), out.reg);
      take(5, out.lane);
      take(to.warp.size(), out.warp);
      return out;
    };
    const int reg_bits = static_cast<int>(from.reg.size());
    const std::uint32_t registers = (std::uint32_t{1} << reg_bits) - 1;
    switch (inst.change) {
      case LayoutChange::kNone:
        break;
      case LayoutChange::kRegisters:
        inst.addresses = {index_of(part(registers, 0, from.registers()))};
        break;
      case LayoutChange::kShuffle:
        inst.addresses = {index_of(part(registers, 0, from.registers())),
                          index_of(part(std::uint32_t{31} << reg_bits, reg_bits, 32))};
        break;
      case LayoutChange::kShared: {
        const int size = inst.type.rows * inst.type.cols;
        const bool floats = inst.type.kind == Kind::kF32;
        const int bytes = floats ? static_cast<int>(dtype_size(moved_dtype(p_, inst)))
                                 : value_bytes(inst.type.kind);
        if (floats) {
          inst.width = std::min(to.vector_width(), 16 / bytes);
          inst.width_in = std::min(from.vector_width(), 16 / bytes);
        }
        const LinearMap at =
            inst.type.cols * bytes < 32
                ? LinearMap::identity(log2_of(size))
                : SharedLayout::swizzled(inst.type.rows, inst.type.cols, bytes).to_offset;
        inst.addresses = {index_of(from.in_buffer(at, size)), index_of(to.in_buffer(at, size))};
        const auto is_copy = [](Coord c) { return c == Coord{}; };
        inst.lanes = bits_where(from.lane, is_copy);
        inst.warps = bits_where(from.warp, is_copy);
        break;
      }
    }
  }

  /// The part that the shared tile holds at one time is what the first registers hold, then the
  /// next ones, ...: the addresses are those of the first.
  void push_tile(Inst& inst) {
    const Inst& shared = p_.at(inst.args[0]);
    Layout part = layout(inst);
    part.cols = shared.type.cols;
    while (!part.reg.empty() && part.reg.back().col >= part.cols) part.reg.pop_back();
    if (!part.covers_tile()) {
      throw_invalid("push_tile", fmt::format("found a tile whose registers go on past {} columns "
                                             "before others, expected them last",
                                             part.cols));
    }
    const int bytes = static_cast<int>(dtype_size(inst.dtype));
    inst.width = std::min(part.vector_width(), 16 / bytes);
    // Rows of 16 bytes, four matrices at a time: the registers of ldmatrix, the other way.
    constexpr int kWord = 1;
    inst.whole = bytes == 2 && part.reg.size() > kWord + 1 && part.reg[0] == Coord{0, 1} &&
                 part.lane[0] == Coord{0, 2} && part.lane[1] == Coord{0, 4};
    if (inst.whole) {
      const MatrixLoad rows = matrix_load(part, bytes, {kWord, kWord + 1});
      inst.addresses = {bytes_in_shared(inst.args[0], rows.rows)};
    }
    if (!inst.whole) inst.addresses = {in_shared(inst.args[0], part)};
  }

  void dot(Inst& inst) {
    const Unit& unit = *unit_of(p_, inst);
    const DotLayouts wanted = dot_layouts(p_, inst);
    inst.addresses = {-1, -1};
    const bool in_shared_memory = p_.at(inst.args[0]).type.kind == Kind::kShared &&
                                  p_.at(inst.args[1]).type.kind == Kind::kShared;
    if (!in_shared_memory && !unit.multiplies->from_registers) {
      throw_invalid("dot",
                    fmt::format("found an {} operand in registers, expected both in shared memory, "
                                "where {} reads them",
                                dtype_name(inst.dtype), unit.name));
    }
    if (unit.multiplies->reads == Multiplier::Reads::kElements) {
      inst.unroll = 2;
      inst.addresses[0] = in_shared(inst.args[0], inst.trans_a ? wanted.a.transposed() : wanted.a);
      inst.addresses[1] = in_shared(inst.args[1], inst.trans_b ? wanted.b.transposed() : wanted.b);
      return;
    }
    const int bytes = static_cast<int>(dtype_size(inst.dtype));
    const int word = log2_of(4 / bytes);
    const int steps =
        log2_of(inst.trans_a ? p_.at(inst.args[0]).type.rows : p_.at(inst.args[0]).type.cols) -
        log2_of(unit.multiplies->step(inst.dtype));
    if (steps < 0 || static_cast<int>(wanted.b.reg.size()) < word + 2 + steps) {
      throw_invalid("dot", fmt::format("found {} columns and a K of {} steps, expected 16 columns "
                                       "for each warp and whole fragments",
                                       inst.type.cols, steps));
    }
    // Each load has four matrices: the words of A's fragment; or two along K of two neighbouring
    // column fragments of B.
    const auto load = [&](std::size_t side, const Layout& operand, bool stored_transposed,
                          const std::vector<int>& matrices, bool& trans) {
      if (p_.at(inst.args[side]).type.kind != Kind::kShared) return;
      const MatrixLoad rows =
          matrix_load(stored_transposed ? operand.transposed() : operand, bytes, matrices);
      trans = rows.transposed;
      inst.addresses[side] = bytes_in_shared(inst.args[side], rows.rows);
    };
    load(0, wanted.a, inst.trans_a, {word, word + 1}, inst.trans_load_a);
    load(1, wanted.b, inst.trans_b, {word, word + 1 + steps}, inst.trans_load_b);
  }

  Program& p_;
  AxisAnalysis axis_;
  std::vector<Uses> uses_;
  bool packets_ = false;  ///< some packets may be missing without a vote since
};

}  // namespace

void lower_to_threads(Program& program) { Lowering(program).run(); }

}  // namespace braid::tile
