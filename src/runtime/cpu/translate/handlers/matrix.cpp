#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/cpu/run/matrix_code.h"
#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/matrices.h"

// wmma, and the shapes of mma that go one by one.

namespace braid::cpu {
namespace {

using ptx::Space;

/// In the order of Element.
constexpr std::string_view kElements[] = {"f16",  "bf16", "tf32", "f32", "f64", "e4m3",
                                          "e5m2", "s8",   "u8",   "s4",  "u4",  "b1",
                                          "s32",  "e3m2", "e2m3", "e2m1"};

std::optional<Element> parse_element(std::string_view name) {
  const auto* const it = std::find(std::begin(kElements), std::end(kElements), name);
  if (it == std::end(kElements)) return std::nullopt;
  return static_cast<Element>(it - std::begin(kElements));
}

/// The sizes of "m16n8k16"; no sizes of anything else.
std::vector<unsigned> parse_shape(std::string_view text) {
  std::vector<unsigned> sizes;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (sizes.size() >= 3 || c != "mnk"[sizes.size()])) return {};
    if (!digit) sizes.push_back(0);
    if (digit && sizes.empty()) return {};
    if (digit) sizes.back() = sizes.back() * 10 + static_cast<unsigned>(c - '0');
  }
  return sizes;
}

/// Whether wmma has matrices of the type for the shape.
bool has_fragment(const MatrixCode& code) {
  const auto is = [&](std::initializer_list<Element> types) {
    return std::ranges::find(types, code.d) != types.end();
  };
  const bool sum = code.which == Matrix::kSum;
  if (code.k == 16) {
    return sum ? is({Element::kF16, Element::kF32, Element::kS32})
               : is({Element::kF16, Element::kBf16, Element::kS8, Element::kU8});
  }
  if (code.m == 16) return is({sum ? Element::kF32 : Element::kTf32});
  // Shapes of f64 count in words of bits.
  if (is({Element::kF64})) return code.k == 4;
  if (sum) return is({Element::kS32});
  // Bits and halves of bytes lie along k.
  if (code.columns != (code.which == Matrix::kB)) return false;
  return code.k == 32 ? is({Element::kS4, Element::kU4}) : is({Element::kBits});
}

/// The sizes and types that the modifiers name: of D, A, B and C, or of what is loaded or stored.
MatrixCode matrix_code(const Instruction& i) {
  MatrixCode code;
  std::vector<Element> types;
  for (const std::string& modifier : i.modifiers) {
    if (const auto type = parse_element(modifier)) types.push_back(*type);
    const std::vector<unsigned> sizes = parse_shape(modifier);
    if (sizes.size() != 3) continue;
    code.m = static_cast<std::uint8_t>(sizes[0]);
    code.n = static_cast<std::uint8_t>(sizes[1]);
    // Bits go in words; all that wmma has of that shape are bits.
    const bool bits = has_modifier(i, "b1") || (i.name == "wmma" && sizes[2] == 128);
    code.k = static_cast<std::uint8_t>(bits ? sizes[2] / 32 : sizes[2]);
  }
  if (types.empty() || code.m == 0) bad_combination(i);
  code.d = types.front();
  code.c = types.back();
  code.a = types.size() == 4 ? types[1] : Element::kF16;
  code.b = types.size() == 4 ? types[2] : Element::kF16;
  if (has_modifier(i, "kind::mxf4") || has_modifier(i, "kind::mxf4nvf4")) {
    code.a = code.b = Element::kE2m1Packed;
  }
  return code;
}

/// Checks the types of a product as far as the table of instructions leaves them open.
void check_types(const Instruction& i, const MatrixCode& code) {
  const bool float8 = code.a == Element::kE4m3 || code.a == Element::kE5m2;
  const bool halves = code.a == Element::kF16 || code.a == Element::kBf16;
  const bool half_sum = code.d == Element::kF16;
  bool right = true;
  if (float8 || code.a >= Element::kE3m2 || code.sparse()) right = code.c == code.d;
  if (code.k == 16 && has_modifier(i, "kind::f8f6f4")) {
    right = right && float8 && (code.b == Element::kE4m3 || code.b == Element::kE5m2);
  }
  if (code.sparse()) {
    if (halves) right = right && code.a == code.b && !(half_sum && code.a == Element::kBf16);
    // Only the newer form knows of these.
    if (float8) right = right && !(half_sum && has_modifier(i, "sp"));
  }
  if (has_modifier(i, "ue4m3")) right = right && code.scales == 4;
  if (!right) bad_combination(i);
}

