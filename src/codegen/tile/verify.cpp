#include "codegen/tile/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "braid/error.h"
#include "codegen/protocol.h"
#include "codegen/tile/fragments.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/remote.h"
#include "codegen/tile/verify_multimem.h"
#include "codegen/tile/verify_packets.h"
#include "codegen/tile/verify_roles.h"
#include "codegen/tile/walk.h"

namespace braid::tile {
namespace {

bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_(program) {}

  void verify() {
    if (!is_power_of_two(p_.num_warps) || !is_power_of_two(p_.warps_m) ||
        p_.warps_m > p_.num_warps) {
      throw_invalid(p_.entry, fmt::format("found {} warps, {} of them along M, expected powers of "
                                          "two, the second within the first",
                                          p_.num_warps, p_.warps_m));
    }
    if (!is_power_of_two(p_.columns)) {
      throw_invalid(p_.entry, fmt::format("found {} columns of a thread, expected a power of two",
                                          p_.columns));
    }
    for (std::size_t i = 0; i < p_.params.size(); ++i) {
      check_param(fmt::format("param {}", i), p_.params[i].what);
    }
    block(p_.body, [] {});
    meetings_of_blocks();
    if (const Id unmet = multimem_without_meeting(p_); unmet != kNone) {
      at_ = unmet;
      fail("an access of all ranks", "a wait for all of them, without condition, before and after");
    }
    if (const auto wrong = roles_problem(p_)) {
      at_ = wrong->at;
      fail(wrong->problem.found, wrong->problem.expected);
    }
  }

 private:
  /// Every block comes to each of them, and they have no peers to tell where one is lost.
  void meetings_of_blocks() {
    std::set<Id> meetings;
    for_each_inst(p_, [&](Id id) {
      if (p_.at(id).op == Op::kMeetBlocks) meetings.insert(id);
    });
    for (const Id id : meetings) {
      at_ = id;
      if (p_.communicates) fail("a group", "a kernel without one");
      if (std::ranges::find(p_.body, id) == p_.body.end()) {
        fail("it in a loop or a role", "it outside, so that every block comes there");
      }
    }
  }

  // Throws for the instruction at hand.
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    const Inst& inst = p_.at(at_);
    const std::string_view name = inst.op == Op::kMap ? fn_name(inst.fn) : op_info(inst.op).name;
    throw_invalid(fmt::format("%{} ({})", at_, name),
                  fmt::format("found {}, expected {}", found, expected));
  }

  void layout(const Inst& inst) const {
    if (inst.layout >= static_cast<int>(p_.layouts.size())) {
      fail(fmt::format("layout {}", inst.layout), fmt::format("one below {}", p_.layouts.size()));
    }
    const Layout& layout = p_.layouts[inst.layout];
    if (layout.lane.size() != 5 || layout.warps() != p_.num_warps || !layout.covers_tile()) {
      fail(fmt::format("a layout of [{}, {}]", layout.rows, layout.cols),
           fmt::format("one that spreads it over 32 lanes and {} warps", p_.num_warps));
    }
    const bool has_result = op_info(inst.op).has_result;
    if (has_result && (layout.rows != inst.type.rows || layout.cols != inst.type.cols)) {
      fail(fmt::format("a layout of [{}, {}]", layout.rows, layout.cols),
           "one of " + type_text(inst.type));
    }
  }

  /// Checks the instructions of a block and then, while its values are in scope, calls `last`.
  template <class Last>
  void block(const std::vector<Id>& ids, const Last& last) {
    std::vector<Id> opened;
    for (Id id : ids) {
      at_ = id;
      if (id < 0 || id >= static_cast<Id>(p_.insts.size())) {
        throw_invalid(p_.entry, fmt::format("%{} is no instruction", id));
      }
      instruction(id);
      define(id, opened);
    }
    last();
    for (Id id : opened) visible_.erase(id);
  }

  void define(Id id, std::vector<Id>& opened) {
    if (!defined_.insert(id).second) fail("a second definition", "one");
    visible_.insert(id);
    opened.push_back(id);
  }

  const Type& type(Id id) const { return p_.at(id).type; }

