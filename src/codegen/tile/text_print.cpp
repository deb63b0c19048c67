#include <fmt/format.h>

#include <cmath>

#include "codegen/tile/op_info.h"
#include "codegen/tile/text.h"

namespace braid::tile {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string basis_text(std::string_view name, const std::vector<Coord>& basis) {
  std::string out = fmt::format(" {}", name);
  for (Coord c : basis) out += fmt::format(" ({},{})", c.row, c.col);
  return out;
}

class TextPrinter {
 public:
  explicit TextPrinter(const Program& program) : p_(program) {}

  std::string print() {
    header();
    line("{");
    ++depth_;
    block(p_.body);
    --depth_;
    line("}");
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ').append(text).push_back('\n');
  }

  void header() {
    line(fmt::format("kernel {}", p_.entry));
    if (p_.target != Target()) line(fmt::format("target {}", quoted(p_.target.str())));
    line(fmt::format("warps {}", p_.num_warps));
    if (p_.warps_m != 1) line(fmt::format("warps_m {}", p_.warps_m));
    if (p_.columns != Program().columns) line(fmt::format("columns {}", p_.columns));
    if (p_.world != 0) line(fmt::format("world {}", p_.world));
    if (p_.flag_slots != 0) line(fmt::format("flag_slots {}", p_.flag_slots));
    if (p_.scratch_bytes != 0) line(fmt::format("scratch {}", p_.scratch_bytes));
    line(fmt::format("grid {}", p_.grid.str()));
    if (p_.attributes.cluster.x != 1) line(fmt::format("cluster {}", p_.attributes.cluster.x));
    if (p_.attributes.programmatic) line("programmatic");
    for (std::size_t i = 0; i < p_.params.size(); ++i) param(i);
    for (std::size_t i = 0; i < p_.layouts.size(); ++i) {
      const Layout& layout = p_.layouts[i];
      line(fmt::format("layout {} [{}, {}]{}{}{}", i, layout.rows, layout.cols,
                       basis_text("reg", layout.reg), basis_text("lane", layout.lane),
                       basis_text("warp", layout.warp)));
    }
    if (p_.shared_bytes != 0) line(fmt::format("shared {}", p_.shared_bytes));
  }

  void param(std::size_t i) {
    const Param& param = p_.params[i];
    std::string text = fmt::format("param {} {}", i, param_name(param.what.kind));
    if (param.what.kind == KernelParam::Kind::kScalar) {
      text += " " + param.what.expr.str();
    } else {
      text += fmt::format(" {}", param.what.index);
    }
    if (param.what.kind == KernelParam::Kind::kBytes) {
      text += fmt::format(" size {} align {}", param.what.size, param.what.alignment);
    }
    if (const TileMap& map = param.what.map; param.what.is_map()) {
      text += fmt::format(" {} box {} rows {} columns {}", dtype_name(map.dtype), map.box,
                          map.rows.str(), map.columns.str());
      if (map.row_stride != Expr(0)) text += fmt::format(" row_stride {}", map.row_stride.str());
      for (const auto& [extent, stride] : map.outer) {
        text += fmt::format(" outer {} stride {}", extent.str(), stride.str());
      }
    }
    if (!param.what.group.empty()) text += fmt::format(" group {}", quoted(param.what.group));
    if (param.divisor != 1) text += fmt::format(" divisor {}", param.divisor);
    line(text);
  }

  static std::string name(Id id) { return id == kNone ? "_" : fmt::format("%{}", id); }

  static std::string placed_type(const Inst& inst) {
    return type_text(inst.type) + layout_text(inst);
  }

  static std::string layout_text(const Inst& inst) {
    return inst.layout >= 0 ? fmt::format(" #{}", inst.layout) : "";
  }

  static std::string number_text(const Inst& inst) {
    if (inst.type.kind != Kind::kF32) return fmt::format("{}", inst.integer);
    if (std::isnan(inst.number)) return "nan";
    return fmt::format("{:.17g}", inst.number);
  }

