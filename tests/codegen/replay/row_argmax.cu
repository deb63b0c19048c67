__device__ __forceinline__ void load_f32_1(float* v, const float* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w);
}
__device__ __forceinline__ void store_i64_1(long long* p, const long long* v, bool ok) {
  uint2 w;
  w.x = (unsigned)(v[0]);
  w.y = (unsigned)((unsigned long long)v[0] >> 32);
  if (ok) *(uint2*)p = w;
}
// NaN wins, and -0 is below +0.
__device__ __forceinline__ float max_f32(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ __forceinline__ long long min_i64(long long a, long long b) { return a < b ? a : b; }
extern __shared__ __align__(1024) unsigned char smem[];

extern "C" __global__ void __launch_bounds__(128, 1) elementwise_argmax(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int at2 = warp % 4;
  unsigned char* const v9 = p0 + (((long long)blockIdx.x * 1001) * 4);
  float v10[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v10 + i, (const float*)v9 + (col0 + i % 8), ((col0 + i % 8) < 1001));
  float v13[1];
  v13[0] = __int_as_float(0xff800000);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v13[0] = max_f32(v13[0], (((col0 + i % 8) < 1001) ? v10[i] : __int_as_float(0xff800000)));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 1));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 2));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 4));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 8));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 16));
  float* const s13 = (float*)(smem + 0);
  if ((lane & 31) == 0) {
    s13[at2] = v13[0];
  }
  __syncthreads();
  v13[0] = s13[0];
#pragma unroll
  for (int w = 1; w < 4; ++w) {
    v13[0] = max_f32(v13[0], s13[0 + w]);
  }
  long long v22[1];
  v22[0] = 9223372036854775807LL;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v22[0] = min_i64(v22[0], (((col0 + i % 8) < 1001) ? (((!(v10[i] == v13[0])) && (v10[i] == v10[i])) ? 9223372036854775807LL : ((long long)(col0 + i % 8))) : 9223372036854775807LL));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 1));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 2));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 4));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 8));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 16));
  long long* const s22 = (long long*)(smem + 128);
  if ((lane & 31) == 0) {
    s22[at2] = v22[0];
  }
  __syncthreads();
  v22[0] = s22[0];
#pragma unroll
  for (int w = 1; w < 4; ++w) {
    v22[0] = min_i64(v22[0], s22[0 + w]);
  }
  unsigned char* const v26 = p1 + ((long long)blockIdx.x * 8);
  store_i64_1((long long*)v26 + 0, v22 + 0, (lane & 31) == 0 && (warp & 3) == 0);
}
