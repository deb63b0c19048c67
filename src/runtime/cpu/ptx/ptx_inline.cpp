#include <algorithm>
#include <map>
#include <utility>

#include "runtime/cpu/ptx/opcodes.h"

namespace braid::cpu::ptx {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxBody = 1 << 20;

/// Copies callee bodies into one function; registers, labels and variables get new indices.
class Inliner {
 public:
  Inliner(Module& module, Function& entry) : module_(module), out_(entry) {}

  void run() {
    const Function source = out_;
    out_.body.clear();
    out_.labels.clear();
    out_.locals.clear();
    out_.registers.clear();
    copy(source, {}, -1, 0);
  }

 private:
  using VariableMap = std::map<int, int>;

  void copy(const Function& source, VariableMap variables, int return_label, int depth) {
    if (depth > kMaxDepth) {
      fail(source.line, "calls of '" + source.name + "' are recursive or nested too deeply");
    }
    const auto register_base = static_cast<std::int32_t>(out_.registers.size());
    out_.registers.insert(out_.registers.end(), source.registers.begin(), source.registers.end());
    const auto label_base = static_cast<std::int32_t>(out_.labels.size());
    out_.labels.resize(out_.labels.size() + source.labels.size());
    for (const int local : source.locals) {
      int index = local;
      // Private variables exist once per inlined copy, all others once.
      const Space space = module_.variables[local].space;
      if (depth > 0 && (space == Space::kLocal || space == Space::kParam)) {
        index = static_cast<int>(module_.variables.size());
        module_.variables.push_back(Variable(module_.variables[local]));
        variables[local] = index;
      }
      out_.locals.push_back(index);
    }
    for (std::size_t i = 0; i <= source.body.size(); ++i) {
      for (std::size_t l = 0; l < source.labels.size(); ++l) {
        if (source.labels[l] == i) {
          out_.labels[static_cast<std::size_t>(label_base) + l] =
              static_cast<std::uint32_t>(out_.body.size());
        }
      }
      if (i == source.body.size()) break;
      if (out_.body.size() > kMaxBody) fail(source.line, "function is too large");
      Instruction instruction = source.body[i];
      if (instruction.guard >= 0) instruction.guard += register_base;
      for (Operand& operand : instruction.operands) {
        shift(operand, register_base, label_base, variables);
      }
      if (instruction.is(Op::kCall)) {
        call(instruction, depth);
      } else if (instruction.is(Op::kRet) && return_label >= 0) {
        out_.body.push_back(in_place_of(instruction, Op::kBra, {label(return_label)}));
      } else {
        out_.body.push_back(std::move(instruction));
      }
    }
  }

  static Instruction in_place_of(const Instruction& old, Op op, std::vector<Operand> operands) {
    Instruction result = make_instruction(op, {}, std::move(operands), old.line);
    result.guard = old.guard;
    result.guard_negated = old.guard_negated;
    result.source_line = old.source_line;
    result.source_file = old.source_file;
    result.inlined = old.inlined;
    return result;
  }

  static void shift(Operand& operand, std::int32_t registers, std::int32_t labels,
                    const VariableMap& variables) {
    if (operand.form == Operand::Form::kRegister) operand.index += registers;
    if (operand.form == Operand::Form::kLabel) operand.index += labels;
    if (operand.form == Operand::Form::kVariable) {
      const auto it = variables.find(operand.index);
      if (it != variables.end()) operand.index = it->second;
    }
    for (Operand& element : operand.elements) shift(element, registers, labels, variables);
  }

  Function& function(const Operand& operand) const { return module_.functions[operand.index]; }
  Variable& variable(int index) const { return module_.variables[index]; }

  int new_label() {
    out_.labels.push_back(0);
    return static_cast<int>(out_.labels.size()) - 1;
  }
  void place(int label) { out_.labels[label] = static_cast<std::uint32_t>(out_.body.size()); }
  static Operand label(int index) { return {.form = Operand::Form::kLabel, .index = index}; }

  [[noreturn]] static void bad(const Instruction& call, const std::string& why) {
    fail(call.line, "call: " + why);
  }

  /// A call: its arguments and results as written, and as variables.
  struct Call {
    const Instruction& instruction;
    std::vector<Operand> results, arguments;
    std::vector<int> result_variables, argument_variables;
  };

  void call(const Instruction& instruction, int depth) {
    Call call{instruction, {}, {}, {}, {}};
    std::size_t at = 0;
    const auto& operands = instruction.operands;
    const auto list = [&](std::vector<Operand>& elements) {
      if (at < operands.size() && operands[at].form == Operand::Form::kVector) {
        elements = operands[at++].elements;
      }
    };
    list(call.results);
    if (at >= operands.size()) bad(instruction, "expected a function");
    const Operand& target = operands[at++];
    const bool direct = target.form == Operand::Form::kFunction;
    if (!direct && !target.is_register()) bad(instruction, "expected a function");
    if (direct || at + 1 < operands.size()) list(call.arguments);
    std::vector<int> callees;
    if (direct) {
      callees = {target.index};
    } else if (at < operands.size()) {
      callees = candidates(call, operands[at++]);
    }
    if (at != operands.size()) bad(instruction, "unexpected operands");
    if (!direct && callees.empty()) bad(instruction, "no function that it may call");
    if (direct && function(target).name == "__assertfail") {
      out_.body.push_back(in_place_of(instruction, Op::kTrap, {}));
      return;
    }
    const int after = new_label();
    if (instruction.guard >= 0) {
      // Lanes whose guard is false branch around the call.
      out_.body.push_back(in_place_of(instruction, Op::kBra, {label(after)}));
      out_.body.back().guard_negated = !instruction.guard_negated;
    }
    for (const int callee : callees) {
      const int next = new_label();
      if (!direct) skip_unless(instruction, target, callee, next);
      inline_one(call, module_.functions[callee], depth);
      if (!direct) {
        out_.body.push_back(make_instruction(Op::kBra, {}, {label(after)}, instruction.line));
      }
      place(next);
    }
    if (!direct) out_.body.push_back(make_instruction(Op::kTrap, {}, {}, instruction.line));
    place(after);
  }

