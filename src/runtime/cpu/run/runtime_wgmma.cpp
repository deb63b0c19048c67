// Matrix products of warp groups. A warp's quarter of a product is done when it is issued: operands
// are read and sums written then, which is one of the orders that a GPU has. As one warp of a group
// may tell others for all four that operands are no longer needed, once it has waited, the warps of
// a group wait for each other where they wait for their products.

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

#include "runtime/cpu/run/matrix8.h"
#include "runtime/cpu/run/matrix_code.h"
#include "runtime/cpu/run/matrix_reader.h"
#include "runtime/cpu/run/mma.h"
#include "runtime/cpu/run/shared_matrix.h"
#include "runtime/cpu/run/wgmma.h"

namespace braid::cpu {
namespace {

/// Lays operands out as fragments of registers, the way of ldmatrix.
class Gatherer {
 public:
  Gatherer(Warp& warp, std::uint64_t descriptor, bool exchanged, std::uint32_t line,
           std::uint32_t place)
      : reader_(warp, warp.shared, SharedMatrix::of_wgmma(descriptor, exchanged),
                AccessCode::kMatrixFrom, line, place),
        exchanged_(exchanged) {}

  void block(std::uint32_t mn, std::uint32_t part, std::uint32_t* to) {
    MatrixReader::Rows rows;
    if (!reader_.block(mn, part, rows)) return;
    if (exchanged_) transpose(rows);
    for (std::uint32_t r = 0; r < 8; ++r)
      _mm_store_si128(reinterpret_cast<__m128i*>(to) + r, rows[r]);
  }
  [[nodiscard]] std::uint32_t outside() const { return reader_.outside(); }

