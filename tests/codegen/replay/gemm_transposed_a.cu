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
__device__ __forceinline__ void wait_group_6() {
  asm volatile("cp.async.wait_group 6;" ::: "memory");
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

extern "C" __global__ void __launch_bounds__(32, 1) gemm_transpose_mm(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 2 % 16;
  const int col0 = lane % 2 * 8;
  const int col1 = lane % 4 * 2;
  const int row2 = lane / 4 % 8;
  const int at3 = (lane % 32 * 16) ^ (lane / 8 % 2 * 16);
  const int at4 = ((lane / 4 % 2 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 32 + lane / 16 % 2 * 256;
  const int at5 = ((lane / 4 % 2 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 32;
  const int v1 = (int)(long long)blockIdx.x;
  const int v7 = (v1 % 4) * 16;
  const int v8 = (v1 / 4) * 16;
  const int v53 = (int)0;
  const int v57 = (int)v7;
  const int v63 = (int)v8;
  const bool v66 = 0 < 512;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)p0 + (((v53 + (row0 + i / 8 % 4 * 16)) * 64) + (v57 + (col0 + i % 8))), v66);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)p1 + (((v53 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v66);
  commit_group();
  const bool v73 = 64 < 512;
  unsigned char* const v76 = p0 + 8192;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)1 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v76 + (((v53 + (row0 + i / 8 % 4 * 16)) * 64) + (v57 + (col0 + i % 8))), v73);
  unsigned char* const v79 = p1 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)1 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v79 + (((v53 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v73);
  commit_group();
  const bool v82 = 128 < 512;
  unsigned char* const v83 = p0 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)2 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v83 + (((v53 + (row0 + i / 8 % 4 * 16)) * 64) + (v57 + (col0 + i % 8))), v82);
  unsigned char* const v86 = p1 + 32768;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)2 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v86 + (((v53 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v82);
  commit_group();
  const bool v91 = 192 < 512;
  unsigned char* const v94 = p0 + 24576;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)3 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v94 + (((v53 + (row0 + i / 8 % 4 * 16)) * 64) + (v57 + (col0 + i % 8))), v91);
  unsigned char* const v97 = p1 + 49152;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)3 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v97 + (((v53 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v91);
  commit_group();
  const bool v102 = 256 < 512;
  unsigned char* const v103 = p0 + 32768;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)4 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v103 + (((v53 + (row0 + i / 8 % 4 * 16)) * 64) + (v57 + (col0 + i % 8))), v102);
  unsigned char* const v106 = p1 + 65536;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)4 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v106 + (((v53 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v102);
  commit_group();
  const bool v111 = 320 < 512;
  unsigned char* const v114 = p0 + 40960;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)5 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v114 + (((v53 + (row0 + i / 8 % 4 * 16)) * 64) + (v57 + (col0 + i % 8))), v111);
  unsigned char* const v117 = p1 + 81920;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)5 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v117 + (((v53 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v111);
  commit_group();
  const bool v122 = 384 < 512;
  unsigned char* const v123 = p0 + 49152;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)6 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v123 + (((v53 + (row0 + i / 8 % 4 * 16)) * 64) + (v57 + (col0 + i % 8))), v122);
  unsigned char* const v126 = p1 + 98304;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)6 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v126 + (((v53 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v122);
  commit_group();
  float v13[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v13[i] = 0.0f;
  int v130 = 0;
  int v132 = 7;
  for (long long v12 = 0; v12 < 512; v12 += 64) {
    wait_group_6();
    const long long v136 = v12 + 448;
    const bool v137 = v136 < 512;
    unsigned char* const v142 = p0 + ((v136 * 64) * 2);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)v132 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v142 + (((v53 + (row0 + i / 8 % 4 * 16)) * 64) + (v57 + (col0 + i % 8))), v137);
    unsigned char* const v147 = p1 + ((v136 * 128) * 2);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 16384 + (int)v132 * 2048 + (at3 + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v147 + (((v53 + (row0 + i / 8 % 4 * 16)) * 128) + (v63 + (col0 + i % 8))), v137);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v130 * 2048;
      const unsigned b = shared + 16384 + (int)v130 * 2048;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix_trans(fa[m], a + (at4 + k % 4 * 512));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at5 + k % 4 * 512));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v152 = v130 + 1;
    const int v156 = (v152 < 8) ? v152 : 0;
    const int v157 = v132 + 1;
    const int v159 = (v157 < 8) ? v157 : 0;
    v130 = v156;
    v132 = v159;
  }
  const int v35 = (int)v7;
  const int v38 = (int)v8;
  int v44[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v44[i] = (v35 + (row2 + i % 2 * 8)) * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)p2 + (v44[i / 2 % 2] + (v38 + (col1 + i % 2 + i / 4 % 2 * 8))), v13 + i, true);
}