/// A byte and a lane of operand `n`, as helper "matrix" has them: constants, or registers of 16
/// bits.
Value* scale_selectors(Emitter& e, const Instruction& i, std::size_t n, unsigned scales) {
  const std::vector<Operand> parts = elements_of(i, i.operands[n], 2);
  std::array<Value*, 2> values{};
  for (std::size_t p = 0; p < 2; ++p) {
    if (parts[p].is_register()) {
      if (e.register_bits(parts[p].index) != 16) {
        bad(i, fmt::format("operand {} has a register that is not of 16 bits", n + 1));
      }
      values[p] = e.ir.CreateZExt(first_lane(e, parts[p], 16), e.ir.getInt32Ty());
      continue;
    }
    // The scales of A come from a pair of lanes.
    const unsigned lanes = n + 3 == i.operands.size() ? 2 : 4;
    values[p] = e.ir.getInt32(p == 1 ? choice_of(i, n, parts[p], lanes, 1)
                                     : choice_of(i, n, parts[p], 5 - scales, scales));
  }
  return e.ir.CreateOr(e.ir.CreateAnd(values[0], 3),
                       e.ir.CreateShl(e.ir.CreateAnd(values[1], 3), e.ir.getInt32(8)));
}

/// Tells the sanitizer and the counter that the lanes go over the rows (or columns) of a matrix, in
/// pieces of up to 16 bytes.
void check_matrix(Emitter& e, const MatrixCode& code, Space space, Value* base, Value* stride,
                  AccessCode::Kind kind) {
  const int lines = code.columns ? code.width(code.which) : code.height(code.which);
  const int length = code.columns ? code.height(code.which) : code.width(code.which);
  const unsigned bytes = static_cast<unsigned>(length) * element_bits(code.d) / 8;
  const unsigned piece = std::min(bytes, 16U);
  const unsigned count = static_cast<unsigned>(lines) * (bytes / piece);
  for (unsigned first = 0; first < count; first += 32) {
    std::vector<llvm::Constant*> line;
    std::vector<llvm::Constant*> offset;
    for (unsigned l = first; l < first + 32; ++l) {
      const unsigned at = std::min(l, count - 1);
      line.push_back(e.ir.getInt64(at / (bytes / piece)));
      offset.push_back(e.ir.getInt64(at % (bytes / piece) * piece));
    }
    Address where;
    where.space = space;
    where.lanes = e.ir.CreateAdd(e.ir.CreateMul(llvm::ConstantVector::get(line), e.splat(stride)),
                                 e.ir.CreateAdd(llvm::ConstantVector::get(offset), e.splat(base)));
    const unsigned lanes = std::min(count - first, 32U);
    check(e, where, {.kind = kind, .bytes = static_cast<std::uint8_t>(piece)},
          e.ir.getInt32(static_cast<std::uint32_t>((std::uint64_t{1} << lanes) - 1)));
  }
}

}  // namespace

Value* constant_code(Emitter& e, const MatrixCode& code) { return e.constant_words(code.pack()); }

std::uint8_t choice_of(const Instruction& i, std::size_t n, const Operand& operand, unsigned end,
                       unsigned step) {
  const bool constant = operand.form == Operand::Form::kInteger;
  if (constant && operand.bits < end && operand.bits % step == 0) {
    return static_cast<std::uint8_t>(operand.bits);
  }
  std::string choices = "0";
  for (unsigned choice = step; choice < end; choice += step) {
    choices += (choice + step < end ? ", " : " or ") + std::to_string(choice);
  }
  const std::string found =
      constant ? std::to_string(static_cast<std::int64_t>(operand.bits)) : "no constant";
  bad(i, fmt::format("operand {}: found {}, expected {}", n + 1, found, choices));
}

