// CUDA text of helpers for arithmetic, copies and matrix instructions. Memory holds bf16 and f16 as
// unsigned short and 8-bit floats as unsigned char; computed values are float or long long.

#include <fmt/format.h>

#include "braid/error.h"
#include "codegen/cuda/preamble.h"
#include "codegen/cuda/spelling.h"

namespace braid::tile {
namespace {

constexpr std::string_view kWidenF16 =
    R"(__device__ __forceinline__ float widen_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
)";
// Integer arithmetic on every target: no instruction before sm_89 converts these types.
constexpr std::string_view kWidenE4M3 =
    R"(__device__ __forceinline__ float widen_f8e4m3(unsigned char x) {
  const unsigned m = x & 0x7fu;
  // The exponent's bias is 120 less.
  const float y = m == 0x7fu ? __uint_as_float(0x7fc00000u) : __uint_as_float(m << 20) * 0x1p120f;
  return x & 0x80u ? -y : y;
}
)";
constexpr std::string_view kWidenE5M2 =
    R"(__device__ __forceinline__ float widen_f8e5m2(unsigned char x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((unsigned short)(x << 8)));
  return y;
}
)";
// Two of four bytes, which stand in the upper halves of 16 bits: their exponents are as far from
// the right ones as a power of two says. A flag in the top bit of a byte makes its element NaN.
constexpr std::string_view kCastPairE4M3 =
    R"(__device__ __forceinline__ unsigned cast_pair_f8e4m3_{0}(unsigned p, unsigned nan) {{
  unsigned y;
  asm("fma.rn.{0}x2 %0, %1, %2, %3;"
      : "=r"(y) : "r"((p & 0x80008000u) | (p & 0x7f007f00u) >> {1}), "r"({2}u), "r"(nan));
  return y;
}}
)";
constexpr std::string_view kSpreadSigns =
    R"(__device__ __forceinline__ unsigned spread_signs(unsigned x, unsigned which) {
  unsigned y;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(y) : "r"(x), "r"(which));
  return y;
}
)";
constexpr std::string_view kNarrowPair =
    R"(__device__ __forceinline__ unsigned narrow_pair_{0}(float x, float y) {{
  unsigned w;
  asm("cvt.rn.{0}x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));
  return w;
}}
)";
constexpr std::string_view kNarrow16 =
    R"(__device__ __forceinline__ unsigned short narrow_{0}(float x) {{
  unsigned short y;
  asm("cvt.rn.{0}.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}}
)";
// {0} name, {1} largest code, at which values saturate, {2} biased exponent below which codes are
// denormal, {3} factor that makes an integer of those, {4} half of the last kept bit, {5} number of
// dropped bits, {6} difference of the biases
constexpr std::string_view kNarrow8 = R"(// The code nearest to |x|, ties to even.
__device__ __forceinline__ unsigned char narrow_{0}(float x) {{
  const unsigned u = __float_as_uint(x) & 0x7fffffffu;
  unsigned m;
  if (u < {2}u << 23) {{
    m = (unsigned)__float2int_rn(__uint_as_float(u) * {3}.0f);
  }} else {{
    const unsigned r = u + {4}u + (u >> {5} & 1u);
    m = (r >> {5}) - {6}u;
  }}
  m = x != x ? 0x7fu : (m > {1}u ? {1}u : m);
  return (unsigned char)(m | (x != x ? 0u : __float_as_uint(x) >> 24 & 0x80u));
}}
)";

constexpr std::string_view kExtremeF32 = R"(// NaN wins, and -0 is below +0.
__device__ __forceinline__ float {0}_f32(float a, float b) {{
  float y;
  asm("{0}.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}}
)";

constexpr std::string_view kSharedAddress =
    R"(__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
)";
constexpr std::string_view kCopyAsync =
    R"(// {0} bytes from global to shared memory; zeros when not ok.
__device__ __forceinline__ void copy_async_{0}(unsigned to, const void* from, bool ok) {{
  asm volatile("cp.async.{1}.shared.global [%0], [%1], {0}, %2;"
               :: "r"(to), "l"(from), "r"(ok ? {0} : 0) : "memory");
}}
)";
// {0} bytes, {1} type of the register, {2} its zero, {3} type in memory, {4} the store and its
// operand, {5} the registers
constexpr std::string_view kCopyByRegisters =
    R"(__device__ __forceinline__ void copy_async_{0}(unsigned to, const void* from, bool ok) {{
  {1} value = {2};
  if (ok) value = *(const {3}*)from;
  asm volatile("st.shared.{4};" :: "r"(to), {5} : "memory");
}}
)";
// {0} threads: barrier 1 is theirs
constexpr std::string_view kMeet = R"(
// The threads that compute meet, without those of other roles.
__device__ __forceinline__ void meet() {{ asm volatile("bar.sync 1, {0};" ::: "memory"); }}
__device__ __forceinline__ bool meet_or(bool any) {{
  int met;
  asm volatile("{{\n"
               ".reg .pred own, all;\n"
               "setp.ne.s32 own, %1, 0;\n"
               "bar.red.or.pred all, 1, {0}, own;\n"
               "selp.s32 %0, 1, 0, all;\n"
               "}}" : "=r"(met) : "r"((int)any) : "memory");
  return met != 0;
}}
)";

