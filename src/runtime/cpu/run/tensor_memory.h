#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

namespace braid::cpu {

/// What helper "tensor_move" does: tcgen05.ld and tcgen05.st.
struct TensorMoveCode {
  /// In the order of the table of instructions.
  enum Shape : std::uint8_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };
  std::uint8_t registers = 1;
  Shape shape : 6 = k32x32b;
  bool stores : 1 = false;
  bool halves : 1 = false;  ///< a register is the lower halves of two columns
  std::uint16_t apart = 0;  ///< columns between the halves of 16x32bx2
};

/// What helper "tensor_copy" does: tcgen05.cp.
struct TensorCopyCode {
  /// Where a row goes to: one lane, or those of two or four warps.
  enum Spread : std::uint8_t { kOnce, kWarps02, kWarps01, kWarps4 };
  std::uint8_t rows = 128;
  std::uint8_t parts = 1;  ///< of 16 bytes, four columns each
  Spread spread = kOnce;
  std::uint8_t pair = 0;  ///< cta_group::2
};

/// What helper "tensor_multiply" does: tcgen05.mma.
struct TensorMmaCode {
  /// In the order of the table of instructions: the dense ones, then those with scales.
  enum Kind : std::uint8_t { kF16, kTf32, kF8, kInt8, kScaledF8, kScaledF4, kScaledFineF4 };
  Kind kind : 4 = kF16;
  bool a_in_tensor : 1 = false;
  bool pair : 1 = false;    ///< cta_group::2
  bool masked : 1 = false;  ///< lanes of D stay as they are
  bool scaled : 1 = false;
  std::uint8_t scale_d = 0;  ///< D is first multiplied by 2^-scale_d
  std::uint8_t scales = 0;   ///< of a row of A, along k
  std::uint8_t unused = 0;
};

/// Operands of tcgen05.mma by lane, as stored in scratch memory.
struct TensorMmaOperands {
  std::uint64_t a[32], b[32];  ///< descriptors; in tensor memory A has an address
  std::uint32_t d[32];
  std::uint32_t types[32];    ///< the instruction descriptor
  std::uint32_t adds[32];     ///< to D, else D is written
  std::uint32_t kept[8][32];  ///< lanes of D that stay, a bit each
  std::uint32_t scales_a[32], scales_b[32];
};

/// A place in tensor memory, as addresses name it.
struct TensorPlace {
  std::uint32_t lane, column;
  explicit TensorPlace(std::uint32_t address) : lane(address >> 16U), column(address & 0xffffU) {}
};

/// The tensor memory of a block: 512 columns of 128 lanes, of a word each. The lanes of a column
/// lie together. It is allocated in units of 32 columns.
class TensorMemory {
 public:
  static constexpr std::uint32_t kLanes = 128, kColumns = 512, kUnit = 32;
  static constexpr std::uint32_t kColumnBytes = kLanes * 4;

  TensorMemory() : words_(new (std::align_val_t{kColumnBytes}) std::uint32_t[kLanes * kColumns]) {}

  [[nodiscard]] std::uint32_t* at(std::uint32_t lane, std::uint32_t column) const {
    return words_.get() + std::size_t{column} * kLanes + lane;
  }
  /// The first of so many columns that were free, in which all bits are ones now; or nothing.
  std::optional<std::uint32_t> take(std::uint32_t columns);
  /// Whether exactly these were taken at once; they are free now.
  bool give_back(std::uint32_t first, std::uint32_t columns);
  /// The first of these columns that nobody has taken, or nothing.
  [[nodiscard]] std::optional<std::uint32_t> missing(std::uint32_t first,
                                                     std::uint32_t columns) const;
  /// Calls visit(first, columns) for all that are taken.
  template <class Visit>
  void for_each_taken(const Visit& visit) const {
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
      if (starts_[unit] != 0) visit(unit * kUnit, starts_[unit] * kUnit);
    }
  }
  [[nodiscard]] std::uint32_t taken() const;
  void close() { closed_ = true; }
  /// Whether nothing may be taken any more.
  [[nodiscard]] bool closed() const { return closed_; }
  void reset() {
    starts_ = {};
    used_ = 0;
    closed_ = false;
  }

 private:
  static constexpr std::uint32_t kUnits = kColumns / kUnit;
  struct Free {
    void operator()(std::uint32_t* words) const {
      ::operator delete[](words, std::align_val_t{kColumnBytes});
    }
  };

  std::unique_ptr<std::uint32_t[], Free> words_;
  std::array<std::uint8_t, kUnits> starts_{};  ///< size of what was taken from a unit on, in units
  std::uint32_t used_ = 0;                     ///< a bit per unit
  bool closed_ = false;
};

}  // namespace braid::cpu
