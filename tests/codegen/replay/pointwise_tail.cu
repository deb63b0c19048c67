// load_f32_1, store_f32_1
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
