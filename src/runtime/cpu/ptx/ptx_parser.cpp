#include "runtime/cpu/ptx/ptx_parser.h"

#include <algorithm>
#include <bit>

namespace braid::cpu::ptx {

Module parse(std::string_view text) { return Parser(text).run(); }

Parser::Parser(std::string_view text) : tokens_(tokenize(text)) { scopes_.push_back({-1, {}}); }

void Parser::error(const std::string& message) const {
  const Token& found = peek();
  if (found.kind != TokenKind::kBad) fail(found.line, message);
  fail(found.line,
       std::string(found.text) + (found.bits == 0 ? "" : " " + std::to_string(found.bits)));
}

const Token& Parser::take() {
  const Token& token = tokens_[at_];
  if (token.kind == TokenKind::kBad) error("");
  if (token.kind != TokenKind::kEnd) ++at_;
  return token;
}

bool Parser::is_punct(std::string_view text) const {
  return peek().kind == TokenKind::kPunct && peek().text == text;
}

bool Parser::accept(std::string_view punct) {
  if (!is_punct(punct)) return false;
  take();
  return true;
}

bool Parser::accept_dot(std::string_view name) {
  if (peek().kind != TokenKind::kDot || peek().text != name) return false;
  take();
  return true;
}

void Parser::expect(std::string_view punct) {
  if (!accept(punct)) error("expected '" + std::string(punct) + "', found " + describe());
}

std::string Parser::identifier(const char* what) {
  if (peek().kind != TokenKind::kIdentifier) {
    error(std::string("expected ") + what + ", found " + describe());
  }
  return std::string(take().text);
}

std::uint64_t Parser::integer() {
  if (peek().kind != TokenKind::kInteger) error("expected an integer, found " + describe());
  return take().bits;
}

std::string Parser::describe() const {
  if (peek().kind == TokenKind::kEnd) return "the end of the text";
  return "'" + std::string(peek().kind == TokenKind::kDot ? "." : "") + std::string(peek().text) +
         "'";
}

void Parser::declare(const std::string& name, Symbol symbol) {
  const auto [it, fresh] = scopes_[scope_].symbols.emplace(name, symbol);
  // Functions and external variables may be redeclared.
  if (!fresh && !(symbol.kind == it->second.kind && symbol.index == it->second.index)) {
    error("'" + name + "' is declared twice");
  }
}

const Parser::Symbol* Parser::lookup(const std::string& name) const {
  for (int scope = scope_; scope >= 0; scope = scopes_[scope].parent) {
    const auto it = scopes_[scope].symbols.find(name);
    if (it != scopes_[scope].symbols.end()) return &it->second;
  }
  return nullptr;
}

void Parser::push_scope() {
  if (++depth_ > 200) error("blocks are nested too deeply");
  scopes_.push_back({scope_, {}});
  scope_ = static_cast<int>(scopes_.size()) - 1;
}

void Parser::pop_scope() {
  --depth_;
  scope_ = scopes_[scope_].parent;
}

Module Parser::run() {
  while (peek().kind != TokenKind::kEnd) {
    if (peek().kind != TokenKind::kDot) error("expected a directive, found " + describe());
    const std::string_view name = peek().text;
    if (name == "version") {
      take();
      if (peek().kind != TokenKind::kFloat64 && peek().kind != TokenKind::kInteger) {
        error("expected a version number, found " + describe());
      }
      take();
    } else if (name == "target") {
      take();
      do {
        identifier("a target");
      } while (accept(","));
    } else if (name == "address_size") {
      take();
      if (integer() != 64) error("only 64-bit addresses are supported");
    } else if (name == "section") {
      skip_section();
    } else if (name == "pragma") {
      while (peek().kind != TokenKind::kEnd && !accept(";")) take();
    } else if (name == "alias") {
      alias();
    } else if (name == "file") {
      file();
    } else {
      const std::size_t start = at_;
      const std::size_t variables = module_.variables.size();
      try {
        declaration();
      } catch (const Error& why) {
        give_up(start, variables, why);
      }
    }
  }
  name_sources();
  return std::move(module_);
}

/// .alias NAME, FUNCTION; NAME must be declared before.
void Parser::alias() {
  take();
  const auto function = [&]() -> Function& {
    const Symbol* symbol = lookup(identifier("a function name"));
    if (symbol == nullptr || symbol->kind != Symbol::kFunction) error("not a function");
    return module_.functions[symbol->index];
  };
  Function& alias = function();
  expect(",");
  Function copy = function();
  copy.name = alias.name;
  alias = std::move(copy);
  expect(";");
}

/// Skips an unreadable declaration at `start`; users of what it declares report the error.
void Parser::give_up(std::size_t start, std::size_t variables, const Error& why) {
  scope_ = depth_ = 0;
  function_ = nullptr;
  bool is_entry = false;
  bool is_function = false;
  int open = 0;
  for (at_ = start; peek().kind != TokenKind::kEnd; ++at_) {
    if (is_punct("(")) ++open;
    if (is_punct(")")) --open;
    if (peek().kind == TokenKind::kIdentifier && open == 0) break;
    is_entry = is_entry || (peek().kind == TokenKind::kDot && peek().text == "entry");
    is_function =
        is_entry || is_function || (peek().kind == TokenKind::kDot && peek().text == "func");
  }
  if (peek().kind == TokenKind::kEnd) throw Error(why);
  const std::string name(peek().text);
  if (!is_function) {
    while (peek().kind != TokenKind::kEnd && !is_punct(";") && !starts_function()) ++at_;
    accept(";");
    scopes_[0].symbols[name] = {Symbol::kBroken, static_cast<int>(broken_.size())};
    broken_.push_back(why);
    return;
  }
  skip_body();
  // Variables of its body take no space.
  module_.variables.resize(variables);
  const auto known =
      std::ranges::find_if(module_.functions, [&](const Function& f) { return f.name == name; });
  const auto index = static_cast<std::size_t>(known - module_.functions.begin());
  if (known == module_.functions.end()) {
    module_.functions.emplace_back();
    scopes_[0].symbols[name] = {Symbol::kFunction, static_cast<int>(index)};
  }
  Function& function = module_.functions[index];
  function = {};
  function.name = name;
  function.is_entry = is_entry;
  function.has_body = true;
  function.error = why;
}

/// Whether the next token can only begin a module-level declaration.
bool Parser::starts_function() const {
  const std::string_view text = peek().text;
  if (peek().kind != TokenKind::kDot) return false;
  // Behind a name it is a modifier, as in `ld.weak`.
  if (peek().glued && at_ > 0 && tokens_[at_ - 1].kind != TokenKind::kPunct) return false;
  return text == "entry" || text == "func" || text == "visible" || text == "weak";
}

/// Skips from a function's name to the end of its body, or to the next function if braces do not
/// match.
void Parser::skip_body() {
  int open = 0;
  for (; peek().kind != TokenKind::kEnd; ++at_) {
    const std::string_view text = peek().text;
    if (starts_function()) return;
    if (peek().kind != TokenKind::kPunct) continue;
    if (text == "{") ++open;
    if (text == "}") --open;
    if ((text == "}" || text == ";") && open <= 0) {
      ++at_;
      return;
    }
  }
}

void Parser::declaration() {
  bool external = false;
  while (peek().kind == TokenKind::kDot) {
    const std::string_view name = peek().text;
    if (name == "visible" || name == "weak" || name == "common") {
      take();
    } else if (name == "extern") {
      external = true;
      take();
    } else if (name == "entry" || name == "func") {
      function(name == "entry");
      return;
    } else if (name == "global" || name == "const" || name == "shared") {
      variables(external);
      return;
    } else {
      error("unknown directive '." + std::string(name) + "'");
    }
  }
  error("expected a declaration, found " + describe());
}

/// Parses a variable's declarator behind the space: alignment, type, name and array suffix.
Variable Parser::declarator(Space space, std::uint32_t& align, std::optional<Type>& type,
                            unsigned& vector) {
  std::string_view type_name;
  while (peek().kind == TokenKind::kDot) {
    const std::string_view name = peek().text;
    if (accept_dot("align")) {
      const std::uint64_t value = integer();
      if (value == 0 || value > 4096 || (value & (value - 1)) != 0) error("bad alignment");
      align = static_cast<std::uint32_t>(value);
    } else if (name == "v2" || name == "v4") {
      vector = name == "v2" ? 2 : 4;
      take();
    } else if (accept_dot("attribute")) {
      expect("(");
      while (peek().kind != TokenKind::kEnd && !accept(")")) take();
    } else if (accept_dot("ptr")) {
      for (const char* pointee : {"global", "shared", "const", "local"}) accept_dot(pointee);
      if (accept_dot("align")) integer();
    } else if (const auto parsed = parse_type(name)) {
      type = parsed;
      type_name = take().text;
    } else {
      error("unknown directive '." + std::string(name) + "'");
    }
  }
  if (!type || type->kind == Kind::kPred) error("a variable needs a type");
  Variable variable;
  variable.space = space;
  variable.type = type_name;
  variable.line = peek().line;
  variable.name = identifier("a name");
  variable.element = type->total_bits() / 8;
  const std::uint64_t element = std::uint64_t{variable.element} * vector;
  variable.align = align != 0 ? align : static_cast<std::uint32_t>(element);
  variable.size = element;
  while (accept("[")) {
    if (accept("]")) {
      variable.dynamic = true;
      continue;
    }
    const std::uint64_t count = integer();
    if (count > kMaxVariableBytes || variable.size * count > kMaxVariableBytes) {
      error("'" + variable.name + "' is too large");
    }
    variable.size *= count;
    expect("]");
  }
  return variable;
}

/// Parses the values of a variable; they determine an open size.
void Parser::initializer(Variable& variable, Type type) {
  const unsigned bytes = type.total_bits() / 8;
  const bool open_size = std::exchange(variable.dynamic, false);
  variable.init.assign(variable.size, 0);
  std::uint64_t at = 0;
  int open = 0;
  do {
    if (accept("{")) {
      ++open;
      continue;
    }
    if (accept("}")) {
      --open;
      continue;
    }
    if (accept(",")) continue;
    if (open_size && at + bytes <= kMaxVariableBytes) variable.init.resize(at + bytes, 0);
    if (at + bytes > variable.init.size()) error("too many initial values");
    if (!initial_address(variable, at, bytes)) initial_number(variable, at, type);
    at += bytes;
  } while (open > 0);
  if (open_size) {
    // The last row of known length may be incomplete.
    variable.size = (at + variable.size - 1) / variable.size * variable.size;
    variable.init.resize(variable.size, 0);
  }
}

/// Parses x, x + 4, generic(x) + 4, or 0xff00(x), which is one byte of it. False if a number
/// follows.
bool Parser::initial_address(Variable& variable, std::uint64_t at, unsigned bytes) {
  Variable::Relocation address{at, 0, 0, bytes, 0};
  const bool generic = peek().kind == TokenKind::kIdentifier && peek().text == "generic";
  const bool masked = peek().kind == TokenKind::kInteger && peek(1).kind == TokenKind::kPunct &&
                      peek(1).text == "(";
  if (masked) {
    const std::uint64_t mask = integer();
    address.shift = mask == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(mask));
    if (bytes != 1 || mask != std::uint64_t{0xff} << address.shift) error("unsupported mask");
  } else if (generic) {
    take();
  }
  if (generic || masked) expect("(");
  if (peek().kind != TokenKind::kIdentifier) {
    if (!generic && !masked) return false;
    error("expected a variable, found " + describe());
  }
  const Symbol* symbol = lookup(std::string(peek().text));
  if (symbol != nullptr && symbol->kind == Symbol::kBroken) {
    throw Error(broken_[symbol->index]);
  }
  if (symbol != nullptr && symbol->kind == Symbol::kFunction && bytes == 8 && !generic && !masked) {
    take();
    store_initial(variable, at, {Kind::kBits, 64, 1},
                  function_address(address_taken(symbol->index)));
    return true;
  }
  if (symbol == nullptr || symbol->kind != Symbol::kVariable || (bytes != 8 && !masked)) {
    error("unsupported initial value " + describe());
  }
  take();
  address.variable = symbol->index;
  const auto addend = [&] {
    if (is_punct("+") || is_punct("-")) {
      address.addend += static_cast<std::int64_t>(expression().bits);
    }
  };
  addend();
  if (generic || masked) expect(")");
  addend();
  variable.relocations.push_back(address);
  return true;
}

