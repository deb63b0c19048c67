// narrow_bf16, load_bf16_1, store_bf16_1
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_transpose(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  const int v9 = (int)p1;
  float v17[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_bf16_1(v17 + i, (const unsigned short*)p2 + ((((v3 + (col0 + i % 8)) % v9) * 77) + ((v3 + (col0 + i % 8)) / v9)), ((v3 + (col0 + i % 8)) < p0));
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_bf16_1((unsigned short*)p3 + (v3 + (col0 + i % 8)), v17 + i, ((v3 + (col0 + i % 8)) < p0));
}
