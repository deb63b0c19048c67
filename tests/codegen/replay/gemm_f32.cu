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
__device__ __forceinline__ void copy_async_8(void* to, const void* from, bool ok) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :: "r"(shared_address(to)), "l"(from), "r"(ok ? 8 : 0) : "memory");
}
__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 4;
  const int row1 = lane / 16 % 2 + warp % 4 * 2;
  const int col1 = lane % 16 * 4;
  const int col2 = lane % 8 * 4;
  const int row3 = lane / 8 % 4 + warp % 4 * 4;
  const int at4 = ((lane % 32 * 4) ^ (lane / 8 % 4 * 4) ^ (warp % 2 * 16)) + warp % 4 * 128;
  const int at5 = ((lane % 32 * 4) ^ (lane / 16 % 2 * 4) ^ (warp % 4 * 8)) + warp % 4 * 128;
  const int at6 = lane / 8 % 4 * 4 + lane / 8 % 4 * 32 + warp % 2 * 16 + warp % 4 * 128;
  const int at7 = lane % 8 * 4;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const bool v66 = 0 < 130;
  const int v68 = (int)v7;
  const int v72 = (int)0;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8((float*)(smem + 0) + (at4 + i % 4 + i / 4 % 4 * 512), (const float*)p2 + (((v68 + (row0 + i / 4 % 4 * 16)) * 130) + (v72 + (col0 + i % 4))), v66 && (((v68 + (row0 + i / 4 % 4 * 16)) < p1) && ((v72 + (col0 + i % 4)) < 130)));
  const int v86 = (int)v9;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8((float*)(smem + 24576) + (at5 + i % 4 + i / 4 % 4 * 512), (const float*)p3 + (((v72 + (row1 + i / 4 % 4 * 8)) * 66) + (v86 + (col1 + i % 4))), v66 && (((v72 + (row1 + i / 4 % 4 * 8)) < 130) && ((v86 + (col1 + i % 4)) < 66)));
  commit_group();
  const bool v97 = 32 < 130;
  const int v98 = (int)32;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8((float*)(smem + 0 + (int)1 * 8192) + (at4 + i % 4 + i / 4 % 4 * 512), (const float*)p2 + (((v68 + (row0 + i / 4 % 4 * 16)) * 130) + (v98 + (col0 + i % 4))), v97 && (((v68 + (row0 + i / 4 % 4 * 16)) < p1) && ((v98 + (col0 + i % 4)) < 130)));
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8((float*)(smem + 24576 + (int)1 * 8192) + (at5 + i % 4 + i / 4 % 4 * 512), (const float*)p3 + (((v98 + (row1 + i / 4 % 4 * 8)) * 66) + (v86 + (col1 + i % 4))), v97 && (((v98 + (row1 + i / 4 % 4 * 8)) < 130) && ((v86 + (col1 + i % 4)) < 66)));
  commit_group();
  float v14[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v14[i] = 0.0f;
  for (long long v13 = 0; v13 < 130; v13 += 32) {
    const long long v112 = (v13 - 0) / 32;
    const long long v113 = v112 % 3;
    wait_group_1();
    const long long v117 = v13 + 64;
    const long long v119 = (v112 + 2) % 3;
    const bool v120 = v117 < 130;
    const int v122 = (int)v7;
    const int v126 = (int)v117;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      copy_async_8((float*)(smem + 0 + (int)v119 * 8192) + (at4 + i % 4 + i / 4 % 4 * 512), (const float*)p2 + (((v122 + (row0 + i / 4 % 4 * 16)) * 130) + (v126 + (col0 + i % 4))), v120 && (((v122 + (row0 + i / 4 % 4 * 16)) < p1) && ((v126 + (col0 + i % 4)) < 130)));
    const int v140 = (int)v9;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      copy_async_8((float*)(smem + 24576 + (int)v119 * 8192) + (at5 + i % 4 + i / 4 % 4 * 512), (const float*)p3 + (((v126 + (row1 + i / 4 % 4 * 8)) * 66) + (v140 + (col1 + i % 4))), v120 && (((v126 + (row1 + i / 4 % 4 * 8)) < 130) && ((v140 + (col1 + i % 4)) < 66)));
    commit_group();
    {
      const float* const a = (float*)(smem + 0 + (int)v113 * 8192);
      const float* const b = (float*)(smem + 24576 + (int)v113 * 8192);
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