void Parser::initial_number(Variable& variable, std::uint64_t at, Type type) {
  const bool minus = is_punct("-");
  if (peek(minus ? 1 : 0).kind == TokenKind::kFloat32) {
    if (minus) take();
    if (type.bits != 32) error("unsupported initial value");
    return store_initial(variable, at, type, take().bits ^ (minus ? 1ULL << 31 : 0));
  }
  const Constant value = constant();
  std::uint64_t bits = value.bits;
  if (value.is_real && type.is_float() && type.bits == 32) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  } else if (value.is_real ? type.bits != 64 : type.is_float()) {
    error("unsupported initial value");
  }
  store_initial(variable, at, type, bits);
}

void Parser::store_initial(Variable& variable, std::uint64_t at, Type type, std::uint64_t bits) {
  const unsigned bytes = type.total_bits() / 8;
  for (unsigned i = 0; i < bytes && i < 8; ++i) {
    variable.init[at + i] = static_cast<std::uint8_t>(bits >> (8 * i));
  }
}

void Parser::variables(bool external) {
  const std::string_view name = take().text;
  const Space space = name == "global"   ? Space::kGlobal
                      : name == "const"  ? Space::kConst
                      : name == "shared" ? Space::kShared
                      : name == "local"  ? Space::kLocal
                                         : Space::kParam;
  std::uint32_t align = 0;
  std::optional<Type> type;
  unsigned vector = 1;
  do {
    Variable variable = declarator(space, align, type, vector);
    if (external && space != Space::kShared) {
      error("external variable '" + variable.name + "' is not supported");
    }
    if (accept("=")) {
      if (space != Space::kGlobal && space != Space::kConst) error("unexpected initial value");
      initializer(variable, *type);
    }
    if (variable.dynamic && !(external && space == Space::kShared)) {
      error("array '" + variable.name + "' has no size");
    }
    if (variable.dynamic) variable.size = 0;
    const Symbol* old = lookup(variable.name);
    if (old != nullptr && external && old->kind == Symbol::kVariable) continue;
    const int index = static_cast<int>(module_.variables.size());
    declare(variable.name, {Symbol::kVariable, index});
    module_.variables.push_back(std::move(variable));
    if (function_ != nullptr) function_->locals.push_back(index);
  } while (accept(","));
  expect(";");
}

