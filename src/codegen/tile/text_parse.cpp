#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <map>
#include <set>

#include "braid/error.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/text.h"
#include "codegen/tile/text_lexer.h"

namespace braid::tile {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::int64_t kMaxValues = 1 << 20;
constexpr std::int64_t kMaxExtent = 1 << 16;

class TextParser {
 public:
  explicit TextParser(std::string_view text) : in_(text) {}

  Program parse() {
    header();
    in_.expect("{");
    in_.end_line();
    p_.body = block(nullptr, 0);
    in_.skip_lines();
    if (in_.token().kind != Token::kEnd) in_.fail("the end");
    for (const auto& [id, line] : used_) {
      if (!defined_.contains(id)) fail_at(line, fmt::format("{} is defined nowhere", names_[id]));
    }
    for (const Inst& inst : p_.insts) {
      p_.communicates = p_.communicates || op_info(inst.op).communicates;
    }
    return std::move(p_);
  }

 private:
  void header() {
    in_.skip_lines();
    in_.expect("kernel");
    p_.entry = in_.word("a name");
    in_.end_line();
    for (in_.skip_lines(); !in_.at("{"); in_.skip_lines()) {
      const Token key = in_.token();
      const std::string what = in_.word("`{` or a line of the header");
      if (what == "target") {
        p_.target = Target::parse(in_.string());
      } else if (what == "warps") {
        p_.num_warps = static_cast<int>(in_.integer(1, 32));
      } else if (what == "warps_m") {
        p_.warps_m = static_cast<int>(in_.integer(1, 32));
      } else if (what == "columns") {
        p_.columns = static_cast<int>(in_.integer(1, 32));
      } else if (what == "world") {
        p_.world = static_cast<int>(in_.integer(0, 1 << 20));
      } else if (what == "flag_slots") {
        p_.flag_slots = in_.integer(0, 1 << 20);
      } else if (what == "scratch") {
        p_.scratch_bytes = in_.integer(0, std::int64_t{1} << 40);
      } else if (what == "grid") {
        p_.grid = expression({});
      } else if (what == "cluster") {
        p_.attributes.cluster.x = static_cast<std::uint32_t>(in_.integer(1, 8));
      } else if (what == "programmatic") {
        p_.attributes.programmatic = true;
      } else if (what == "param") {
        param();
      } else if (what == "layout") {
        layout();
      } else if (what == "shared") {
        p_.shared_bytes = static_cast<int>(in_.integer(0, 1 << 30));
      } else {
        in_.fail_token(
            key,
            "kernel, target, warps, warps_m, columns, world, flag_slots, scratch, grid, cluster, "
            "programmatic, param, layout or shared");
      }
      in_.end_line();
    }
  }

  /// An expression: the rest of the line up to one of these words.
  Expr expression(const std::vector<std::string_view>& stops) {
    const Token first = in_.token();
    const std::string text = in_.rest(stops);
    const auto expr = Expr::parse(text);
    if (!expr) in_.fail_token({Token::kWord, text, first.line}, "an expression over symbols");
    return *expr;
  }

  void param() {
    const auto number = in_.integer(0, 4096);
    if (number != static_cast<std::int64_t>(p_.params.size())) {
      in_.fail_previous(fmt::format("parameter {}", p_.params.size()));
    }
    Param param{.what = {.kind = KernelParam::Kind::kInput, .index = 0, .expr = 0, .group = {}}};
    const Token at = in_.token();
    const auto kind = param_named(in_.word("a kind of parameter"));
    if (!kind) in_.fail_token(at, "a kind of parameter");
    param.what.kind = *kind;
    if (*kind == KernelParam::Kind::kScalar) {
      param.what.expr = expression({"divisor", "group"});
    } else {
      param.what.index = static_cast<int>(in_.integer(0, 4096));
    }
    if (*kind == KernelParam::Kind::kBytes) {
      in_.expect("size");
      param.what.size = static_cast<int>(in_.integer(0, 1 << 30));
      in_.expect("align");
      param.what.alignment = static_cast<int>(in_.integer(0, 1 << 30));
    }
    if (param.what.is_map()) {
      const Token name = in_.token();
      const auto dtype = parse_dtype(in_.word("a dtype"));
      if (!dtype) in_.fail_token(name, "a dtype");
      param.what.map.dtype = *dtype;
      in_.expect("box");
      param.what.map.box = static_cast<int>(in_.integer(1, 256));
      in_.expect("rows");
      param.what.map.rows = expression({"columns"});
      in_.expect("columns");
      param.what.map.columns = expression({"row_stride", "outer", "divisor", "group"});
      if (in_.accept("row_stride")) {
        param.what.map.row_stride = expression({"outer", "divisor", "group"});
      }
      while (in_.accept("outer")) {
        TileMap::Outer outer{0, 0};
        outer.extent = expression({"stride"});
        in_.expect("stride");
        outer.stride = expression({"outer", "divisor", "group"});
        param.what.map.outer.push_back(std::move(outer));
        if (param.what.map.outer.size() > kMostOuter) {
          in_.fail_previous(fmt::format("at most {} outer dims", kMostOuter));
        }
      }
    }
    if (in_.accept("group")) param.what.group = in_.string();
    if (in_.accept("divisor")) param.divisor = in_.integer(1, std::int64_t{1} << 40);
    p_.params.push_back(std::move(param));
  }

