// Spellings that ptxas takes: the order of modifiers, vectors of one element, constants.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "braid/error.h"
#include "cpu/cpu_harness.h"

namespace braid::cpu_test {
namespace {

using testing::HasSubstr;

/// A kernel of one warp: `lines` leave a word in %r10, which goes to a row of 32 words each.
std::string kernel(const std::vector<std::string>& lines) {
  std::string text = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b16 %h<4>; .reg .b32 %r<24>; .reg .f32 %f<8>; .reg .b64 %rd<8>; .reg .pred %p<5>;
  .shared .align 16 .b8 sm[1024]; .local .align 16 .b8 loc[64];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %laneid; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd3, %rd1, %rd2;
  mad.lo.u32 %r2, %r1, 0x01234567, 77; not.b32 %r3, %r2; xor.b32 %r4, %r2, 0x5a5a5a5a;
  cvt.rn.f32.s32 %f1, %r2; cvt.rn.f32.s32 %f2, %r4; mov.b32 {%h1, %h2}, %r2;
  and.b32 %r5, %r1, 2; setp.eq.u32 %p1, %r5, 0;
  shl.b32 %r6, %r1, 4; mov.u32 %r7, sm; add.u32 %r6, %r6, %r7;
  mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd4, %rd1; add.u64 %rd4, %rd4, 512;
)";
  for (const std::string& line : lines) {
    text +=
        "  st.global.v4.b32 [%rd3], {%r2, %r3, %r4, %r1};"
        " st.shared.v4.b32 [%r6], {%r2, %r3, %r4, %r1}; bar.sync 0;\n  " +
        line + "\n  bar.sync 0; st.global.b32 [%rd4], %r10; add.u64 %rd4, %rd4, 128;\n";
  }
  return text + "  ret;\n}\n";
}

std::vector<std::uint32_t> run(const std::vector<std::string>& lines) {
  Bench bench = Bench::from_ptx(kernel(lines), {.threads = 1});
  const std::size_t count = 128 + 32 * lines.size();
  const std::uint64_t memory = bench.upload(std::vector<std::uint32_t>(count, 0xdeadbeef));
  bench.run({1}, {32}, 0, memory);
  const auto all = bench.download<std::uint32_t>(memory, count);
  return {all.begin() + 128, all.end()};
}

std::string error_of(const std::string& line) {
  try {
    Bench::from_ptx(kernel({line}), {.threads = 1});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// The first of each group is the manual's; ptxas makes the same code of the others.
const std::vector<std::vector<std::string>> kSame = {
    {"ld.global.v2.b32 {%r11, %r10}, [%rd3];", "ld.v2.b32.global {%r11, %r10}, [%rd3];",
     "ld.b32.v2.global {%r11, %r10}, [%rd3];"},
    {"ld.global.nc.L1::no_allocate.L2::128B.b32 %r10, [%rd3];",
     "ld.b32.L2::128B.nc.L1::no_allocate.global %r10, [%rd3];"},
    {"ld.acquire.gpu.global.b32 %r10, [%rd3];", "ld.global.gpu.b32.acquire %r10, [%rd3];"},
    {"ld.shared.u8 %r10, [%r6];", "ld.u8.shared %r10, [%r6];"},
    {"mov.b64 %rd5, loc; st.local.b32 [%rd5+4], %r2; ld.local.b32 %r10, [%rd5+4];",
     "mov.b32 %r11, loc; st.local.b32 [%r11+4], %r2; ld.local.b32 %r10, [%r11+4];",
     "mov.b32 %r11, loc+12; st.local.b32 [%r11+-8], %r2; ld.local.b32 %r10, [loc+4];",
     "mov.b32 %r11, loc; and.b32 %r12, %r2, 28; add.u32 %r11, %r11, %r12;"
     "st.local.b32 [%r11], %r2; ld.local.b32 %r10, [%r11];",
     "mov.b32 %r11, loc; st.local.b32 [%r11], %r2; cvt.u64.u32 %rd5, %r11;"
     "cvta.local.u64 %rd5, %rd5; ld.b32 %r10, [%rd5];"},
    {"ld.param.b32 %r10, [p+4];", "mov.b32 %r11, p; ld.param.b32 %r10, [%r11+4];",
     "mov.b32 %r11, p; cvt.u64.u32 %rd5, %r11; cvta.param.u64 %rd5, %rd5; ld.b32 %r10, [%rd5+4];",
     "mov.b64 %rd5, p; cvta.param.u64 %rd5, %rd5; ld.b32 %r10, [%rd5+4];",
     "mov.b32 %r11, p; and.b32 %r12, %r1, 0; add.u32 %r11, %r11, %r12; cvt.u64.u32 %rd5, %r11;"
     "cvta.param.u64 %rd5, %rd5; ld.b32 %r10, [%rd5+4];"},
    {"st.global.cs.b32 [%rd3], %r1; ld.global.b32 %r10, [%rd3];",
     "st.b32.cs.global [%rd3], %r1; ld.global.b32 %r10, [%rd3];"},
    {"st.release.gpu.global.b32 [%rd3], %r1; ld.global.b32 %r10, [%rd3];",
     "st.global.release.b32.gpu [%rd3], %r1; ld.global.b32 %r10, [%rd3];"},
    {"atom.acq_rel.gpu.global.add.u32 %r10, [%rd3], %r1;",
     "atom.global.gpu.acq_rel.add.u32 %r10, [%rd3], %r1;",
     "atom.add.u32.global.acq_rel.gpu %r10, [%rd3], %r1;"},
    {"atom.acquire.gpu.global.exch.b32 %r10, [%rd3], %r1;",
     "atom.global.exch.acquire.gpu.b32 %r10, [%rd3], %r1;"},
    {"atom.global.cas.b32 %r10, [%rd3], %r2, %r1;", "atom.cas.b32.global %r10, [%rd3], %r2, %r1;"},
    {"red.relaxed.gpu.global.max.s32 [%rd3], %r1; ld.global.b32 %r10, [%rd3];",
     "red.max.global.s32.gpu.relaxed [%rd3], %r1; ld.global.b32 %r10, [%rd3];"},
    {"fence.acq_rel.gpu; mov.b32 %r10, %r1;", "fence.gpu.acq_rel; mov.b32 %r10, %r1;"},
    {"cvt.rn.ftz.f16.f32 %h3, %f1; cvt.u32.u16 %r10, %h3;",
     "cvt.f16.f32.ftz.rn %h3, %f1; cvt.u32.u16 %r10, %h3;",
     "cvt.ftz.f16.rn.f32 %h3, %f1; cvt.u32.u16 %r10, %h3;"},
    {"cvt.rn.relu.bf16x2.f32 %r10, %f1, %f2;", "cvt.bf16x2.relu.f32.rn %r10, %f1, %f2;"},
    {"cvt.rzi.sat.s8.f32 %r10, %f1;", "cvt.s8.sat.f32.rzi %r10, %f1;"},
    {"cvt.sat.u8.s32 %r10, %r2;", "cvt.u8.sat.s32 %r10, %r2;", "cvt.u8.s32.sat %r10, %r2;"},
    {"cvt.rna.tf32.f32 %r10, %f1;", "cvt.tf32.rna.f32 %r10, %f1;"},
    {"cvt.rn.satfinite.e4m3x2.f32 %h3, %f1, %f2; cvt.u32.u16 %r10, %h3;",
     "cvt.e4m3x2.f32.satfinite.rn %h3, %f1, %f2; cvt.u32.u16 %r10, %h3;"},
    {"cvt.rn.f16x2.e4m3x2 %r10, %h1;", "cvt.f16x2.e4m3x2.rn %r10, %h1;"},
    {"shfl.sync.bfly.b32 %r10, %r2, 1, 31, -1;", "shfl.b32.bfly.sync %r10, %r2, 1, 31, -1;"},
    {"vote.sync.ballot.b32 %r10, %p1, -1;", "vote.b32.ballot.sync %r10, %p1, -1;"},
    {"match.any.sync.b32 %r10, %r5, -1;", "match.b32.sync.any %r10, %r5, -1;"},
    {"redux.sync.min.s32 %r10, %r2, -1;", "redux.s32.min.sync %r10, %r2, -1;"},
    {"bar.red.popc.u32 %r10, 0, %p1;", "bar.red.u32.popc %r10, 0, %p1;"},
    {"barrier.cta.red.popc.aligned.u32 %r10, 0, %p1;",
     "barrier.cta.red.aligned.u32.popc %r10, 0, %p1;"},
    {"cp.async.ca.shared.global.L2::128B [%r6], [%rd3+4], 4; cp.async.wait_all;"
     "ld.shared.b32 %r10, [%r6];",
     "cp.async.shared.L2::128B.ca.global [%r6], [%rd3+4], 4; cp.async.wait_all;"
     "ld.shared.b32 %r10, [%r6];"},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r11,%r12,%r13,%r10}, [%r6];",
     "ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%r11,%r12,%r13,%r10}, [%r6];",
     "ldmatrix.b16.shared.x4.m8n8.aligned.sync {%r11,%r12,%r13,%r10}, [%r6];"},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r11,%r12,%r10,%r13}, [%r6];",
     "ldmatrix.sync.aligned.trans.m8n8.x4.shared.b16 {%r11,%r12,%r10,%r13}, [%r6];"},
    {"stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r6], {%r2}; bar.sync 0;"
     "ld.shared.b32 %r10, [%r6];",
     "stmatrix.trans.shared.x1.sync.b16.m8n8.aligned [%r6], {%r2}; bar.sync 0;"
     "ld.shared.b32 %r10, [%r6];"},
    {"movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r2;",
     "movmatrix.trans.b16.m8n8.sync.aligned %r10, %r2;"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r10,%r11,%r12,%r13}, "
     "{%r1,%r5,%r1,%r5}, {%r1,%r5}, {%f1,%f2,%f1,%f2};",
     "mma.f32.sync.bf16.aligned.row.bf16.m16n8k16.col.f32 {%r10,%r11,%r12,%r13}, "
     "{%r1,%r5,%r1,%r5}, {%r1,%r5}, {%f1,%f2,%f1,%f2};"},
    {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r10,%r11,%r12,%r13}, "
     "{%r2,%r3,%r4,%r5}, {%r2,%r3}, {%r1,%r1,%r1,%r1};",
     "mma.s32.sync.s8.satfinite.aligned.u8.row.s32.col.m16n8k32 {%r10,%r11,%r12,%r13}, "
     "{%r2,%r3,%r4,%r5}, {%r2,%r3}, {%r1,%r1,%r1,%r1};"},
    {"mad.lo.cc.u32 %r10, %r2, %r3, %r4;", "mad.lo.u32.cc %r10, %r2, %r3, %r4;"},
    {"add.sat.s32 %r10, %r2, %r4;", "add.s32.sat %r10, %r2, %r4;"},
    {"add.rn.ftz.sat.f32 %f3, %f1, %f2; mov.b32 %r10, %f3;",
     "add.f32.sat.rn.ftz %f3, %f1, %f2; mov.b32 %r10, %f3;"},
    {"fma.rn.relu.bf16x2 %r10, %r2, %r3, %r4;", "fma.bf16x2.relu.rn %r10, %r2, %r3, %r4;"},
    {"min.ftz.NaN.f32 %f3, %f1, %f2; mov.b32 %r10, %f3;",
     "min.f32.NaN.ftz %f3, %f1, %f2; mov.b32 %r10, %f3;"},
    {"max.relu.s32 %r10, %r2, %r4;", "max.s32.relu %r10, %r2, %r4;"},
    {"div.rn.ftz.f32 %f3, %f1, %f2; mov.b32 %r10, %f3;",
     "div.f32.ftz.rn %f3, %f1, %f2; mov.b32 %r10, %f3;"},
    {"div.full.ftz.f32 %f3, %f1, %f2; mov.b32 %r10, %f3;",
     "div.full.f32.ftz %f3, %f1, %f2; mov.b32 %r10, %f3;"},
    {"rcp.approx.ftz.f32 %f3, %f1; mov.b32 %r10, %f3;",
     "rcp.f32.ftz.approx %f3, %f1; mov.b32 %r10, %f3;"},
    {"ex2.approx.ftz.f32 %f3, %f1; mov.b32 %r10, %f3;",
     "ex2.ftz.f32.approx %f3, %f1; mov.b32 %r10, %f3;"},
    {"setp.lt.and.s32 %p2, %r2, %r3, %p1; selp.b32 %r10, 1, 0, %p2;",
     "setp.and.s32.lt %p2, %r2, %r3, %p1; selp.b32 %r10, 1, 0, %p2;"},
    {"set.gt.or.ftz.u32.f32 %r10, %f1, %f2, %p1;", "set.u32.or.f32.ftz.gt %r10, %f1, %f2, %p1;"},
    {"slct.ftz.u32.f32 %r10, %r1, %r2, %f1;", "slct.u32.f32.ftz %r10, %r1, %r2, %f1;"},
    {"prmt.b32.f4e %r10, %r2, %r3, %r1;", "prmt.f4e.b32 %r10, %r2, %r3, %r1;"},
    {"shf.l.wrap.b32 %r10, %r2, %r3, %r1;", "shf.l.b32.wrap %r10, %r2, %r3, %r1;"},
    {"bfind.shiftamt.s32 %r10, %r2;", "bfind.s32.shiftamt %r10, %r2;"},
    {"cvta.to.global.u64 %rd5, %rd3; ld.global.b32 %r10, [%rd5];",
     "cvta.to.u64.global %rd5, %rd3; ld.global.b32 %r10, [%rd5];"},
    {"mov.f32 %f3, 0.5; mov.b32 %r10, %f3;", "mov.f32 %f3, .5; mov.b32 %r10, %f3;",
     "mov.f32 %f3,.5; mov.b32 %r10, %f3;", "mov.f32 %f3, (0.5); mov.b32 %r10, %f3;",
     "mov.f32 %f3, 0.25 + .25; mov.b32 %r10, %f3;", "mov.f32 %f3, +0.5; mov.b32 %r10, %f3;",
     "mov.f32 %f3, --0.5; mov.b32 %r10, %f3;", "mov.f32 %f3, -(1.0-1.5); mov.b32 %r10, %f3;",
     "mov.f32 %f3, 1.0<2.0 ? 2.0*3.0/12.0 : 7.0; mov.b32 %r10, %f3;",
     "{ .global .f32 g[2] = {-1.0, -(-1.0/2.0)}; ld.global.b32 %r10, [g+4]; }"},
    {"cvt.f32.bf16 %f3, %h1; cvt.f32.bf16 %f4, %h2; cvt.rn.satfinite.relu.e5m2x2.f32 %h3, %f4, %f3;"
     "mov.b32 %r10, {%h3, %h3};",
     "cvt.rn.satfinite.relu.e5m2x2.bf16x2 %h3, %r2; mov.b32 %r10, {%h3, %h3};"},
    // The third operand is not looked at.
    {"vshl.u32.u32.u32.clamp %r10, %r2, %r1;", "vshl.u32.u32.u32.clamp %r10, %r2, %r1, %r3;"},
    {"vadd.u32.u32.u32 %r10, %r2.b1, %r1;", "vadd.u32.u32.u32 %r10, %r2.b1, %r1, 5;"},
    {"xor.b32 %r10, %r2, %r3; xor.b32 %r10, %r10, %r4;",
     "{ .reg .b128 %q; mov.b128 %q, {%r2, %r3, %r4, %r1}; mov.b128 {%r11, %r12, %r13, _}, %q;"
     " xor.b32 %r10, %r11, %r12; xor.b32 %r10, %r10, %r13; }"},
    {"mov.b32 %r10, %r4;",
     "{ .reg .b128 %q; mov.b128 %q, {%r2, %r3, %r4, %r1}; mov.b128 {%rd5, %rd6}, %q;"
     " mov.b64 {%r10, _}, %rd6; }",
     "{ .reg .b128 %q; mov.b64 %rd5, {%r2, %r3}; mov.b64 %rd6, {%r1, %r4}; mov.b128 %q, {%rd5, "
     "%rd6};"
     " mov.b128 {_, _, _, %r10}, %q; }"},
    {"mov.b32 %r10, %r2;",
     "griddepcontrol.wait; griddepcontrol.launch_dependents;"
     " mov.b32 %r10, %r2;"},
    // Vectors of one element, and addresses.
    {"ld.global.b32 %r10, [%rd3];", "ld.global.b32 { %r10 }, [ %rd3 + 0 ];"},
    {"st.global.b32 [%rd3+4], %r1; ld.global.b32 %r10, [%rd3+4];",
     "st.global.b32 [ %rd3 + 4 ], { %r1 }; ld.global.b32 {%r10}, [%rd3+(2+2)];"},
    {"ld.param.b64 %rd5, [p]; cvt.u32.u64 %r10, %rd5;",
     "ld.param.b64 {%rd5}, [p]; cvt.u32.u64 %r10, %rd5;"},
    {"mov.b32 %r10, %r2;", "mov.b32 {%r10}, %r2;", "mov.b32 %r10, {%r2};"},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r6];",
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [ %r6 + 0 ];"},
    {"ld.global.b32 %r10, [%rd3+12];", "ld.global.b32 %r10, [%rd3 + 4 + 8];",
     "ld.global.b32 %r10, [%rd3+(4+8)];", "ld.global.b32 %r10, [%rd3+4*2+4];",
     "add.u64 %rd5, %rd3, 16; ld.global.b32 %r10, [%rd5+-4];"},
    {"ld.shared.b32 %r10, [sm+8];", "ld.shared.b32 %r10, [sm + 4 + 4];",
     "mov.u32 %r11, sm + 4 * 2; ld.shared.b32 %r10, [%r11];", "ld.shared.b32 %r10, sm[4 + 4];"},
    // Vectors of registers.
    {"mov.b32 %r10, %r2;", "mov.v2.b32 {%r11, %r10}, {%r3, %r2};",
     "mov.b32.v4 {%r11, _, %r12, %r10}, {%r3, %r3, 7, %r2};",
     "mov.b32 %r10, %r3; mov.b32 %r11, %r2; mov.v2.b32 {%r10, %r11}, {%r11, %r10};",
     "{ .reg .v2 .b32 %v, %w; mov.v2.b32 %v, {%r3, %r2}; mov.v2.b32 %w, %v; mov.b32 %r10, %w.y; }",
     "{ .reg .v4 .b32 %v<2>; ld.global.v4.b32 %v1, [%rd3]; mov.b32 %r10, %v1.x; }",
     "{ .reg .v2 .b32 %v; mov.b32 %v.g, %r2; mov.b32 %r10, %v.y; }"},
    // Matrices at generic addresses, of which nothing is known and of which the lanes' steps are.
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r11,%r12,%r13,%r10}, [%r6];",
     "cvt.u64.u32 %rd5, %r6; cvta.shared.u64 %rd5, %rd5;"
     "ldmatrix.sync.aligned.m8n8.x4.b16 {%r11,%r12,%r13,%r10}, [%rd5];",
     "ld.global.u32 %rd5, [%rd3+12]; shl.b64 %rd5, %rd5, 4; cvt.u64.u32 %rd6, %r7;"
     "add.u64 %rd5, %rd5, %rd6; cvta.shared.u64 %rd5, %rd5;"
     "ldmatrix.sync.aligned.m8n8.x4.b16 {%r11,%r12,%r13,%r10}, [%rd5];"},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r2}; bar.sync 0;"
     "ld.shared.b32 %r10, [%r6];",
     "cvt.u64.u32 %rd5, %r6; cvta.shared.u64 %rd5, %rd5;"
     "stmatrix.sync.aligned.m8n8.x1.b16 [%rd5], {%r2}; bar.sync 0; ld.shared.b32 %r10, [%r6];",
     "ld.global.u32 %rd5, [%rd3+12]; shl.b64 %rd5, %rd5, 4; cvt.u64.u32 %rd6, %r7;"
     "add.u64 %rd5, %rd5, %rd6; cvta.shared.u64 %rd5, %rd5;"
     "stmatrix.sync.aligned.m8n8.x1.b16 [%rd5], {%r2}; bar.sync 0; ld.shared.b32 %r10, [%r6];"},
    // Variables of a body, and their elements.
    {"mov.u32 %r10, 7;", "{ .global .b32 g = 7; ld.global.b32 %r10, [g]; }",
     "{ .const .b32 g[3] = {5, 6, 7}; ld.const.b32 %r10, g[2]; }",
     "{ .global .v2 .b16 g[2] = {5, 6, 7}; ld.global.u16 %r10, g[2]; }",
     "{ .global .b32 g[3] = {5, 6, 7}; mov.u64 %rd5, g[1]; ld.global.b32 %r10, [%rd5+4]; }"},
    {"ld.global.u8 %r10, [%rd3];",
     "{ .reg .b8 %b; ld.global.b8 %b, [%rd3]; cvt.u32.u8 %r10, %b; }"},
    // Initial values.
    {"mov.u32 %r10, 7;", "{ .global .b32 g[] = {5, 6, 7}; ld.global.b32 %r10, [g+8]; }",
     "{ .global .b32 g[][2] = {{5, 6}, {7}}; ld.global.b32 %r10, [g+8]; }",
     "{ .global .b32 g[] = {1+2*3, -1}; ld.global.b32 %r10, [g]; }",
     "{ .global .s8 g[4] = {-1, -(2), (3+4), ~0}; ld.global.s8 %r10, [g+2]; }",
     "{ .global .b32 g[2] = {5, 7}; .global .u64 a[2] = {0, generic(g)+4};"
     " ld.global.u64 %rd5, [a+8]; ld.u32 %r10, [%rd5]; }",
     "{ .global .b32 g[2] = {5, 7}; .global .u64 a = g+8-4;"
     " ld.global.u64 %rd5, [a]; ld.global.u32 %r10, [%rd5]; }",
     "{ .global .b32 g[2] = {5, 7}; .global .align 8 .u8 a[8] = {0xff(g+4), 0xff00(g+4),"
     " 0xff0000(g+4), 0xff000000(g+4), 0xff00000000(g+4), 0xff0000000000(g+4),"
     " 0xff000000000000(g+4), 0xff00000000000000(g+4)};"
     " ld.global.u64 %rd5, [a]; ld.global.u32 %r10, [%rd5]; }"},
    // Shared memory by a variable's name, without the space.
    {"ld.shared.b32 %r10, [sm+8];", "ld.b32 %r10, [sm+8];",
     "mbarrier.init.b64 [sm+512], 1; ld.b32 %r10, [sm+8];"},
    {"st.shared.b32 [sm+1020], %r2; bar.sync 0; ld.shared.b32 %r10, [sm+1020];",
     "st.b32 [sm+1020], %r2; bar.sync 0; ld.b32 %r10, [sm+1020];"},
    {"mapa.shared::cluster.u32 %r10, %r7, 0;",
     "cvt.u64.u32 %rd5, %r7; mapa.shared::cluster.u64 %rd5, %rd5, 0; cvt.u32.u64 %r10, %rd5;",
     "mapa.u32 %r10, %r7, 0;"},
    {"mapa.shared::cluster.u32 %r11, %r7, 0; getctarank.shared::cluster.u32 %r10, %r11;",
     "cvt.u64.u32 %rd5, %r7; mapa.shared::cluster.u64 %rd5, %rd5, 0;"
     "getctarank.shared::cluster.u64 %r10, %rd5;",
     "mapa.u32 %r11, %r7, 0; getctarank.u32 %r10, %r11;"},
    {"ld.volatile.global.b32 %r10, [%rd3];", "ld.mmio.relaxed.sys.global.b32 %r10, [%rd3];",
     "ld.relaxed.mmio.sys.global.b32 %r10, [%rd3];"},
    {"st.volatile.global.b32 [%rd3], %r1; ld.global.b32 %r10, [%rd3];",
     "st.mmio.relaxed.sys.global.b32 [%rd3], %r1; ld.global.b32 %r10, [%rd3];"},
    {"mov.b32 %r10, %r2;", "membar.proxy.alias; mov.b32 %r10, %r2;"},
    // Eight words, whose order nothing promises.
    {"ld.global.v4.b32 {%r10, _, _, _}, [%rd1+32];",
     "ld.relaxed.gpu.global.v8.b32 {_, _, _, _, _, _, _, _}, [%rd1];"
     "ld.relaxed.gpu.global.v8.b32 {%r11, %r12, %r13, %r14, %r15, %r16, %r17, %r18}, [%rd1+32];"
     "st.relaxed.gpu.global.v8.b32 [%rd1+64], {%r17, %r11, %r17, %r18, %r13, %r14, %r15, %r12};"
     "ld.global.b32 %r10, [%rd1+68];"},
    // Cache policies.
    {"cp.async.cg.shared.global [%r6], [%rd3], 16; cp.async.wait_all; ld.shared.b32 %r10, [%r6];",
     "createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0;"
     "cp.async.cg.shared.global.L2::cache_hint [%r6], [%rd3], 16, %rd5;"
     "cp.async.wait_all; ld.shared.b32 %r10, [%r6];",
     "createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0; mov.u32 %r11, 16;"
     "cp.async.cg.shared.global.L2::cache_hint [%r6], [%rd3], 16, %r11, %rd5;"
     "cp.async.wait_all; ld.shared.b32 %r10, [%r6];"},
    {"atom.global.add.u32 %r10, [%rd3], %r1;",
     "createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0;"
     "atom.global.add.L2::cache_hint.u32 %r10, [%rd3], %r1, %rd5;"},
};

