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

extern "C" __global__ void __launch_bounds__(128, 1) gemm_matmul(long long p0, long long p1, long long p2, unsigned char* __restrict__ p3, long long p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6, long long p7) {
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
  const int v6 = (int)p1;
  const long long v8 = (long long)(v1 / v6);
  const int v9 = v1 % v6;
  const int v12 = (v9 % v3) * 64;
  const int v14 = (v9 / v3) * 64;
  const bool v71 = 0 < 64;
  unsigned char* const v77 = p3 + ((v8 * p4) * 2);
  const int v78 = (int)v12;
  const int v82 = (int)0;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 0) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)v77 + (((v78 + (row0 + i / 8 % 4 * 16)) * 64) + (v82 + (col0 + i % 8))), v71 && ((v78 + (row0 + i / 8 % 4 * 16)) < p2));
  const int v93 = (int)v14;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 24576) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p5 + (((v82 + (row0 + i / 8 % 4 * 16)) * 128) + (v93 + (col0 + i % 8))), v71);
  commit_group();
  const bool v100 = 64 < 64;
  const int v101 = (int)64;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 0 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)v77 + (((v78 + (row0 + i / 8 % 4 * 16)) * 64) + (v101 + (col0 + i % 8))), v100 && ((v78 + (row0 + i / 8 % 4 * 16)) < p2));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16((unsigned short*)(smem + 24576 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p5 + (((v101 + (row0 + i / 8 % 4 * 16)) * 128) + (v93 + (col0 + i % 8))), v100);
  commit_group();
  float v17[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v17[i] = 0.0f;
  for (long long v16 = 0; v16 < 64; v16 += 64) {
    const long long v111 = (v16 - 0) / 64;
    const long long v112 = v111 % 3;
    wait_group_1();
    const long long v116 = v16 + 128;
    const long long v118 = (v111 + 2) % 3;
    const bool v119 = v116 < 64;
    unsigned char* const v124 = p3 + ((v8 * p4) * 2);
    const int v125 = (int)v12;
    const int v129 = (int)v116;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 0 + (int)v118 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)v124 + (((v125 + (row0 + i / 8 % 4 * 16)) * 64) + (v129 + (col0 + i % 8))), v119 && ((v125 + (row0 + i / 8 % 4 * 16)) < p2));
    const int v139 = (int)v14;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16((unsigned short*)(smem + 24576 + (int)v118 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), (const unsigned short*)p5 + (((v129 + (row0 + i / 8 % 4 * 16)) * 128) + (v139 + (col0 + i % 8))), v119);
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
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v17 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
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
