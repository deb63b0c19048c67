__device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
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

extern "C" __global__ void __launch_bounds__(128, 1) gemm_transpose_mm(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int col1 = lane % 4 * 2 + warp % 2 * 32;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int at3 = ((lane % 32 * 8) ^ (lane / 8 % 4 * 8) ^ (warp % 2 * 32)) + warp % 4 * 256;
  const int at4 = ((lane % 8 * 8) ^ (lane / 8 % 2 * 8) ^ (warp / 2 % 2 * 32)) + lane % 8 * 64 + lane / 16 % 2 * 512;
  const int at5 = ((lane % 8 * 8) ^ (lane / 16 % 2 * 8) ^ (warp % 2 * 32)) + lane % 16 * 64;
  const int v1 = (int)(long long)blockIdx.x;
  const int v6 = (v1 % 1) * 64;
  const int v8 = (v1 / 1) * 64;
  const bool v49 = 0 < 512;
  const int v51 = (int)0;
  const int v55 = (int)v6;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 0) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p0 + (((v51 + (row0 + i / 8 % 4 * 16)) * 64) + (v55 + (col0 + i % 8))), v49);
  const int v63 = (int)v8;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 24576) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p1 + (((v51 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v49);
  commit_group();
  const bool v70 = 64 < 512;
  const int v71 = (int)64;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 0 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p0 + (((v71 + (row0 + i / 8 % 4 * 16)) * 64) + (v55 + (col0 + i % 8))), v70);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 24576 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p1 + (((v71 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v70);
  commit_group();
  float v12[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v12[i] = 0.0f;
  for (long long v11 = 0; v11 < 512; v11 += 64) {
    const long long v81 = (v11 - 0) / 64;
    const long long v82 = v81 % 3;
    wait_group_1();
    const long long v86 = v11 + 128;
    const long long v88 = (v81 + 2) % 3;
    const bool v89 = v86 < 512;
    const int v91 = (int)v86;
    const int v95 = (int)v6;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 0 + (int)v88 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p0 + (((v91 + (row0 + i / 8 % 4 * 16)) * 64) + (v95 + (col0 + i % 8))), v89);
    const int v102 = (int)v8;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 24576 + (int)v88 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p1 + (((v91 + (row0 + i / 8 % 4 * 16)) * 128) + (v102 + (col0 + i % 8))), v89);
    commit_group();
    {
      const unsigned short* const a = (unsigned short*)(smem + 0 + (int)v82 * 8192);
      const unsigned short* const b = (unsigned short*)(smem + 24576 + (int)v82 * 8192);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix_trans(fa[m], a + ((at4 ^ (m % 2 * 16)) + k % 4 * 1024));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at5 ^ (n / 2 % 2 * 16)) + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v12 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
  }
  const int v33 = (int)v6;
  const int v36 = (int)v8;
  int v42[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v42[i] = (v33 + (row2 + i % 4 * 8)) * 128;
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store_bf16_2((unsigned short*)p2 + (v42[i / 2 % 2 + i / 16 % 2 * 2] + (v36 + (col1 + i % 2 + i / 4 % 4 * 8))), v12 + i, true);
}