TEST(Spelling, ModifiersInAnyOrder) {
  std::vector<std::string> lines;
  for (const auto& group : kSame) lines.insert(lines.end(), group.begin(), group.end());
  const auto words = run(lines);
  std::size_t at = 0;
  for (const auto& group : kSame) {
    const std::vector<std::uint32_t> want(&words[32 * at], &words[32 * at] + 32);
    EXPECT_THAT(want, testing::Not(testing::Each(0xdeadbeefU))) << group[0];
    for (const std::string& line : group) {
      const std::vector<std::uint32_t> got(&words[32 * at], &words[32 * at] + 32);
      EXPECT_EQ(got, want) << line;
      ++at;
    }
  }
}

/// A part of the opcode's name stands first, and what is of one kind says by its order what it is.
TEST(Spelling, OrdersThatMeanSomethingElse) {
  for (const char* line :
       {"mul.u32.wide %rd5, %r1, %r2;",
        "mad.cc.lo.u32 %r10, %r1, %r2, %r3;",
        "shf.wrap.l.b32 %r10, %r1, %r2, %r3;",
        "bar.popc.red.u32 %r10, 0, %p1;",
        "barrier.sync.cta 0;",
        "bar.sync.warp -1;",
        "cp.ca.async.shared.global [%r6], [%rd3], 4;",
        "cp.async.ca.global.shared [%r6], [%rd3], 4;",
        "cvta.global.to.u64 %rd5, %rd1;",
        "div.ftz.full.f32 %f3, %f1, %f2;",
        "dp2a.s32.lo.u32 %r10, %r1, %r2, %r3;",
        "cvt.rna.f32.tf32 %r10, %f1;",
        "cvt.rn.f32.e4m3x2.satfinite %h3, %f1, %f2;",
        "mma.sync.aligned.m16n8k16.col.row.f32.bf16.bf16.f32 {%r10,%r11,%r12,%r13}, "
        "{%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f1,%f1,%f1,%f1};",
        "mma.sync.aligned.m16n8k16.row.col.bf16.f32.bf16.f32 {%r10,%r11,%r12,%r13}, "
        "{%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f1,%f1,%f1,%f1};",
        "ld.global.v1.b32 {%r10}, [%rd3];",
        "ld.global.global.b32 %r10, [%rd3];",
        "add.s32 {%r10}, %r1, %r2;",
        "add.s32 %r10, {%r1}, {%r2};",
        "mov.b32 {%r10}, {%r1};",
        "ld.global.b32 {%r10, %r11}, [%rd3];",
        "ld.global.v2.b32 {%r10}, [%rd3];",
        "{ .reg .v2 .b32 %v; mov.b32 %r10, %v.z; }",
        "{ .reg .v2 .b32 %v; mov.b32 %v, %r1; add.s32 %r10, %v, %v; }",
        "mov.v2.b32 {%r10, %r11}, %rd3;",
        "ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%r6];",
        "ld.shared.b32 %r10, sm;",
        "add.b32 %r10, %r1, %r2;",
        "setp.lo.s32 %p2, %r1, %r2;",
        "setp.lt.b32 %p2, %r1, %r2;",
        "setp.eq.u32 %r10, %r1, %r2;",
        "lop3.b32 %p2, %r1, %r2, %r3, 128;",
        "add.u32 %p2, %r1, %r2;",
        "vote.sync.all.pred %r10, %p1, -1;",
        "cvta.global.u64 %rd5, sm;",
        "cvta.to.local.u64 %rd5, sm;",
        "atom.global.min.b32 %r10, [%rd3], %r1;",
        "atom.global.or.u32 %r10, [%rd3], %r1;",
        "red.global.inc.s32 [%rd3], %r1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.b32 [%rd3], [%r6], 16;",
        "and.u32 %r10, %r1, %r2;",
        "popc.b16 %r10, %h1;",
        "clz.u32 %r10, %r1;",
        "abs.u32 %r10, %r1;",
        "min.relu.s16 %h3, %h1, %h2;",
        "addc.cc.u16 %h3, %h1, %h2;",
        "mov.f32 %f3, 1.5+1;",
        "mov.f32 %f3, 1.5|1.5;",
        "mov.f32 %f3, ~1.5;",
        "mov.f32 %f3, 1.5 ? 1.5 : 2.5;",
        "ld.global.b32 %r10, [%rd3+4.0];",
        "ld.global.b32 %r10, [%rd3+%r1];"}) {
    EXPECT_THAT(error_of(line), HasSubstr("ptx:16: ")) << line;
  }
}

