// The CUDA printer: one C array per tile, one loop over its registers per instruction. It decides
// nothing but spelling; layouts, widths and offsets come from the passes.

#include "codegen/cuda/print_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/error.h"
#include "codegen/cuda/preamble.h"
#include "codegen/cuda/spelling.h"
#include "codegen/cuda/text_writer.h"
#include "codegen/passes/axis_info.h"

namespace braid::tile {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : p_(program), axis_(program) { find_inlined(); }

  std::string print() {
    out_.line("");
    out_.line(fmt::format("extern \"C\" __global__ void __launch_bounds__({}, 1) {}({}) {{",
                          p_.num_warps * 32, p_.entry, signature()));
    out_.line("const int lane = threadIdx.x & 31;");
    out_.line("const int warp = threadIdx.x >> 5;");
    for (std::size_t i = 0; i < p_.layouts.size(); ++i) thread_coordinates(static_cast<int>(i));
    if (p_.communicates) {
      out_.line("Comm comm = open_comm(peers, rank, flags, step, record, timeout);");
    }
    block(p_.body);
    if (p_.communicates) out_.line("close_comm(comm);");
    out_.line("}");
    return preamble(used_, p_.world, p_.num_warps * 32) + out_.take();
  }

 private:
  /// A tile of indices or masks made from ranges and scalars alone: cheaper computed again than
  /// kept.
  bool is_index(Id id) const {
    const Inst& inst = p_.at(id);
    if (inst.type.kind == Kind::kF32) return false;
    if (inst.op == Op::kRange || (inst.op == Op::kConstant && !inst.type.is_scalar())) return true;
    if (inst.op != Op::kMap || inst.type.is_scalar() || inst.type.cols == 1) return false;
    return std::all_of(inst.args.begin(), inst.args.end(), [&](Id arg) {
      const Type& type = p_.at(arg).type;
      const bool small = type.is_scalar() || (type.cols == 1 && type.kind != Kind::kF32);
      return small || is_index(arg);
    });
  }

  /// Index tiles stand inside the expressions that use them. So does a map that is used once, by an
  /// instruction of the same block and shape that writes it once, stands inside that one's
  /// expression: less text, and less for the compiler to unroll.
  void find_inlined() {
    std::vector<int> uses(p_.insts.size(), 0);
    std::vector<Id> user(p_.insts.size(), kNone);
    std::vector<Id> block(p_.insts.size(), kNone);
    const auto enter = [&](const std::vector<Id>& ids, Id name, const auto& self) -> void {
      for (Id id : ids) {
        block[static_cast<std::size_t>(id)] = name;
        const Inst& inst = p_.at(id);
        for (const auto* list : {&inst.args, &inst.yields}) {
          for (Id arg : *list) {
            if (arg == kNone) continue;
            ++uses[static_cast<std::size_t>(arg)];
            user[static_cast<std::size_t>(arg)] = id;
          }
        }
        if (inst.op == Op::kFor) self(inst.body, id, self);
      }
    };
    enter(p_.body, kNone, enter);
    // A store rounds by itself.
    dropped_.assign(p_.insts.size(), false);
    for (std::size_t at = 0; at < p_.insts.size(); ++at) {
      const Inst& inst = p_.insts[at];
      if (inst.op != Op::kMap || inst.fn != Fn::kRound || uses[at] != 1) continue;
      const Inst& by = p_.at(user[at]);
      const Inst& from = p_.at(inst.args[0]);
      // What has an array that nobody changes before the store.
      const bool kept = from.op == Op::kMap || from.op == Op::kLoad || from.op == Op::kReduce ||
                        from.op == Op::kForResult;
      dropped_[at] = kept && inst.type.kind == Kind::kF32 &&
                     (by.op == Op::kStore || by.op == Op::kStoreShared) &&
                     by.args[2] == static_cast<Id>(at) && by.dtype == inst.dtype;
    }
    inlined_.assign(p_.insts.size(), false);
    for (std::size_t at = 0; at < p_.insts.size(); ++at) {
      const Inst& inst = p_.insts[at];
      if (inst.op == Op::kMap && is_index(static_cast<Id>(at))) inlined_[at] = true;
      if (inst.op != Op::kMap || uses[at] != 1 || user[at] == kNone) continue;
      const Inst& by = p_.at(user[at]);
      if (dropped_[static_cast<std::size_t>(user[at])]) continue;
      if (block[at] != block[static_cast<std::size_t>(user[at])]) continue;
      const Id id = static_cast<Id>(at);
      switch (by.op) {
        case Op::kMap:
          inlined_[at] = by.type.rows == inst.type.rows && by.type.cols == inst.type.cols;
          break;
        case Op::kPtrAdd:
        case Op::kReduce:
          inlined_[at] = true;
          break;
        case Op::kCheckIndex:
        case Op::kLoad:
        case Op::kStore: {
          // A mask of one column is kept, to be spread over the columns of the access.
          const bool is_value = by.op == Op::kStore && by.args[2] == id;
          inlined_[at] =
              !is_value && (inst.type.is_scalar() || inst.type.cols == p_.at(by.args[1]).type.cols);
          break;
        }
        default:
          break;
      }
    }
  }

