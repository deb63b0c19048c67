// Helpers that access all ranks at once. They are relaxed at system scope, as is usual; fences
// order them, like all other traffic between ranks.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/preamble.h"
#include "codegen/cuda/spelling.h"

namespace braid::tile {
namespace {

// {0} dtype, {1} memory type, {2} world, {3} ranks that are unrolled, {4} value of rank 0, {5}
// value of rank r, {6} the rounded sum
constexpr std::string_view kReduceOne16 =
    R"(// 16 bits are less than a multimem instruction takes: an element that is alone, rank by rank.
__device__ __forceinline__ float reduce_one_{0}(const Peers& peers, const unsigned char* multicast,
                                                const {1}* p) {{
  const long long at = (const unsigned char*)p - multicast;
  float sum = {4};
#pragma unroll {3}
  for (int r = 1; r < {2}; ++r) sum += {5};
  return {6};
}}
)";
constexpr std::string_view kStoreOne16 =
    R"(__device__ __forceinline__ void store_one_{0}(const Peers& peers, const unsigned char* multicast,
                                              {1}* p, float v) {{
  const long long at = (unsigned char*)p - multicast;
#pragma unroll {3}
  for (int r = 0; r < {2}; ++r) *({1}*)(peers.base[r] + at) = {4};
}}
)";
constexpr std::string_view kReduceOneF32 =
    R"(__device__ __forceinline__ float reduce_one_f32(const Peers&, const unsigned char*, const float* p) {
  float v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}
)";
constexpr std::string_view kStoreOneF32 =
    R"(__device__ __forceinline__ void store_one_f32(const Peers&, const unsigned char*, float* p, float v) {
  asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" :: "l"(p), "f"(v) : "memory");
}
)";

/// The instruction suffix of a vector access, such as ".v4.bf16x2", and its registers.
struct MultimemVector {
  std::string type;
  int registers;
};
MultimemVector multimem_vector(DType dtype, int width) {
  const int registers = width * static_cast<int>(dtype_size(dtype)) / 4;
  return {fmt::format("{}.{}{}", registers == 1 ? "" : fmt::format(".v{}", registers),
                      dtype_name(dtype), dtype == DType::kF32 ? "" : "x2"),
          registers};
}

/// Formats operands: "%0", or "{%0, %1}".
std::string asm_registers(int first, int count) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("%{}", first + i));
  return count == 1 ? names[0] : fmt::format("{{{}}}", fmt::join(names, ", "));
}

}  // namespace

/// Adds the helper for one element.
void Preamble::multimem_one(const MultimemAccess& access) {
  const DType dtype = access.dtype;
  const std::string reduce = fmt::format("reduce_one_{}", dtype_name(dtype));
  const std::string store = fmt::format("store_one_{}", dtype_name(dtype));
  if (dtype == DType::kF32) {
    need(kMultimemOne, reduce, std::string(kReduceOneF32));
    need(kMultimemOne, store, std::string(kStoreOneF32));
    return;
  }
  const auto of_rank = [&](std::string_view r) {
    return widened(dtype,
                   fmt::format("(*(const {}*)(peers.base[{}] + at))", memory_type(dtype), r));
  };
  need(kMultimemOne, reduce,
       fmt::format(kReduceOne16, dtype_name(dtype), memory_type(dtype), access.world,
                   kUnrolledRanks, of_rank("0"), of_rank("r"), round(dtype) + "(sum)"));
  need(kMultimemOne, store,
       fmt::format(kStoreOne16, dtype_name(dtype), memory_type(dtype), access.world, kUnrolledRanks,
                   narrowed(dtype, "v")));
}