  void expect(bool good, Id arg, std::string_view what, std::string_view expected) const {
    if (!good) {
      fail(fmt::format("{} %{} : {}", what, arg, arg == kNone ? "none" : type_text(type(arg))),
           std::string(expected));
    }
  }
  void scalar_integer(Id arg, std::string_view what) const {
    expect(arg != kNone && type(arg).is_scalar() && is_integer(type(arg).kind), arg, what,
           "an integer scalar");
  }
  void scalar_predicate(Id arg) const {
    expect(arg != kNone && type(arg).is_scalar() &&
               (type(arg).kind == Kind::kPred || is_integer(type(arg).kind)),
           arg, "the condition", "a scalar predicate or integer");
  }
  void pointer(Id arg) const {
    expect(arg != kNone && type(arg).is_scalar() && type(arg).kind == Kind::kPtr, arg,
           "the pointer", "ptr");
  }
  void offsets(Id arg) const {
    expect(arg != kNone && !type(arg).is_scalar() && is_integer(type(arg).kind), arg, "the offsets",
           "a tile of integers");
  }
  /// Whether a value broadcasts to a tile: it has the same shape, one element per row, or one.
  static bool broadcasts(const Type& x, const Type& into) {
    if (x.is_scalar()) return true;
    return x.rows == into.rows && (x.cols == into.cols || x.cols == 1);
  }
  void mask(Id arg, const Type& over) const {
    expect(type(arg).kind == Kind::kPred && broadcasts(type(arg), over), arg, "the mask",
           fmt::format("predicates over [{}, {}]", over.rows, over.cols));
  }
  void same_shape(Id arg, const Type& as, std::string_view what) const {
    expect(arg != kNone && type(arg).rows == as.rows && type(arg).cols == as.cols, arg, what,
           fmt::format("the shape [{}, {}]", as.rows, as.cols));
  }

