// narrow_pair_bf16, load_bf16_8, store_bf16_8
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_cat_slice(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  float v21[8];
  load_bf16_8(v21 + 0, (const unsigned short*)p1 + ((((v3 + col0) / 80) * 64) + (((v3 + col0) % 80) + 8)), (((v3 + col0) < p0) && ((((v3 + col0) % 80) + 8) < 64)));
  float v32[8];
  load_bf16_8(v32 + 0, (const unsigned short*)p2 + ((((v3 + col0) / 80) * 32) + ((((v3 + col0) % 80) + 8) + -64)), (((v3 + col0) < p0) && (!((((v3 + col0) % 80) + 8) < 64))));
  float v33[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v33[i] = ((((v3 + (col0 + i % 8)) % 80) + 8) < 64) ? v21[i] : v32[i];
  store_bf16_8((unsigned short*)p3 + (v3 + col0), v33 + 0, ((v3 + col0) < p0));
}