constexpr std::string_view kCommitGroup =
    R"(__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
)";
constexpr std::string_view kWaitGroup = R"(__device__ __forceinline__ void wait_group_{0}() {{
  asm volatile("cp.async.wait_group {0};" ::: "memory");
  __syncthreads();
}}
)";
constexpr std::string_view kLdMatrix =
    R"(__device__ __forceinline__ void ldmatrix{0}(unsigned* r, unsigned from) {{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4{1}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}}
)";
constexpr std::string_view kLdMatrixTransBytes =
    R"(// Pairs of columns come together: the even ones are a fragment, the odd ones the next.
__device__ __forceinline__ void ldmatrix_trans_bytes(unsigned* r, unsigned from) {
  unsigned p[4];
  ldmatrix_trans(p, from);
  for (int i = 0; i < 4; ++i) {
    r[i] = __byte_perm(p[i % 2 * 2], p[i % 2 * 2 + 1], i < 2 ? 0x6420 : 0x7531);
  }
}
)";
constexpr std::string_view kMma =
    R"(__device__ __forceinline__ void {0}(float* c, const unsigned* a, const unsigned* b) {{
  asm("mma.sync.aligned.m16n8k{1}.row.col.f32.{2}.{3}.f32 {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, "
      "{{%0, %1, %2, %3}};"
      : "+f"(c[0]), "+f"(c[{4}]), "+f"(c[{5}]), "+f"(c[{6}])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}
)";
// Where mma.sync does not take 8-bit floats they are multiplied as f16, in twice as many words. A
// word has four neighbours along K, and a word of f16 two of them: the order along K changes, in
// the same way for A and B. {0} name, {1} dtype, {2} words, {3} words of half of K, {4} and {5} the
// unit's architectures
constexpr std::string_view kWidenFragment =
    R"(__device__ __forceinline__ void {0}(unsigned* to, const unsigned* from) {{
#if __CUDA_ARCH__ >= {4}0 && __CUDA_ARCH__ < {5}0
  for (int i = 0; i < {2}; ++i) {{
    to[i / {3} * {2} + i % {3}] = widen_pair_{1}(from[i]);
    to[i / {3} * {2} + i % {3} + {3}] = widen_pair_{1}(from[i] >> 16);
  }}
#else
  for (int i = 0; i < {2}; ++i) to[i] = from[i];
#endif
}}
)";
constexpr std::string_view kMmaF8 =
    R"(__device__ __forceinline__ void {0}(float* c, const unsigned* a, const unsigned* b) {{
#if __CUDA_ARCH__ >= {2}0 && __CUDA_ARCH__ < {3}0
  {1}(c, a, b);
  {1}(c, a + 4, b + 2);
#else
  {0}_native(c, a, b);
#endif
}}
)";
constexpr std::string_view kWidenPair =
    R"(__device__ __forceinline__ unsigned {0}(unsigned x) {{
  unsigned y;
  asm("cvt.rn.f16x2.{1}x2 %0, %1;" : "=r"(y) : "h"((unsigned short)x));
  return y;
}}
)";

constexpr std::string_view kMinusPairF16 =
    R"(__device__ __forceinline__ unsigned minus_pair_f16(unsigned a, unsigned b) {
  unsigned y;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
)";

/// A C type of 4, 8 or 16 bytes.
std::string_view words_type(int bytes) {
  return bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : "unsigned";
}
std::string_view zero_words(int bytes) {
  return bytes == 16 ? "make_uint4(0u, 0u, 0u, 0u)" : bytes == 8 ? "make_uint2(0u, 0u)" : "0u";
}
std::string word(int bytes, int index) {
  return bytes == 4 ? "w" : fmt::format("w.{}", "xyzw"[index]);
}

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

}  // namespace

