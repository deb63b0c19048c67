// narrow_pair_f16, load_f32_4, store_f16_8
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_to(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  float v10[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    load_f32_4(v10 + i, (const float*)p1 + (v3 + (col0 + i % 8)), ((v3 + (col0 + i % 8)) < p0));
  store_f16_8((unsigned short*)p2 + (v3 + col0), v10 + 0, ((v3 + col0) < p0));
}
