#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/ptx/ptx_lexer.h"

namespace braid::cpu::ptx {

/// A recursive-descent parser of PTX modules: declarations are in ptx_parser.cpp, function bodies
/// in ptx_parser_body.cpp, constants in ptx_constants.cpp. Nested `{ }` blocks are scopes of
/// registers, variables and labels.
class Parser {
 public:
  explicit Parser(std::string_view text);
  Module run();

 private:
  static constexpr std::uint64_t kMaxVariableBytes = 1ULL << 30;

  struct Symbol {
    enum SymbolKind : std::uint8_t {
      kRegister,
      kVector,  ///< `count` registers from `index` on
      kVariable,
      kLabel,
      kFunction,
      kBroken
    } kind;
    int index;
    int count = 1;
  };
  struct Scope {
    int parent;
    std::unordered_map<std::string, Symbol> symbols;
  };
  /// A use of a label, resolved at the end of the function.
  struct LabelUse {
    std::string name;
    int scope;
    std::uint32_t line;
  };

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& take();
  [[nodiscard]] bool is_punct(std::string_view text) const;
  bool accept(std::string_view punct);
  bool accept_dot(std::string_view name);
  void expect(std::string_view punct);
  std::string identifier(const char* what);
  std::uint64_t integer();
  [[nodiscard]] std::string describe() const;
  [[noreturn]] void error(const std::string& message) const;

  void declare(const std::string& name, Symbol symbol);
  [[nodiscard]] const Symbol* lookup(const std::string& name) const;
  void push_scope();
  void pop_scope();

  void declaration();
  void give_up(std::size_t start, std::size_t variables, const Error& why);
  void skip_body();
  [[nodiscard]] bool starts_function() const;
  void skip_section();
  Variable declarator(Space space, std::uint32_t& align, std::optional<Type>& type,
                      unsigned& vector);
  void alias();
  void initializer(Variable& variable, Type type);
  bool initial_address(Variable& variable, std::uint64_t at, unsigned bytes);
  void initial_number(Variable& variable, std::uint64_t at, Type type);
  static void store_initial(Variable& variable, std::uint64_t at, Type type, std::uint64_t bits);
  void variables(bool external);
  std::vector<int> parameter_list(Function* owner);
  std::array<std::uint32_t, 3> extent(const std::string& of, std::uint64_t most);
  void function(bool is_entry);

  void body(Function& function);
  void block();
  void registers();
  using SourcePlace = std::array<std::uint64_t, 3>;  ///< FILE, LINE and COLUMN of a .loc
  [[nodiscard]] std::uint32_t source_line(const SourcePlace& place) const;
  void location();
  /// The origin of inlined code.
  struct Inlined {
    std::uint64_t file, line;
    std::string_view function;  ///< a label in .debug_str
    auto operator<=>(const Inlined&) const = default;
  };
  std::uint32_t inlined_place(const Inlined& place);
  void file();
  void name_sources();
  void label(const std::string& name);
  void branch_targets(const std::string& name);
  void call_prototype(const std::string& name);
  void call_targets(const std::string& name);
  [[nodiscard]] const std::vector<Operand>* find_targets(const LabelUse& use) const;
  void move_results(const Instruction& where);
  int address_taken(int function);
  void instruction();
  void resolve_labels(std::vector<Operand>& operands);
  void lower_indexed_branch(Instruction branch);
  void expose_carry(Instruction& instruction);
  Operand operand(bool address);
  Operand elements(std::string_view close);
  Operand atom();
  Operand vector_register(const Symbol& symbol);
  Operand plain_register(int index);
  static Operand special_register(const std::string& name, std::uint32_t line);

  // Constants: ptx_constants.cpp
  /// As in C, but of 64 bits.
  struct Constant {
    std::uint64_t bits = 0;
    bool is_unsigned = false;
    bool is_real = false;  ///< `bits` encode a double
  };
  struct Operator;
  [[nodiscard]] const Operator* find_operator() const;
  [[nodiscard]] Constant apply(const Operator& how, const Constant& a, const Constant& b) const;
  Constant expression();
  Constant constant(int strength = 0);
  Constant constant_atom();
  Constant integer_atom();

  Operand memory();
  Operand label_use(const std::string& name);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Module module_;
  std::vector<Scope> scopes_;
  int scope_ = 0;
  int depth_ = 0;
  Function* function_ = nullptr;
  /// Parameters and results that are registers of a function, each with its variable.
  struct RegisterParameter {
    int register_index;
    int variable;
  };
  std::vector<RegisterParameter> register_arguments_, register_results_;
  std::vector<Error> broken_;  ///< errors of unusable module variables
  std::vector<LabelUse> label_uses_;
  std::uint32_t source_line_ = 0;
  std::uint32_t inlined_ = 0;  ///< origin of the code of the last .loc, or 0
  std::map<Inlined, std::uint32_t> inlined_places_;
  std::map<std::uint64_t, std::string_view> files_;
  std::map<std::string_view, std::string> strings_;  ///< of .debug_str, by label
  std::uint64_t source_file_ = 0;  ///< file whose lines count: the function's; 0 before its first
  std::map<SourcePlace, std::uint32_t> places_;  ///< the line of source_file_ that it stands for
  std::int32_t carry_ = -1;   ///< predicate that stands for the carry flag, once used
  bool takes_parts_ = false;  ///< for the current instruction (ptx::Traits::parts)
  std::map<std::pair<int, std::string>, std::vector<Operand>> target_tables_;
};

}  // namespace braid::cpu::ptx