std::string Preamble::widened(DType dtype, const std::string& element) {
  switch (dtype) {
    case DType::kBF16:
      return fmt::format("__uint_as_float((unsigned){} << 16)", element);
    case DType::kF16:
      return need(kTypes, "widen_f16", std::string(kWidenF16)) + "(" + element + ")";
    case DType::kF8E4M3:
      return need(kTypes, "widen_f8e4m3", std::string(kWidenE4M3)) + "(" + element + ")";
    case DType::kF8E5M2:
      return need(kTypes, "widen_f8e5m2", std::string(kWidenE5M2)) + "(" + element + ")";
    default:
      return element;
  }
}

std::string Preamble::narrowed(DType dtype, const std::string& value) {
  const std::string name = fmt::format("narrow_{}", dtype_name(dtype));
  switch (dtype) {
    case DType::kBF16:
    case DType::kF16:
      return need(kTypes, name, fmt::format(kNarrow16, dtype_name(dtype))) + "(" + value + ")";
    case DType::kF8E4M3:
    case DType::kF8E5M2: {
      const int mantissa = dtype == DType::kF8E4M3 ? 3 : 2;
      const int bias = dtype == DType::kF8E4M3 ? 7 : 15;
      const std::string_view largest = dtype == DType::kF8E4M3 ? "0x7e" : "0x7c";
      return need(kTypes, name,
                  fmt::format(kNarrow8, dtype_name(dtype), largest, 128 - bias,
                              1 << (bias - 1 + mantissa), (1 << (22 - mantissa)) - 1, 23 - mantissa,
                              (127 - bias) << mantissa)) +
             "(" + value + ")";
    }
    default:
      return fmt::format("({}){}", memory_type(dtype), value);
  }
}

/// An expression that packs `width` of the values `v`, from `first` on, into an unsigned.
std::string Preamble::narrowed_word(DType dtype, int first, int width) {
  const std::string_view type = dtype_name(dtype);
  if (width == 2 && (dtype == DType::kF16 || dtype == DType::kBF16)) {
    return fmt::format(
        "{}(v[{}], v[{}])",
        need(kTypes, fmt::format("narrow_pair_{}", type), fmt::format(kNarrowPair, type)), first,
        first + 1);
  }
  std::string value;
  for (int e = 0; e < width; ++e) {
    const std::string_view bits = dtype == DType::kI8 ? "(unsigned char)" : "";  // not the sign's
    const std::string part =
        fmt::format("(unsigned){}{}", bits, narrowed(dtype, fmt::format("v[{}]", first + e)));
    value += e == 0 ? part
                    : fmt::format(" | {} << {}", part, e * static_cast<int>(dtype_size(dtype)) * 8);
  }
  return value;
}

std::string Preamble::load(DType dtype, int width) {
  const std::string name = fmt::format("load_{}_{}", dtype_name(dtype), width);
  const int size = static_cast<int>(dtype_size(dtype));
  const int bytes = width * size;
  std::string text =
      fmt::format("__device__ __forceinline__ void {}({}* v, const {}* p, bool ok) {{\n", name,
                  value_type(dtype), memory_type(dtype));
  if (bytes < 4) {
    for (int i = 0; i < width; ++i) {
      text += fmt::format("  v[{0}] = ok ? {1} : 0;\n", i, widened(dtype, fmt::format("p[{}]", i)));
    }
    return need(kAccess, name, text + "}\n");
  }
  text += fmt::format("  {0} w = {1};\n  if (ok) w = *(const {0}*)p;\n", words_type(bytes),
                      zero_words(bytes));
  for (int i = 0; i < width; ++i) {
    const std::string w = word(bytes, i * size / 4);
    const int shift = i * size % 4 * 8;
    std::string value;
    if (size == 8) {
      value = fmt::format("(long long)((unsigned long long){} << 32 | {})", word(bytes, 2 * i + 1),
                          word(bytes, 2 * i));
    } else if (size == 4) {
      value = (is_float(dtype) ? "__uint_as_float(" : "(int)(") + w + ")";
    } else if (dtype == DType::kBF16) {
      value = "__uint_as_float(" + w + (shift == 0 ? " << 16)" : " & 0xffff0000u)");
    } else {
      value = widened(dtype, fmt::format("({})({} >> {})", memory_type(dtype), w, shift));
    }
    text += fmt::format("  v[{}] = {};\n", i, value);
  }
  return need(kAccess, name, text + "}\n");
}