  int extent() {
    const std::int64_t n = in_.integer(1, kMaxExtent);
    if ((n & (n - 1)) != 0) in_.fail_previous("a power of two");
    return static_cast<int>(n);
  }

  std::vector<Coord> basis(std::string_view name) {
    in_.expect(name);
    std::vector<Coord> out;
    while (in_.accept("(")) {
      Coord c;
      c.row = static_cast<int>(in_.integer(0, kMaxExtent));
      in_.expect(",");
      c.col = static_cast<int>(in_.integer(0, kMaxExtent));
      in_.expect(")");
      out.push_back(c);
    }
    if (out.size() > 16) in_.fail("at most 16 images");
    return out;
  }

  void layout() {
    const auto number = in_.integer(0, 4096);
    if (number != static_cast<std::int64_t>(p_.layouts.size())) {
      in_.fail_previous(fmt::format("layout {}", p_.layouts.size()));
    }
    Layout layout;
    in_.expect("[");
    layout.rows = extent();
    in_.expect(",");
    layout.cols = extent();
    in_.expect("]");
    layout.reg = basis("reg");
    layout.lane = basis("lane");
    layout.warp = basis("warp");
    p_.layouts.push_back(std::move(layout));
  }

  Id value(bool defines) {
    const Token at = in_.token();
    const std::string name = in_.value();
    auto it = ids_.find(name);
    if (it == ids_.end()) it = ids_.emplace(name, number_of(name, at)).first;
    const Id id = it->second;
    if (defines && !defined_.insert(id).second)
      in_.fail_token(at, "a value that has no definition yet");
    if (!defines) used_.emplace(id, at.line);
    return id;
  }

  /// A number stands for itself; a name gets the next number that is unused in the text.
  Id number_of(const std::string& name, const Token& at) {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    const bool is_number = error == std::errc{} && end == name.data() + name.size();
    if (!is_number) {
      while (in_.holds_number(next_)) ++next_;
      number = next_++;
    }
    if (number < 0 || number >= kMaxValues) in_.fail_token(at, "a number below 1048576");
    const auto size = static_cast<std::size_t>(number) + 1;
    // Numbers missing in the text belong to instructions that a pass removed.
    if (p_.insts.size() < size)
      p_.insts.resize(size, Inst{.op = Op::kConstant, .type = {}, .args = {}});
    names_[static_cast<Id>(number)] = name;
    return static_cast<Id>(number);
  }

  Id new_value() {
    while (in_.holds_number(next_)) ++next_;
    return number_of(fmt::format("%{}", next_++), in_.token());
  }

  void type(Inst& inst) {
    const Token at = in_.token();
    const auto kind = kind_named(in_.word("a type"));
    if (!kind) in_.fail_token(at, "a type: f32, i32, i64, pred, ptr, shared, ring or sums");
    inst.type = {*kind, 0, 0};
    if (in_.accept("[")) {
      inst.type.rows = extent();
      in_.expect(",");
      inst.type.cols = extent();
      in_.expect("]");
      if (static_cast<std::int64_t>(inst.type.rows) * inst.type.cols > kMaxValues) {
        in_.fail_previous("a tile of at most 1048576 elements");
      }
    }
    layout_of(inst);
  }

  void layout_of(Inst& inst) {
    if (in_.accept("#")) inst.layout = layout_number(0);
  }
  int layout_number(int least) {
    return static_cast<int>(in_.integer(least, static_cast<std::int64_t>(p_.layouts.size()) - 1));
  }

