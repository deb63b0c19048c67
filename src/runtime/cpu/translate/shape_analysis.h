#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {

/// What is known about a register over the 32 lanes of a warp.
///
/// kTable: value(lane) = base + table[lane], with one scalar base per warp and a table known at
/// compile time. An all-zero table is a uniform value, 0,1,2.. a consecutive one. Arithmetic is
/// modulo the register's width. Code generation is simple because the base of a result is the same
/// operation applied to the bases of its operands.
struct Shape {
  enum class Form : std::uint8_t { kUnknown, kTable, kVector };
  Form form = Form::kUnknown;
  std::uint8_t align = 0;        ///< the base is a multiple of 1 << align (63: the base is zero)
  bool may_be_negative = false;  ///< computed with a subtraction: unsigned widening may wrap
  std::array<std::int32_t, 32> table{};

  [[nodiscard]] bool is_table() const { return form == Form::kTable; }
  [[nodiscard]] bool is_vector() const { return form == Form::kVector; }
  [[nodiscard]] bool is_uniform() const;
  [[nodiscard]] std::int32_t min() const;
  [[nodiscard]] std::int32_t max() const;
  /// The table only fills zero bits of the base.
  [[nodiscard]] bool is_disjoint() const;
  bool operator==(const Shape&) const = default;

  static Shape uniform(unsigned align = 0);
  static Shape lanes(unsigned align);
  static Shape vector();
};

/// The shapes of all registers, and the blocks that run with only a part of the live lanes. The two
/// depend on each other: registers written under a divergent branch become vectors.
class ShapeAnalysis {
 public:
  /// `aligned`: every warp is full and lies along x (block.x is a multiple of 32).
  ShapeAnalysis(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow,
                bool aligned);

  [[nodiscard]] const Shape& shape(int reg) const { return shapes_[reg]; }
  /// The shape of an instruction's result before it is merged into its register.
  [[nodiscard]] Shape result_shape(const ptx::Instruction& instruction) const;
  [[nodiscard]] Shape special_shape(ptx::Special special) const;
  [[nodiscard]] Shape operand_shape(const ptx::Operand& operand) const;

  /// The operand's value if the text determines it: an integer, or a register that holds one.
  [[nodiscard]] std::optional<std::uint64_t> known_value(const ptx::Operand& operand) const;

  /// The divergent component of a block (an index from 0), or -1 when all live lanes run it.
  [[nodiscard]] int component(int block) const { return component_[block]; }
  /// The block where all live lanes of a component meet, or -1 for the end of the kernel.
  [[nodiscard]] int component_exit(int component) const { return exits_[component]; }
  [[nodiscard]] int components() const { return static_cast<int>(exits_.size()); }

 private:
  void find_constants();
  bool is_constant(const ptx::Operand& operand) const;
  void find_local_registers();
  bool update_shapes();
  bool update_divergence();
  void find_components();
  void join_touching_components();
  [[nodiscard]] Shape bitwise(const ptx::Instruction& instruction, const Shape& a,
                              const Shape& b) const;
  [[nodiscard]] bool compares_alike(const ptx::Instruction& instruction) const;
  [[nodiscard]] Shape product(const ptx::Instruction& instruction, ptx::Type type) const;
  [[nodiscard]] Shape sum(const ptx::Instruction& instruction, ptx::Type type) const;
  [[nodiscard]] std::optional<Shape> shift(const ptx::Instruction& instruction) const;
  [[nodiscard]] Shape table_shape(const ptx::Instruction& instruction, ptx::ShapeRule rule,
                                  bool uniform) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ControlFlow& flow_;
  bool aligned_;
  std::vector<Shape> shapes_;
  std::vector<bool> constant_;  ///< registers with one value per lane in the whole run
  std::vector<std::optional<std::uint64_t>> values_;  ///< known values of these
  std::vector<bool> local_;                           ///< registers that are live only inside one
                                                      ///< block
  std::vector<bool> divergent_;
  std::vector<int> component_;
  std::vector<int> exits_;
};

}  // namespace braid::cpu