  std::string signature() {
    std::string text;
    for (std::size_t i = 0; i < p_.params.size(); ++i) {
      const KernelParam& what = p_.params[i].what;
      if (i != 0) text += ", ";
      switch (what.kind) {
        case KernelParam::Kind::kInput:
          // In a kernel that waits, __restrict__ would allow non-coherent loads of what a peer
          // writes.
          text += p_.communicates ? fmt::format("unsigned char* p{}", i)
                                  : fmt::format("unsigned char* __restrict__ p{}", i);
          break;
        case KernelParam::Kind::kOutput:
          text += p_.communicates ? fmt::format("unsigned char* p{}", i)
                                  : fmt::format("unsigned char* __restrict__ p{}", i);
          break;
        case KernelParam::Kind::kScalar:
        case KernelParam::Kind::kOffset:
        case KernelParam::Kind::kResultOffset:
        case KernelParam::Kind::kScratch:
          text += fmt::format("long long p{}", i);
          break;
        case KernelParam::Kind::kPeers:
          used_.insert(Helper::kComm);
          // By reference, so that an index that is no constant makes no copy of it.
          text += "const __grid_constant__ Peers peers";
          break;
        case KernelParam::Kind::kRank:
          text += "int rank";
          break;
        case KernelParam::Kind::kFlags:
          text += "long long flags";
          break;
        case KernelParam::Kind::kStep:
          text += "int step";
          break;
        case KernelParam::Kind::kRecord:
          used_.insert(Helper::kRecord);
          text += "Record* record";
          break;
        case KernelParam::Kind::kClosing:
          text += fmt::format("int p{}", i);
          break;
        case KernelParam::Kind::kTimeout:
          text += "long long timeout";
          break;
      }
    }
    return text;
  }

  void thread_coordinates(int index) {
    const Layout& layout = p_.layouts[static_cast<std::size_t>(index)];
    const auto sum = [](const std::string& a, const std::string& b) {
      if (a == "0") return b;
      return b == "0" ? a : a + " + " + b;
    };
    out_.line(fmt::format(
        "const int row{} = {};", index,
        sum(field_text("lane", rows_of(layout.lane)), field_text("warp", rows_of(layout.warp)))));
    out_.line(fmt::format(
        "const int col{} = {};", index,
        sum(field_text("lane", cols_of(layout.lane)), field_text("warp", cols_of(layout.warp)))));
  }

  const Layout& layout_of(Id id) const {
    return p_.layouts[static_cast<std::size_t>(p_.at(id).layout)];
  }
  int registers(Id id) const { return layout_of(id).registers(); }

  /// The row (axis 0) or column of register `i` of a tile in this layout.
  std::string coordinate(int layout_index, int axis, std::string_view i) const {
    const Layout& layout = p_.layouts[static_cast<std::size_t>(layout_index)];
    const std::string reg = field_text(i, axis == 0 ? rows_of(layout.reg) : cols_of(layout.reg));
    const std::string base = fmt::format("{}{}", axis == 0 ? "row" : "col", layout_index);
    return reg == "0" ? base : fmt::format("({} + {})", base, reg);
  }