  std::vector<Id> block(Inst* loop, int depth) {
    std::vector<Id> out;
    for (in_.skip_lines(); !in_.accept("}"); in_.skip_lines()) {
      if (in_.token().kind == Token::kEnd) in_.fail("`}`");
      if (in_.accept("yield")) {
        if (loop == nullptr) in_.fail_previous("an instruction: `yield` ends the body of a loop");
        do loop->yields.push_back(value(false));
        while (in_.accept(","));
        in_.end_line();
        in_.skip_lines();
        in_.expect("}");
        break;
      }
      out.push_back(instruction(depth));
    }
    in_.end_line();
    return out;
  }

  Id instruction(int depth) {
    Id id = kNone;
    if (in_.token().kind == Token::kValue) {
      id = value(true);
      in_.expect("=");
    }
    const Token at = in_.token();
    const std::string name = in_.word("an operation");
    if (name == "for") return loop(id, at, depth);
    if (name == "role") return role(id, at, depth);
    Inst inst = operation(name, at);
    const OpInfo& info = op_info(inst.op);
    if (info.has_result != (id != kNone)) {
      in_.fail_token(at, info.has_result ? "a name for its result before it: %x = " + name
                                         : name + " without a result");
    }
    operands(inst, info);
    if (info.has_result) {
      // The type comes after the number, whose kind it decides.
      in_.expect(":");
      type(inst);
    } else {
      layout_of(inst);
    }
    if (inst.op == Op::kConstant) number(inst);
    if (in_.accept("{")) attributes(inst);
    in_.end_line();
    if (id == kNone) id = new_value();
    p_.at(id) = std::move(inst);
    return id;
  }

  /// The operation or function of a name, with the dtype or function behind its dot.
  Inst operation(const std::string& text, const Token& at) {
    const auto dot = text.find('.');
    const std::string name = text.substr(0, dot);
    const std::string suffix = dot == std::string::npos ? "" : text.substr(dot + 1);
    Inst inst{.op = Op::kMap, .type = {}, .args = {}};
    bool has_dtype = false;
    if (const auto fn = fn_named(name)) {
      inst.fn = *fn;
      has_dtype = fn_has_dtype(*fn);
    } else if (const auto op = op_named(name); op && *op != Op::kMap && *op != Op::kForArg) {
      inst.op = *op;
      has_dtype = op_info(*op).has_dtype;
    } else {
      in_.fail_token(at, "an operation");
    }
    if (inst.op == Op::kReduce) {
      const auto fn = fn_named(suffix);
      if (!fn) in_.fail_token(at, "reduce.add, reduce.max or another reduction");
      inst.fn = *fn;
    } else if (has_dtype) {
      const auto dtype = parse_dtype(suffix);
      if (!dtype) in_.fail_token(at, fmt::format("a dtype behind it: {}.bf16", name));
      inst.dtype = *dtype;
    } else if (!suffix.empty()) {
      in_.fail_token(at, fmt::format("{} without a dtype", name));
    }
    return inst;
  }

  void operands(Inst& inst, const OpInfo& info) {
    bool more = true;
    if (info.has_index) {
      inst.index = static_cast<int>(in_.integer(0, 1 << 24));
      more = in_.accept(",");
    }
    if (inst.op == Op::kConstant) {
      number_ = in_.token();
      in_.number();
      return;
    }
    if (!more) return;
    while (in_.token().kind == Token::kValue || in_.at("_")) {
      inst.args.push_back(in_.accept("_") ? kNone : value(false));
      if (!in_.accept(",")) return;
    }
    if (!inst.args.empty() || info.has_index) in_.fail("an operand");
  }

  void number(Inst& inst) {
    if (inst.type.kind == Kind::kF32) {
      inst.number = std::strtod(number_.text.c_str(), nullptr);
      return;
    }
    const char* const end = number_.text.data() + number_.text.size();
    const auto [stop, error] = std::from_chars(number_.text.data(), end, inst.integer);
    if (error != std::errc{} || stop != end) in_.fail_token(number_, "a 64-bit integer");
  }

