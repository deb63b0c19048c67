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
__device__ __forceinline__ void copy_async_16(unsigned to, const void* from, bool ok) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(to), "l"(from), "r"(ok ? 16 : 0) : "memory");
}
__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
}
__device__ __forceinline__ void ldmatrix_trans(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void mma_bf16_bf16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_transpose_mm(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int col1 = lane % 4 * 2 + warp % 2 * 32;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int at3 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at4 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16) ^ (warp / 2 % 2 * 64)) + lane % 8 * 128 + lane / 16 % 2 * 1024;
  const int at5 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 64)) + lane % 16 * 128;
  const int v1 = (int)(long long)blockIdx.x;
  const int v6 = (v1 % 1) * 64;
  const int v8 = (v1 / 1) * 64;
  const int v50 = (int)0;
  const int v54 = (int)v6;
  const int v60 = (int)v8;
  const bool v63 = 0 < 512;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p0 + (((v50 + (row0 + i / 8 % 4 * 16)) * 64) + (v54 + (col0 + i % 8))), v63);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p1 + (((v50 + (row0 + i / 8 % 4 * 16)) * 128) + (v60 + (col0 + i % 8))), v63);
  commit_group();
  const bool v70 = 64 < 512;
  unsigned char* const v73 = p0 + 8192;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v73 + (((v50 + (row0 + i / 8 % 4 * 16)) * 64) + (v54 + (col0 + i % 8))), v70);
  unsigned char* const v76 = p1 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v76 + (((v50 + (row0 + i / 8 % 4 * 16)) * 128) + (v60 + (col0 + i % 8))), v70);
  commit_group();
  float v12[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v12[i] = 0.0f;
  int v80 = 0;
  int v82 = 2;
  for (long long v11 = 0; v11 < 512; v11 += 64) {
    wait_group_1();
    const long long v86 = v11 + 128;
    const bool v87 = v86 < 512;
    unsigned char* const v91 = p0 + ((v86 * 64) * 2);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)v82 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v91 + (((v50 + (row0 + i / 8 % 4 * 16)) * 64) + (v54 + (col0 + i % 8))), v87);
    unsigned char* const v96 = p1 + ((v86 * 128) * 2);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 24576 + (int)v82 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v96 + (((v50 + (row0 + i / 8 % 4 * 16)) * 128) + (v60 + (col0 + i % 8))), v87);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v80 * 8192;
      const unsigned b = shared + 24576 + (int)v80 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix_trans(fa[m], a + ((at4 ^ (m % 2 * 32)) + k % 4 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at5 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v12 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v101 = v80 + 1;
    const int v105 = (v101 < 3) ? v101 : 0;
    const int v106 = v82 + 1;
    const int v108 = (v106 < 3) ? v106 : 0;
    v80 = v105;
    v82 = v108;
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