std::string Preamble::store(DType dtype, int width) {
  const std::string name = fmt::format("store_{}_{}", dtype_name(dtype), width);
  const int size = static_cast<int>(dtype_size(dtype));
  const int bytes = width * size;
  std::string text =
      fmt::format("__device__ __forceinline__ void {}({}* p, const {}* v, bool ok) {{\n", name,
                  memory_type(dtype), value_type(dtype));
  const auto element = [&](int i) { return narrowed(dtype, fmt::format("v[{}]", i)); };
  if (bytes < 4) {
    for (int i = 0; i < width; ++i) text += fmt::format("  if (ok) p[{}] = {};\n", i, element(i));
    return need(kAccess, name, text + "}\n");
  }
  text += fmt::format("  {} w;\n", words_type(bytes));
  for (int i = 0; i < bytes / 4; ++i) {
    std::string value;
    if (size == 8) {
      value = fmt::format("(unsigned)({}v[{}]{})", i % 2 == 0 ? "" : "(unsigned long long)", i / 2,
                          i % 2 == 0 ? "" : " >> 32");
    } else if (size == 4) {
      value = is_float(dtype) ? fmt::format("__float_as_uint(v[{}])", i)
                              : fmt::format("(unsigned)v[{}]", i);
    } else {
      value = narrowed_word(dtype, i * (4 / size), 4 / size);
    }
    text += fmt::format("  {} = {};\n", word(bytes, i), value);
  }
  text += fmt::format("  if (ok) *({}*)p = w;\n}}\n", words_type(bytes));
  return need(kAccess, name, text);
}

/// The body of a cast of 8-bit integers. Where the mantissa's unit is 1 a byte is its own number:
/// behind 1024 in f16, behind 2^23 in f32, from which bf16 is rounded. Signed ones are moved up by
/// 128 first.
std::string Preamble::cast_of_integers(DType from, DType to, int width) {
  const bool is_signed = from == DType::kI8;
  const bool is_half = to == DType::kF16;
  std::string text = fmt::format("  const {0} w = *(const {0}*)from;\n  {1} y;\n",
                                 words_type(width), words_type(2 * width));
  if (is_half) need(kTypes, "minus_pair_f16", std::string(kMinusPairF16));
  for (int i = 0; i < width / 2; ++i) {
    if (i % 2 == 0) {
      text += fmt::format("  const unsigned u{} = {}{};\n", i / 2, word(width, i / 2),
                          is_signed ? " ^ 0x80808080u" : "");
    }
    const auto number = [&](int byte) {
      return fmt::format("__uint_as_float(__byte_perm(u{}, 0x4b000000u, 0x744{})) - {}.0f", i / 2,
                         byte, is_signed ? 8388736 : 8388608);
    };
    const int first = i % 2 * 2;
    const std::string pair =
        is_half ? fmt::format("minus_pair_f16(__byte_perm(u{}, 0x64646464u, 0x4{}4{}), {})", i / 2,
                              first + 1, first, is_signed ? "0x64806480u" : "0x64006400u")
                : fmt::format("{}({}, {})",
                              need(kTypes, "narrow_pair_bf16", fmt::format(kNarrowPair, "bf16")),
                              number(first), number(first + 1));
    text += fmt::format("  y{} = {};\n", word(2 * width, i).substr(1), pair);
  }
  return text + fmt::format("  if (ok) *({}*)to = y;\n}}\n", words_type(2 * width));
}