  /// The type of an element in memory.
  std::string_view element(DType dtype) {
    if (is_float8(dtype)) used_.insert(Helper::kFloat8);
    return memory_type(dtype);
  }

  static std::string name(Id id) { return fmt::format("v{}", id); }

  /// The array a tile lives in: a dot and a loop work in place, a store takes what is not rounded.
  Id storage(Id id) const {
    const Inst& inst = p_.at(id);
    if (dropped_[static_cast<std::size_t>(id)]) return storage(inst.args[0]);
    if (inst.op == Op::kDot) return storage(inst.args[2]);
    if (inst.op == Op::kForResult) {
      return storage(p_.at(inst.args[0]).body_args[static_cast<std::size_t>(inst.index) + 1]);
    }
    return id;
  }

  /// The text of a value for register `i` of a tile of `columns` columns.
  std::string ref(Id id, std::string_view i = "0", int columns = 0) {
    const Inst& inst = p_.at(id);
    if (inst.op == Op::kConstant) {
      if (inst.type.kind == Kind::kF32) return float_text(inst.number);
      return integer_text(inst.integer);
    }
    if (inst.op == Op::kParam) {
      const Param& param = p_.params[static_cast<std::size_t>(inst.index)];
      if (param.what.kind == KernelParam::Kind::kRank) return "(long long)rank";
      return fmt::format("p{}", inst.index);
    }
    if (inst.op == Op::kProgramId) return "(long long)blockIdx.x";
    if (inst.op == Op::kNumPrograms) return "(long long)gridDim.x";
    if (inst.op == Op::kRange) return coordinate(inst.layout, inst.index, i);
    if (inlined_[static_cast<std::size_t>(id)]) return "(" + map_text(inst, i) + ")";
    if (inst.type.is_scalar()) return name(storage(id));
    if (inst.type.cols == 1 && columns > 1) {
      // A [rows, 1] tile under a wide one: drop the register bits that only move the column.
      return fmt::format("{}[{}]", name(storage(id)),
                         field_text(i, compress(rows_of(broadcast_into_->reg))));
    }
    return fmt::format("{}[{}]", name(storage(id)), i);
  }

  void block(const std::vector<Id>& ids) {
    for (Id id : ids) instruction(id);
  }

  void instruction(Id id) {
    const Inst& inst = p_.at(id);
    switch (inst.op) {
      case Op::kParam:
      case Op::kConstant:
      case Op::kProgramId:
      case Op::kNumPrograms:
      case Op::kRange:
      case Op::kForArg:
      case Op::kForResult:
      case Op::kAllocShared:
        break;
      case Op::kMap:
        map(id);
        break;
      case Op::kPtrAdd:
        out_.line(fmt::format("unsigned char* const {} = {} + {};", name(id), ref(inst.args[0]),
                              ref(inst.args[1])));
        break;
      case Op::kPeer:
        out_.line(fmt::format("unsigned char* const {} = peers.base[{}] + {};", name(id),
                              ref(inst.args[1]), ref(inst.args[0])));
        break;
      case Op::kLoad:
        load(id);
        break;
      case Op::kStore:
        store(id);
        break;
      case Op::kCheckIndex:
        check_index(id);
        break;
      case Op::kReduce:
        reduce(id);
        break;
      case Op::kDot:
        inst.dtype == DType::kF32 ? dot_fma(id) : dot_mma(id);
        break;
      case Op::kFor:
        loop(id);
        break;
      case Op::kCopyToShared:
        copy_to_shared(id);
        break;
      case Op::kStoreShared:
        store_to_shared(id);
        break;
      case Op::kCommitGroup:
        used_.insert(Helper::kCopyAsync);
        out_.line("commit_group();");
        break;
      case Op::kWaitGroup:
        out_.line(fmt::format("wait_group<{}>();", inst.index));
        break;
      case Op::kSignal:
        out_.line(inst.args[2] == kNone
                      ? to_peers(inst, "signal") + ";"
                      : fmt::format("if ({}) {};", ref(inst.args[2]), to_peers(inst, "signal")));
        break;
      case Op::kWait:
        out_.line(fmt::format("if ({}!{}) return;",
                              inst.args[2] == kNone ? "" : ref(inst.args[2]) + " && ",
                              to_peers(inst, "wait")));
        break;
    }
  }

