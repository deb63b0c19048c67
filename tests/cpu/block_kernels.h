#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"
#include "findings.h"

// Kernels whose threads meet in the memory of their block, and what becomes of them.

namespace braid::cpu_test::block_kernels {

using namespace semantics;

/// A kernel k(out, in) of `body`. %i: the thread in its block, %g: in the grid; %O, %I: out and in;
/// %m: the address of the block's 4096 bytes of shared memory; %M: of 8 mbarrier objects. Scratch:
/// %r<16>, %f<8>, %d<16>, %h<8>, %p<8>.
inline std::string text(const std::string& body, const std::string& directives = "") {
  return fmt::format(R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in) {}
{{
.reg .b32 %i, %g, %m, %M, %r<16>; .reg .f32 %f<8>; .reg .b64 %O, %I, %d<16>;
.reg .b16 %h<8>; .reg .pred %p<8>;
.shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 objects[8];
ld.param.u64 %O, [out]; ld.param.u64 %I, [in]; mov.u32 %m, tile; mov.u32 %M, objects;
mov.u32 %i, %tid.x; mov.u32 %r0, %ntid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %g, %r1, %r0, %i;
{}
ret;
}}
)",
                     directives, body);
}

/// Memory with these values, of which the sanitizer knows.
inline u64 copied(Bench& bench, const std::vector<u32>& values) {
  const u64 address = bench.upload(values);
  bench.stream().copy_from_host(address, values.data(), values.size() * sizeof(u32));
  return address;
}

struct Result {
  std::vector<u32> out;
  std::vector<Finding> findings;
};
inline Result run(const std::string& ptx, Dim3 grid, Dim3 block, const std::vector<u32>& in,
                  std::size_t words, unsigned checks = 0, Dim3 cluster = {}) {
  Bench bench = Bench::from_ptx(ptx, {.threads = 2, .checks = checks});
  const u64 out = copied(bench, std::vector<u32>(words, 0xdeadbeef));
  const u64 from = copied(bench, in);
  const void* args[] = {&out, &from};
  bench.stream().launch(bench.function(), {grid, block, 0, {.cluster = cluster}}, args);
  bench.stream().synchronize();
  return {bench.download<u32>(out, words), found_by(bench.device())};
}

inline std::vector<u32> numbers(std::size_t count, u64 seed) {
  Random random(seed);
  std::vector<u32> values(count);
  for (u32& value : values) value = static_cast<u32>(random.next());
  return values;
}

}  // namespace braid::cpu_test::block_kernels
