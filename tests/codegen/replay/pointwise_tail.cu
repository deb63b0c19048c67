__device__ __forceinline__ void load_f32_1(float* v, const float* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w);
}
__device__ __forceinline__ void store_f32_1(float* p, const float* v, bool ok) {
  unsigned w;
  w = __float_as_uint(v[0]);
  if (ok) *(unsigned*)p = w;
}

extern "C" __global__ void __launch_bounds__(128, 1) elementwise_gelu(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  float v10[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v10 + i, (const float*)p1 + (v3 + (col0 + i % 8)), ((v3 + (col0 + i % 8)) < p0));
  float v17[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v17[i] = (v10[i] * 0.5f) * (erfcf(((-v10[i]) * 0.707106781f)));
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)p2 + (v3 + (col0 + i % 8)), v17 + i, ((v3 + (col0 + i % 8)) < p0));
}