  /// Possible targets of a call by address: its list, or functions of its prototype whose address
  /// is taken anywhere.
  std::vector<int> candidates(const Call& call, const Operand& list) const {
    std::vector<int> result;
    if (list.form == Operand::Form::kVector) {
      for (const Operand& target : list.elements) {
        if (target.form == Operand::Form::kFunction) result.push_back(target.index);
      }
      return result;
    }
    if (list.form != Operand::Form::kFunction) bad(call.instruction, "expected a prototype");
    const Function& prototype = function(list);
    const auto alike = [&](const std::vector<int>& a, const std::vector<int>& b) {
      return std::ranges::equal(a, b,
                                [&](int x, int y) { return variable(x).size == variable(y).size; });
    };
    for (const int known : module_.addressed) {
      const Function& one = module_.functions[known];
      if (alike(one.params, prototype.params) && alike(one.results, prototype.results)) {
        result.push_back(known);
      }
    }
    return result;
  }

  void skip_unless(const Instruction& call, const Operand& target, int callee, int next) {
    const Operand predicate =
        Operand::of_register(static_cast<std::int32_t>(out_.registers.size()));
    out_.registers.push_back({"%call" + std::to_string(predicate.index), {Kind::kPred, 1, 1}});
    out_.body.push_back(make_instruction(Op::kSetp, {"ne", "b64"},
                                         {predicate, target, {.bits = function_address(callee)}},
                                         call.line));
    out_.body.push_back(make_instruction(Op::kBra, {}, {label(next)}, call.line));
    out_.body.back().guard = predicate.index;
  }

  void inline_one(Call& call, const Function& known, int depth) {
    const Function callee = known;
    if (callee.error) throw Error(*callee.error);
    if (!callee.has_body || callee.is_entry) {
      bad(call.instruction, "function '" + callee.name + "' has no body");
    }
    if (call.results.size() != callee.results.size() ||
        call.arguments.size() != callee.params.size()) {
      bad(call.instruction, "wrong number of parameters for '" + callee.name + "'");
    }
    VariableMap variables;
    call.result_variables = bind(call, call.results, callee.results, variables);
    call.argument_variables = bind(call, call.arguments, callee.params, variables);
    for (std::size_t n = 0; n < call.arguments.size(); ++n) {
      const Operand& argument = call.arguments[n];
      if (argument.form == Operand::Form::kVariable) continue;
      move(call, Op::kSt, call.argument_variables[n], argument);
    }
    const int back = new_label();
    copy(callee, variables, back, depth + 1);
    place(back);
    for (std::size_t n = 0; n < call.results.size(); ++n) {
      const Operand& result = call.results[n];
      if (result.is_register()) move(call, Op::kLd, call.result_variables[n], result);
    }
  }

  /// The variables for a function's parameters: those that the call names, or new ones for
  /// registers and constants.
  std::vector<int> bind(const Call& call, const std::vector<Operand>& actual,
                        const std::vector<int>& formal, VariableMap& variables) {
    std::vector<int> result;
    for (std::size_t n = 0; n < actual.size(); ++n) {
      const Variable wanted = variable(formal[n]);
      int given = actual[n].index;
      if (actual[n].form != Operand::Form::kVariable) {
        if (wanted.size != wanted.element) {
          bad(call.instruction, "parameter '" + wanted.name + "' must be a variable");
        }
        given = static_cast<int>(module_.variables.size());
        module_.variables.push_back(wanted);
        out_.locals.push_back(given);
      }
      if (variable(given).space != Space::kParam || variable(given).size < wanted.size) {
        bad(call.instruction, "parameter '" + wanted.name + "' does not fit");
      }
      variables[formal[n]] = given;
      result.push_back(given);
    }
    return result;
  }

  /// Moves a value between a register (or constant) and a parameter.
  void move(const Call& call, Op op, int place, const Operand& value) {
    std::vector<Operand> operands = {variable_in_brackets(place), value};
    if (op == Op::kLd) std::swap(operands[0], operands[1]);
    out_.body.push_back(make_instruction(op, {"param", variable(place).type}, std::move(operands),
                                         call.instruction.line));
  }

  Module& module_;
  Function& out_;
};

}  // namespace

void inline_calls(Module& module, Function& entry) {
  bool any = false;
  for (const Instruction& instruction : entry.body) any = any || instruction.is(Op::kCall);
  if (any) Inliner(module, entry).run();
}

}  // namespace braid::cpu::ptx
