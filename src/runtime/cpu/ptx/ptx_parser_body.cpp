#include <algorithm>

#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/ptx/ptx_parser.h"

namespace braid::cpu::ptx {
namespace {

constexpr std::size_t kMaxRegisters = 1 << 20;
constexpr std::size_t kMaxOperands = 128;  // accumulators of a wgmma

}  // namespace

void Parser::body(Function& function) {
  function_ = &function;
  source_file_ = source_line_ = inlined_ = 0;
  places_.clear();
  label_uses_.clear();
  target_tables_.clear();
  carry_ = -1;
  for (const RegisterParameter& parameter : register_arguments_) {
    const Variable& variable = module_.variables[parameter.variable];
    function.body.push_back(make_instruction(
        Op::kLd, {"param", variable.type},
        {Operand::of_register(parameter.register_index), variable_in_brackets(parameter.variable)},
        variable.line));
  }
  block();
  Instruction end;
  end.line = peek().line;
  move_results(end);
  // From here on an unresolved name is a missing label.
  std::vector<std::uint32_t> resolved(label_uses_.size());
  for (std::size_t i = 0; i < label_uses_.size(); ++i) {
    const LabelUse& use = label_uses_[i];
    const int scope = std::exchange(scope_, use.scope);
    const Symbol* symbol = lookup(use.name);
    scope_ = scope;
    if (symbol == nullptr || symbol->kind != Symbol::kLabel) {
      fail(use.line, "unknown label '" + use.name + "'");
    }
    resolved[i] = static_cast<std::uint32_t>(symbol->index);
  }
  for (Instruction& instruction : function.body) {
    for (Operand& operand : instruction.operands) {
      if (operand.form == Operand::Form::kLabel) {
        operand.index = static_cast<std::int32_t>(resolved[operand.index]);
      }
    }
  }
  function_ = nullptr;
}

/// Results that are registers, to where the caller finds them; by whom `where` says.
void Parser::move_results(const Instruction& where) {
  for (const RegisterParameter& result : register_results_) {
    const Variable& variable = module_.variables[result.variable];
    function_->body.push_back(make_instruction(
        Op::kSt, {"param", variable.type},
        {variable_in_brackets(result.variable), Operand::of_register(result.register_index)},
        where.line));
    function_->body.back().guard = where.guard;
    function_->body.back().guard_negated = where.guard_negated;
  }
}

/// Records that a function's address is taken.
int Parser::address_taken(int function) {
  auto& all = module_.addressed;
  if (std::ranges::find(all, function) == all.end()) all.push_back(function);
  return function;
}

void Parser::block() {
  while (!accept("}")) {
    if (peek().kind == TokenKind::kEnd) error("function without an end");
    if (accept("{")) {
      push_scope();
      block();
      pop_scope();
    } else if (peek().kind == TokenKind::kDot) {
      const std::string_view name = peek().text;
      if (name == "reg") {
        registers();
      } else if (name == "local" || name == "shared" || name == "param" || name == "global" ||
                 name == "const") {
        variables(false);
      } else if (name == "pragma") {
        while (peek().kind != TokenKind::kEnd && !accept(";")) take();
      } else if (name == "section") {
        skip_section();
      } else if (name == "loc") {
        location();
      } else {
        error("unknown directive '." + std::string(name) + "'");
      }
    } else if (peek().kind == TokenKind::kIdentifier && peek(1).kind == TokenKind::kPunct &&
               peek(1).text == ":") {
      const std::string name(take().text);
      take();
      label(name);
    } else {
      instruction();
    }
  }
}

void Parser::registers() {
  take();
  int lanes = accept_dot("v2") ? 2 : accept_dot("v4") ? 4 : 1;
  if (peek().kind != TokenKind::kDot) error("expected a type, found " + describe());
  auto type = parse_type(peek().text);
  if (!type || (type->total_bits() > 64 && lanes != 1)) {
    error("registers of type " + describe() + " are not supported");
  }
  if (type->total_bits() > 64) {
    // A 128-bit register is a pair.
    lanes = 2;
    type->bits = 64;
  }
  take();
  do {
    const std::string name = identifier("a register");
    std::uint64_t count = 0;
    const bool range = accept("<");
    if (range) {
      count = integer();
      expect(">");
    }
    if (count > kMaxRegisters || function_->registers.size() + count * 4 > kMaxRegisters) {
      error("too many registers");
    }
    for (std::uint64_t i = 0; i < (range ? count : 1); ++i) {
      const std::string full = range ? name + std::to_string(i) : name;
      const auto first = static_cast<int>(function_->registers.size());
      declare(full, {lanes == 1 ? Symbol::kRegister : Symbol::kVector, first, lanes});
      for (int lane = 0; lane < lanes; ++lane) {
        const std::string part = lanes == 1 ? "" : std::string(".") + "xyzw"[lane];
        function_->registers.push_back({full + part, *type});
      }
    }
  } while (accept(","));
  expect(";");
}

void Parser::label(const std::string& name) {
  if (accept_dot("branchtargets")) return branch_targets(name);
  if (accept_dot("callprototype")) return call_prototype(name);
  if (accept_dot("calltargets")) return call_targets(name);
  declare(name, {Symbol::kLabel, static_cast<int>(function_->labels.size())});
  function_->labels.push_back(static_cast<std::uint32_t>(function_->body.size()));
}

void Parser::branch_targets(const std::string& name) {
  std::vector<Operand> targets;
  do {
    if (targets.size() > 4096) error("too many branch targets");
    targets.push_back(label_use(identifier("a label")));
  } while (accept(","));
  expect(";");
  target_tables_[{scope_, name}] = std::move(targets);
}

/// NAME: .callprototype [(results)] _ [(parameters)] ...;
void Parser::call_prototype(const std::string& name) {
  Function prototype;
  prototype.line = peek().line;
  if (is_punct("(")) prototype.results = parameter_list(nullptr);
  identifier("a name");
  if (is_punct("(")) prototype.params = parameter_list(nullptr);
  while (peek().kind == TokenKind::kDot || peek().kind == TokenKind::kInteger) take();
  expect(";");
  declare(name, {Symbol::kFunction, static_cast<int>(module_.functions.size())});
  module_.functions.push_back(std::move(prototype));
}

/// NAME: .calltargets FUNCTION, ...;
void Parser::call_targets(const std::string& name) {
  std::vector<Operand> targets;
  do {
    const std::string target = identifier("a function name");
    const Symbol* symbol = lookup(target);
    if (symbol == nullptr || symbol->kind != Symbol::kFunction) {
      error("'" + target + "' is not a function");
    }
    targets.push_back({.form = Operand::Form::kFunction, .index = symbol->index});
  } while (accept(","));
  expect(";");
  target_tables_[{scope_, name}] = std::move(targets);
}

/// The branch targets, or functions, that a name stands for.
const std::vector<Operand>* Parser::find_targets(const LabelUse& use) const {
  for (int scope = use.scope; scope >= 0; scope = scopes_[scope].parent) {
    const auto table = target_tables_.find({scope, use.name});
    if (table != target_tables_.end()) return &table->second;
  }
  return nullptr;
}

Operand Parser::label_use(const std::string& name) {
  label_uses_.push_back({name, scope_, peek().line});
  return {.form = Operand::Form::kLabel,
          .index = static_cast<std::int32_t>(label_uses_.size()) - 1};
}

/// Lowers brx.idx to a chain of compares and branches; an index out of range takes the last target.
void Parser::lower_indexed_branch(Instruction branch) {
  if (branch.operands.size() != 2 || !branch.operands[0].is_register() || branch.guard >= 0 ||
      branch.operands[1].form != Operand::Form::kLabel) {
    fail(branch.line, "bad operands of '" + branch.full_name() + "'");
  }
  const LabelUse use = label_uses_[branch.operands[1].index];
  label_uses_.pop_back();
  const std::vector<Operand>* table = find_targets(use);
  if (table == nullptr) fail(branch.line, "unknown branch targets '" + use.name + "'");
  const std::vector<Operand>& targets = *table;
  for (std::size_t i = 0; i + 1 < targets.size(); ++i) {
    const auto predicate = static_cast<std::int32_t>(function_->registers.size());
    function_->registers.push_back({"%brx" + std::to_string(predicate), {Kind::kPred, 1, 1}});
    function_->body.push_back(make_instruction(
        Op::kSetp, {"eq", "b32"},
        {Operand::of_register(predicate), branch.operands[0], {.bits = i}}, branch.line));
    function_->body.push_back(make_instruction(Op::kBra, {}, {targets[i]}, branch.line));
    function_->body.back().guard = predicate;
  }
  function_->body.push_back(make_instruction(Op::kBra, {}, {targets.back()}, branch.line));
}

void Parser::instruction() {
  Instruction result;
  result.line = peek().line;
  result.source_line = source_line_;
  result.source_file = source_file_;
  result.inlined = inlined_;
  if (accept("@")) {
    result.guard_negated = accept("!");
    const std::string name = identifier("a predicate");
    const Symbol* symbol = lookup(name);
    if (symbol == nullptr || symbol->kind != Symbol::kRegister ||
        function_->registers[symbol->index].type.kind != Kind::kPred) {
      error("'" + name + "' is not a predicate");
    }
    result.guard = symbol->index;
  }
  result.name = identifier("an instruction");
  while (peek().kind == TokenKind::kDot) result.modifiers.emplace_back(take().text);
  result.entry = find_opcode(result);
  takes_parts_ = traits(result).parts;
  while (!accept(";")) {
    if (peek().kind == TokenKind::kEnd) error("instruction without an end");
    if (result.operands.size() >= kMaxOperands) error("too many operands");
    const bool list = result.is(Op::kCall) && accept("(");
    const auto* uses = result.entry == nullptr ? nullptr : &result.entry->operands;
    const std::size_t k = result.operands.size();
    const bool address = uses != nullptr && k < uses->size() && is_address((*uses)[k].use);
    result.operands.push_back(list ? elements(")") : operand(address));
    if (!accept(",") && !is_punct(";")) error("expected ',' or ';', found " + describe());
  }
  if (result.is(Op::kBrx)) return lower_indexed_branch(std::move(result));
  if (result.is(Op::kCall)) {
    // The last operand of a call by address names the possible targets.
    if (!result.operands.empty() && result.operands.back().form == Operand::Form::kLabel) {
      const LabelUse use = label_uses_[result.operands.back().index];
      if (const auto* targets = find_targets(use)) {
        label_uses_.pop_back();
        result.operands.back() = Operand::of(Operand::Form::kVector, *targets);
      }
    }
  } else {
    for (Operand& operand : result.operands) {
      if (operand.form != Operand::Form::kFunction) continue;
      operand.form = Operand::Form::kInteger;
      operand.bits = function_address(address_taken(operand.index));
    }
  }
  if (result.is(Op::kRet)) move_results(result);
  expose_carry(result);
  function_->body.push_back(std::move(result));
}

/// Makes the carry flag explicit as a predicate: a second result of writers, the last operand of
/// readers.
void Parser::expose_carry(Instruction& instruction) {
  if (instruction.entry == nullptr || instruction.operands.empty()) return;
  const bool reads = instruction.entry->reads_carry();
  const bool writes = has_modifier(instruction, "cc");
  if (!reads && !writes) return;
  if (carry_ < 0) {
    carry_ = static_cast<std::int32_t>(function_->registers.size());
    function_->registers.push_back({"%cc", {Kind::kPred, 1, 1}});
  }
  const Operand carry = Operand::of_register(carry_);
  Operand& result = instruction.operands[0];
  if (writes) result = Operand::of(Operand::Form::kPair, {result, carry});
  if (reads) instruction.operands.push_back(carry);
}

/// In brackets a[2] is an element; elsewhere it is its address.
Operand Parser::operand(bool address) {
  if (accept("{")) return elements("}");
  if (accept("[")) return memory();
  Operand result = atom();
  if (result.form == Operand::Form::kVariable && accept("[")) {
    const auto& array = module_.variables[result.index];
    result.bits += expression().bits * array.element;
    expect("]");
    if (!address) return result;
    const std::uint64_t offset = std::exchange(result.bits, 0);
    return {.form = Operand::Form::kMemory, .bits = offset, .elements = {std::move(result)}};
  }
  if (accept("|")) return Operand::of(Operand::Form::kPair, {std::move(result), atom()});
  return result;
}

Operand Parser::elements(std::string_view close) {
  Operand result{.form = Operand::Form::kVector};
  while (!accept(close)) {
    if (result.elements.size() >= kMaxOperands) error("too many operands");
    result.elements.push_back(atom());
    if (!accept(",") && !is_punct(close)) error("expected ',', found " + describe());
  }
  return result;
}

Operand Parser::memory() {
  Operand result{.form = Operand::Form::kMemory};
  Operand base = atom();
  if (base.form != Operand::Form::kRegister && base.form != Operand::Form::kVariable &&
      base.form != Operand::Form::kInteger) {
    error("unsupported address");
  }
  result.bits = std::exchange(base.bits, 0);
  if (base.form == Operand::Form::kInteger) std::swap(result.bits, base.bits);
  result.elements.push_back(std::move(base));
  if (accept("+") || is_punct("-")) result.bits += expression().bits;
  if (accept(",")) {
    expect("{");
    result.elements.push_back(elements("}"));
  }
  expect("]");
  return result;
}

/// The whole register, or the component that a letter names.
Operand Parser::vector_register(const Symbol& symbol) {
  Operand whole{.form = Operand::Form::kVector};
  for (int k = 0; k < symbol.count; ++k) {
    whole.elements.push_back(Operand::of_register(symbol.index + k));
  }
  if (peek().kind != TokenKind::kDot || !peek().glued) return whole;
  const Token letter = take();
  const std::size_t place = std::string_view("xyzwrgba").find(letter.text);
  if (place > 7 || letter.text.size() != 1 || place % 4 >= whole.elements.size()) {
    fail(letter.line, "a vector register has no part '." + std::string(letter.text) + "'");
  }
  return whole.elements[place % 4];
}

/// A register, or the part of it that a video instruction selects.
Operand Parser::plain_register(int index) {
  Operand result = Operand::of_register(index);
  if (!takes_parts_ || peek().kind != TokenKind::kDot || !peek().glued) return result;
  const Token token = take();
  const bool bytes = token.text.front() == 'b';
  const std::string_view digits = token.text.substr(1);
  const std::size_t most = bytes ? 4 : 2;
  const char last = bytes ? '7' : '3';
  if ((!bytes && token.text.front() != 'h') || digits.empty() || digits.size() > most ||
      !std::ranges::all_of(digits, [&](char c) { return c >= '0' && c <= last; })) {
    fail(token.line, "a register has no part '." + std::string(token.text) + "'");
  }
  result.parts.bits = bytes ? 8 : 16;
  result.parts.count = static_cast<std::uint8_t>(digits.size());
  std::transform(digits.rbegin(), digits.rend(), result.parts.at.begin(),
                 [](char c) { return static_cast<std::uint8_t>(c - '0'); });
  return result;
}

/// One component, or all four for the plain name.
Operand Parser::special_register(const std::string& name, std::uint32_t line) {
  if (const auto special = parse_special(name)) {
    return {.form = Operand::Form::kSpecial, .index = static_cast<std::int32_t>(*special)};
  }
  if (!parse_special(name + ".x")) fail(line, "unknown register '" + name + "'");
  Operand result{.form = Operand::Form::kVector};
  for (const char* part : {".x", ".y", ".z", ".w"}) {
    result.elements.push_back(special_register(name + part, line));
  }
  return result;
}

Operand Parser::atom() {
  Operand result;
  std::size_t signs = 0;
  const auto is_next = [&](std::string_view any) {
    const Token& next = peek(signs);
    return next.kind == TokenKind::kPunct && any.find(next.text) != std::string_view::npos;
  };
  while (is_next("-+~!")) ++signs;
  const Token& number = peek(signs);
  if (number.kind == TokenKind::kInteger || number.kind == TokenKind::kFloat64 ||
      number.text == "WARP_SZ" || is_next("(")) {
    const Constant value = constant();
    return {.form = value.is_real ? Operand::Form::kFloat64 : Operand::Form::kInteger,
            .bits = value.bits};
  }
  const Token token = take();
  if (token.kind == TokenKind::kPunct && token.text == "!") {
    if (peek().kind == TokenKind::kPunct) error("expected a predicate, found " + describe());
    result = atom();
    if (!result.is_register() || result.negated) error("'!' needs a predicate");
    result.negated = true;
    return result;
  }
  if (token.kind == TokenKind::kPunct && token.text == "-") {
    if (peek().kind == TokenKind::kPunct) error("expected a number, found " + describe());
    result = atom();
    if (result.form == Operand::Form::kFloat32) {
      result.bits ^= 1ULL << 31;
    } else if (result.is_register() && takes_parts_ && !result.negated) {
      result.minus = !result.minus;
    } else {
      error("expected a number after '-'");
    }
    return result;
  }
  if (token.kind == TokenKind::kFloat32) {
    return {.form = Operand::Form::kFloat32, .bits = token.bits};
  }
  if (token.kind != TokenKind::kIdentifier) {
    fail(token.line, "unexpected '" + std::string(token.text) + "'");
  }
  std::string name(token.text);
  if (name == "_") return {.form = Operand::Form::kSink};
  if (const Symbol* symbol = lookup(name)) {
    result.index = symbol->index;
    switch (symbol->kind) {
      case Symbol::kRegister:
        return plain_register(symbol->index);
      case Symbol::kVector:
        return vector_register(*symbol);
      case Symbol::kFunction:
        result.form = Operand::Form::kFunction;
        return result;
      case Symbol::kVariable:
        result.form = Operand::Form::kVariable;
        if (accept("+")) result.bits = expression().bits;
        return result;
      case Symbol::kBroken:
        throw Error(broken_[symbol->index]);
      case Symbol::kLabel:
        break;
    }
  } else if (name[0] == '%') {
    if (peek().kind == TokenKind::kDot && peek().glued) name += "." + std::string(take().text);
    return special_register(name, token.line);
  }
  return label_use(name);
}

}  // namespace braid::cpu::ptx