  static std::string attributes(const Inst& inst) {
    std::vector<std::string> out;
    if (inst.trans_a) out.emplace_back("trans_a");
    if (inst.trans_b) out.emplace_back("trans_b");
    if (inst.op == Op::kAllocShared || inst.op == Op::kAllocRing || inst.op == Op::kAllocSums) {
      out.push_back(fmt::format("stages {}", inst.stages));
    }
    if (inst.op == Op::kAllocShared) {
      out.push_back(fmt::format("row_step {}", inst.index));
    }
    if (inst.shared_offset >= 0) out.push_back(fmt::format("at {}", inst.shared_offset));
    thread_attributes(inst, out);
    return out.empty() ? "" : fmt::format(" {{{}}}", fmt::join(out, ", "));
  }

  static void thread_attributes(const Inst& inst, std::vector<std::string>& out) {
    if (inst.place == Place::kInline) out.emplace_back("inline");
    if (inst.place == Place::kAlias) out.push_back("in " + name(inst.storage));
    const auto number = [&](std::string_view key, int value, int none) {
      if (value != none) out.push_back(fmt::format("{} {}", key, value));
    };
    number("width", inst.width, 1);
    number("width_in", inst.width_in, 1);
    number("first", inst.first, 0);
    number("last", inst.last, 0);
    number("unroll", inst.unroll, 0);
    number("lanes", inst.lanes, 0);
    number("warps", inst.warps, 0);
    if (inst.barrier) out.emplace_back("barrier");
    if (inst.whole) out.emplace_back("whole");
    if (inst.change != LayoutChange::kNone) {
      out.push_back(fmt::format("change {}", change_name(inst.change)));
    }
    if (inst.trans_load_a) out.emplace_back("trans_load_a");
    if (inst.trans_load_b) out.emplace_back("trans_load_b");
    if (!inst.addresses.empty()) {
      out.push_back(fmt::format("address {}", fmt::join(inst.addresses, " ")));
    }
  }

  void block(const std::vector<Id>& ids) {
    for (Id id : ids) {
      const Op op = p_.at(id).op;
      op == Op::kFor ? loop(id) : op == Op::kRole ? role(p_.at(id)) : instruction(id);
    }
  }

  void instruction(Id id) {
    const Inst& inst = p_.at(id);
    const OpInfo& info = op_info(inst.op);
    std::string text = info.has_result ? name(id) + " = " : "";
    text += inst.op == Op::kMap ? fn_name(inst.fn) : info.name;
    if (info.has_dtype || (inst.op == Op::kMap && fn_has_dtype(inst.fn))) {
      text += fmt::format(".{}", dtype_name(inst.dtype));
    }
    if (inst.op == Op::kReduce) text += fmt::format(".{}", fn_name(inst.fn));
    std::vector<std::string> operands;
    if (info.has_index) operands.push_back(fmt::format("{}", inst.index));
    if (inst.op == Op::kConstant) operands.push_back(number_text(inst));
    for (Id arg : inst.args) operands.push_back(name(arg));
    if (!operands.empty()) text += fmt::format(" {}", fmt::join(operands, ", "));
    text += info.has_result ? " : " + placed_type(inst) : layout_text(inst);
    line(text + attributes(inst));
  }

  void role(const Inst& inst) {
    line(fmt::format("role {} warps {} {{", inst.index, inst.warps));
    ++depth_;
    block(inst.body);
    --depth_;
    line("}");
  }

  void loop(Id id) {
    const Inst& inst = p_.at(id);
    std::string text =
        fmt::format("{} = for {} = {} to {} step {}", name(id), name(inst.body_args[0]),
                    name(inst.args[0]), name(inst.args[1]), name(inst.args[2]));
    if (inst.unroll > 1) text += fmt::format(" turns {}", inst.unroll);
    for (std::size_t i = 1; i < inst.body_args.size(); ++i) {
      text += fmt::format("{} {} = {} : {}", i == 1 ? " carry" : ",", name(inst.body_args[i]),
                          name(inst.args[i + 2]), placed_type(p_.at(inst.body_args[i])));
    }
    line(text + " {");
    ++depth_;
    block(inst.body);
    if (!inst.yields.empty()) {
      std::vector<std::string> yields;
      for (Id yield : inst.yields) yields.push_back(name(yield));
      line(fmt::format("yield {}", fmt::join(yields, ", ")));
    }
    --depth_;
    line("}");
  }

  const Program& p_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string print_text(const Program& program) { return TextPrinter(program).print(); }

}  // namespace braid::tile