  void instruction(Id id) {
    const Inst& inst = p_.at(id);
    const OpInfo& info = op_info(inst.op);
    const int count = static_cast<int>(inst.args.size());
    const bool is_map = inst.op == Op::kMap;
    const int least = is_map ? fn_operands(inst.fn) : info.min_args;
    const int most = is_map ? least : info.max_args;
    if (count < least || (most >= 0 && count > most)) {
      fail(fmt::format("{} operands", count),
           least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most));
    }
    for (std::size_t i = 0; i < inst.args.size(); ++i) {
      const Id arg = inst.args[i];
      if (arg == kNone && (info.may_be_none >> i & 1) != 0) continue;
      if (!visible_.contains(arg)) {
        fail(fmt::format("operand {}", arg == kNone ? "none" : fmt::format("%{}", arg)),
             "a value that is defined before it, in its own or an outer block");
      }
      const bool is_loop = p_.at(arg).op == Op::kFor;
      if (is_loop != (inst.op == Op::kForResult)) {
        fail(fmt::format("operand %{}", arg), is_loop ? "a value, not a loop" : "a loop");
      }
    }
    own_type(inst);
    operands(inst);
    if (const auto problem = packet_problem(p_, inst)) fail(problem->found, problem->expected);
    if (const auto problem = multimem_problem(p_, inst)) fail(problem->found, problem->expected);
  }

  void own_type(const Inst& inst) const {
    const Type& type = inst.type;
    if (!type.is_scalar() && (!is_power_of_two(type.rows) || !is_power_of_two(type.cols))) {
      fail(type_text(type), "extents that are powers of two");
    }
    if (inst.layout >= 0) layout(inst);
    if (inst.op == Op::kParam && inst.index >= static_cast<int>(p_.params.size())) {
      fail(fmt::format("parameter {}", inst.index), fmt::format("one below {}", p_.params.size()));
    }
  }

  void operands(const Inst& inst) {
    const auto& args = inst.args;
    switch (inst.op) {
      case Op::kRange:
        if (inst.index > 1 || inst.type.is_scalar() || !is_integer(inst.type.kind)) {
          fail(fmt::format("{} of axis {}", type_text(inst.type), inst.index),
               "a tile of integers along axis 0 or 1");
        }
        break;
      case Op::kMap:
        map(inst);
        break;
      case Op::kPtrAdd:
        pointer(args[0]);
        scalar_integer(args[1], "the offset");
        break;
      case Op::kPeer:
        scalar_integer(args[0], "the offset");
        scalar_integer(args[1], "the rank");
        break;
      case Op::kMulticast:
        scalar_integer(args[0], "the offset");
        break;
      case Op::kLoad:
      case Op::kMultimemReduce:
      case Op::kLlLoad: {
        const std::size_t masked = inst.op == Op::kLlLoad ? 3 : 2;
        pointer(args[0]);
        offsets(args[1]);
        if (inst.op == Op::kLlLoad) scalar_integer(args[2], "the rank");
        same_shape(args[1], inst.type, "the offsets");
        memory_kind(inst.type, inst.dtype);
        if (args.size() > masked) mask(args[masked], inst.type);
        break;
      }
      case Op::kLoadScalar:
        pointer(args[0]);
        scalar_integer(args[1], "the index");
        if (!inst.type.is_scalar()) fail(type_text(inst.type), "a scalar");
        memory_kind(inst.type, inst.dtype);
        if (args.size() > 2) scalar_predicate(args[2]);
        break;
      case Op::kStore:
      case Op::kLlStore:
      case Op::kMultimemStore:
        pointer(args[0]);
        offsets(args[1]);
        same_shape(args[2], type(args[1]), "the value");
        memory_kind(type(args[2]), inst.dtype);
        if (args.size() > 3) mask(args[3], type(args[1]));
        break;
      case Op::kLoadTile:
        tensor_tile(inst, inst.type);
        break;
      case Op::kStoreTile:
        tensor_tile(inst, type(args[6]));
        break;
      case Op::kCheckIndex:
        scalar_integer(args[0], "the extent");
        expect(args[1] != kNone && is_integer(type(args[1]).kind), args[1], "the index",
               "integers");
        if (args.size() > 2) mask(args[2], type(args[1]));
        break;
      case Op::kReduce:
        reduce(inst);
        break;
      case Op::kDot:
        dot(inst);
        break;
      case Op::kFor:
        loop(inst);
        break;
      case Op::kForResult:
        result(inst);
        break;
      case Op::kCopyToShared:
        shared(args[0], args[1]);
        pointer(args[2]);
        offsets(args[3]);
        same_shape(args[3], type(args[0]), "the offsets");
        if (args[4] != kNone) mask(args[4], type(args[3]));
        scalar_predicate(args[5]);
        break;
      case Op::kStoreShared:
        shared(args[0], args[1]);
        same_shape(args[2], type(args[0]), "the value");
        break;
      case Op::kLoadShared:
        shared(args[0], args[1]);
        if (inst.type.rows % type(args[0]).rows != 0 || inst.type.cols % type(args[0]).cols != 0) {
          fail(type_text(inst.type), "whole multiples of the shared tile's shape");
        }
        memory_kind(inst.type, p_.at(args[0]).dtype);
        break;
      case Op::kCastShared:
        shared(args[0], args[1]);
        shared(args[2], args[3]);
        same_shape(args[2], type(args[0]), "the tile that it casts");
        break;
      case Op::kAcquire:
      case Op::kAwait:
      case Op::kRelease:
      case Op::kPublish:
        ring(args[0], args[1]);
        if (args.size() > 2) scalar_predicate(args[2]);
        break;
      case Op::kCopyTile:
        ring(args[0], args[1]);
        panels(args[2]);
        tensor_map(args[3]);
        for (std::size_t i = 4; i < args.size(); ++i) scalar_integer(args[i], "the origin");
        dims(args[3], args.size() - 6);
        if (p_.at(args[2]).dtype != inst.dtype) {
          fail(std::string(dtype_name(inst.dtype)), std::string(dtype_name(p_.at(args[2]).dtype)));
        }
        if (p_.at(args[2]).stages != p_.at(args[0]).stages) {
          fail(fmt::format("{} slots of the tile, {} of the ring", p_.at(args[2]).stages,
                           p_.at(args[0]).stages),
               "as many");
        }
        break;
      case Op::kAsyncDot:
        async_dot(inst);
        break;
      case Op::kAllocSums:
        sums(inst);
        break;
      case Op::kDotToSums:
        dot_to_sums(inst);
        break;
      case Op::kLoadSums:
        expect(type(args[0]).kind == Kind::kSums, args[0], "the sums", "slots of sums");
        scalar_integer(args[1], "the slot");
        sums_part(inst);
        break;
      case Op::kSettled:
        if (type(args[0]) != inst.type) fail(type_text(type(args[0])), type_text(inst.type));
        break;
      case Op::kPushTile:
        panels(args[0]);
        tensor_map(args[1]);
        for (std::size_t i : {2, 3}) scalar_integer(args[i], "the origin");
        memory_kind(type(args[4]), inst.dtype);
        if (p_.at(args[0]).dtype != inst.dtype || type(args[4]).rows != type(args[0]).rows ||
            type(args[4]).cols < type(args[0]).cols) {
          fail(type_text(type(args[4])) + " through " + type_text(type(args[0])),
               "a shared tile of its dtype, of its rows and some of its columns");
        }
        break;
      case Op::kRole:
        block(inst.body, [] {});
        break;
      case Op::kConvertLayout:
        if (type(args[0]) != inst.type) fail(type_text(type(args[0])), type_text(inst.type));
        break;
      case Op::kSignal:
      case Op::kWait:
        flags(inst);
        break;
      case Op::kMark:
        mark(inst);
        break;
      default:
        break;
    }
  }

  void flags(const Inst& inst) const {
    const auto& args = inst.args;
    scalar_integer(args[0], "the slot");
    if (args[1] != kNone) scalar_integer(args[1], "the rank");
    if (args[2] != kNone) scalar_predicate(args[2]);
    if (args.size() > 3) {
      scalar_integer(args[3], "the number of slots");
      if (args[1] != kNone) fail("a rank and a number of slots", "the slots of every rank");
    }
  }

  void mark(const Inst& inst) const {
    scalar_integer(inst.args[0], "the rank");
    scalar_integer(inst.args[1], "the number");
    if (inst.index < 0 || inst.index > protocol::Mark::kMultiply) {
      fail(std::to_string(inst.index),
           fmt::format("0 to {}", static_cast<int>(protocol::Mark::kMultiply)));
    }
  }

  void tensor_tile(const Inst& inst, const Type& tile) const {
    constexpr std::string_view kNames[] = {"the pointer",    "the rows", "the columns",
                                           "the row stride", "the row",  "the column"};
    pointer(inst.args[0]);
    for (std::size_t i = 1; i < std::size(kNames); ++i) {
      scalar_integer(inst.args[i], kNames[i]);
      const Inst& value = p_.at(inst.args[i]);
      if (value.op == Op::kConstant && value.integer < 0) {
        fail(fmt::format("{} {}", kNames[i], value.integer), "at least 0");
      }
    }
    if (tile.is_scalar()) fail(type_text(tile), "a tile");
    memory_kind(tile, inst.dtype);
  }

  /// Float dtypes need f32 values, others integers.
  void memory_kind(const Type& type, DType dtype) const {
    if (is_float(dtype) != (type.kind == Kind::kF32) ||
        !(type.kind == Kind::kF32 || is_integer(type.kind))) {
      fail(fmt::format("{} as {}", type_text(type), dtype_name(dtype)),
           is_float(dtype) ? "f32 values" : "integers");
    }
  }

  void map(const Inst& inst) const {
    const auto all = [&](auto test, std::string_view expected) {
      for (Id arg : inst.args) expect(test(type(arg).kind), arg, "operand", expected);
    };
    const auto is_pred = [](Kind kind) { return kind == Kind::kPred; };
    const auto is_number = [](Kind kind) { return kind == Kind::kF32 || is_integer(kind); };
    const auto alike = [&](std::size_t first) {
      const bool floats = type(inst.args[first]).kind == Kind::kF32;
      for (std::size_t i = first; i < inst.args.size(); ++i) {
        expect((type(inst.args[i]).kind == Kind::kF32) == floats, inst.args[i], "operand",
               "floats only or integers only");
      }
    };
    Type wide;
    for (Id arg : inst.args) {
      wide.rows = std::max(wide.rows, type(arg).rows);
      wide.cols = std::max(wide.cols, type(arg).cols);
    }
    for (Id arg : inst.args) {
      expect(broadcasts(type(arg), wide), arg, "operand",
             fmt::format("a scalar, [{}, 1] or [{}, {}]", wide.rows, wide.rows, wide.cols));
    }
    if (wide.rows != inst.type.rows || wide.cols != inst.type.cols) {
      fail(type_text(inst.type),
           fmt::format("a result of the shape [{}, {}]", wide.rows, wide.cols));
    }
    bool good = true;
    switch (inst.fn) {
      case Fn::kAnd:
      case Fn::kNot:
        all(is_pred, "predicates");
        good = is_pred(inst.type.kind);
        break;
      case Fn::kLt:
      case Fn::kEq:
        all(is_number, "numbers");
        alike(0);
        good = is_pred(inst.type.kind);
        break;
      case Fn::kSelect:
        expect(is_pred(type(inst.args[0]).kind), inst.args[0], "the condition", "predicates");
        if (type(inst.args[1]).kind == Kind::kPtr) {
          for (Id arg : inst.args) expect(type(arg).is_scalar(), arg, "operand", "a scalar");
          for (std::size_t i : {1, 2}) {
            pointer(inst.args[i]);
            expect(symmetric_buffer(p_, inst.args[i]) == nullptr, inst.args[i], "operand",
                   "memory of this rank, not of a peer");
          }
          good = inst.type.kind == Kind::kPtr;
          break;
        }
        good = (inst.type.kind == Kind::kF32) == (type(inst.args[1]).kind == Kind::kF32);
        if (type(inst.args[1]).kind != Kind::kPred) alike(1);
        break;
      case Fn::kToI32:
        good = inst.type.kind == Kind::kI32;
        break;
      case Fn::kToI64:
      case Fn::kSaturate:
        good = inst.type.kind == Kind::kI64;
        break;
      case Fn::kToF32:
        good = inst.type.kind == Kind::kF32;
        break;
      case Fn::kAsF32:
        good = inst.type.kind == Kind::kF32 && type(inst.args[0]).kind != Kind::kF32;
        break;
      case Fn::kRound:
        all(is_number, "numbers");
        good = is_number(inst.type.kind);
        break;
      default:
        all(is_number, "numbers");
        alike(0);
        good = (inst.type.kind == Kind::kF32) == (type(inst.args[0]).kind == Kind::kF32);
    }
    if (!good) fail(type_text(inst.type), "a result of the function's kind");
  }

  void reduce(const Inst& inst) const {
    const Type& from = type(inst.args[0]);
    expect(!from.is_scalar(), inst.args[0], "operand", "a tile");
    constexpr Fn kReductions[] = {Fn::kAdd,     Fn::kMul, Fn::kWrapAdd,
                                  Fn::kWrapMul, Fn::kMax, Fn::kMin};
    if (std::find(std::begin(kReductions), std::end(kReductions), inst.fn) ==
        std::end(kReductions)) {
      fail(std::string(fn_name(inst.fn)), "add, mul, wrap_add, wrap_mul, max or min");
    }
    if (inst.type != Type{from.kind, from.rows, 1}) {
      fail(type_text(inst.type), type_text({from.kind, from.rows, 1}));
    }
  }

  void dot(const Inst& inst) const {
    const auto& args = inst.args;
    if (inst.type.kind != Kind::kF32 || type(args[2]) != inst.type) {
      fail(fmt::format("a x b + {} = {}", type_text(type(args[2])), type_text(inst.type)),
           "a x b + f32[M, N] = f32[M, N]");
    }
    factors(inst);
    for (std::size_t i = 3; i < args.size() && inst.op == Op::kDot; ++i) {
      scalar_integer(args[i], "the slot");
    }
  }

  /// That those of a product fit each other and args[2], to which it is added.
  void factors(const Inst& inst) const {
    const Type& a = type(inst.args[0]);
    const Type& b = type(inst.args[1]);
    const Type& sum = type(inst.args[2]);
    const int k = inst.trans_a ? a.rows : a.cols;
    const bool good = (inst.trans_a ? a.cols : a.rows) == sum.rows &&
                      (inst.trans_b ? b.rows : b.cols) == sum.cols &&
                      (inst.trans_b ? b.cols : b.rows) == k;
    if (!good) {
      fail(fmt::format("{} x {} + {}", type_text(a), type_text(b), type_text(sum)),
           "[M, K] x [K, N] + f32[M, N]");
    }
  }

  void ring(Id ring, Id step) const {
    expect(ring != kNone && type(ring).kind == Kind::kRing, ring, "the ring", "a ring");
    expect(step != kNone && type(step) == Type{Kind::kI32}, step, "the step", "an i32");
  }
  void panels(Id tile) const {
    expect(type(tile).kind == Kind::kShared, tile, "the tile", "one in shared memory");
    const Inst& shared = p_.at(tile);
    const int bytes = shared.type.cols * static_cast<int>(dtype_size(shared.dtype));
    if (shared.index != SharedLayout::kPanels || bytes < SharedLayout::kPanels ||
        shared.type.rows < 8) {
      fail(fmt::format("a shared tile {} of {} bytes in a row", type_text(shared.type), bytes),
           fmt::format("eight rows of {} bytes at least, of row_step {}", SharedLayout::kPanels,
                       SharedLayout::kPanels));
    }
  }
  void tensor_map(Id map) const {
    const Inst& inst = p_.at(map);
    if (inst.op == Op::kMap && inst.fn == Fn::kSelect) {
      tensor_map(inst.args[1]);
      return tensor_map(inst.args[2]);
    }
    const auto is_map = [&](const KernelParam& what) {
      return what.is_map() || what.kind == KernelParam::Kind::kBytes;
    };
    const bool good = inst.op == Op::kParam && is_map(p_.params[inst.index].what);
    expect(good, map, "the tensor map", "a parameter of bytes, a map, or one of two");
  }
  /// That a tile of one of several matrices says of which, by as many coordinates.
  void dims(Id map, std::size_t outer) const {
    if (p_.at(map).op == Op::kMap) {
      dims(p_.at(map).args[1], outer);
      return dims(p_.at(map).args[2], outer);
    }
    const KernelParam& what = p_.params[p_.at(map).index].what;
    if (what.is_map() && what.map.outer.size() != outer) {
      fail(fmt::format("{} outer coordinates", outer),
           fmt::format("{}, as the map has outer dims", what.map.outer.size()));
    }
  }

  /// Of a product beside the threads, whose operands are panels in shared memory; `a` may be in
  /// registers. Returns the extent along K and in which steps it is.
  std::pair<int, int> along_k(const Inst& inst, bool in_registers, Id adds) const {
    if (!in_registers) panels(inst.args[0]);
    panels(inst.args[1]);
    expect(type(adds).is_scalar() && type(adds).kind == Kind::kPred, adds, "whether it adds",
           "a scalar predicate");
    const bool is_8_bit = is_float8(inst.dtype);
    if (is_8_bit && (in_registers || inst.trans_a || !inst.trans_b)) {
      fail(fmt::format("operands of {} that do not lie along K in shared memory",
                       dtype_name(inst.dtype)),
           "a [M, K], b [N, K]");
    }
    return {inst.trans_a ? type(inst.args[0]).rows : type(inst.args[0]).cols, is_8_bit ? 32 : 16};
  }

  void async_dot(const Inst& inst) const {
    dot(inst);
    const bool in_registers = type(inst.args[0]).kind == Kind::kF32 && !inst.trans_a;
    const auto [k, step] = along_k(inst, in_registers, inst.args[4]);
    const int cols = inst.type.cols / group_grid(inst.type.rows, p_.num_warps).along_cols;
    if (dtype_size(inst.dtype) > 2 || k % step != 0 || inst.type.rows < 64 || cols < 8 ||
        cols > 256 || p_.num_warps < kWarpsOfGroup) {
      fail(fmt::format("{} of {} with K = {} by {} warps", type_text(inst.type),
                       dtype_name(inst.dtype), k, p_.num_warps),
           fmt::format("8 or 16 bits, 64 rows and 8 to 256 columns for each group of four warps, K "
                       "in steps of {}",
                       step));
    }
  }

  void sums(const Inst& inst) const {
    constexpr int kLeast = 32;
    const int columns = columns_of_sums(inst);
    if (columns < kLeast || columns > kColumnsOfSums) {
      fail(fmt::format("{} of {}", inst.stages, type_text(inst.type)),
           fmt::format("multiples of {} rows, {} to {} columns in all", kRowsOfSums, kLeast,
                       kColumnsOfSums));
    }
  }

  void sums_part(const Inst& inst) const {
    const Type& sums = type(inst.args[0]);
    const int least = kColumnsOfLoad * group_grid(sums.rows, p_.num_warps, kRowsOfSums).along_cols;
    if (inst.type.kind != Kind::kF32 || inst.type.rows != sums.rows || inst.index < 0 ||
        inst.index + inst.type.cols > sums.cols || inst.type.cols < least ||
        p_.num_warps < kWarpsOfGroup) {
      fail(fmt::format("{} from column {} of {} by {} warps", type_text(inst.type), inst.index,
                       type_text(sums), p_.num_warps),
           fmt::format("all rows and at least {} columns, by groups of four warps", least));
    }
  }

  void dot_to_sums(const Inst& inst) const {
    expect(type(inst.args[2]).kind == Kind::kSums, inst.args[2], "the sums", "slots of sums");
    for (const std::size_t i : {3, 4}) scalar_integer(inst.args[i], "the slot");
    factors(inst);
    const auto [k, step] = along_k(inst, /*in_registers=*/false, inst.args[5]);
    if (dtype_size(inst.dtype) > 2 || k % step != 0) {
      fail(fmt::format("{} with K = {}", dtype_name(inst.dtype), k),
           fmt::format("8 or 16 bits, K in steps of {}", step));
    }
  }

  void shared(Id tile, Id slot) const {
    expect(type(tile).kind == Kind::kShared, tile, "the tile", "one in shared memory");
    scalar_integer(slot, "the slot");
  }

  void loop(const Inst& inst) {
    for (std::size_t i = 0; i < 3; ++i) scalar_integer(inst.args[i], "the bound");
    const std::size_t carried = inst.args.size() - 3;
    if (inst.body_args.size() != carried + 1 || inst.yields.size() != carried) {
      fail(fmt::format("{} yields", inst.yields.size()), fmt::format("{}", carried));
    }
    const Id self = at_;
    std::vector<Id> opened;
    for (std::size_t i = 0; i <= carried; ++i) {
      if (i > 0 && type(inst.body_args[i]) != type(inst.args[i + 2])) {
        expect(false, inst.args[i + 2], "the initial value", type_text(type(inst.body_args[i])));
      }
      define(inst.body_args[i], opened);
    }
    block(inst.body, [&] {
      at_ = self;
      for (std::size_t i = 0; i < carried; ++i) {
        const Id yield = inst.yields[i];
        if (!visible_.contains(yield)) fail(fmt::format("yield %{}", yield), "a value of its body");
        expect(type(yield) == type(inst.body_args[i + 1]), yield, "the yield",
               type_text(type(inst.body_args[i + 1])));
      }
    });
    for (Id id : opened) visible_.erase(id);
  }

  void result(const Inst& inst) const {
    const Inst& loop = p_.at(inst.args[0]);
    const auto index = static_cast<std::size_t>(inst.index) + 1;
    if (index >= loop.body_args.size()) {
      fail(fmt::format("result {}", inst.index),
           fmt::format("one of {} carried values", loop.body_args.size() - 1));
    }
    if (type(loop.body_args[index]) != inst.type) {
      fail(type_text(inst.type), type_text(type(loop.body_args[index])));
    }
  }

  const Program& p_;
  Id at_ = kNone;
  std::set<Id> visible_;
  std::set<Id> defined_;
};

}  // namespace

void verify(const Program& program) { Verifier(program).verify(); }

}  // namespace braid::tile
