// The helpers of what works beside the threads: mbarriers, bulk copies of tensors and asynchronous
// products (Hopper on).

#include <fmt/format.h>

#include "codegen/cuda/preamble.h"
#include "codegen/cuda/spelling.h"
#include "codegen/units.h"

namespace braid::tile {
namespace {

constexpr std::string_view kMbarrier =
    R"(__device__ __forceinline__ void init_mbarrier(unsigned at, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(unsigned at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
}
__device__ __forceinline__ void arrive_expecting(unsigned at, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory");
}
// Until the phase of this parity has ended.
__device__ __forceinline__ void await_phase(unsigned at, unsigned parity) {
  unsigned ended;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}" : "=r"(ended) : "r"(at), "r"(parity) : "memory");
  } while (ended == 0);
}
)";
constexpr std::string_view kPushTile =
    R"(__device__ __forceinline__ void push_tile(const void* map, unsigned from, int col, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
               :: "l"(map), "r"(from), "r"(col), "r"(row) : "memory");
}
__device__ __forceinline__ void commit_pushes() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Shared memory may be written again.
__device__ __forceinline__ void await_pushes_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
// What threads wrote to shared memory, bulk copies see.
__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
)";
constexpr std::string_view kStMatrix =
    R"(__device__ __forceinline__ void stmatrix(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
)";
constexpr std::string_view kProducts =
    R"(__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// An operand in panels of 128 bytes; `leading` bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned at, unsigned leading) {
  return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
         (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;
}
)";

constexpr std::string_view kProductsInSums =
    R"(__device__ __forceinline__ void alloc_sums(unsigned at, unsigned columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(at), "r"(columns) : "memory");
}
__device__ __forceinline__ void free_sums(unsigned at, unsigned columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(at), "r"(columns) : "memory");
}
__device__ __forceinline__ void before_meeting() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void after_meeting() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
// Arrives once the products that this thread has begun have ended.
__device__ __forceinline__ void commit_products(unsigned at) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(at) : "memory");
}
__device__ __forceinline__ void await_sums() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
// An operand in panels of 128 bytes; `leading` bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned at, unsigned leading) {
  return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
         (unsigned long long)(1024 >> 4) << 32 | 1ull << 46 | 1ull << 62;
}
)";

}  // namespace

void Preamble::mbarriers() {
  shared_address();
  need(kAsync, "mbarrier", std::string(kMbarrier));
}

std::string Preamble::copy_tile(int dims) {
  mbarriers();
  std::string parameters, registers, operands;
  for (int d = 2; d < dims; ++d) {
    parameters += fmt::format(", int at_{}", d);
    registers += fmt::format(", %{}", d + 3);
    operands += fmt::format(", \"r\"(at_{})", d);
  }
  const std::string name = dims == 2 ? "copy_tile" : fmt::format("copy_tile_{}d", dims);
  return need(
      kAsync, name,
      fmt::format(
          R"(__device__ __forceinline__ void {}(unsigned to, const void* map, unsigned full, int col, int row{}) {{
  asm volatile("cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {{%3, %4{}}}], [%2];" :: "r"(to), "l"(map), "r"(full), "r"(col), "r"(row){} : "memory");
}}
)",
          name, parameters, dims, registers, operands));
}

std::string Preamble::push_tile() { return need(kAsync, "push_tile", std::string(kPushTile)); }

std::string Preamble::stmatrix() { return need(kAsync, "stmatrix", std::string(kStMatrix)); }

void Preamble::products() { need(kAsync, "products", std::string(kProducts)); }

std::string Preamble::wgmma_wait(int under_way) {
  const std::string name = fmt::format("wgmma_wait_{}", under_way);
  return need(kAsync, name,
              fmt::format("__device__ __forceinline__ void {}() {{\n"
                          "  asm volatile(\"wgmma.wait_group.sync.aligned {};\" ::: \"memory\");\n"
                          "}}\n",
                          name, under_way));
}

namespace {

/// The sums of a product, as operands of its statement: their numbers, and what they are.
struct Sums {
  int count;
  std::string registers, operands;

  explicit Sums(int cols) : count(cols / 2) {
    for (int i = 0; i < count; ++i) {
      const std::string_view line = i % 16 == 0 && i > 0 ? "\"\n      \"" : "";
      registers += fmt::format("{}{}%{}", i == 0 ? "" : ",", line, i);
      operands += fmt::format("{}{}\"+f\"(d[{}])", i == 0 ? "" : ", ",
                              i % 8 == 0 && i > 0 ? "\n        " : "", i);
    }
  }
};

}  // namespace

