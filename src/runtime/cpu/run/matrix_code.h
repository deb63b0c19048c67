#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace braid::cpu {

/// Element types of matrices. kBits is 32 one-bit elements, which count as one.
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
  kE2m3,       ///< likewise
  kE2m1,       ///< in the middle 4 bits of a byte
  kE2m1Packed  ///< two in a byte
};

inline constexpr unsigned element_bits(Element type) {
  constexpr unsigned kBits[] = {16, 16, 32, 32, 64, 8, 8, 8, 8, 4, 4, 32, 32, 8, 8, 8, 4};
  return kBits[static_cast<std::size_t>(type)];
}
inline constexpr unsigned register_bits(Element type) { return type == Element::kF64 ? 64 : 32; }
inline constexpr unsigned packed(Element type) { return register_bits(type) / element_bits(type); }

/// The matrices of D = A B + C; C and D have the same layout.
enum class Matrix : std::uint8_t { kA, kB, kSum };

/// The layout of matrix elements in the registers of a warp.
enum class Fragments : std::uint8_t {
  kMma,     ///< as the PTX manual defines it for mma
  kSparse,  ///< for mma.sp: A has half of its elements, and their positions
  kQuads,   ///< for mma.m8n8k4 of f16: four products, by eight lanes each
  kWmma     ///< for wmma, which leaves it open
};

/// What helper "matrix", "wmma_load" and "wmma_store" do.
struct MatrixCode {
  Fragments fragments = Fragments::kMma;
  Matrix which = Matrix::kSum;  ///< matrix to load or store, with `columns` and `d`
  std::uint8_t m = 0, n = 0, k = 0;
  Element a = Element::kF32, b = Element::kF32, c = Element::kF32, d = Element::kF32;
  bool columns = false;  ///< A, or the matrix to load or store, is column-major
  bool rows = false;     ///< B is row-major
  bool saturate = false;
  bool conjunction = false;   ///< for bits: AND, else XOR
  std::uint8_t rounding = 0;  ///< as in PTX: rn, rz, rm, rp
  std::uint8_t selector = 0;  ///< for a sparse A: lanes with the positions of its elements
  std::uint8_t scales = 0;    ///< parts of k with a scale each
  bool fine_scales = false;   ///< ue4m3, else ue8m0
  std::uint8_t unused[3]{};

  [[nodiscard]] bool sparse() const { return fragments == Fragments::kSparse; }
  /// Counts only existing elements.
  [[nodiscard]] int height(Matrix matrix) const { return matrix == Matrix::kB ? k : m; }
  [[nodiscard]] int width(Matrix matrix) const {
    return matrix != Matrix::kA ? n : sparse() ? k / 2 : k;
  }
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

/// Registers are passed through memory, this many bytes apart: A, B, C and D in turn, then the
/// positions of a sparse A's elements, and the scales of A and B.
inline constexpr std::size_t kMatrixRegisterBytes = 256;

/// `selectors`: for the scales of A and of B, a byte each for the first byte and the lanes.
void multiply_matrix(const MatrixCode& code, std::uint8_t* registers, std::uint32_t selectors);

}  // namespace braid::cpu
