#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/cuda/preamble.h"
#include "codegen/cuda/spelling.h"
#include "codegen/cuda/text_writer.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// Prints a lowered program: one C array per tile, one loop over its registers per instruction. It
/// decides nothing; everything it needs is in the program.
class Printer {
 public:
  explicit Printer(const Program& program) : p_(program) {}
  std::string print();

 private:
  /// The element of a tile that an expression computes: a register of a layout.
  struct Element {
    int layout = -1;
    std::string_view reg = "0";
  };

  /// What prints an instruction.
  using Print = void(Id);

  [[nodiscard]] bool always_meets() const;
  std::string signature();
  std::string thread_variables(std::string_view body);
  void block(const std::vector<Id>& ids);
  Print instruction, map, loop, check_index;
  std::string function(const Inst& inst, const std::vector<std::string>& x);
  std::string combined(Fn fn, Kind kind, const std::string& a, const std::string& b);
  std::string to_peers(const Inst& inst, std::string_view what);

  // print_memory.cpp
  Print load, load_scalar, store, ll_store, multimem, copy_to_shared, load_shared, store_to_shared,
      cast_in_shared;
  /// The condition under which this thread stores a register.
  std::string stored(const Inst& inst, std::string_view reg);
  /// The register `distance` after `reg`.
  static std::string beside(std::string_view reg, int distance);
  /// Whether it has one of these as an operand.
  [[nodiscard]] bool needs_any(Id id, std::span<const Id> of) const;
  [[nodiscard]] std::size_t packets_together(std::span<const Id> ids) const;
  void ll_loads(std::span<const Id> ids);
  void need_packets() {
    preamble_.packets();
    packets_ = true;
  }
  /// All threads leave the block where packets are missing.
  void vote() { out_.line(fmt::format("if ({}(lost)) {}", preamble_.vote(), leave())); }
  /// How threads leave a block: sums in a memory of their own are freed first.
  std::string_view leave() {
    leaves_ = true;
    return has_sums_ ? "goto free;" : "return;";
  }
  /// All threads that compute.
  void meet() { out_.line(preamble_.barrier() + "();"); }

  // print_combine.cpp
  Print reduce, convert_layout, dot_fma;
  [[nodiscard]] std::size_t dots_together(std::span<const Id> ids) const;
  void dots(std::span<const Id> ids);
  void dots_mma(std::span<const Id> ids);
  /// The variable with the place of a right operand.
  static std::string right_operand(std::size_t dot) {
    return dot == 0 ? "b" : fmt::format("b{}", dot);
  }
  std::string fragment(const Inst& dot, std::size_t side, std::string_view from,
                       std::string_view step, std::string_view tile, int steps);

  // print_roles.cpp
  void roles(std::span<const Id> ids);
  std::string mbarrier(Id ring, Id step, bool empty);
  void init_rings(int computing);
  Print ring, copy_tile, async_dot, hold, settled, push_tile, dot_to_sums, load_sums;
  /// Calls body(id) for each kAllocSums.
  template <class Body>
  void each_sums(const Body& body);
  /// An operand of a product beside the threads, in panels; descriptors count in 16 bytes.
  struct Panels;
  [[nodiscard]] Panels panels(Id tile, bool k_first) const;
  std::string slot_of_sums(Id sums, Id slot);

  const Layout& layout(int index) const { return p_.layouts[index]; }
  const Layout& layout_of(Id id) const { return layout(p_.at(id).layout); }
  int registers(Id id) const { return layout_of(id).registers(); }

  static std::string name(Id id) { return fmt::format("v{}", id); }
  /// The array or variable that holds a value.
  std::string storage(Id id) const {
    const Inst& inst = p_.at(id);
    return name(inst.place == Place::kAlias ? inst.storage : id);
  }
  /// The text of a value at an element.
  std::string ref(Id id, Element at);
  std::string ref(Id id) { return ref(id, {}); }
  std::string expression(const Inst& inst, Element at);
  std::string small_float(Id number, Element at);
  std::string operand(Id id, Element at);

  /// The row (axis 0) or column (axis 1) of an element.
  std::string coordinate(int axis, Element at);
  /// The offset of a register in an address layout; several terms together form the index.
  std::string offset(int layout, const std::vector<Term>& terms);
  std::string offset(int layout, std::string_view reg);
  /// The variable with the lane's and warp's part of a position; axis 2 is an address.
  std::string base(int axis, int layout);

  /// A condition that holds in one of the threads with copies of an element, if any.
  static std::string first_copy(const Inst& inst);
  /// The slot of a shared tile: its byte offset, a pointer, or an address of the shared window.
  std::string slot(Id tile, const std::string& number);
  std::string slot_pointer(Id tile, const std::string& number);
  std::string slot_address(Id tile, const std::string& number);

  void declare(Id id) {
    out_.line(fmt::format("{} {}[{}];", c_type(p_.at(id).type.kind), name(id), registers(id)));
  }
  /// Prints one statement per register, or per `step` registers; `unroll` 0 means fully unrolled.
  template <class Statement>
  void each(int count, int step, const Statement& statement, int unroll = 0) {
    each(0, count, step, statement, unroll);
  }
  /// Of the registers from `first` to `last`.
  template <class Statement>
  void each(int first, int last, int step, const Statement& statement, int unroll) {
    if (last - first == step) {
      out_.line(statement(fmt::format("{}", first)));
      return;
    }
    out_.line(unroll == 0 ? "#pragma unroll" : fmt::format("#pragma unroll {}", unroll));
    out_.line(fmt::format("for (int i = {}; i < {}; {})", first, last,
                          step == 1 ? "++i" : fmt::format("i += {}", step)));
    out_.line("  " + statement("i"));
  }

  const Program& p_;
  TextWriter out_;
  Preamble preamble_;
  bool packets_ = false;
  bool marks_ = false;
  bool pushes_ = false;
  int role_threads_ = 0;
  bool one_thread_ = false;              ///< of the role that is printed
  bool leaves_ = false;                  ///< threads leave the block where its run is lost
  bool has_sums_ = false;                ///< products have a memory of their own
  std::set<std::pair<int, int>> bases_;  ///< (layout, axis) that the text names
};

}  // namespace braid::tile