/// Parses the parameters of `owner`, or of a prototype, whose names are ignored. A function's
/// register parameter is a variable for the caller.
std::vector<int> Parser::parameter_list(Function* owner) {
  std::vector<int> list;
  expect("(");
  if (accept(")")) return list;
  do {
    const bool in_register = accept_dot("reg");
    if (!in_register && !accept_dot("param")) error("expected .param, found " + describe());
    std::uint32_t align = 0;
    std::optional<Type> type;
    unsigned vector = 1;
    Variable variable = declarator(Space::kParam, align, type, vector);
    if (variable.dynamic) error("parameter '" + variable.name + "' has no size");
    const int index = static_cast<int>(module_.variables.size());
    list.push_back(index);
    if (in_register && owner != nullptr) {
      if (type->total_bits() > 64 || vector != 1) error("unsupported type of a register");
      const auto number = static_cast<int>(owner->registers.size());
      owner->registers.push_back({variable.name, *type});
      declare(variable.name, {Symbol::kRegister, number});
      register_arguments_.push_back({number, index});
    } else if (owner != nullptr) {
      declare(variable.name, {Symbol::kVariable, index});
    }
    module_.variables.push_back(std::move(variable));
  } while (accept(","));
  expect(")");
  return list;
}

/// Parses up to three numbers; missing ones are 1.
std::array<std::uint32_t, 3> Parser::extent(const std::string& of, std::uint64_t most) {
  std::array<std::uint32_t, 3> result{1, 1, 1};
  std::size_t axis = 0;
  do {
    const std::uint64_t value = integer();
    if (axis == 3 || value == 0 || value > most) error("bad " + of + " extent");
    result[axis++] = static_cast<std::uint32_t>(value);
  } while (accept(","));
  return result;
}