std::string Preamble::cast(DType from, DType to, int width) {
  const std::string name = fmt::format("cast_{}_{}_{}", dtype_name(from), dtype_name(to), width);
  std::string text =
      fmt::format("__device__ __forceinline__ void {}({}* to, const {}* from, bool ok) {{\n", name,
                  memory_type(to), memory_type(from));
  if (dtype_size(from) != 1 || dtype_size(to) != 2 || width % 4 != 0) {
    text += fmt::format("  {} x[{}];\n  {}(x, from, true);\n  float v[{}];\n", value_type(from),
                        width, load(from, width), width);
    text +=
        fmt::format("  for (int i = 0; i < {}; ++i) v[i] = (float)x[i];\n  {}(to, v, ok);\n}}\n",
                    width, store(to, width));
    return need(kMath, name, text);
  }
  if (!is_float8(from)) return need(kMath, name, text + cast_of_integers(from, to, width));
  // All bits of an e5m2 are the upper half of an f16. Of an e4m3, 127 with any sign is NaN.
  const bool is_half = from == DType::kF8E5M2;
  if (!is_half) {
    need(kTypes, "spread_signs", std::string(kSpreadSigns));
    need(kTypes, fmt::format("cast_pair_f8e4m3_{}", dtype_name(to)),
         to == DType::kBF16 ? fmt::format(kCastPairE4M3, "bf16", 4, "0x7b807b80")
                            : fmt::format(kCastPairE4M3, "f16", 1, "0x5c005c00"));
  }
  text += fmt::format("  const {0} w = *(const {0}*)from;\n  {1} y;\n", words_type(width),
                      words_type(2 * width));
  for (int i = 0; i < width / 2; ++i) {
    const std::string w = word(width, i / 2);
    const bool first = i % 2 == 0;
    if (first && !is_half) {
      text += fmt::format(
          "  const unsigned nan{} = (({} & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u;\n", i / 2, w);
    }
    std::string value = fmt::format("__byte_perm({}, 0u, {})", w, first ? "0x1404" : "0x3424");
    if (!is_half) {
      value = fmt::format("cast_pair_f8e4m3_{}({}, spread_signs(nan{}, {}))", dtype_name(to), value,
                          i / 2, first ? "0x9988u" : "0xbbaau");
    } else if (to == DType::kBF16) {
      text += fmt::format("  const unsigned h{} = {};\n", i, value);
      value = fmt::format("{}({}, {})",
                          need(kTypes, "narrow_pair_bf16", fmt::format(kNarrowPair, "bf16")),
                          widened(DType::kF16, fmt::format("(unsigned short)h{}", i)),
                          widened(DType::kF16, fmt::format("(unsigned short)(h{} >> 16)", i)));
    }
    text += fmt::format("  y{} = {};\n", word(2 * width, i).substr(1), value);
  }
  text += fmt::format("  if (ok) *({}*)to = y;\n}}\n", words_type(2 * width));
  return need(kMath, name, text);
}

std::string Preamble::round(DType dtype) {
  const std::string name = fmt::format("round_{}", dtype_name(dtype));
  return need(kAccess, name,
              fmt::format("__device__ __forceinline__ {0} {1}({0} x) {{ return {2}; }}\n",
                          value_type(dtype), name, widened(dtype, narrowed(dtype, "x"))));
}

std::string Preamble::saturate(DType dtype) {
  const std::string name = fmt::format("saturate_{}", dtype_name(dtype));
  std::string_view value = "__float2int_rz(x)";
  if (dtype == DType::kI64) value = "__float2ll_rz(x)";
  if (dtype == DType::kI8) value = "max(min(__float2int_rz(x), 127), -128)";
  if (dtype == DType::kU8) value = "min(__float2uint_rz(x), 255u)";
  return need(kMath, name,
              fmt::format("__device__ __forceinline__ long long {}(float x) {{ return {}; }}\n",
                          name, value));
}

std::string Preamble::extreme(std::string_view name, char sign, Kind kind) {
  if (kind == Kind::kF32) {
    return need(kMath, fmt::format("{}_f32", name), fmt::format(kExtremeF32, name));
  }
  if (kind == Kind::kI32) return std::string(name);
  const std::string integer = fmt::format("{}_i64", name);
  return need(kMath, integer,
              fmt::format("__device__ __forceinline__ long long {}(long long a, long long b) {{ "
                          "return a {} b ? a : b; }}\n",
                          integer, sign));
}

std::string Preamble::abs_of(Kind kind) {
  if (kind == Kind::kF32) return "fabsf";
  return need(kMath, "abs_i64",
              "__device__ __forceinline__ long long abs_i64(long long a) {\n"
              "  return a < 0 ? (long long)(0 - (unsigned long long)a) : a;\n}\n");
}

std::string Preamble::exp2() {
  return need(kMath, "exp2_approx",
              "__device__ __forceinline__ float exp2_approx(float x) {\n  float y;\n"
              "  asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));\n  return y;\n}\n");
}

void Preamble::shared() {
  need(kShared, "", "extern __shared__ __align__(1024) unsigned char smem[];\n");
}

std::string Preamble::bytes(int size, int alignment) {
  const std::string name = fmt::format("Bytes{}_{}", size, alignment);
  return need(kTypes, name,
              fmt::format("struct __align__({1}) {2} {{ unsigned char bytes[{0}]; }};\n", size,
                          alignment, name));
}

