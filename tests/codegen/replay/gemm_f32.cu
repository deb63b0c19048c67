__device__ __forceinline__ void store_f32_2(float* p, const float* v, bool ok) {
  uint2 w;
  w.x = __float_as_uint(v[0]);
  w.y = __float_as_uint(v[1]);
  if (ok) *(uint2*)p = w;
}
extern __shared__ __align__(1024) unsigned char smem[];
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// 8 bytes from global to shared memory; zeros when not ok.
__device__ __forceinline__ void copy_async_8(unsigned to, const void* from, bool ok) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :: "r"(to), "l"(from), "r"(ok ? 8 : 0) : "memory");
}
__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 4;
  const int row1 = lane / 16 % 2 + warp % 4 * 2;
  const int col1 = lane % 16 * 4;
  const int col2 = lane % 8 * 4;
  const int row3 = lane / 8 % 4 + warp % 4 * 4;
  const int at4 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at5 = ((lane % 32 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + warp % 4 * 512;
  const int at6 = lane / 8 % 4 * 4 + lane / 8 % 4 * 32 + warp % 2 * 16 + warp % 4 * 128;
  const int at7 = lane % 8 * 4;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const int v66 = (int)v7;
  const int v70 = (int)0;
  const int v78 = (int)v9;
  const bool v82 = 0 < 130;
  const int v87 = (int)0;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + (at4 + i % 4 * 4 + i / 4 % 4 * 2048), (const float*)p2 + (((v66 + (row0 + i / 4 % 4 * 16)) * 130) + (v70 + (col0 + i % 4))), v82 && (((v66 + (row0 + i / 4 % 4 * 16)) < p1) && ((v87 + (col0 + i % 4)) < 130)));
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 24576 + (at5 + i % 4 * 4 + i / 4 % 4 * 2048), (const float*)p3 + (((v70 + (row1 + i / 4 % 4 * 8)) * 66) + (v78 + (col1 + i % 4))), v82 && (((v87 + (row1 + i / 4 % 4 * 8)) < 130) && ((v78 + (col1 + i % 4)) < 66)));
  commit_group();
  const bool v100 = 32 < 130;
  unsigned char* const v102 = p2 + 128;
  const int v103 = (int)32;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + (int)1 * 8192 + (at4 + i % 4 * 4 + i / 4 % 4 * 2048), (const float*)v102 + (((v66 + (row0 + i / 4 % 4 * 16)) * 130) + (v70 + (col0 + i % 4))), v100 && (((v66 + (row0 + i / 4 % 4 * 16)) < p1) && ((v103 + (col0 + i % 4)) < 130)));
  unsigned char* const v110 = p3 + 8448;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 24576 + (int)1 * 8192 + (at5 + i % 4 * 4 + i / 4 % 4 * 2048), (const float*)v110 + (((v70 + (row1 + i / 4 % 4 * 8)) * 66) + (v78 + (col1 + i % 4))), v100 && (((v103 + (row1 + i / 4 % 4 * 8)) < 130) && ((v78 + (col1 + i % 4)) < 66)));
  commit_group();
  float v14[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v14[i] = 0.0f;
  int v117 = 0;
  int v119 = 2;
  for (long long v13 = 0; v13 < 130; v13 += 32) {
    wait_group_1();
    const long long v123 = v13 + 64;
    const bool v124 = v123 < 130;
    unsigned char* const v128 = p2 + (v123 * 4);
    const int v129 = (int)v7;
    const int v134 = (int)v123;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      copy_async_8(shared + 0 + (int)v119 * 8192 + (at4 + i % 4 * 4 + i / 4 % 4 * 2048), (const float*)v128 + (((v66 + (row0 + i / 4 % 4 * 16)) * 130) + (v70 + (col0 + i % 4))), v124 && (((v129 + (row0 + i / 4 % 4 * 16)) < p1) && ((v134 + (col0 + i % 4)) < 130)));
    unsigned char* const v143 = p3 + ((v123 * 66) * 4);
    const int v147 = (int)v9;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      copy_async_8(shared + 24576 + (int)v119 * 8192 + (at5 + i % 4 * 4 + i / 4 % 4 * 2048), (const float*)v143 + (((v70 + (row1 + i / 4 % 4 * 8)) * 66) + (v78 + (col1 + i % 4))), v124 && (((v134 + (row1 + i / 4 % 4 * 8)) < 130) && ((v147 + (col1 + i % 4)) < 66)));
    commit_group();
    {
      const float* const a = (float*)(smem + 0 + (int)v117 * 8192);
      const float* const b = (float*)(smem + 24576 + (int)v117 * 8192);
#pragma unroll 2
      for (int k = 0; k < 32; ++k) {
        float fa[4], fb[8];
#pragma unroll
        for (int m = 0; m < 4; ++m) fa[m] = a[((at6 ^ (k % 32)) + m % 4 * 512)];
#pragma unroll
        for (int n = 0; n < 8; ++n) fb[n] = b[((at7 ^ (k % 8 * 4)) + k % 32 * 64 + n % 4 + n / 4 % 2 * 32)];
#pragma unroll
        for (int i = 0; i < 32; ++i) v14[i] = __fmaf_rn(fa[i / 8], fb[i % 8], v14[i]);
      }
    }
    const int v157 = v117 + 1;
    const int v161 = (v157 < 3) ? v157 : 0;
    const int v162 = v119 + 1;
    const int v164 = (v162 < 3) ? v162 : 0;
    v117 = v161;
    v119 = v164;
  }
  const int v46 = (int)v7;
  int v48[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v48[i] = v46 + (row3 + i % 4 * 16);
  bool v50[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v50[i] = v48[i] < p1;
  const int v51 = (int)v9;
  int v57[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v57[i] = v48[i] * 66;
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store_f32_2((float*)p4 + (v57[i / 8 % 4] + (v51 + (col2 + i % 4 + i / 4 % 2 * 32))), v14 + i, (v50[i / 8 % 4] && ((v51 + (col2 + i % 4 + i / 4 % 2 * 32)) < 66)));
}