void Parser::function(bool is_entry) {
  Function result;
  result.line = take().line;
  result.is_entry = is_entry;
  push_scope();
  register_arguments_.clear();
  if (is_punct("(")) result.results = parameter_list(&result);
  register_results_ = std::exchange(register_arguments_, {});
  result.name = identifier("a function name");
  if (is_punct("(")) result.params = parameter_list(&result);
  while (peek().kind == TokenKind::kDot) {
    const std::string_view name = take().text;
    if (name == "maxntid") {
      result.max_threads = extent("block", 1024);
    } else if (name == "reqntid") {
      result.required_threads = extent("block", 1024);
    } else if (name == "reqnctapercluster") {
      result.required_cluster = extent("cluster", kMaxClusterBlocks);
    } else if (name == "maxclusterrank") {
      result.max_cluster = static_cast<std::uint32_t>(integer());
    } else if (name == "explicitcluster") {
      result.explicit_cluster = true;
    } else if (name == "maxnreg") {
      result.max_registers = static_cast<std::uint32_t>(integer());
    } else if (name == "minnctapersm") {
      result.min_blocks = static_cast<std::uint32_t>(integer());
    } else if (name == "maxnctapersm") {
      integer();
    } else if (name == "pragma") {
      while (peek().kind == TokenKind::kString || is_punct(",")) take();
      expect(";");
    } else if (name != "noreturn") {
      error("unknown directive '." + std::string(name) + "'");
    }
  }
  const auto known = std::ranges::find_if(module_.functions,
                                          [&](const Function& f) { return f.name == result.name; });
  if (known != module_.functions.end() && known->has_body) {
    error("function '" + result.name + "' is defined twice");
  }
  std::size_t index = static_cast<std::size_t>(known - module_.functions.begin());
  if (known == module_.functions.end()) {
    const int scope = std::exchange(scope_, 0);
    declare(result.name, {Symbol::kFunction, static_cast<int>(index)});
    scope_ = scope;
    module_.functions.push_back(result);
  }
  if (!accept(";")) {
    result.has_body = true;
    expect("{");
    body(result);
  }
  module_.functions[index] = std::move(result);
  pop_scope();
}

}  // namespace braid::cpu::ptx