  /// The call for all ranks, or for one.
  std::string to_peers(const Inst& inst, std::string_view what) {
    const bool all = inst.args[1] == kNone;
    if (!all) used_.insert(Helper::kCommOne);
    return fmt::format("{}{}(comm, peers, {}{})", what, all ? "" : "_one", ref(inst.args[0]),
                       all ? "" : ", " + ref(inst.args[1]));
  }

  /// A number in the text, or a choice of two.
  bool is_literal(Id id) const {
    const Inst& inst = p_.at(id);
    const bool choice =
        inst.op == Op::kMap && inst.fn == Fn::kSelect && inlined_[static_cast<std::size_t>(id)];
    return inst.op == Op::kConstant ||
           (choice && is_literal(inst.args[1]) && is_literal(inst.args[2]));
  }

  std::string function(const Inst& inst, const std::vector<std::string>& x) {
    if (inst.fn == Fn::kRound) {
      if (inst.dtype == DType::kBool) return fmt::format("(long long)({} != 0)", x[0]);
      used_.insert(Helper::kTypes);
      return fmt::format("round_to<{}>({})", element(inst.dtype), x[0]);
    }
    if (inst.fn == Fn::kSaturate) {
      used_.insert({Helper::kTypes, Helper::kSaturate});
      return fmt::format("saturate<{}>({})", memory_type(inst.dtype), x[0]);
    }
    const bool overloaded = inst.fn == Fn::kAbs || inst.fn == Fn::kMax || inst.fn == Fn::kMin;
    if (overloaded) used_.insert(Helper::kMath);
    const bool literals =
        std::all_of(inst.args.begin(), inst.args.end(), [&](Id arg) { return is_literal(arg); });
    const auto operand = [&](std::size_t i) {
      if (i >= x.size()) return std::string();
      if (literals && inst.fn == Fn::kNeg) return "(" + x[i] + ")";  // not --2.5f
      // Nothing else would say which of the overloaded functions is meant.
      if (literals && overloaded && inst.type.kind == Kind::kI64) return "(long long)" + x[i];
      return x[i];
    };
    return fmt::format(fmt::runtime(function_format(inst.fn)), operand(0), operand(1), operand(2));
  }

  std::string map_text(const Inst& inst, std::string_view i) {
    std::vector<std::string> args;
    for (Id arg : inst.args) args.push_back(ref(arg, i, inst.type.cols));
    return function(inst, args);
  }

  void map(Id id) {
    const Inst& inst = p_.at(id);
    if (inlined_[static_cast<std::size_t>(id)] || dropped_[static_cast<std::size_t>(id)]) return;
    if (inst.type.is_scalar()) {
      out_.line(
          fmt::format("const {} {} = {};", c_type(inst.type.kind), name(id), map_text(inst, "0")));
      return;
    }
    out_.line(fmt::format("{} {}[{}];", c_type(inst.type.kind), name(id), registers(id)));
    broadcast_into_ = &layout_of(id);
    each(registers(id), 1, [&](std::string_view i) {
      return fmt::format("{}[{}] = {};", name(id), i, map_text(inst, i));
    });
  }

  /// One statement per register, or per `step` registers.
  template <class Statement>
  void each(int count, int step, const Statement& statement,
            std::string_view unroll = "#pragma unroll") {
    if (count == step) {
      out_.line(statement("0"));
      return;
    }
    out_.line(unroll);
    out_.line(fmt::format("for (int i = 0; i < {}; {})", count,
                          step == 1 ? "++i" : fmt::format("i += {}", step)));
    out_.line("  " + statement("i"));
  }

  int width_of(const Inst& inst, Id pointer, Id offset, Id mask, Id tile) {
    return axis_.access_width(pointer, offset, mask, inst.dtype, layout_of(tile).vector_width());
  }

