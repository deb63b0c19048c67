__device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ void load_bf16_2(float* v, const unsigned short* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w << 16);
  v[1] = __uint_as_float(w & 0xffff0000u);
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

extern "C" __global__ void __launch_bounds__(128, 1) gemm_mm_silu_mul(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5) {
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
  const bool v67 = 0 < 2048;
  const int v69 = (int)v7;
  const int v73 = (int)0;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 0) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p2 + (((v69 + (row0 + i / 8 % 4 * 16)) * 2048) + (v73 + (col0 + i % 8))), v67 && ((v69 + (row0 + i / 8 % 4 * 16)) < p1));
  const int v84 = (int)v9;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 24576) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p3 + (((v73 + (row0 + i / 8 % 4 * 16)) * 1408) + (v84 + (col0 + i % 8))), v67);
  commit_group();
  const bool v91 = 64 < 2048;
  const int v92 = (int)64;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 0 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p2 + (((v69 + (row0 + i / 8 % 4 * 16)) * 2048) + (v92 + (col0 + i % 8))), v91 && ((v69 + (row0 + i / 8 % 4 * 16)) < p1));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 24576 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p3 + (((v92 + (row0 + i / 8 % 4 * 16)) * 1408) + (v84 + (col0 + i % 8))), v91);
  commit_group();
  float v13[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v13[i] = 0.0f;
  for (long long v12 = 0; v12 < 2048; v12 += 64) {
    const long long v102 = (v12 - 0) / 64;
    const long long v103 = v102 % 3;
    wait_group_1();
    const long long v107 = v12 + 128;
    const long long v109 = (v102 + 2) % 3;
    const bool v110 = v107 < 2048;
    const int v112 = (int)v7;
    const int v116 = (int)v107;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 0 + (int)v109 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p2 + (((v112 + (row0 + i / 8 % 4 * 16)) * 2048) + (v116 + (col0 + i % 8))), v110 && ((v112 + (row0 + i / 8 % 4 * 16)) < p1));
    const int v127 = (int)v9;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 24576 + (int)v109 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p3 + (((v116 + (row0 + i / 8 % 4 * 16)) * 1408) + (v127 + (col0 + i % 8))), v110);
    commit_group();
    {
      const unsigned short* const a = (unsigned short*)(smem + 0 + (int)v103 * 8192);
      const unsigned short* const b = (unsigned short*)(smem + 24576 + (int)v103 * 8192);
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
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v13 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
  }
  const int v38 = (int)v7;
  int v40[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v40[i] = v38 + (row2 + i % 4 * 8);
  bool v42[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v42[i] = v40[i] < p1;
  const int v43 = (int)v9;
  int v49[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v49[i] = v40[i] * 1408;
  float v52[32];
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    load_bf16_2(v52 + i, (const unsigned short*)p4 + (v49[i / 2 % 2 + i / 16 % 2 * 2] + (v43 + (col1 + i % 2 + i / 4 % 4 * 8))), v42[i / 2 % 2 + i / 16 % 2 * 2]);
  float v59[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v59[i] = (round_bf16((v52[i] / (1.0f + (expf((-v52[i]))))))) * (round_bf16(v13[i]));
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store_bf16_2((unsigned short*)p5 + (v49[i / 2 % 2 + i / 16 % 2 * 2] + (v43 + (col1 + i % 2 + i / 4 % 4 * 8))), v59 + i, v42[i / 2 % 2 + i / 16 % 2 * 2]);
}