std::string Preamble::multimem_reduce(const MultimemAccess& access) {
  const DType dtype = access.dtype;
  const bool wide = dtype == DType::kF32;
  const auto [type, registers] = multimem_vector(dtype, access.width);
  std::vector<std::string> outputs, values;
  for (int i = 0; i < registers; ++i) {
    outputs.push_back(fmt::format("\"={}\"(w[{}])", wide ? "f" : "r", i));
  }
  for (int e = 0; e < access.width; ++e) {
    const std::string word = fmt::format("w[{}]", wide ? e : e / 2);
    values.push_back(
        wide ? word
             : widened(dtype, fmt::format("({})({} >> {})", memory_type(dtype), word, e % 2 * 16)));
  }
  const std::string vector = fmt::format(
      "asm volatile(\"multimem.ld_reduce.relaxed.sys.global.add{}{} {}, [%{}];\"\n"
      "                 : {} : \"l\"(p) : \"memory\");\n",
      wide ? "" : ".acc::f32", type, asm_registers(0, registers), registers,
      fmt::join(outputs, ", "));
  return multimem("reduce", access, vector, values);
}

std::string Preamble::multimem_store(const MultimemAccess& access) {
  const DType dtype = access.dtype;
  const auto [type, registers] = multimem_vector(dtype, access.width);
  std::vector<std::string> inputs;
  for (int i = 0; i < registers; ++i) {
    const auto element = [&](int e) { return narrowed(dtype, fmt::format("v[{}]", e)); };
    inputs.push_back(dtype == DType::kF32 ? fmt::format("\"f\"(v[{}])", i)
                                          : fmt::format("\"r\"((unsigned){} | (unsigned){} << 16)",
                                                        element(2 * i), element(2 * i + 1)));
  }
  const std::string vector = fmt::format(
      "asm volatile(\"multimem.st.relaxed.sys.global{} [%0], {};\"\n"
      "                 :: \"l\"(p), {} : \"memory\");\n",
      type, asm_registers(1, registers), fmt::join(inputs, ", "));
  return multimem("store", access, vector, {});
}

/// `vector` is the statement for all elements at once; `values` unpacks the words of a reduction.
std::string Preamble::multimem(std::string_view what, const MultimemAccess& access,
                               const std::string& vector, const std::vector<std::string>& values) {
  const auto& [dtype, width, whole, world] = access;
  const bool stores = values.empty();
  const std::string constant = stores ? "" : "const ";
  const std::string words =
      fmt::format("{} w[{}] = {{}};\n", dtype == DType::kF32 ? "float" : "unsigned",
                  width * dtype_size(dtype) / 4);
  std::string assigned;
  for (std::size_t e = 0; e < values.size(); ++e) {
    assigned += fmt::format("{}  v[{}] = {};\n", whole ? "" : "  ", e, values[e]);
  }
  std::string parameters, body;
  if (whole) {
    parameters = "bool ok";
    body = fmt::format("{}  if (ok) {}{}", stores ? "" : "  " + words, vector, assigned);
  } else {
    multimem_one(access);
    std::vector<std::string> bools, all;
    std::string each;
    for (int e = 0; e < width; ++e) {
      all.push_back(fmt::format("ok{}", e));
      bools.push_back("bool " + all.back());
      const std::string one =
          fmt::format("{}_one_{}(peers, multicast, p + {}", what, dtype_name(dtype), e);
      each += stores ? fmt::format("  if (ok{0}) {1}, v[{0}]);\n", e, one)
                     : fmt::format("  v[{0}] = ok{0} ? {1}) : 0.0f;\n", e, one);
    }
    parameters = fmt::format("{}", fmt::join(bools, ", "));
    if (width > 1) {
      body = fmt::format("  if ({}) {{\n{}    {}{}    return;\n  }}\n", fmt::join(all, " && "),
                         stores ? "" : "    " + words, vector, assigned);
    }
    body += each;
  }
  const std::string name =
      fmt::format("multimem_{}{}_{}_{}", what, whole ? "" : "_part", dtype_name(dtype), width);
  return need(
      kMultimem, name,
      fmt::format("__device__ __forceinline__ void {}({}float* v, {}{}unsigned char* base, "
                  "long long at, {}) {{\n  {}{}* const p = ({}{}*)base + at;\n{}}}\n",
                  name, stores ? "const " : "",
                  whole ? "" : "const Peers& peers, const unsigned char* multicast, ", constant,
                  parameters, constant, memory_type(dtype), constant, memory_type(dtype), body));
}

}  // namespace braid::tile