 private:
  MatrixReader reader_;
  bool exchanged_;
};

using Message = std::array<char, 160>;

void check_descriptor(Warp& warp, char name, std::uint64_t descriptor, bool exchanged,
                      std::uint32_t parts, std::uint32_t line) {
  Message message{};
  if ((descriptor & ~SharedMatrix::kWgmmaFields) != 0) {
    std::snprintf(message.data(), message.size(),
                  "the descriptor of %c, %#llx, has bits that no field has", name,
                  static_cast<unsigned long long>(descriptor));
    warp.runner->fail(warp, "bounds", message.data(), line);
  }
  if (SharedMatrix::of_wgmma(descriptor, exchanged).leaves_its_rows(parts)) {
    std::snprintf(message.data(), message.size(),
                  "the descriptor of %c, %#llx, is misaligned: %u bytes of k from its start leave "
                  "a row of the swizzle",
                  name, static_cast<unsigned long long>(descriptor), 16 * parts);
    warp.runner->fail(warp, "align", message.data(), line);
  }
}

void check_inside(Warp& warp, char name, std::uint32_t outside, std::uint32_t line) {
  if (outside == 0) return;
  Message message{};
  std::snprintf(message.data(), message.size(),
                "the descriptor of %c reaches %#x, and the block has %#x bytes of shared memory",
                name, outside, warp.total_shared);
  warp.runner->fail(warp, "bounds", message.data(), line);
}

/// Turns the signs of all elements in a register.
void negate(std::uint32_t* fragment, std::uint32_t signs) {
  for (std::size_t l = 0; l < 32; ++l) fragment[l] ^= signs;
}

/// Products of single bits, which lie as words of 32 do.
void multiply_bits(const MmaPlan& plan) {
  plan.for_each_tile([&](const MmaTile& tile) {
    for (std::uint32_t w = 0; w < tile.width; ++w) {
      for (std::uint32_t row = 0; row < 16; ++row) {
        for (std::uint32_t column = 0; column < 8; ++column) {
          std::uint32_t sum = 0;
          for (std::uint32_t word = 0; word < 8; ++word) {
            const std::uint32_t a =
                plan.a(tile.a(0), row / 8 + word / 4 * 2)[row % 8 * 4 + word % 4];
            const std::uint32_t b = plan.b(tile.b(0, w), word / 4)[column * 4 + word % 4];
            sum += static_cast<std::uint32_t>(std::popcount(a & b));
          }
          plan.d(tile, w, row / 8 * 2 + column % 2)[row % 8 * 4 + column / 2] += sum;
        }
      }
    }
  });
}

/// Products with a sparse A, `metadata` saying where its elements stand. Each has two B, of half of
/// k each.
void multiply_sparse(const MmaPlan& plan, const MatrixCode& code, const std::uint32_t* metadata) {
  const unsigned sums = code.registers(Matrix::kSum, code.d);
  std::array<std::uint8_t, kMatrixRegisterBytes * 17> registers;
  const auto at = [&](unsigned r) { return registers.data() + kMatrixRegisterBytes * r; };
  plan.for_each_tile([&](const MmaTile& tile) {
    for (std::uint32_t w = 0; w < tile.width; ++w) {
      for (unsigned r = 0; r < 4; ++r) {
        std::memcpy(at(r), plan.a(tile.a(0), r), 128);
        std::memcpy(at(4 + r), plan.b(tile.b(r / 2, w), r % 2), 128);
      }
      for (unsigned r = 0; r < sums; ++r) std::memcpy(at(8 + r), plan.c(tile, w, r), 128);
      std::memcpy(at(8 + 2 * sums), metadata, 128);
      multiply_matrix(code, registers.data(), 0);
      for (unsigned r = 0; r < sums; ++r) std::memcpy(plan.d(tile, w, r), at(8 + sums + r), 128);
    }
  });
}

/// `words`: an MmaPlan with one A and the B of all columns; where these come from memory, their
/// places are scratch. Sums are added to in place; those that are not `kept` start from zero.
/// `lanes`: that run it. `sparse`: null, or what the products of a sparse A are, whose metadata is
/// at `metadata` in the register file.
void wgmma(Warp& warp, std::uint8_t* registers, const std::uint32_t* words, std::uint64_t a,
           std::uint64_t b, WgmmaCode what, std::uint32_t type, std::uint32_t kept,
           std::uint32_t lanes, std::uint32_t line, std::uint32_t place, const MatrixCode* sparse,
           std::uint32_t metadata) {
  warp.runner->check_group(warp, lanes, line);
  const MmaPlan plan(registers, words);
  if (!what.a_in_registers) {
    check_descriptor(warp, 'A', a, what.exchanged_a, 2, line);
    Gatherer from(warp, a, what.exchanged_a, line, place);
    const std::uint32_t first = warp.warp % 4 * 2;
    for (std::uint32_t r = 0; r < 4; ++r) from.block(first + r % 2, r / 2, plan.a(0, r));
    check_inside(warp, 'A', from.outside(), line);
  }
  // Two B lie behind each other along k where A is sparse.
  const std::uint32_t halves = sparse != nullptr ? 2 : 1;
  check_descriptor(warp, 'B', b, what.exchanged_b, 2 * halves, line);
  // All four warps use B, which is read once.
  Gatherer from(warp, b, what.exchanged_b, line, warp.warp % 4 == 0 ? place : kNotCounted);
  const std::uint32_t signs = (type & kMmaFloat8) != 0 ? 0x80808080U
                              : (type & kMmaTf32) != 0 ? 0x80000000U
                                                       : 0x80008000U;
  for (std::uint32_t n = 0; n < plan.b_count(); ++n) {
    for (std::uint32_t part = 0; part < 2; ++part) {
      from.block(n / halves, part + n % halves * 2, plan.b(n, part));
      if (what.negated) negate(plan.b(n, part), signs);
    }
  }
  check_inside(warp, 'B', from.outside(), line);
  if (kept == 0) {
    const std::uint32_t sums = (type & kMmaHalfSum) != 0 ? 2 : 4;
    plan.for_each_tile([&](const MmaTile& tile) {
      for (std::uint32_t w = 0; w < tile.width; ++w) {
        for (std::uint32_t r = 0; r < sums; ++r) std::memset(plan.d(tile, w, r), 0, 128);
      }
    });
  }
  if (what.bits) return multiply_bits(plan);
  if (sparse != nullptr) {
    multiply_sparse(plan, *sparse, reinterpret_cast<const std::uint32_t*>(registers + metadata));
    return;
  }
  multiply_fragments(plan, type);
}

// What checks hear of. Arrays of registers have their numbers: first those that are written.

void check_wgmma(Warp& warp, const std::uint32_t* registers, std::uint32_t sums,
                 std::uint32_t inputs, std::uint64_t what, std::uint32_t line) {
  warp.runner->sanitizer()->wgmma_issue(warp.check, {registers, sums}, {registers + sums, inputs},
                                        what, line);
}

void check_wgmma_move(Warp& warp, std::uint32_t to, std::uint32_t from, std::uint32_t lanes) {
  if (lanes != 0) warp.runner->sanitizer()->wgmma_move(warp.check, to, from);
}

void check_wgmma_use(Warp& warp, const std::uint32_t* registers, std::uint32_t writes,
                     std::uint32_t reads, std::uint32_t sets, std::uint32_t lanes,
                     std::uint32_t line) {
  if (lanes == 0) return;
  warp.runner->sanitizer()->wgmma_touch(warp.check, {registers + writes, reads},
                                        {registers, writes}, sets != 0, line);
}

/// wgmma.fence, or else wgmma.commit_group.
void check_wgmma_order(Warp& warp, std::uint32_t lanes, std::uint32_t fences, std::uint32_t line) {
  warp.runner->check_group(warp, lanes, line);
  warp.check.wgmma.ran(line);
  if (fences != 0) {
    warp.runner->sanitizer()->wgmma_fence(warp.check);
  } else {
    warp.runner->sanitizer()->wgmma_commit(warp.check);
  }
}

}  // namespace

std::vector<RuntimeHelper> wgmma_helpers() {
  return {{"wgmma", wgmma},
          {"wgmma_wait", kEntry<&BlockRunner::meet_group>},
          {"check_wgmma", check_wgmma},
          {"check_wgmma_move", check_wgmma_move},
          {"check_wgmma_use", check_wgmma_use},
          {"check_wgmma_order", check_wgmma_order}};
}

}  // namespace braid::cpu
