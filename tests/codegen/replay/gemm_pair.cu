__device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float round_bf16(float x) { return __uint_as_float((unsigned)narrow_bf16(x) << 16); }
__device__ __forceinline__ void store_bf16_2(unsigned short* p, const float* v, bool ok) {
  unsigned w;
  w = (unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16;
  if (ok) *(unsigned*)p = w;
}
extern __shared__ __align__(1024) unsigned char smem[];
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// 16 bytes from global to shared memory; zeros when not ok.
__device__ __forceinline__ void copy_async_16(void* to, const void* from, bool ok) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(shared_address(to)), "l"(from), "r"(ok ? 16 : 0) : "memory");
}
__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
}
__device__ __forceinline__ void ldmatrix(unsigned* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void ldmatrix_trans(unsigned* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void mma_bf16_bf16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_mm_mm_silu_mul(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int col1 = lane % 4 * 2 + warp % 2 * 32;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int at3 = ((lane % 32 * 8) ^ (lane / 8 % 4 * 8) ^ (warp % 2 * 32)) + warp % 4 * 256;
  const int at4 = ((lane % 8 * 8) ^ (lane / 16 % 2 * 8)) + lane % 16 * 64 + warp / 2 % 2 * 2048;
  const int at5 = ((lane % 8 * 8) ^ (lane / 16 % 2 * 8) ^ (warp % 2 * 32)) + lane % 16 * 64;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const bool v73 = 0 < 2048;
  const int v75 = (int)v7;
  const int v79 = (int)0;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 0) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p2 + (((v75 + (row0 + i / 8 % 4 * 16)) * 2048) + (v79 + (col0 + i % 8))), v73 && ((v75 + (row0 + i / 8 % 4 * 16)) < p1));
  const int v90 = (int)v9;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 24576) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p3 + (((v79 + (row0 + i / 8 % 4 * 16)) * 1408) + (v90 + (col0 + i % 8))), v73);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 49152) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p4 + (((v79 + (row0 + i / 8 % 4 * 16)) * 1408) + (v90 + (col0 + i % 8))), v73);
  commit_group();
  const bool v99 = 64 < 2048;
  const int v100 = (int)64;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 0 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p2 + (((v75 + (row0 + i / 8 % 4 * 16)) * 2048) + (v100 + (col0 + i % 8))), v99 && ((v75 + (row0 + i / 8 % 4 * 16)) < p1));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 24576 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p3 + (((v100 + (row0 + i / 8 % 4 * 16)) * 1408) + (v90 + (col0 + i % 8))), v99);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 49152 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p4 + (((v100 + (row0 + i / 8 % 4 * 16)) * 1408) + (v90 + (col0 + i % 8))), v99);
  commit_group();
  float v14[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v14[i] = 0.0f;
  float v15[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v15[i] = 0.0f;
  for (long long v13 = 0; v13 < 2048; v13 += 64) {
    const long long v111 = (v13 - 0) / 64;
    const long long v112 = v111 % 3;
    wait_group_1();
    const long long v116 = v13 + 128;
    const long long v118 = (v111 + 2) % 3;
    const bool v119 = v116 < 2048;
    const int v121 = (int)v7;
    const int v125 = (int)v116;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 0 + (int)v118 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p2 + (((v121 + (row0 + i / 8 % 4 * 16)) * 2048) + (v125 + (col0 + i % 8))), v119 && ((v121 + (row0 + i / 8 % 4 * 16)) < p1));
    const int v136 = (int)v9;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 24576 + (int)v118 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p3 + (((v125 + (row0 + i / 8 % 4 * 16)) * 1408) + (v136 + (col0 + i % 8))), v119);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 49152 + (int)v118 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p4 + (((v125 + (row0 + i / 8 % 4 * 16)) * 1408) + (v136 + (col0 + i % 8))), v119);
    commit_group();
    {
      const unsigned short* const a = (unsigned short*)(smem + 0 + (int)v112 * 8192);
      const unsigned short* const b = (unsigned short*)(smem + 24576 + (int)v112 * 8192);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 16)) + m % 2 * 1024));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at5 ^ (n / 2 % 2 * 16)) + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v14 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    {
      const unsigned short* const a = (unsigned short*)(smem + 0 + (int)v112 * 8192);
      const unsigned short* const b = (unsigned short*)(smem + 49152 + (int)v112 * 8192);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 16)) + m % 2 * 1024));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at5 ^ (n / 2 % 2 * 16)) + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v15 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
  }
  const int v44 = (int)v7;
  int v46[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v46[i] = v44 + (row2 + i % 4 * 8);
  bool v48[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v48[i] = v46[i] < p1;
  const int v49 = (int)v9;
  float v52[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v52[i] = round_bf16(v14[i]);
  float v60[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v60[i] = (round_bf16((v52[i] / (1.0f + (expf((-v52[i]))))))) * (round_bf16(v15[i]));
  int v64[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v64[i] = v46[i] * 1408;
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store_bf16_2((unsigned short*)p5 + (v64[i / 2 % 2 + i / 16 % 2 * 2] + (v49 + (col1 + i % 2 + i / 4 % 4 * 8))), v60 + i, v48[i / 2 % 2 + i / 16 % 2 * 2]);
}
