// Prints operations that combine elements of several threads: reductions, layout changes and dots.

#include "codegen/cuda/printer.h"
#include "codegen/tile/dot_layouts.h"
#include "codegen/units.h"

namespace braid::tile {

void Printer::reduce(Id id) {
  const Inst& inst = p_.at(id);
  const Inst& operand = p_.at(inst.args[0]);
  const Layout& from = layout(operand.layout);
  const Kind kind = inst.type.kind;
  const ReductionParts parts = reduction_parts(from);
  const int further = parts.further();
  const int rows = registers(id);
  const int count = rows * further;
  // Sums of further parts have registers of their own until the end.
  const std::string v = name(id) + (further > 1 ? "_parts" : "");
  const std::string identity = kind == Kind::kF32 ? float_text(float_identity(inst.fn))
                                                  : integer_text(integer_identity(inst.fn));
  declare(id);
  if (further > 1) out_.line(fmt::format("{} {}[{}];", c_type(kind), v, count));
  each(count, 1, [&](std::string_view i) { return fmt::format("{}[{}] = {};", v, i, identity); });
  LinearMap slots = column_registers(from, layout(inst.layout));
  for (std::size_t k = 0; k < parts.bits.size(); ++k) {
    slots.images[parts.bits[k]] = static_cast<std::uint32_t>(rows << k);
  }
  each(from.registers(), 1, [&](std::string_view i) {
    const std::string at = fmt::format("{}[{}]", v, position_text({{i, slots}}));
    return fmt::format("{} = {};", at,
                       combined(inst.fn, kind, at, ref(inst.args[0], {operand.layout, i})));
  });
  for (int bit = 1; bit < 32; bit *= 2) {
    if ((inst.lanes & bit) == 0) continue;
    each(count, 1, [&](std::string_view i) {
      const std::string at = fmt::format("{}[{}]", v, i);
      const std::string other = fmt::format("__shfl_xor_sync(0xffffffffu, {}, {})", at, bit);
      return fmt::format("{} = {};", at, combined(inst.fn, kind, at, other));
    });
  }
  if (inst.warps == 0) {
    for (int k = 0; k < further && further > 1; ++k) {
      each(rows, 1, [&](std::string_view i) {
        const std::string at = fmt::format("{}[{}]", name(id), i);
        const std::string part = fmt::format("{}[{} + {}]", v, i, k * rows);
        return fmt::format("{} = {};", at, k == 0 ? part : combined(inst.fn, kind, at, part));
      });
    }
    return;
  }
  preamble_.shared();
  const std::string scratch = fmt::format("s{}", id);
  out_.line(fmt::format("{0}* const {1} = ({0}*)(smem + {2});", c_type(kind), scratch,
                        inst.shared_offset));
  if (inst.barrier) meet();
  out_.line(fmt::format("if ((lane & {}) == 0) {{", inst.lanes));
  for (int k = 0; k < further; ++k) {
    each(rows, 1, [&](std::string_view i) {
      const std::string at = offset(inst.addresses[0], i);
      if (k == 0) return fmt::format("{}[{}] = {}[{}];", scratch, at, v, i);
      return fmt::format("{}[{} + {}] = {}[{} + {}];", scratch, at, k * parts.of_warps, v, i,
                         k * rows);
    });
  }
  out_.line("}");
  meet();
  each(rows, 1, [&](std::string_view i) {
    return fmt::format("{}[{}] = {}[{}];", name(id), i, scratch, offset(inst.addresses[1], i));
  });
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int w = 1; w < {}; ++w) {{", parts.count()));
  each(rows, 1, [&](std::string_view i) {
    const std::string at = fmt::format("{}[{}]", name(id), i);
    const std::string other = fmt::format("{}[{} + w]", scratch, offset(inst.addresses[1], i));
    return fmt::format("{} = {};", at, combined(inst.fn, kind, at, other));
  });
  out_.line("}");
}

void Printer::convert_layout(Id id) {
  const Inst& inst = p_.at(id);
  const std::string from = storage(inst.args[0]);
  const std::string type(c_type(inst.type.kind));
  declare(id);
  const auto assign = [&](const auto& value) {
    each(registers(id), 1,
         [&](std::string_view i) { return fmt::format("{}[{}] = {};", name(id), i, value(i)); });
  };
  const auto source = [&](std::string_view i) {
    return fmt::format("{}[{}]", from, offset(inst.addresses[0], i));
  };
  switch (inst.change) {
    case LayoutChange::kNone:
      assign([&](std::string_view i) { return fmt::format("{}[{}]", from, i); });
      break;
    case LayoutChange::kRegisters:
      assign(source);
      break;
    case LayoutChange::kShuffle:
      assign([&](std::string_view i) {
        return fmt::format("__shfl_sync(0xffffffffu, {}, {})", source(i),
                           offset(inst.addresses[1], i));
      });
      break;
    case LayoutChange::kShared: {
      preamble_.shared();
      const bool floats = inst.type.kind == Kind::kF32;
      const DType dtype = moved_dtype(p_, inst);
      const std::string scratch = fmt::format("s{}", id);
      out_.line(fmt::format("{0}* const {1} = ({0}*)(smem + {2});",
                            floats ? memory_type(dtype) : type, scratch, inst.shared_offset));
      if (inst.barrier) meet();
      const std::string first = first_copy(inst);
      if (floats) {
        const std::string store = preamble_.store(dtype, inst.width_in);
        each(registers(inst.args[0]), inst.width_in, [&](std::string_view i) {
          return fmt::format("{}({} + {}, {} + {}, {});", store, scratch,
                             offset(inst.addresses[0], i), from, i, first.empty() ? "true" : first);
        });
        meet();
        const std::string load = preamble_.load(dtype, inst.width);
        each(registers(id), inst.width, [&](std::string_view i) {
          return fmt::format("{}({} + {}, {} + {}, true);", load, name(id), i, scratch,
                             offset(inst.addresses[1], i));
        });
        break;
      }
      if (!first.empty()) out_.line(fmt::format("if ({}) {{", first));
      each(registers(inst.args[0]), 1, [&](std::string_view i) {
        return fmt::format("{}[{}] = {}[{}];", scratch, offset(inst.addresses[0], i), from, i);
      });
      if (!first.empty()) out_.line("}");
      meet();
      assign([&](std::string_view i) {
        return fmt::format("{}[{}]", scratch, offset(inst.addresses[1], i));
      });
      break;
    }
  }
}

/// The number of independent products in a row that read the fragments of one left operand.
std::size_t Printer::dots_together(std::span<const Id> ids) const {
  const auto is_dot = [&](Id id) {
    return p_.at(id).op == Op::kDot && unit_of(p_, p_.at(id)) == &units::kMmaSync;
  };
  if (!is_dot(ids[0])) return 0;
  const Inst& first = p_.at(ids[0]);
  const bool in_memory = first.addresses[0] >= 0;
  const auto joins = [&](Id id) {
    if (!is_dot(id)) return false;
    const Inst& inst = p_.at(id);
    return inst.place == Place::kAlias && inst.args[0] == first.args[0] &&
           inst.addresses[0] == first.addresses[0] &&
           (!in_memory || inst.args[3] == first.args[3]) && inst.trans_a == first.trans_a &&
           inst.dtype == first.dtype && inst.first == first.first && inst.last == first.last &&
           registers(id) == registers(ids[0]);
  };
  std::size_t count = 1;
  while (count < ids.size() && joins(ids[count]) && !needs_any(ids[count], ids.first(count))) {
    ++count;
  }
  return count;
}

/// Products that share a left operand: one, or dots_together().
void Printer::dots(std::span<const Id> ids) {
  const Inst& inst = p_.at(ids[0]);
  if (inst.place == Place::kRegisters) {
    declare(ids[0]);
    each(registers(ids[0]), 1, [&](std::string_view i) {
      return fmt::format("{}[{}] = {};", name(ids[0]), i, ref(inst.args[2], {inst.layout, i}));
    });
  }
  out_.line("{");
  const Unit& unit = *unit_of(p_, inst);
  const bool elements = unit.multiplies->reads == Multiplier::Reads::kElements;
  const auto point = [&](const Inst& dot, std::size_t side, const std::string& to) {
    if (dot.addresses[side] < 0) return;
    const Id tile = dot.args[side];
    const std::string number = ref(dot.args[side + 3]);
    out_.line(elements ? fmt::format("const {}* const {} = {};", memory_type(p_.at(tile).dtype), to,
                                     slot_pointer(tile, number))
                       : fmt::format("const unsigned {} = {};", to, slot_address(tile, number)));
  };
  point(inst, 0, "a");
  for (std::size_t d = 0; d < ids.size(); ++d) point(p_.at(ids[d]), 1, right_operand(d));
  &unit == &units::kFma ? dot_fma(ids[0]) : dots_mma(ids);
  out_.line("}");
}

/// Fills the registers of a fragment of A, or of two neighbouring fragments of B, with operand
/// `side`, which is at `from`.
std::string Printer::fragment(const Inst& dot, std::size_t side, std::string_view from,
                              std::string_view step, std::string_view tile, int steps) {
  const bool trans = side == 0 ? dot.trans_load_a : dot.trans_load_b;
  const LinearMap images = cols_of(layout(dot.addresses[side]).reg);
  int step_bits = 0;
  while ((1 << step_bits) < steps) ++step_bits;
  std::vector<Term> terms{{step, images.slice(0, step_bits)},
                          {tile, images.slice(step_bits, images.bits() - step_bits)}};
  // Fragments of B are numbered one by one and loaded in pairs.
  if (side == 1) terms[1].map.images.insert(terms[1].map.images.begin(), 0);
  const bool bytes = trans && dtype_size(dot.dtype) == 1;
  return fmt::format("{}(f{}[{}], {} + {});",
                     bytes ? preamble_.ldmatrix_trans_bytes() : preamble_.ldmatrix(trans),
                     side == 0 ? 'a' : 'b', tile, from, offset(dot.addresses[side], terms));
}

void Printer::dots_mma(std::span<const Id> ids) {
  const Inst& first = p_.at(ids[0]);
  const auto type_of = [&](const Inst& inst, std::size_t side) {
    const Inst& operand = p_.at(inst.args[side]);
    return operand.type.kind == Kind::kShared ? operand.dtype : inst.dtype;
  };
  const int word = 4 / static_cast<int>(dtype_size(first.dtype));
  const int steps = mma_steps(p_, first);
  const DotLayouts layouts = dot_layouts(p_, first);
  const int tiles_m = layouts.a.registers() / (4 * word * steps);
  const int tiles_n = layouts.b.registers() / (2 * word * steps);
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int k = {}; k < {}; ++k) {{", first.first,
                        first.last == 0 ? steps : first.last));
  out_.line(fmt::format("unsigned fa[{}][4], fb[{}][2];", tiles_m, tiles_n));
  const auto from_registers = [&](const Inst& inst, std::size_t side, std::string_view tile,
                                  int words) {
    const std::string value = storage(inst.args[side]);
    const char letter = side == 0 ? 'a' : 'b';
    out_.line(
        fmt::format("  for (int w = 0; w < {0}; ++w) f{1}[{2}][w] = {3}({4} + (({2} * {5} + k) "
                    "* {0} + w) * {6});",
                    words, letter, tile, preamble_.pack(inst.dtype), value, steps, word));
  };
  const auto widen = [&](const Inst& inst, std::size_t side, int tiles) {
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}(w{3}[{0}], f{3}[{0}]);",
                          side == 0 ? 'm' : 'n', tiles,
                          preamble_.widen_fragment(type_of(inst, side), side == 0 ? 4 : 2),
                          side == 0 ? 'a' : 'b'));
  };
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int m = 0; m < {}; ++m)", tiles_m));
  first.addresses[0] >= 0 ? out_.line("  " + fragment(first, 0, "a", "k", "m", steps))
                          : from_registers(first, 0, "m", 4);
  for (std::size_t d = 0; d < ids.size(); ++d) {
    const Inst& inst = p_.at(ids[d]);
    // With B's columns in pairs, the sums of two neighbouring fragments alternate.
    const bool in_pairs = word == 4 && !inst.trans_b;
    const std::string mma = preamble_.mma(type_of(inst, 0), type_of(inst, 1), in_pairs ? 2 : 1);
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int n = 0; n < {}; {})", tiles_n,
                          inst.addresses[1] >= 0 ? "n += 2" : "++n"));
    inst.addresses[1] >= 0 ? out_.line("  " + fragment(inst, 1, right_operand(d), "k", "n", steps))
                           : from_registers(inst, 1, "n", 2);
    if (word == 4) {
      if (d == 0) {
        out_.line(fmt::format("unsigned wa[{}][8], wb[{}][4];", tiles_m, tiles_n));
        widen(inst, 0, tiles_m);
      }
      widen(inst, 1, tiles_n);
    }
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int m = 0; m < {}; ++m) {{", tiles_m));
    out_.line("#pragma unroll");
    out_.line(fmt::format(
        "for (int n = 0; n < {0}; ++n) {1}({2} + (m * {0} + {3}, {4}a[m], {4}b[n]);", tiles_n, mma,
        storage(ids[d]), in_pairs ? "n / 2 * 2) * 4 + n % 2" : "n) * 4", word == 4 ? 'w' : 'f'));
    out_.line("}");
  }
  out_.line("}");
}

