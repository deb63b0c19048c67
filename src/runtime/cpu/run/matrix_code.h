#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace braid::cpu {

/// What the elements of a matrix are. kBits: 32 elements of one bit, which count as one.
enum class Element : std::uint8_t {
  kF16,
  kBf16,
  kTf32,
  kF32,
  kF64,
  kE4m3,
  kE5m2,
  kS8,
  kU8,
  kS4,
  kU4,
  kBits,
  kS32,
  kE3m2,       ///< in the lower 6 bits of a byte
  kE2m3,       ///< there, too
  kE2m1,       ///< in the middle 4 bits of a byte
  kE2m1Packed  ///< two in a byte
};

inline constexpr unsigned element_bits(Element type) {
  constexpr unsigned kBits[] = {16, 16, 32, 32, 64, 8, 8, 8, 8, 4, 4, 32, 32, 8, 8, 8, 4};
  return kBits[static_cast<std::size_t>(type)];
}
inline constexpr unsigned register_bits(Element type) { return type == Element::kF64 ? 64 : 32; }
/// Elements in a register.
inline constexpr unsigned packed(Element type) { return register_bits(type) / element_bits(type); }

/// Those of D = A B + C; C and D lie alike.
enum class Matrix : std::uint8_t { kA, kB, kSum };

/// How the elements of matrices lie in the registers of a warp.
enum class Fragments : std::uint8_t {
  kMma,     ///< as the PTX manual has it for mma
  kSparse,  ///< the same for mma.sp: of A there are half of the elements, and where they stand
  kQuads,   ///< the same for mma.m8n8k4 of f16: four products, by eight lanes each
  kWmma     ///< which it leaves open
};

/// What helper "matrix", "wmma_load" and "wmma_store" do.
struct MatrixCode {
  Fragments fragments = Fragments::kMma;
  Matrix which = Matrix::kSum;  ///< that is loaded or stored, with `columns` and `d`
  std::uint8_t m = 0, n = 0, k = 0;
  Element a = Element::kF32, b = Element::kF32, c = Element::kF32, d = Element::kF32;
  bool columns = false;  ///< A, or what is loaded or stored, goes by columns ..
  bool rows = false;     ///< .. and B by rows
  bool saturate = false;
  bool conjunction = false;   ///< of bits; else they differ
  std::uint8_t rounding = 0;  ///< as in PTX: rn, rz, rm, rp
  std::uint8_t selector = 0;  ///< of a sparse A: which lanes know where its elements stand
  std::uint8_t scales = 0;    ///< parts of k with a scale each
  bool fine_scales = false;   ///< ue4m3, else ue8m0
  std::uint8_t unused[3]{};

  [[nodiscard]] bool sparse() const { return fragments == Fragments::kSparse; }
  /// Of the elements that there are.
  [[nodiscard]] int height(Matrix matrix) const { return matrix == Matrix::kB ? k : m; }
  [[nodiscard]] int width(Matrix matrix) const {
    return matrix != Matrix::kA ? n : sparse() ? k / 2 : k;
  }
  /// Registers of a lane.
  [[nodiscard]] unsigned registers(Matrix matrix, Element type) const {
    if (fragments == Fragments::kQuads) return matrix != Matrix::kSum ? 2 : 8 / packed(type);
    if (fragments == Fragments::kWmma && matrix != Matrix::kSum && type == Element::kF16) return 8;
    const auto size = static_cast<unsigned>(height(matrix) * width(matrix));
    return size / packed(type) / 32;
  }
  using Words = std::array<std::uint32_t, 5>;
  [[nodiscard]] Words pack() const { return std::bit_cast<Words>(*this); }
};
static_assert(sizeof(MatrixCode) == sizeof(MatrixCode::Words));

/// Registers pass through memory, this many bytes apart: those of A, B, C and D one after another,
/// then where the elements of a sparse A stand, and the scales of A and B.
inline constexpr std::size_t kMatrixRegisterBytes = 256;

/// `selectors`: a byte each for the first byte and the lanes of the scales of A, and of B.
void multiply_matrix(const MatrixCode& code, std::uint8_t* registers, std::uint32_t selectors);

}  // namespace braid::cpu