TEST(Spelling, Constants) {
  const std::pair<const char*, std::uint32_t> constants[] = {
      {"7", 7},
      {"+1", 1},
      {"-1", ~0U},
      {"(1+2)*3", 9},
      {"-(1+2)", ~2U},
      {"1 << 4", 16},
      {"7 & 3 | 8", 11},
      {"~0", ~0U},
      {"!0", 1},
      {"!5", 0},
      {"WARP_SZ", 32},
      {"WARP_SZ-1", 31},
      {"2+3*4", 14},
      {"10-3-2", 5},
      {"64>>1>>1", 16},
      {"-9/2", ~3U},
      {"0x10U + 1", 17},
      {"5 ^ 1", 4},
      {"((((3))))", 3},
      {"1 | 2 ^ 3 & 2", 1},
      {"0b101 + 010", 13},
      {"1 ? 2 : 0 ? 3 : 4", 2},
      {"0 ? 2 : 0 ? 3 : 4", 4},
      {"1 + 1 == 2 ? 7 : 8", 7},
      {"4 & 4 == 4", 0},
      {"2 && 4", 1},
      {"0 || 0", 0},
      {"1 << 2 < 3", 0},
      {"3 >= 4", 0},
      {"4 > 3", 1},
      {"4 <= 4", 1},
      {"1 != 2 != 1", 0},
      // 64 bits wide; unsigned if one side is, by its suffix or its size.
      {"-9 % 4", 3},
      {"-1 < 0", 1},
      {"-1 < 0U", 0},
      {"0xffffffffffffffff < 0", 0},
      {"(1 ? -1 : 0U) < 0", 1},
      {"(-1 | 0U) < 0", 0},
      {"(-1 << 0U) < 0", 1},
      {"(-1 / 2U) >> 32", 0x7fffffff},
      {"(0xffffffffffffffffU >> 1) >> 32", 0x7fffffff},
      {"(.s64) 5", 5},
      {"(.u64) (-1) >> 60", 15},
      {"(.s64) 0xffffffffffffffff < 0", 1}};
  std::vector<std::string> lines;
  for (const auto& [text, value] : constants) {
    lines.push_back(std::string("mov.u32 %r10, ") + text + ";");
  }
  const auto words = run(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(words[32 * i], constants[i].second) << lines[i];
  }
  EXPECT_THAT(error_of("mov.u32 %r10, 1/0;"), HasSubstr("division by zero"));
  EXPECT_THAT(error_of("mov.u32 %r10, " + std::string(100000, '(') + "1;"),
              HasSubstr("too deeply"));
  EXPECT_THAT(error_of("mov.u32 %r10, 1 +;"), HasSubstr("expected an integer"));
  EXPECT_THAT(error_of("mov.u32 %r10, 1 % 0;"), HasSubstr("division by zero"));
  EXPECT_THAT(error_of("mov.u32 %r10, (.u32) 1;"),
              HasSubstr("expected .s64 or .u64, found '.u32'"));
  EXPECT_THAT(error_of("mov.u32 %r10, 1 ? 2;"), HasSubstr("expected ':'"));
}

TEST(Spelling, SeedsOfTheFuzzerAreUnderstood) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(BRAID_SOURCE_DIR "/tests/fuzz/ptx")) {
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    EXPECT_NO_THROW(Bench::from_ptx(text.str())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace braid::cpu_test