Value* op_matrix(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  MatrixCode code = matrix_code(i);
  const bool sparse = ptx::is_sparse(i);
  code.fragments = sparse                ? Fragments::kSparse
                   : i.is(Op::kMmaQuads) ? Fragments::kQuads
                   : i.name == "wmma"    ? Fragments::kWmma
                                         : Fragments::kMma;
  code.columns = mods.of("row", 0) == 1;
  code.rows = mods.of("row", 1) == 0;
  code.saturate = mods.has("satfinite");
  code.conjunction = mods.has("and");
  code.rounding = static_cast<std::uint8_t>(std::max(mods.of("rn"), 0));
  if (mods.has("block_scale")) {
    code.scales = mods.has("scale_vec::4X") ? 4 : code.a == Element::kE2m1Packed ? 2 : 1;
    code.fine_scales = mods.has("ue4m3");
  }
  check_types(i, code);
  constexpr unsigned kStep = kMatrixRegisterBytes / 128;
  unsigned place = 0;
  const auto give = [&](const Operand& operand, Matrix matrix, Element type) {
    for (const Operand& element : elements_of(i, operand, code.registers(matrix, type))) {
      e.to_scratch(kStep * place++, e.read_lanes(element, braid::cpu::register_bits(type)));
    }
  };
  give(i.operands[1], Matrix::kA, code.a);
  give(i.operands[2], Matrix::kB, code.b);
  give(i.operands[3], Matrix::kSum, code.c);
  const auto results = elements_of(i, i.operands[0], code.registers(Matrix::kSum, code.d));
  auto behind = place + static_cast<unsigned>(results.size());
  const auto give_word = [&](std::size_t n) {
    const Operand word = elements_of(i, i.operands[n], 1).front();
    if (!word.is_register() || e.register_bits(word.index) != 32) {
      bad(i, fmt::format("operand {} must be a register of 32 bits", n + 1));
    }
    e.to_scratch(kStep * behind++, e.read_lanes(word, 32));
  };
  if (sparse) {
    give_word(4);
    // Depends on how many lanes hold the metadata.
    const unsigned most = element_bits(code.a) >= 16 ? 1024 : 512;
    code.selector = choice_of(i, 5, i.operands[5], most / (code.k * element_bits(code.a)), 1);
  }
  Value* selectors = e.ir.getInt32(0);
  if (code.scales != 0) {
    const std::size_t n = sparse ? 6 : 4;
    give_word(n);
    give_word(n + 2);
    selectors =
        e.ir.CreateOr(scale_selectors(e, i, n + 1, code.scales),
                      e.ir.CreateShl(scale_selectors(e, i, n + 3, code.scales), e.ir.getInt32(16)));
  }
  e.call("matrix", {constant_code(e, code), e.scratch(0), selectors});
  for (const Operand& result : results) {
    const unsigned bits = braid::cpu::register_bits(code.d);
    e.write(result, e.from_scratch(kStep * place++, e.integer(bits, false)));
  }
  return nullptr;
}

/// wmma.load and wmma.store: all lanes give the same address and stride.
Value* op_wmma_memory(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool loads = i.is(Op::kWmmaLoad);
  MatrixCode code = matrix_code(i);
  code.fragments = Fragments::kWmma;
  code.which = loads ? static_cast<Matrix>(mods.name()) : Matrix::kSum;
  code.columns = mods.of("row") == 1;
  if (!has_fragment(code)) bad_combination(i);
  constexpr Space kSpaces[] = {Space::kGeneric, Space::kGlobal, Space::kShared, Space::kShared};
  Address where = address(e, i, i.operands[loads ? 1 : 0], kSpaces[mods.of("global") + 1]);
  Value* base = e.ir.CreatePtrToInt(row_pointer(e, where, 0), e.ir.getInt64Ty());
  // Without a stride the lines lie close together.
  const int length = code.columns ? code.height(code.which) : code.width(code.which);
  const std::uint64_t in_element = code.d == Element::kBits ? 32 : 1;
  Value* stride = e.ir.getInt64(static_cast<std::uint64_t>(length));
  if (i.operands.size() > 2) {
    stride = e.ir.CreateUDiv(e.ir.CreateZExt(uniform_operand(e, i, 2), e.ir.getInt64Ty()),
                             e.ir.getInt64(in_element));
  }
  Value* bytes = e.ir.CreateLShr(e.ir.CreateMul(stride, e.ir.getInt64(element_bits(code.d))),
                                 std::uint64_t{3});
  check_matrix(e, code, where.space, base, bytes, loads ? AccessCode::kLoad : AccessCode::kStore);
  const unsigned bits = braid::cpu::register_bits(code.d);
  constexpr unsigned kStep = kMatrixRegisterBytes / 128;
  const auto registers =
      elements_of(i, i.operands[loads ? 0 : 1], code.registers(code.which, code.d));
  unsigned place = 0;
  if (!loads) {
    for (const Operand& from : registers) e.to_scratch(kStep * place++, e.read_lanes(from, bits));
  }
  e.call(loads ? "wmma_load" : "wmma_store",
         {e.scratch(0), e.pointer_to(base), stride, constant_code(e, code)});
  if (!loads) return nullptr;
  for (const Operand& to : registers) {
    e.write(to, e.from_scratch(kStep * place++, e.integer(bits, false)));
  }
  return nullptr;
}

}  // namespace braid::cpu