void Preamble::shared_address() {
  shared();
  need(kShared, "shared_address", std::string(kSharedAddress));
}

std::string Preamble::copy(const Unit& unit, int bytes) {
  if (&unit == &units::kCpAsync) {
    return need(kCopy, fmt::format("copy_async_{}", bytes),
                fmt::format(kCopyAsync, bytes, bytes == 16 ? "cg" : "ca"));
  }
  std::string_view in_memory = words_type(bytes), in_register = in_memory, zero = zero_words(bytes);
  std::string_view store, registers;
  switch (bytes) {
    case 16:
      store = "v4.u32 [%0], {%1, %2, %3, %4}";
      registers = R"("r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w))";
      break;
    case 8:
      store = "v2.u32 [%0], {%1, %2}";
      registers = R"("r"(value.x), "r"(value.y))";
      break;
    case 4:
      store = "u32 [%0], %1";
      registers = R"("r"(value))";
      break;
    default:
      in_memory = bytes == 2 ? "unsigned short" : "unsigned char";
      in_register = "unsigned short";
      zero = "0";
      store = bytes == 2 ? "u16 [%0], %1" : "u8 [%0], %1";
      registers = R"("h"(value))";
  }
  return need(kCopy, fmt::format("copy_async_{}", bytes),
              fmt::format(kCopyByRegisters, bytes, in_register, zero, in_memory, store, registers));
}

std::string Preamble::commit_group() {
  return need(kCopy, "commit_group", std::string(kCommitGroup));
}

std::string Preamble::wait_group(int groups) {
  return need(kCopy, fmt::format("wait_group_{}", groups), fmt::format(kWaitGroup, groups));
}

std::string Preamble::ldmatrix(bool trans) {
  return need(kMatrix, trans ? "ldmatrix_trans" : "ldmatrix",
              fmt::format(kLdMatrix, trans ? "_trans" : "", trans ? ".trans" : ""));
}

std::string Preamble::ldmatrix_trans_bytes() {
  ldmatrix(true);
  return need(kMatrix, "ldmatrix_trans_bytes", std::string(kLdMatrixTransBytes));
}

std::string Preamble::mma(DType a, DType b, int step) {
  const std::string name = fmt::format("mma_{}_{}{}", ptx_name(a), ptx_name(b),
                                       step == 1 ? "" : fmt::format("_by_{}", step));
  const auto of = [&](const std::string& own, DType x, DType y) {
    const int k = units::kMmaSync.multiplies->step(x);
    return need(kMatrix, own,
                fmt::format(kMma, own, k, ptx_name(x), ptx_name(y), step, 2 * step, 3 * step));
  };
  if (!is_float8(a)) return of(name, a, b);
  const std::string native = of(name + "_native", a, b);
  return need(kProduct, name,
              fmt::format(kMmaF8, name, mma(DType::kF16, DType::kF16, step),
                          units::kMmaSync.multiplies->widens_from,
                          units::kMmaSync.multiplies->widens_below));
}

std::string Preamble::widen_fragment(DType dtype, int words) {
  const std::string_view type = ptx_name(dtype);
  const std::string pair = fmt::format("widen_pair_{}", type);
  need(kMath, pair, fmt::format(kWidenPair, pair, type));
  const std::string name = fmt::format("widen_{}_words_{}", words, type);
  return need(kMatrix, name,
              fmt::format(kWidenFragment, name, type, words, words / 2,
                          units::kMmaSync.multiplies->widens_from,
                          units::kMmaSync.multiplies->widens_below));
}

std::string Preamble::pack(DType dtype) {
  const std::string name = fmt::format("pack_{}", dtype_name(dtype));
  return need(
      kMatrix, name,
      fmt::format("__device__ __forceinline__ unsigned {}(const float* v) {{ return {}; }}\n", name,
                  narrowed_word(dtype, 0, 4 / static_cast<int>(dtype_size(dtype)))));
}

void Preamble::meet_by_role(int threads) {
  need(kTypes, "meet", fmt::format(kMeet, threads));
  meeting_ = threads;
}

std::string Preamble::need(Section section, const std::string& name, std::string text) {
  if (meeting_ != 0) {
    replace_all(text, "__syncthreads_or(", vote() + "(");
    replace_all(text, "__syncthreads(", barrier() + "(");
  }
  texts_.emplace(std::pair(section, name), std::move(text));
  return name;
}

std::string Preamble::text() const {
  std::string out;
  for (const auto& [name, text] : texts_) out += text;
  return out;
}

}  // namespace braid::tile
