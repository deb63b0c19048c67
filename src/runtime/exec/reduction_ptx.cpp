#include "runtime/exec/reduction_ptx.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>

#include "ir/fail.h"

namespace braid {
namespace {

/// PTX that loads, reduces and stores one dtype. In these texts `{0}` is the index of the register
/// that is loaded or stored, of type `type` and named %a...; %h and %r are scratch.
struct Arithmetic {
  const char* type;   ///< type of the registers
  const char* load;   ///< from [%x] to %a{0}
  const char* store;  ///< from %a0 to [%x]
  bool is_float;
};

Arithmetic arithmetic_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {"f32", "ld.global.f32 %a{0}, [%x];", "st.global.f32 [%x], %a0;", true};
    case DType::kF16:
      return {"f32", "ld.global.b16 %h, [%x];\n  cvt.f32.f16 %a{0}, %h;",
              "cvt.rn.f16.f32 %h, %a0;\n  st.global.b16 [%x], %h;", true};
    case DType::kBF16:
      return {"f32",
              "ld.global.u16 %h, [%x];\n  cvt.u32.u16 %r, %h;\n  shl.b32 %r, %r, 16;\n  mov.b32 "
              "%a{0}, %r;",
              "cvt.rn.bf16.f32 %h, %a0;\n  st.global.b16 [%x], %h;", true};
    case DType::kI32:
      return {"s32", "ld.global.s32 %a{0}, [%x];", "st.global.s32 [%x], %a0;", false};
    case DType::kI64:
      return {"s64", "ld.global.s64 %a{0}, [%x];", "st.global.s64 [%x], %a0;", false};
    case DType::kI8:
      return {"s32", "ld.global.s8 %a{0}, [%x];", "st.global.s8 [%x], %a0;", false};
    case DType::kU8:
      return {"u32", "ld.global.u8 %a{0}, [%x];", "st.global.u8 [%x], %a0;", false};
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kBool:
      break;
  }
  throw_invalid("communicator", "a reduction of {}; expected f32, f16, bf16, i32, i64, i8 or u8",
                dtype_name(dtype));
}

std::string instruction(ReduceOp op, const Arithmetic& arithmetic) {
  const auto typed = [&](const char* name) { return fmt::format("{}.{}", name, arithmetic.type); };
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return typed(arithmetic.is_float ? "add.rn" : "add");
    case ReduceOp::kProduct:
      return typed(arithmetic.is_float ? "mul.rn" : "mul.lo");
    case ReduceOp::kMax:
      return typed(arithmetic.is_float ? "max.NaN" : "max");
    case ReduceOp::kMin:
      return typed(arithmetic.is_float ? "min.NaN" : "min");
  }
  return {};
}

}  // namespace

std::string reduction_ptx(DType dtype, ReduceOp op, std::size_t sources) {
  const Arithmetic arithmetic = arithmetic_of(dtype);
  std::string text = fmt::format(
      R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry {}(.param .align 8 .b8 sources[{}], .param .u64 result,
                           .param .u64 first, .param .u64 count)
{{
  .reg .pred %p;
  .reg .b16 %h;
  .reg .b32 %r, %c, %n, %t;
  .reg .b64 %i, %step, %first, %count, %to, %from, %offset, %x;
  .reg .{} %a<2>;
  ld.param.u64 %to, [result];
  ld.param.u64 %first, [first];
  ld.param.u64 %count, [count];
  mov.u32 %c, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %i, %c, %n;
  cvt.u64.u32 %x, %t;
  add.s64 %i, %i, %x;
  mov.u32 %c, %nctaid.x;
  mul.wide.u32 %step, %c, %n;
LOOP:
  setp.ge.u64 %p, %i, %count;
  @%p bra DONE;
  add.s64 %x, %i, %first;
  mul.lo.s64 %offset, %x, {};
)",
      kReductionEntry, 8 * sources, arithmetic.type, dtype_size(dtype));
  for (std::size_t s = 0; s < sources; ++s) {
    text += fmt::format("  ld.param.u64 %from, [sources+{}];\n  add.s64 %x, %from, %offset;\n  ",
                        8 * s);
    text += fmt::format(fmt::runtime(arithmetic.load), s == 0 ? 0 : 1);
    text += '\n';
    if (s > 0) text += fmt::format("  {} %a0, %a0, %a1;\n", instruction(op, arithmetic));
  }
  if (op == ReduceOp::kAvg) {
    text += fmt::format("  mov.f32 %a1, 0f{:08X};\n  div.rn.f32 %a0, %a0, %a1;\n",
                        std::bit_cast<std::uint32_t>(static_cast<float>(sources)));
  }
  text += fmt::format(R"(  mul.lo.s64 %offset, %i, {};
  add.s64 %x, %to, %offset;
  {}
  add.s64 %i, %i, %step;
  bra LOOP;
DONE:
  ret;
}}
)",
                      dtype_size(dtype), arithmetic.store);
  return text;
}

}  // namespace braid
