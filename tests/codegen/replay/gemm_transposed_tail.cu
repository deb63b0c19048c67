__device__ __forceinline__ unsigned short narrow_f16(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ void store_f16_1(unsigned short* p, const float* v, bool ok) {
  if (ok) p[0] = narrow_f16(v[0]);
}
extern __shared__ __align__(1024) unsigned char smem[];
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void copy_async_2(unsigned to, const void* from, bool ok) {
  unsigned short value = 0;
  if (ok) value = *(const unsigned short*)from;
  asm volatile("st.shared.u16 [%0], %1;" :: "r"(to), "h"(value) : "memory");
}
__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
}
__device__ __forceinline__ void ldmatrix(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void mma_f16_f16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_transpose_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int col1 = lane % 4 * 2 + warp % 2 * 32;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int at3 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at4 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 2 * 4096;
  const int at5 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 128 + lane / 16 % 2 * 1024 + warp % 2 * 4096;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const int v62 = (int)v7;
  const int v66 = (int)0;
  const int v70 = (int)v9;
  const bool v74 = 0 < 1001;
  const int v79 = (int)0;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p2 + (((v62 + (row0 + i / 8 % 4 * 16)) * 1001) + (v66 + (col0 + i % 8))), v74 && (((v62 + (row0 + i / 8 % 4 * 16)) < p1) && ((v79 + (col0 + i % 8)) < 1001)));
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 24576 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p3 + (((v70 + (row0 + i / 8 % 4 * 16)) * 1001) + (v66 + (col0 + i % 8))), v74 && (((v70 + (row0 + i / 8 % 4 * 16)) < 77) && ((v79 + (col0 + i % 8)) < 1001)));
  commit_group();
  const bool v91 = 64 < 1001;
  unsigned char* const v93 = p2 + 128;
  const int v94 = (int)64;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v93 + (((v62 + (row0 + i / 8 % 4 * 16)) * 1001) + (v66 + (col0 + i % 8))), v91 && (((v62 + (row0 + i / 8 % 4 * 16)) < p1) && ((v94 + (col0 + i % 8)) < 1001)));
  unsigned char* const v99 = p3 + 128;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 24576 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v99 + (((v70 + (row0 + i / 8 % 4 * 16)) * 1001) + (v66 + (col0 + i % 8))), v91 && (((v70 + (row0 + i / 8 % 4 * 16)) < 77) && ((v94 + (col0 + i % 8)) < 1001)));
  commit_group();
  float v13[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v13[i] = 0.0f;
  int v104 = 0;
  int v106 = 2;
  for (long long v12 = 0; v12 < 1001; v12 += 64) {
    wait_group_1();
    const long long v110 = v12 + 128;
    const bool v111 = v110 < 1001;
    const long long v113 = v110 * 2;
    unsigned char* const v114 = p2 + v113;
    const int v115 = (int)v7;
    const int v120 = (int)v110;
#pragma unroll 4
    for (int i = 0; i < 32; ++i)
      copy_async_2(shared + 0 + (int)v106 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v114 + (((v62 + (row0 + i / 8 % 4 * 16)) * 1001) + (v66 + (col0 + i % 8))), v111 && (((v115 + (row0 + i / 8 % 4 * 16)) < p1) && ((v120 + (col0 + i % 8)) < 1001)));
    unsigned char* const v127 = p3 + v113;
    const int v128 = (int)v9;
#pragma unroll 4
    for (int i = 0; i < 32; ++i)
      copy_async_2(shared + 24576 + (int)v106 * 8192 + (at3 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v127 + (((v70 + (row0 + i / 8 % 4 * 16)) * 1001) + (v66 + (col0 + i % 8))), v111 && (((v128 + (row0 + i / 8 % 4 * 16)) < 77) && ((v120 + (col0 + i % 8)) < 1001)));
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v104 * 8192;
      const unsigned b = shared + 24576 + (int)v104 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix(fb[n], b + ((at5 ^ (k % 4 * 32)) + n / 2 % 2 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_f16_f16(v13 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v137 = v104 + 1;
    const int v141 = (v137 < 3) ? v137 : 0;
    const int v142 = v106 + 1;
    const int v144 = (v142 < 3) ? v142 : 0;
    v104 = v141;
    v106 = v144;
  }
  const int v41 = (int)v7;
  int v43[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v43[i] = v41 + (row2 + i % 4 * 8);
  bool v45[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v45[i] = v43[i] < p1;
  const int v46 = (int)v9;
  int v53[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v53[i] = v43[i] * 77;
#pragma unroll
  for (int i = 0; i < 32; ++i)
    store_f16_1((unsigned short*)p4 + (v53[i / 2 % 2 + i / 16 % 2 * 2] + (v46 + (col1 + i % 2 + i / 4 % 4 * 8))), v13 + i, (v45[i / 2 % 2 + i / 16 % 2 * 2] && ((v46 + (col1 + i % 2 + i / 4 % 4 * 8)) < 77)));
}