  void load(Id id) {
    const Inst& inst = p_.at(id);
    used_.insert({Helper::kTypes, Helper::kAccess});
    const Id mask = inst.args.size() > 2 ? inst.args[2] : kNone;
    const int width = width_of(inst, inst.args[0], inst.args[1], mask, id);
    out_.line(fmt::format("{} {}[{}];", c_type(inst.type.kind), name(id), registers(id)));
    broadcast_into_ = &layout_of(id);
    each(registers(id), width, [&](std::string_view i) {
      return fmt::format("load<{}>({} + {}, (const {}*){} + {}, {});", width, name(id), i,
                         element(inst.dtype), ref(inst.args[0]), ref(inst.args[1], i),
                         mask == kNone ? "true" : ref(mask, i, inst.type.cols));
    });
  }

  /// True in the one thread of those that hold copies of an element.
  std::string first_copy(const Layout& layout) {
    const auto empty = [](Coord c) { return c == Coord{}; };
    const int lanes = bits_where(layout.lane, empty);
    const int warps = bits_where(layout.warp, empty);
    std::string text;
    if (lanes != 0) text = fmt::format("(lane & {}) == 0", lanes);
    if (warps != 0) text += fmt::format("{}(warp & {}) == 0", text.empty() ? "" : " && ", warps);
    return text;
  }

  void store(Id id) {
    const Inst& inst = p_.at(id);
    used_.insert({Helper::kTypes, Helper::kAccess});
    const Id offset = inst.args[1];
    const Id value = inst.args[2];
    const Id mask = inst.args.size() > 3 ? inst.args[3] : kNone;
    const int width = width_of(inst, inst.args[0], offset, mask, offset);
    const std::string first = first_copy(layout_of(offset));
    broadcast_into_ = &layout_of(offset);
    each(registers(offset), width, [&](std::string_view i) {
      std::string ok = first;
      if (mask != kNone) ok += (ok.empty() ? "" : " && ") + ref(mask, i, p_.at(offset).type.cols);
      return fmt::format("store<{}>(({}*){} + {}, {} + {}, {});", width, element(inst.dtype),
                         ref(inst.args[0]), ref(offset, i), name(storage(value)), i,
                         ok.empty() ? "true" : ok);
    });
  }

  void check_index(Id id) {
    const Inst& inst = p_.at(id);
    used_.insert(Helper::kBadIndex);
    const std::string extent = ref(inst.args[0]);
    const Id index = inst.args[1];
    out_.line(fmt::format("bool bad{} = false;", id));
    out_.line(fmt::format("long long index{} = 0;", id));
    broadcast_into_ = &layout_of(index);
    each(registers(index), 1, [&](std::string_view i) {
      const std::string value = ref(index, i);
      std::string mask;
      if (inst.args.size() > 2) mask = ref(inst.args[2], i, p_.at(index).type.cols) + " && ";
      return fmt::format("if ({0}({1} < 0 || {1} >= {2})) bad{3} = true, index{3} = {1};", mask,
                         value, extent, id);
    });
    out_.line(fmt::format("if (bad{0}) bad_index(record, step, {1}, index{0}, {2});", id,
                          inst.index, extent));
  }

