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
__device__ __forceinline__ void ldmatrix(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
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

extern "C" __global__ void __launch_bounds__(128, 1) gemm_matmul(long long p0, long long p1, long long p2, unsigned char* __restrict__ p3, long long p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6, long long p7) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int col1 = lane % 4 * 2 + warp % 2 * 32;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int at3 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at4 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 2 * 4096;
  const int at5 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 64)) + lane % 16 * 128;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v6 = (int)p1;
  const long long v8 = (long long)(v1 / v6);
  const int v9 = v1 % v6;
  const int v12 = (v9 % v3) * 64;
  const int v14 = (v9 / v3) * 64;
  const int v71 = (int)v12;
  const int v75 = (int)0;
  const int v82 = (int)v14;
  const bool v85 = 0 < 64;
  unsigned char* const v91 = p3 + ((v8 * p4) * 2);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v91 + (((v71 + (row0 + i / 8 % 4 * 16)) * 64) + (v75 + (col0 + i % 8))), v85 && ((v71 + (row0 + i / 8 % 4 * 16)) < p2));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p5 + (((v75 + (row0 + i / 8 % 4 * 16)) * 128) + (v82 + (col0 + i % 8))), v85);
  commit_group();
  const bool v99 = 64 < 64;
  unsigned char* const v100 = v91 + 128;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v100 + (((v71 + (row0 + i / 8 % 4 * 16)) * 64) + (v75 + (col0 + i % 8))), v99 && ((v71 + (row0 + i / 8 % 4 * 16)) < p2));
  unsigned char* const v104 = p5 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v104 + (((v75 + (row0 + i / 8 % 4 * 16)) * 128) + (v82 + (col0 + i % 8))), v99);
  commit_group();
  float v17[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v17[i] = 0.0f;
  int v108 = 0;
  int v110 = 2;
  for (long long v16 = 0; v16 < 64; v16 += 64) {
    wait_group_1();
    const long long v114 = v16 + 128;
    const bool v115 = v114 < 64;
    unsigned char* const v120 = p3 + ((v8 * p4) * 2);
    unsigned char* const v122 = v120 + (v114 * 2);
    const int v123 = (int)v12;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)v110 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v122 + (((v71 + (row0 + i / 8 % 4 * 16)) * 64) + (v75 + (col0 + i % 8))), v115 && ((v123 + (row0 + i / 8 % 4 * 16)) < p2));
    unsigned char* const v132 = p5 + ((v114 * 128) * 2);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 24576 + (int)v110 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v132 + (((v75 + (row0 + i / 8 % 4 * 16)) * 128) + (v82 + (col0 + i % 8))), v115);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v108 * 8192;
      const unsigned b = shared + 24576 + (int)v108 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at5 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v17 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v137 = v108 + 1;
    const int v141 = (v137 < 3) ? v137 : 0;
    const int v142 = v110 + 1;
    const int v144 = (v142 < 3) ? v142 : 0;
    v108 = v141;
    v110 = v144;
  }
  const int v47 = (int)v12;
  int v49[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v49[i] = v47 + (row2 + i % 4 * 8);
  bool v51[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v51[i] = v49[i] < p2;
  const int v52 = (int)v14;
  int v60[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v60[i] = v49[i] * 128;
  unsigned char* const v65 = p6 + ((v8 * p7) * 2);
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store_bf16_2((unsigned short*)v65 + (v60[i / 2 % 2 + i / 16 % 2 * 2] + (v52 + (col1 + i % 2 + i / 4 % 4 * 8))), v17 + i, v51[i / 2 % 2 + i / 16 % 2 * 2]);
}
