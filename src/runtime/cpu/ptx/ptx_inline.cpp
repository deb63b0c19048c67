#include <map>

#include "runtime/cpu/ptx/opcodes.h"

namespace braid::cpu::ptx {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxBody = 1 << 20;

/// Copies callee bodies into one function: registers, labels and variables get new indices.
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
      const Space space = module_.variables[static_cast<std::size_t>(local)].space;
      if (depth > 0 && (space == Space::kLocal || space == Space::kParam)) {
        index = static_cast<int>(module_.variables.size());
        module_.variables.push_back(Variable(module_.variables[static_cast<std::size_t>(local)]));
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
        Operand target;
        target.form = Operand::Form::kLabel;
        target.index = return_label;
        out_.body.push_back(in_place_of(instruction, Op::kBra, {target}));
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

  void call(const Instruction& instruction, int depth) {
    const auto bad = [&](const std::string& why) { fail(instruction.line, "call: " + why); };
    std::vector<Operand> results;
    std::vector<Operand> arguments;
    std::size_t at = 0;
    const auto& operands = instruction.operands;
    if (at < operands.size() && operands[at].form == Operand::Form::kVector) {
      results = operands[at++].elements;
    }
    if (at >= operands.size() || operands[at].form != Operand::Form::kFunction) {
      bad("indirect calls are not supported");
    }
    const Function callee = module_.functions[static_cast<std::size_t>(operands[at++].index)];
    if (at < operands.size() && operands[at].form == Operand::Form::kVector) {
      arguments = operands[at++].elements;
    }
    if (at != operands.size()) bad("unexpected operands");
    if (callee.name == "__assertfail") {
      out_.body.push_back(in_place_of(instruction, Op::kTrap, {}));
      return;
    }
    if (callee.error) throw Error(*callee.error);
    if (!callee.has_body || callee.is_entry) bad("function '" + callee.name + "' has no body");
    if (results.size() != callee.results.size() || arguments.size() != callee.params.size()) {
      bad("wrong number of parameters for '" + callee.name + "'");
    }
    VariableMap variables;
    const auto bind = [&](const std::vector<Operand>& actual, const std::vector<int>& formal) {
      for (std::size_t i = 0; i < actual.size(); ++i) {
        if (actual[i].form != Operand::Form::kVariable) bad("parameters must be variables");
        const auto& given = module_.variables[static_cast<std::size_t>(actual[i].index)];
        const auto& wanted = module_.variables[static_cast<std::size_t>(formal[i])];
        if (given.space != Space::kParam || given.size < wanted.size) {
          bad("parameter '" + wanted.name + "' does not fit");
        }
        variables[formal[i]] = actual[i].index;
      }
    };
    bind(results, callee.results);
    bind(arguments, callee.params);
    const auto after = static_cast<int>(out_.labels.size());
    out_.labels.push_back(0);
    if (instruction.guard >= 0) {
      // Who does not call goes around it.
      Operand target;
      target.form = Operand::Form::kLabel;
      target.index = after;
      out_.body.push_back(in_place_of(instruction, Op::kBra, {target}));
      out_.body.back().guard_negated = !instruction.guard_negated;
    }
    copy(callee, variables, after, depth + 1);
    out_.labels[static_cast<std::size_t>(after)] = static_cast<std::uint32_t>(out_.body.size());
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