  void reduce(Id id) {
    const Inst& inst = p_.at(id);
    const Layout& from = layout_of(inst.args[0]);
    const bool is_float = inst.type.kind == Kind::kF32;
    if (inst.fn != Fn::kAdd) used_.insert(Helper::kMath);
    const auto combine = [&](const std::string& a, const std::string& b) {
      return fmt::format(fmt::runtime(function_format(inst.fn)), a, b);
    };
    const std::string identity =
        is_float ? float_text(float_identity(inst.fn)) : integer_text(integer_identity(inst.fn));
    const std::string v = name(id);
    const int count = registers(id);
    out_.line(fmt::format("{} {}[{}];", c_type(inst.type.kind), v, count));
    each(count, 1, [&](std::string_view i) { return fmt::format("{}[{}] = {};", v, i, identity); });
    broadcast_into_ = &from;
    each(from.registers(), 1, [&](std::string_view i) {
      const std::string slot = fmt::format("{}[{}]", v, field_text(i, compress(rows_of(from.reg))));
      return fmt::format("{} = {};", slot, combine(slot, ref(inst.args[0], i)));
    });
    const auto moves_column = [](Coord c) { return c.col != 0; };
    const int lanes = bits_where(from.lane, moves_column);
    for (int bit = 1; bit < 32; bit *= 2) {
      if ((lanes & bit) == 0) continue;
      each(count, 1, [&](std::string_view i) {
        const std::string at = fmt::format("{}[{}]", v, i);
        return fmt::format(
            "{} = {};", at,
            combine(at, fmt::format("__shfl_xor_sync(0xffffffffu, {}, {})", at, bit)));
      });
    }
    const int warps = bits_where(from.warp, moves_column);
    if (warps == 0) return;
    used_.insert(Helper::kShared);
    int warp_columns = 1;
    for (Coord c : from.warp) warp_columns *= c.col != 0 ? 2 : 1;
    out_.line(fmt::format("{0}* const s{1} = ({0}*)(smem + {2});", c_type(inst.type.kind), id,
                          inst.shared_offset));
    if (loop_depth_ > 0) out_.line("__syncthreads();");
    out_.line(fmt::format("if ((lane & {}) == 0) {{", lanes));
    each(count, 1, [&](std::string_view i) {
      return fmt::format("s{}[{} * {} + {}] = {}[{}];", id, coordinate(inst.layout, 0, i),
                         warp_columns, field_text("warp", compress(cols_of(from.warp))), v, i);
    });
    out_.line("}");
    out_.line("__syncthreads();");
    each(count, 1, [&](std::string_view i) {
      return fmt::format("{}[{}] = s{}[{} * {}];", v, i, id, coordinate(inst.layout, 0, i),
                         warp_columns);
    });
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int w = 1; w < {}; ++w) {{", warp_columns));
    each(count, 1, [&](std::string_view i) {
      const std::string at = fmt::format("{}[{}]", v, i);
      return fmt::format("{} = {};", at,
                         combine(at, fmt::format("s{}[{} * {} + w]", id,
                                                 coordinate(inst.layout, 0, i), warp_columns)));
    });
    out_.line("}");
  }

  std::string shared_tile(Id id, const std::string& slot) {
    const Inst& inst = p_.at(id);
    const int bytes = inst.type.rows * inst.type.cols * static_cast<int>(dtype_size(inst.dtype));
    return fmt::format("(({}*)(smem + {} + (int){} * {}))", element(inst.dtype), inst.shared_offset,
                       slot, bytes);
  }
  std::string swizzle(Id id, const std::string& row, const std::string& col) {
    const Inst& inst = p_.at(id);
    const SharedLayout s = SharedLayout::swizzled(
        inst.type.rows, inst.type.cols, static_cast<int>(dtype_size(inst.dtype)), inst.index);
    return fmt::format("swizzle<{}, {}, {}, {}>({}, {})", s.cols, s.piece, s.per_phase, s.max_phase,
                       row, col);
  }

  void copy_to_shared(Id id) {
    const Inst& inst = p_.at(id);
    used_.insert({Helper::kTypes, Helper::kShared, Helper::kCopyAsync});
    const Id shared = inst.args[0];
    const Id offset = inst.args[3];
    const Id mask = inst.args[4];
    const Layout& layout = layout_of(offset);
    const int width = width_of(inst, inst.args[2], offset, mask, offset);
    const std::string copies = first_copy(layout);
    const int at = p_.at(offset).layout;
    broadcast_into_ = &layout;
    each(
        layout.registers(), width,
        [&](std::string_view i) {
          std::string ok = ref(inst.args[5]);
          if (mask != kNone) ok += " && " + ref(mask, i, p_.at(offset).type.cols);
          return fmt::format("{}copy_async<{}>({} + {}, (const {}*){} + {}, {});",
                             copies.empty() ? "" : fmt::format("if ({}) ", copies),
                             static_cast<std::size_t>(width) * dtype_size(inst.dtype),
                             shared_tile(shared, ref(inst.args[1])),
                             swizzle(shared, coordinate(at, 0, i), coordinate(at, 1, i)),
                             element(inst.dtype), ref(inst.args[2]), ref(offset, i), ok);
        },
        // Narrow pieces are many: unrolled they cost more to compile than they gain.
        layout.registers() / width > 8 ? "#pragma unroll 4" : "#pragma unroll");
  }

  /// A computed tile into a slot; all but the first of the threads that hold copies stay out.
  void store_to_shared(Id id) {
    const Inst& inst = p_.at(id);
    used_.insert({Helper::kTypes, Helper::kAccess, Helper::kShared});
    const Id value = inst.args[2];
    const Layout& layout = layout_of(value);
    const int at = p_.at(value).layout;
    const int width =
        std::min(layout.vector_width(), 16 / static_cast<int>(dtype_size(inst.dtype)));
    const std::string first = first_copy(layout);
    each(layout.registers(), width, [&](std::string_view i) {
      return fmt::format("store<{}>({} + {}, {} + {}, {});", width,
                         shared_tile(inst.args[0], ref(inst.args[1])),
                         swizzle(inst.args[0], coordinate(at, 0, i), coordinate(at, 1, i)),
                         name(storage(value)), i, first.empty() ? "true" : first);
    });
  }

  void dot_mma(Id id) {
    const Inst& inst = p_.at(id);
    used_.insert({Helper::kTypes, Helper::kShared, Helper::kMatrix});
    const Inst& a = p_.at(inst.args[0]);
    const int block_k = inst.trans_a ? a.type.rows : a.type.cols;
    const int warps_n = p_.num_warps / p_.warps_m;
    const int rows = inst.type.rows / p_.warps_m;
    const int cols = inst.type.cols / warps_n;
    const int tiles_m = rows / 16;
    const int tiles_n = cols / 8;
    const std::string slot = ref(inst.args[3]);
    const std::string acc = name(storage(id));
    // One fragment is two 16-byte pieces of K deep.
    const int piece = 16 / static_cast<int>(dtype_size(a.dtype));
    std::string types = fmt::format("{}{{}}", element(a.dtype));
    if (is_float8(a.dtype)) {
      used_.insert(Helper::kMatrix8);
      types += fmt::format(", {}{{}}", element(p_.at(inst.args[1]).dtype));
    }
    out_.line("{");
    out_.line(fmt::format("const auto* const a = {};", shared_tile(inst.args[0], slot)));
    out_.line(fmt::format("const auto* const b = {};", shared_tile(inst.args[1], slot)));
    out_.line(fmt::format("const int m0 = warp / {} * {};", warps_n, rows));
    out_.line(fmt::format("const int n0 = warp % {} * {};", warps_n, cols));
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int k = 0; k < {}; k += {}) {{", block_k, 2 * piece));
    out_.line(fmt::format("unsigned fa[{}][4], fb[{}][2];", tiles_m, tiles_n));
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int m = 0; m < {}; ++m)", tiles_m));
    if (inst.trans_a) {
      out_.line(fmt::format(
          "  ldmatrix_trans(fa[m], a + {});",
          swizzle(inst.args[0], "k + lane / 16 * 8 + lane % 8", "m0 + m * 16 + lane / 8 % 2 * 8")));
    } else {
      out_.line(fmt::format("  ldmatrix(fa[m], a + {});",
                            swizzle(inst.args[0], "m0 + m * 16 + lane % 16",
                                    fmt::format("k + lane / 16 * {}", piece))));
    }
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int n = 0; n < {}; n += 2)", tiles_n));
    if (inst.trans_b) {
      out_.line(fmt::format("  ldmatrix(fb[n], b + {});",
                            swizzle(inst.args[1], "n0 + n * 8 + lane / 16 * 8 + lane % 8",
                                    fmt::format("k + lane / 8 % 2 * {}", piece))));
    } else {
      out_.line(fmt::format("  ldmatrix_trans(fb[n], b + {});",
                            swizzle(inst.args[1], "k + lane % 16", "n0 + n * 8 + lane / 16 * 8")));
    }
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int m = 0; m < {}; ++m) {{", tiles_m));
    out_.line("#pragma unroll");
    out_.line(
        fmt::format("for (int n = 0; n < {}; ++n) mma({}, {} + (m * {} + n) * 4, fa[m], fb[n]);",
                    tiles_n, types, acc, tiles_n));
    out_.line("}");
    out_.line("}");
    out_.line("}");
  }

  void dot_fma(Id id) {
    const Inst& inst = p_.at(id);
    used_.insert({Helper::kTypes, Helper::kShared});
    const Inst& a = p_.at(inst.args[0]);
    const int block_k = inst.trans_a ? a.type.rows : a.type.cols;
    const Layout& layout = layout_of(id);
    int cols = 1;
    for (Coord c : layout.reg) cols *= c.col != 0 ? 2 : 1;
    const int rows = layout.registers() / cols;
    const std::string slot = ref(inst.args[3]);
    const std::string acc = name(storage(id));
    const std::string row = coordinate(inst.layout, 0, fmt::format("(m * {})", cols));
    const std::string col = coordinate(inst.layout, 1, "n");
    out_.line("{");
    out_.line(fmt::format("const float* const a = {};", shared_tile(inst.args[0], slot)));
    out_.line(fmt::format("const float* const b = {};", shared_tile(inst.args[1], slot)));
    out_.line("#pragma unroll 2");
    out_.line(fmt::format("for (int k = 0; k < {}; ++k) {{", block_k));
    out_.line(fmt::format("float fa[{}], fb[{}];", rows, cols));
    out_.line("#pragma unroll");
    out_.line(fmt::format(
        "for (int m = 0; m < {}; ++m) fa[m] = a[{}];", rows,
        inst.trans_a ? swizzle(inst.args[0], "k", row) : swizzle(inst.args[0], row, "k")));
    out_.line("#pragma unroll");
    out_.line(fmt::format(
        "for (int n = 0; n < {}; ++n) fb[n] = b[{}];", cols,
        inst.trans_b ? swizzle(inst.args[1], col, "k") : swizzle(inst.args[1], "k", col)));
    out_.line("#pragma unroll");
    out_.line(fmt::format(
        "for (int i = 0; i < {}; ++i) {}[i] = __fmaf_rn(fa[i / {}], fb[i % {}], {}[i]);",
        layout.registers(), acc, cols, cols, acc));
    out_.line("}");
    out_.line("}");
  }

  void loop(Id id) {
    const Inst& inst = p_.at(id);
    for (std::size_t i = 1; i < inst.body_args.size(); ++i) {
      const Id arg = inst.body_args[i];
      const Id initial = inst.args[i + 2];
      if (p_.at(arg).type.is_scalar()) {
        out_.line(
            fmt::format("{} {} = {};", c_type(p_.at(arg).type.kind), name(arg), ref(initial)));
        continue;
      }
      out_.line(fmt::format("{} {}[{}];", c_type(p_.at(arg).type.kind), name(arg), registers(arg)));
      each(registers(arg), 1, [&](std::string_view i) {
        return fmt::format("{}[{}] = {};", name(arg), i, ref(initial, i));
      });
    }
    const std::string at = name(inst.body_args[0]);
    out_.line(fmt::format("for (long long {0} = {1}; {0} < {2}; {0} += {3}) {{", at,
                          ref(inst.args[0]), ref(inst.args[1]), ref(inst.args[2])));
    ++loop_depth_;
    block(inst.body);
    for (std::size_t i = 1; i < inst.body_args.size(); ++i) {
      const Id arg = inst.body_args[i];
      const Id yield = inst.yields[i - 1];
      if (storage(yield) == arg) continue;
      if (p_.at(arg).type.is_scalar()) {
        out_.line(fmt::format("{} = {};", name(arg), ref(yield)));
        continue;
      }
      each(registers(arg), 1, [&](std::string_view i) {
        return fmt::format("{}[{}] = {};", name(arg), i, ref(yield, i));
      });
    }
    --loop_depth_;
    out_.line("}");
  }

  const Program& p_;
  AxisAnalysis axis_;
  TextWriter out_;
  std::set<Helper> used_;
  std::vector<bool> inlined_;
  std::vector<bool> dropped_;  ///< roundings that only a store of their type uses
  const Layout* broadcast_into_ =
      nullptr;  ///< layout of the tile whose expression is being written
  int loop_depth_ = 0;
};

}  // namespace

std::string print_cuda(const Program& program) { return Printer(program).print(); }

}  // namespace braid::tile
