#include <algorithm>
#include <string_view>

#include "runtime/cpu/run/matrix_code.h"
#include "runtime/cpu/translate/translator.h"

// wmma, and the shapes of mma that go one by one.

namespace braid::cpu {

using ptx::Space;

namespace {

/// By the order of Element.
constexpr std::string_view kElements[] = {"f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2",
                                          "s8",  "u8",   "s4",   "u4",  "b1",  "s32"};

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
    return std::find(types.begin(), types.end(), code.d) != types.end();
  };
  const bool sum = code.which == Matrix::kSum;
  if (code.k == 16) {
    return sum ? is({Element::kF16, Element::kF32, Element::kS32})
               : is({Element::kF16, Element::kBf16, Element::kS8, Element::kU8});
  }
  if (code.m == 16) return is({sum ? Element::kF32 : Element::kTf32});
  // Those of f64 have the sizes of bits in words.
  if (is({Element::kF64})) return code.k == 4;
  if (sum) return is({Element::kS32});
  // Bits and halves of bytes lie along k.
  if (code.columns != (code.which == Matrix::kB)) return false;
  return code.k == 32 ? is({Element::kS4, Element::kU4}) : is({Element::kBits});
}

}  // namespace

/// The sizes and types that the modifiers name: of D, A, B and C, or of what is loaded or stored.
MatrixCode Translator::matrix_code(const Instruction& i) const {
  MatrixCode code;
  std::vector<Element> types;
  for (const std::string& modifier : i.modifiers) {
    if (const auto type = parse_element(modifier)) types.push_back(*type);
    const std::vector<unsigned> sizes = parse_shape(modifier);
    if (sizes.size() != 3) continue;
    code.m = static_cast<std::uint8_t>(sizes[0]);
    code.n = static_cast<std::uint8_t>(sizes[1]);
    // Bits go in words.
    const bool bits = has_modifier(i, "b1") || sizes[2] == 128;
    code.k = static_cast<std::uint8_t>(bits ? sizes[2] / 32 : sizes[2]);
  }
  if (types.empty() || code.m == 0) bad_combination(i);
  code.d = types.front();
  code.c = types.back();
  code.a = types.size() == 4 ? types[1] : Element::kF16;
  code.b = types.size() == 4 ? types[2] : Element::kF16;
  return code;
}

llvm::Value* Translator::constant_code(const MatrixCode& code) {
  return constant_words(code.pack());
}

void Translator::op_matrix(const Instruction& i) {
  const Choices mods(i);
  MatrixCode code = matrix_code(i);
  code.fragments = i.is(Op::kMmaQuads) ? Fragments::kQuads
                   : i.name == "wmma"  ? Fragments::kWmma
                                       : Fragments::kMma;
  code.columns = mods.of("row", 0) == 1;
  code.rows = mods.of("row", 1) == 0;
  code.saturate = mods.has("satfinite");
  code.conjunction = mods.has("and");
  code.rounding = static_cast<std::uint8_t>(std::max(mods.of("rn"), 0));
  if (i.is(Op::kMmaFloat8Other) && code.c != code.d) bad_combination(i);
  constexpr unsigned kStep = kMatrixRegisterBytes / 128;
  unsigned place = 0;
  const auto give = [&](const Operand& operand, Matrix matrix, Element type) {
    for (const Operand& element : elements_of(i, operand, code.registers(matrix, type))) {
      to_scratch(kStep * place++, read_lanes(element, braid::cpu::register_bits(type)));
    }
  };
  give(i.operands[1], Matrix::kA, code.a);
  give(i.operands[2], Matrix::kB, code.b);
  give(i.operands[3], Matrix::kSum, code.c);
  const auto results = elements_of(i, i.operands[0], code.registers(Matrix::kSum, code.d));
  call("braid_cpu_matrix", b_.getVoidTy(), {scratch(0), constant_code(code)});
  for (const Operand& result : results) {
    const unsigned bits = braid::cpu::register_bits(code.d);
    write(result, from_scratch(kStep * place++, integer(bits, false)));
  }
}

/// Tells the sanitizer and the counter that the lanes go over the rows (or columns) of a matrix, in
/// pieces of up to 16 bytes.
void Translator::check_matrix(const MatrixCode& code, Space space, Value* base, Value* stride,
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
      line.push_back(b_.getInt64(at / (bytes / piece)));
      offset.push_back(b_.getInt64(at % (bytes / piece) * piece));
    }
    Address where;
    where.space = space;
    where.lanes = b_.CreateAdd(b_.CreateMul(llvm::ConstantVector::get(line), splat(stride)),
                               b_.CreateAdd(llvm::ConstantVector::get(offset), splat(base)));
    const unsigned lanes = std::min(count - first, 32U);
    check(where, {.kind = kind, .bytes = static_cast<std::uint8_t>(piece)},
          b_.getInt32(static_cast<std::uint32_t>((std::uint64_t{1} << lanes) - 1)));
  }
}

/// wmma.load and wmma.store: all lanes give the same address and stride.
void Translator::op_wmma_memory(const Instruction& i) {
  const Choices mods(i);
  const bool loads = i.is(Op::kWmmaLoad);
  MatrixCode code = matrix_code(i);
  code.fragments = Fragments::kWmma;
  code.which = loads ? static_cast<Matrix>(mods.name()) : Matrix::kSum;
  code.columns = mods.of("row") == 1;
  if (!has_fragment(code)) bad_combination(i);
  constexpr Space kSpaces[] = {Space::kGeneric, Space::kGlobal, Space::kShared, Space::kShared};
  Address where = address(i, i.operands[loads ? 1 : 0], kSpaces[mods.of("global") + 1]);
  Value* base = b_.CreatePtrToInt(row_pointer(where, 0), b_.getInt64Ty());
  // Without a stride the lines lie close together.
  const int length = code.columns ? code.height(code.which) : code.width(code.which);
  const std::uint64_t in_element = code.d == Element::kBits ? 32 : 1;
  Value* stride = b_.getInt64(static_cast<std::uint64_t>(length));
  if (i.operands.size() > 2) {
    stride = b_.CreateUDiv(b_.CreateZExt(uniform_operand(i, 2), b_.getInt64Ty()),
                           b_.getInt64(in_element));
  }
  Value* bytes =
      b_.CreateLShr(b_.CreateMul(stride, b_.getInt64(element_bits(code.d))), std::uint64_t{3});
  check_matrix(code, where.space, base, bytes, loads ? AccessCode::kLoad : AccessCode::kStore);
  const unsigned bits = braid::cpu::register_bits(code.d);
  constexpr unsigned kStep = kMatrixRegisterBytes / 128;
  const auto registers =
      elements_of(i, i.operands[loads ? 0 : 1], code.registers(code.which, code.d));
  unsigned place = 0;
  if (!loads) {
    for (const Operand& from : registers) to_scratch(kStep * place++, read_lanes(from, bits));
  }
  call(loads ? "braid_cpu_wmma_load" : "braid_cpu_wmma_store", b_.getVoidTy(),
       {scratch(0), b_.CreateIntToPtr(base, b_.getPtrTy()), stride, constant_code(code)});
  if (!loads) return;
  for (const Operand& to : registers) {
    write(to, from_scratch(kStep * place++, integer(bits, false)));
  }
}

}  // namespace braid::cpu