void Printer::dot_fma(Id id) {
  const Inst& inst = p_.at(id);
  const Layout& accumulator = layout(inst.layout);
  const Type& a = p_.at(inst.args[0]).type;
  const int steps = inst.trans_a ? a.rows : a.cols;
  int step_bits = 0;
  while ((1 << step_bits) < steps) ++step_bits;
  int cols = 1;
  for (Coord c : accumulator.reg) cols *= c.col != 0 ? 2 : 1;
  const int rows = accumulator.registers() / cols;
  out_.line(fmt::format("#pragma unroll {}", inst.unroll));
  out_.line(fmt::format("for (int k = 0; k < {}; ++k) {{", steps));
  out_.line(fmt::format("float fa[{}], fb[{}];", rows, cols));
  const auto fill = [&](std::size_t side, std::string_view i, int count) {
    const LinearMap images = cols_of(layout(inst.addresses[side]).reg);
    const std::string at =
        offset(inst.addresses[side], {{"k", images.slice(0, step_bits)},
                                      {i, images.slice(step_bits, images.bits() - step_bits)}});
    out_.line("#pragma unroll");
    const char letter = side == 0 ? 'a' : 'b';
    out_.line(fmt::format(
        "for (int {0} = 0; {0} < {1}; ++{0}) f{2}[{0}] = {3};", i, count, letter,
        preamble_.widened(p_.at(inst.args[side]).dtype, fmt::format("{}[{}]", letter, at))));
  };
  fill(0, "m", rows);
  fill(1, "n", cols);
  out_.line("#pragma unroll");
  out_.line(
      fmt::format("for (int i = 0; i < {0}; ++i) {1}[i] = __fmaf_rn(fa[i / {2}], fb[i % {2}], "
                  "{1}[i]);",
                  accumulator.registers(), storage(id), cols));
  out_.line("}");
}

}  // namespace braid::tile