  void attributes(Inst& inst) {
    const std::pair<std::string_view, bool*> flags[] = {
        {"trans_a", &inst.trans_a},           {"trans_b", &inst.trans_b},
        {"barrier", &inst.barrier},           {"whole", &inst.whole},
        {"trans_load_a", &inst.trans_load_a}, {"trans_load_b", &inst.trans_load_b}};
    const std::pair<std::string_view, int*> numbers[] = {
        {"stages", &inst.stages}, {"row_step", &inst.index},    {"at", &inst.shared_offset},
        {"width", &inst.width},   {"unroll", &inst.unroll},     {"lanes", &inst.lanes},
        {"warps", &inst.warps},   {"width_in", &inst.width_in}, {"first", &inst.first},
        {"last", &inst.last}};
    do {
      const Token at = in_.token();
      const std::string name = in_.word("an attribute");
      bool found = false;
      for (const auto& [key, flag] : flags) {
        if (key == name) *flag = found = true;
      }
      for (const auto& [key, number] : numbers) {
        if (key != name) continue;
        *number = static_cast<int>(in_.integer(0, 1 << 30));
        found = true;
      }
      if (!found && !place(inst, name) && !change(inst, name)) {
        in_.fail_token(at, "an attribute: trans_a, trans_b, stages, row_step, at, ...");
      }
    } while (in_.accept(","));
    in_.expect("}");
  }

  bool place(Inst& inst, std::string_view name) {
    if (name == "inline") inst.place = Place::kInline;
    if (name == "in") {
      inst.place = Place::kAlias;
      inst.storage = value(false);
    }
    return name == "inline" || name == "in";
  }

  bool change(Inst& inst, std::string_view name) {
    if (name == "address") {
      while (in_.token().kind == Token::kNumber) inst.addresses.push_back(layout_number(-1));
      return true;
    }
    if (name != "change") return false;
    const Token at = in_.token();
    const auto change = change_named(in_.word("a change of layout"));
    if (!change) in_.fail_token(at, "none, registers, shuffle or shared");
    inst.change = *change;
    return true;
  }

  Id role(Id id, const Token& at, int depth) {
    if (id != kNone) in_.fail_token(at, "role without a result");
    Inst inst{.op = Op::kRole, .type = {}, .args = {}};
    inst.index = static_cast<int>(in_.integer(0, 256));
    in_.expect("warps");
    inst.warps = static_cast<int>(in_.integer(1, 32));
    in_.expect("{");
    in_.end_line();
    inst.body = block(nullptr, depth + 1);
    id = new_value();
    p_.at(id) = std::move(inst);
    return id;
  }

  Id loop(Id id, const Token& at, int depth) {
    if (id == kNone) in_.fail_token(at, "a name for the loop before it: %x = for");
    if (depth >= kMaxDepth) in_.fail_token(at, fmt::format("at most {} nested loops", kMaxDepth));
    Inst inst{.op = Op::kFor, .type = {}, .args = {}};
    const Id induction = value(true);
    p_.at(induction) = {.op = Op::kForArg, .type = {Kind::kI64}, .args = {}};
    inst.body_args.push_back(induction);
    in_.expect("=");
    inst.args.push_back(value(false));
    in_.expect("to");
    inst.args.push_back(value(false));
    in_.expect("step");
    inst.args.push_back(value(false));
    if (in_.accept("turns")) inst.unroll = static_cast<int>(in_.integer(2, 64));
    if (in_.accept("carry")) {
      do {
        const Id arg = value(true);
        in_.expect("=");
        Inst carried{.op = Op::kForArg, .type = {}, .args = {value(false)}};
        carried.index = static_cast<int>(inst.body_args.size());
        in_.expect(":");
        type(carried);
        inst.args.push_back(carried.args[0]);
        inst.body_args.push_back(arg);
        p_.at(arg) = std::move(carried);
      } while (in_.accept(","));
    }
    in_.expect("{");
    in_.end_line();
    inst.body = block(&inst, depth + 1);
    p_.at(id) = std::move(inst);
    return id;
  }

  [[noreturn]] static void fail_at(int line, const std::string& message) {
    throw_invalid(fmt::format("line {}", line), message);
  }

  Lexer in_;
  Program p_;
  Token number_;
  Id next_ = 0;
  std::map<std::string, Id> ids_;
  std::map<Id, std::string> names_;
  std::map<Id, int> used_;  ///< line of the first use
  std::set<Id> defined_;
};

}  // namespace

Program parse_text(std::string_view text) { return TextParser(text).parse(); }

}  // namespace braid::tile