std::string Preamble::wgmma(DType a, DType b, int cols, bool trans_a, bool trans_b) {
  // Operands of 8 bits lie along K, and cannot say so.
  const bool has_orders = dtype_size(a) == 2;
  const std::string name = fmt::format("wgmma_{}_{}{}{}{}", cols, dtype_name(a),
                                       a == b ? "" : fmt::format("_{}", dtype_name(b)),
                                       trans_a ? "_ta" : "", trans_b ? "_tb" : "");
  const auto& [sums, registers, operands] = Sums(cols);
  const std::string text = fmt::format(
      R"(__device__ __forceinline__ void {0}(float* d, unsigned long long a, unsigned long long b, bool adds) {{
  asm volatile("{{\n.reg .pred p;\nsetp.ne.b32 p, %{1}, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n{2}k{9}.f32.{3}.{10} {{"
      "{4}}},\n"
      " %{5}, %{6}, p, 1, 1{7};\n}}"
      : {8}
      : "l"(a), "l"(b), "r"((int)adds));
}}
)",
      name, sums + 2, cols, ptx_name(a), registers, sums, sums + 1,
      has_orders ? fmt::format(", {:d}, {:d}", trans_a, trans_b) : "", operands,
      units::kWgmma.multiplies->step(a), ptx_name(b));
  return need(kAsync, name, text);
}

void Preamble::products_in_sums() {
  shared_address();
  need(kAsync, "products_in_sums", std::string(kProductsInSums));
}

/// PTX ISA, "Instruction descriptor": bits of the operands' dtypes and orders and of the shape.
std::string Preamble::product_in_sums(DType a, DType b, int cols, bool trans_a, bool trans_b) {
  products_in_sums();
  const auto code = [](DType dtype) {
    return dtype == DType::kBF16 || dtype == DType::kF8E5M2 ? 1U : 0U;
  };
  constexpr unsigned kSumsOfF32 = 1U << 4U;
  const auto rows = static_cast<unsigned>(units::kTcgen05.multiplies->rows);
  const unsigned what = kSumsOfF32 | code(a) << 7U | code(b) << 10U | unsigned{trans_a} << 15U |
                        unsigned{trans_b} << 16U | static_cast<unsigned>(cols) / 8 << 17U |
                        rows / 16 << 24U;
  const std::string name = fmt::format("product_{}_{}{}{}{}", cols, dtype_name(a),
                                       a == b ? "" : fmt::format("_{}", dtype_name(b)),
                                       trans_a ? "_ta" : "", trans_b ? "_tb" : "");
  return need(
      kAsync, name,
      fmt::format(
          R"(__device__ __forceinline__ void {}(unsigned to, unsigned long long a, unsigned long long b, bool adds) {{
  asm volatile("{{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n"
               "tcgen05.mma.cta_group::1.kind::{} [%0], %1, %2, {}, p;\n}}"
               :: "r"(to), "l"(a), "l"(b), "r"((int)adds) : "memory");
}}
)",
          name, dtype_size(a) == 2 ? "f16" : "f8f6f4", what));
}

std::string Preamble::load_sums(int cols) {
  products_in_sums();
  std::string registers, operands;
  for (int i = 0; i < cols; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ",", i);
    operands += fmt::format("{}{}\"=f\"(v[{}])", i == 0 ? "" : ", ",
                            i % 8 == 0 && i > 0 ? "\n        " : "", i);
  }
  const std::string name = fmt::format("load_sums_{}", cols);
  return need(kAsync, name,
              fmt::format(R"(__device__ __forceinline__ void {}(float* v, unsigned from) {{
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x{}.b32 {{{}}}, [%{}];"
      : {}
      : "r"(from) : "memory");
}}
)",
                          name, cols, registers, cols, operands));
}

std::string Preamble::wgmma_from_registers(DType dtype, int cols, bool trans_b) {
  const std::string name =
      fmt::format("wgmma_r_{}_{}{}", cols, dtype_name(dtype), trans_b ? "_tb" : "");
  const auto& [sums, registers, operands] = Sums(cols);
  const std::string text = fmt::format(
      R"(__device__ __forceinline__ void {0}(float* d, const unsigned* a, unsigned long long b, bool adds) {{
  asm volatile("{{\n.reg .pred p;\nsetp.ne.b32 p, %{1}, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n{2}k16.f32.{3}.{3} {{"
      "{4}}},\n"
      " {{%{5}, %{6}, %{7}, %{8}}}, %{9}, p, 1, 1, {10};\n}}"
      : {11}
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)adds));
}}
)",
      name, sums + 5, cols, dtype_name(dtype), registers, sums, sums + 1, sums + 2, sums + 3,
      sums + 4, trans_b ? 1 : 0, operands);
  return need(kAsync, name, text);
}

}  // namespace braid::tile
