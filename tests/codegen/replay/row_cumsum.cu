// narrow_bf16, load_bf16_1, store_bf16_1
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_cumsum(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  float v13[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v13[i] = 0.0f;
  for (long long v12 = 0; v12 < p0; v12 += 1) {
    const long long v18 = (v12 * 77) * 2;
    unsigned char* const v19 = p1 + v18;
    float v20[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_bf16_1(v20 + i, (const unsigned short*)v19 + (v3 + (col0 + i % 8)), ((v3 + (col0 + i % 8)) < 77));
    float v21[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v21[i] = v13[i] + v20[i];
    unsigned char* const v24 = p2 + v18;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_bf16_1((unsigned short*)v24 + (v3 + (col0 + i % 8)), v21 + i, ((v3 + (col0 + i % 8)) < 77));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v13[i] = v21[i];
  }
}
