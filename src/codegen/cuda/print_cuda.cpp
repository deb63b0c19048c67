#include "codegen/cuda/print_cuda.h"

#include <fmt/format.h>

#include <algorithm>

#include "braid/error.h"
#include "codegen/cuda/printer.h"
#include "codegen/tile/interval.h"
#include "codegen/tile/op_info.h"

namespace braid::tile {

namespace {

/// Integers up to which a float can be made of bits, and their sums with others like them.
constexpr std::int64_t kSmall = 1 << 22;

}  // namespace

std::string Printer::print() {
  out_.indent();
  const auto role = std::ranges::find(p_.body, Op::kRole, [&](Id id) { return p_.at(id).op; });
  if (p_.communicates && role != p_.body.end()) preamble_.meet_by_role(32 * p_.at(*role).warps);
  block(p_.body);
  // The epoch is updated next, so all threads must have read it.
  if (packets_) {
    vote();
  } else if (p_.communicates && !always_meets()) {
    meet();
  }
  const std::string body = out_.take();
  TextWriter kernel;
  kernel.line("");
  kernel.line(fmt::format("extern \"C\" __global__ void __launch_bounds__({}, 1) {}({}) {{",
                          block_threads(p_), p_.entry, signature()));
  kernel.raw(thread_variables(body));
  if (p_.communicates) {
    kernel.line("Comm comm = open_comm(peers, rank, flags, step, record, timeout);");
    if (packets_) {
      kernel.line("open_packets(comm);");
      kernel.line("bool lost = false;");
    }
  }
  if (marks_) kernel.line("unsigned marked = 0;");
  kernel.raw(body);
  if (p_.communicates) kernel.line("close_comm(comm);");
  kernel.line("}");
  return preamble_.text() + kernel.take();
}

/// Whether every block passes a barrier, whatever the conditions.
bool Printer::always_meets() const {
  return std::any_of(p_.body.begin(), p_.body.end(), [this](Id id) {
    const Inst& inst = p_.at(id);
    if (inst.op == Op::kRole) return true;  // in front of roles
    const OpInfo& info = op_info(inst.op);
    return info.needs_all_warps && info.condition >= 0 && inst.args[info.condition] == kNone;
  });
}

std::string Printer::signature() {
  // What a peer, or another block, writes between two phases must be read again.
  const bool shares = p_.communicates || std::ranges::any_of(p_.params, [](const Param& param) {
                        return param.what.kind == KernelParam::Kind::kCounter;
                      });
  std::string text;
  for (std::size_t i = 0; i < p_.params.size(); ++i) {
    const KernelParam& what = p_.params[i].what;
    if (i != 0) text += ", ";
    switch (what.kind) {
      case KernelParam::Kind::kInput:
      case KernelParam::Kind::kOutput:
        // In a kernel that waits, __restrict__ would allow non-coherent loads of a peer's data.
        text += shares || p_.in_place ? fmt::format("unsigned char* p{}", i)
                                      : fmt::format("unsigned char* __restrict__ p{}", i);
        break;
      case KernelParam::Kind::kScalar:
      case KernelParam::Kind::kOffset:
      case KernelParam::Kind::kResultOffset:
      case KernelParam::Kind::kScratch:
        text += fmt::format("long long p{}", i);
        break;
      case KernelParam::Kind::kPeers:
        preamble_.comm(p_.world, p_.num_warps * 32);
        // By reference, so that indexing by a variable makes no copy.
        text += "const __grid_constant__ Peers peers";
        break;
      case KernelParam::Kind::kMulticast:
        text += "unsigned char* multicast";
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
        preamble_.record();
        text += "Record* record";
        break;
      case KernelParam::Kind::kClosing:
        text += fmt::format("int p{}", i);
        break;
      case KernelParam::Kind::kTimeout:
        text += "long long timeout";
        break;
      case KernelParam::Kind::kMarks:
        preamble_.marks();
        text += "Mark* marks";
        break;
      case KernelParam::Kind::kCounter:
        text += "unsigned* counter";
        break;
      case KernelParam::Kind::kInputMap:
      case KernelParam::Kind::kOutputMap:
        text += fmt::format("const __grid_constant__ {} p{}",
                            preamble_.bytes(kMapBytes, kMapAlignment), i);
        break;
      case KernelParam::Kind::kBytes:
        // By reference: instructions take its address.
        text += fmt::format("const __grid_constant__ {} p{}",
                            preamble_.bytes(what.size, what.alignment), i);
        break;
    }
  }
  return text;
}

/// Declares the lane, the warp and the values that layouts derive from them, if the text uses them.
std::string Printer::thread_variables(std::string_view body) {
  std::string lines;
  for (const auto& [index, axis] : bases_) {
    const Layout& of = layout(index);
    const auto part = [axis = axis](const std::vector<Coord>& basis) {
      return axis == 0 ? rows_of(basis) : cols_of(basis);
    };
    lines += fmt::format("  const int {} = {};\n", base(axis, index),
                         position_text({{"lane", part(of.lane)}, {"warp", part(of.warp)}}));
  }
  std::string out;
  const auto uses = [&](std::string_view word) {
    return lines.find(word) != std::string::npos || body.find(word) != std::string_view::npos;
  };
  if (uses("shared +")) out += "  const unsigned shared = shared_address(smem);\n";
  if (uses("lane ")) out += "  const int lane = threadIdx.x & 31;\n";
  if (uses("warp ")) out += "  const int warp = threadIdx.x >> 5;\n";
  return out + lines;
}

std::string Printer::base(int axis, int layout) {
  bases_.emplace(layout, axis);
  constexpr std::string_view kNames[] = {"row", "col", "at"};
  return fmt::format("{}{}", kNames[axis], layout);
}

std::string Printer::coordinate(int axis, Element at) {
  const Layout& of = layout(at.layout);
  const auto part = [&](const std::vector<Coord>& basis) {
    return axis == 0 ? rows_of(basis) : cols_of(basis);
  };
  const std::uint32_t bits = reached(part(of.lane)) | reached(part(of.warp));
  const std::string text =
      position_text(bits == 0 ? "" : base(axis, at.layout), bits, {{at.reg, part(of.reg)}});
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

std::string Printer::offset(int layout_index, const std::vector<Term>& terms) {
  const Layout& of = layout(layout_index);
  const std::uint32_t bits = reached(cols_of(of.lane)) | reached(cols_of(of.warp));
  const std::string text = position_text(bits == 0 ? "" : base(2, layout_index), bits, terms);
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

std::string Printer::offset(int layout_index, std::string_view reg) {
  return offset(layout_index, {{reg, cols_of(layout(layout_index).reg)}});
}

std::string Printer::ref(Id id, Element at) {
  const Inst& inst = p_.at(id);
  switch (inst.op) {
    case Op::kConstant:
      return inst.type.kind == Kind::kF32 ? float_text(inst.number) : integer_text(inst.integer);
    case Op::kParam: {
      const KernelParam& what = p_.params[inst.index].what;
      const KernelParam::Kind kind = what.kind;
      if (kind == KernelParam::Kind::kBytes || what.is_map()) {
        return fmt::format("((unsigned char*)p{}.bytes)", inst.index);
      }
      return kind == KernelParam::Kind::kRank ? "(long long)rank" : fmt::format("p{}", inst.index);
    }
    case Op::kProgramId:
      return "(long long)blockIdx.x";
    case Op::kNumPrograms:
      return "(long long)gridDim.x";
    case Op::kEpoch:
      return "(long long)comm.epoch";
    default:
      break;
  }
  if (inst.place == Place::kInline) return operand(id, at);
  if (inst.type.is_scalar()) return storage(id);
  if (inst.layout == at.layout) return fmt::format("{}[{}]", storage(id), at.reg);
  // A tile of one column under a wide tile: register bits that only change the column are dropped.
  return fmt::format("{}[{}]", storage(id),
                     position_text({{at.reg, column_registers(layout(at.layout), layout_of(id))}}));
}

/// The text of an operand, in parentheses where needed.
std::string Printer::operand(Id id, Element at) {
  const Inst& inst = p_.at(id);
  const std::string text = expression(inst, at);
  return inst.op == Op::kMap ? "(" + text + ")" : text;
}

std::string Printer::expression(const Inst& inst, Element at) {
  if (inst.op == Op::kRange) return coordinate(inst.index, at);
  if (inst.op == Op::kMap && inst.fn == Fn::kToF32 && !inst.type.is_scalar()) {
    const Id number = inst.args[0];
    const Interval all = interval_of(p_, number);
    // Bytes of memory are converted where they are.
    const bool is_computed = p_.at(number).op == Op::kMap;
    if (is_computed && all.least >= -kSmall && all.most <= kSmall) return small_float(number, at);
  }
  std::vector<std::string> args;
  for (Id arg : inst.args) args.push_back(ref(arg, at));
  return function(inst, args);
}

/// An integer of at most 22 bits as a float: the bits of 2^23 with it added are those of the sum of
/// both, and as many integers are converted in four times the time of that. What is added to a
/// number that is not negative joins 2^23, so that the number is put there as it is cut out.
std::string Printer::small_float(Id number, Element at) {
  std::int64_t added = 0;
  for (const Inst* inst = &p_.at(number); inst->op == Op::kMap; inst = &p_.at(number)) {
    const bool adds = inst->fn == Fn::kAdd || inst->fn == Fn::kWrapAdd;
    const bool subtracts = inst->fn == Fn::kSub || inst->fn == Fn::kWrapSub;
    if (adds || subtracts) {
      const Inst& term = p_.at(inst->args[1]);
      const Interval rest = interval_of(p_, inst->args[0]);
      if (term.op != Op::kConstant || rest.least < 0 || rest.most > kSmall) break;
      added += adds ? term.integer : -term.integer;
    } else if (inst->fn != Fn::kToI32 && inst->fn != Fn::kToI64) {
      break;
    }
    number = inst->args[0];
  }
  const std::string text = ref(number, at);
  return interval_of(p_, number).least >= 0
             ? fmt::format("__uint_as_float((unsigned){} | 0x4b000000u) - {}.0f", text,
                           (1 << 23) - added)
             : fmt::format("__int_as_float((int){} + 0x4b400000) - 12582912.0f", text);
}

std::string Printer::combined(Fn fn, Kind kind, const std::string& a, const std::string& b) {
  switch (fn) {
    case Fn::kMax:
      return fmt::format("{}({}, {})", preamble_.max_of(kind), a, b);
    case Fn::kMin:
      return fmt::format("{}({}, {})", preamble_.min_of(kind), a, b);
    default:
      return fmt::format(fmt::runtime(function_format(fn)), a, b);
  }
}

std::string Printer::function(const Inst& inst, const std::vector<std::string>& x) {
  switch (inst.fn) {
    case Fn::kRound:
      if (inst.dtype == DType::kBool) return fmt::format("(long long)({} != 0)", x[0]);
      return fmt::format("{}({})", preamble_.round(inst.dtype), x[0]);
    case Fn::kSaturate:
      return fmt::format("{}({})", preamble_.saturate(inst.dtype), x[0]);
    case Fn::kAbs:
      return fmt::format("{}({})", preamble_.abs_of(inst.type.kind), x[0]);
    case Fn::kMax:
    case Fn::kMin:
      return combined(inst.fn, inst.type.kind, x[0], x[1]);
    case Fn::kExp2:
      return fmt::format("{}({})", preamble_.exp2(), x[0]);
    case Fn::kShiftRight:
      if (inst.type.kind != Kind::kI32) break;
      return fmt::format("{0} >> ((unsigned){1} < 31 ? {1} : 31)", x[0], x[1]);
    case Fn::kWrapAdd:
    case Fn::kWrapSub:
    case Fn::kWrapMul: {
      if (inst.type.kind != Kind::kI32) break;
      const char sign = inst.fn == Fn::kWrapAdd ? '+' : inst.fn == Fn::kWrapSub ? '-' : '*';
      return fmt::format("(int)((unsigned){} {} (unsigned){})", x[0], sign, x[1]);
    }
    case Fn::kNeg:
      return x[0].starts_with('-') ? "-(" + x[0] + ")" : "-" + x[0];  // not --2.5f
    default:
      break;
  }
  const auto operand = [&](std::size_t i) { return i < x.size() ? x[i] : std::string(); };
  return fmt::format(fmt::runtime(function_format(inst.fn)), operand(0), operand(1), operand(2));
}

void Printer::block(const std::vector<Id>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::span<const Id> rest = std::span(ids).subspan(i);
    if (p_.at(ids[i]).op == Op::kRole) return roles(rest);
    if (const std::size_t together = packets_together(rest); together > 1) {
      ll_loads(rest.first(together));
      i += together - 1;
    } else if (const std::size_t products = dots_together(rest); products > 1) {
      dots(rest.first(products));
      i += products - 1;
    } else {
      instruction(ids[i]);
    }
  }
}

/// The number of independent packet loads in a row.
std::size_t Printer::packets_together(std::span<const Id> ids) const {
  std::size_t count = 0;
  for (; count < ids.size() && p_.at(ids[count]).op == Op::kLlLoad; ++count) {
    if (needs_any(ids[count], ids.first(count))) break;
  }
  return count;
}

bool Printer::needs_any(Id id, std::span<const Id> of) const {
  return std::ranges::any_of(p_.at(id).args,
                             [&](Id arg) { return std::ranges::find(of, arg) != of.end(); });
}

void Printer::instruction(Id id) {
  const Inst& inst = p_.at(id);
  switch (inst.op) {
    case Op::kParam:
    case Op::kProgramId:
    case Op::kNumPrograms:
    case Op::kForArg:
    case Op::kForResult:
    case Op::kAllocShared:
    case Op::kAllocRing:
    case Op::kAllocSums:
    case Op::kUndefined:
    case Op::kRole:
      break;
    case Op::kAcquire:
    case Op::kAwait:
    case Op::kRelease:
    case Op::kPublish:
      ring(id);
      break;
    case Op::kCopyTile:
      copy_tile(id);
      break;
    case Op::kAsyncDot:
      async_dot(id);
      break;
    case Op::kDotToSums:
      dot_to_sums(id);
      break;
    case Op::kLoadSums:
      load_sums(id);
      break;
    case Op::kWaitDots:
      out_.line(preamble_.wgmma_wait(inst.index) + "();");
      break;
    case Op::kSettled:
      settled(id);
      break;
    case Op::kPushTile:
      push_tile(id);
      break;
    case Op::kEpoch:
      need_packets();
      break;
    case Op::kConstant:
    case Op::kRange:
    case Op::kMap:
      if (inst.place == Place::kRegisters) map(id);
      break;
    case Op::kPtrAdd:
      out_.line(fmt::format("unsigned char* const {} = {} + {};", name(id), ref(inst.args[0]),
                            ref(inst.args[1])));
      break;
    case Op::kPeer:
      out_.line(fmt::format("unsigned char* const {} = peers.base[{}] + {};", name(id),
                            ref(inst.args[1]), ref(inst.args[0])));
      break;
    case Op::kMulticast:
      out_.line(
          fmt::format("unsigned char* const {} = multicast + {};", name(id), ref(inst.args[0])));
      break;
    case Op::kLoad:
      load(id);
      break;
    case Op::kLoadScalar:
      load_scalar(id);
      break;
    case Op::kStore:
      store(id);
      break;
    case Op::kLoadTile:
    case Op::kStoreTile:
      throw_internal("print", "a tile of a tensor that lower_tensors has not seen");
    case Op::kLlStore:
      ll_store(id);
      break;
    case Op::kLlLoad:
      ll_loads({&id, 1});
      break;
    case Op::kMultimemReduce:
    case Op::kMultimemStore:
      multimem(id);
      break;
    case Op::kCheckIndex:
      check_index(id);
      break;
    case Op::kReduce:
      reduce(id);
      break;
    case Op::kConvertLayout:
      convert_layout(id);
      break;
    case Op::kDot:
      dots({&id, 1});
      break;
    case Op::kFor:
      loop(id);
      break;
    case Op::kCopyToShared:
      copy_to_shared(id);
      break;
    case Op::kLoadShared:
      load_shared(id);
      break;
    case Op::kStoreShared:
      store_to_shared(id);
      break;
    case Op::kCastShared:
      cast_in_shared(id);
      break;
    case Op::kCommitGroup:
      if (copies_in_groups(p_.target)) out_.line(preamble_.commit_group() + "();");
      break;
    case Op::kWaitGroup:
      out_.line(copies_in_groups(p_.target) ? preamble_.wait_group(inst.index) + "();"
                                            : preamble_.barrier() + "();");
      break;
    case Op::kSignal:
      if (inst.barrier) vote();
      out_.line(inst.args[2] == kNone
                    ? to_peers(inst, "signal") + ";"
                    : fmt::format("if ({}) {};", ref(inst.args[2]), to_peers(inst, "signal")));
      break;
    case Op::kWait:
      if (one_thread_) {
        preamble_.comm_alone();
        out_.line(
            fmt::format("{}await_alone(comm, peers, {}, {});",
                        inst.args[2] == kNone ? "" : fmt::format("if ({}) ", ref(inst.args[2])),
                        ref(inst.args[0]), ref(inst.args[1])));
        break;
      }
      out_.line(fmt::format("if ({}!{}) {}",
                            inst.args[2] == kNone ? "" : ref(inst.args[2]) + " && ",
                            to_peers(inst, "wait"), leave()));
      break;
    case Op::kMeetBlocks:
      preamble_.meet_blocks();
      out_.line("if (!meet_blocks(counter, record, step, timeout)) return;");
      break;
    case Op::kMark:
      marks_ = true;
      out_.line(fmt::format("mark(marks, marked, {}, {}, {});", inst.index, ref(inst.args[0]),
                            ref(inst.args[1])));
      break;
  }
}

/// The call of a helper for all ranks or one, in one slot or several.
std::string Printer::to_peers(const Inst& inst, std::string_view what) {
  if (inst.args.size() > 3) {
    preamble_.comm_slots(p_.world, p_.num_warps * 32);
    return fmt::format("{}_slots(comm, peers, {}, {})", what, ref(inst.args[0]), ref(inst.args[3]));
  }
  const bool all = inst.args[1] == kNone;
  if (!all) preamble_.comm_one();
  return fmt::format("{}{}(comm, peers, {}{})", what, all ? "" : "_one", ref(inst.args[0]),
                     all ? "" : ", " + ref(inst.args[1]));
}

void Printer::map(Id id) {
  const Inst& inst = p_.at(id);
  if (inst.type.is_scalar()) {
    if (inst.op != Op::kMap) return;
    // Not `const unsigned char*`: the variable's target changes.
    const std::string type = inst.type.kind == Kind::kPtr
                                 ? "unsigned char* const"
                                 : fmt::format("const {}", c_type(inst.type.kind));
    out_.line(fmt::format("{} {} = {};", type, name(id), expression(inst, {})));
    return;
  }
  declare(id);
  each(registers(id), 1, [&](std::string_view i) {
    const Element at{inst.layout, i};
    return fmt::format("{}[{}] = {};", name(id), i,
                       inst.op == Op::kConstant ? ref(id, at) : expression(inst, at));
  });
}

void Printer::check_index(Id id) {
  const Inst& inst = p_.at(id);
  preamble_.bad_index();
  const std::string extent = ref(inst.args[0]);
  out_.line("{");
  out_.line("bool bad = false;");
  out_.line("long long index = 0;");
  const bool is_scalar = p_.at(inst.args[1]).type.is_scalar();
  each(is_scalar ? 1 : layout(inst.layout).registers(), 1, [&](std::string_view i) {
    const Element at{inst.layout, i};
    const std::string value = ref(inst.args[1], at);
    const std::string mask = inst.args.size() > 2 ? ref(inst.args[2], at) + " && " : "";
    return fmt::format("if ({0}({1} < 0 || {1} >= {2})) bad = true, index = {1};", mask, value,
                       extent);
  });
  out_.line(fmt::format("if (bad) bad_index(record, step, {}, index, {});", inst.index, extent));
  out_.line("}");
}

void Printer::loop(Id id) {
  const Inst& inst = p_.at(id);
  const auto assign = [&](Id arg, Id value) {
    if (p_.at(arg).type.is_scalar()) {
      out_.line(fmt::format("{} = {};", name(arg), ref(value)));
      return;
    }
    each(registers(arg), 1, [&](std::string_view i) {
      return fmt::format("{}[{}] = {};", name(arg), i, ref(value, {p_.at(arg).layout, i}));
    });
  };
  for (std::size_t i = 1; i < inst.body_args.size(); ++i) {
    const Id arg = inst.body_args[i];
    if (p_.at(arg).type.is_scalar()) {
      out_.line(fmt::format("{} {} = {};", c_type(p_.at(arg).type.kind), name(arg),
                            ref(inst.args[i + 2])));
      continue;
    }
    declare(arg);
    if (p_.at(inst.args[i + 2]).op != Op::kUndefined) assign(arg, inst.args[i + 2]);
  }
  const std::string at = name(inst.body_args[0]);
  const std::string next = fmt::format("{} += {}", at, ref(inst.args[2]));
  const std::string more = fmt::format("{} < {}", at, ref(inst.args[1]));
  const bool turns = inst.unroll > 1;
  // A thread that multiplies has few registers, and compilers take out of a short loop that they
  // unroll the addresses of all its slots.
  if (one_thread_ && has_sums_) out_.line("#pragma unroll 1");
  out_.line(fmt::format("for (long long {} = {}; {};{}) {{", at, ref(inst.args[0]), more,
                        turns ? "" : " " + next));
  if (turns) {
    // Fully unrolled, since compilers do not unroll a loop with barriers and several exits. Both
    // loops exit by one path; otherwise registers would be moved where exits meet.
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int turn = 0; turn < {}; ++turn, {}) {{", inst.unroll, next));
    out_.line(fmt::format("if (turn > 0 && !({})) goto after_{};", more, at));
  }
  block(inst.body);
  for (std::size_t i = 1; i < inst.body_args.size(); ++i) {
    const Id arg = inst.body_args[i];
    const Id yield = inst.yields[i - 1];
    if (storage(yield) != name(arg)) assign(arg, yield);
  }
  if (turns) out_.line("}");
  out_.line("}");
  if (turns) out_.line(fmt::format("after_{}:;", at));
}

std::string print_cuda(const Program& program) { return Printer(program).print(); }

}  // namespace braid::tile
