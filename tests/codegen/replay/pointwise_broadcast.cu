// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_8
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_mul_silu(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  float v10[8];
  load_bf16_8(v10 + 0, (const unsigned short*)p1 + (v3 + col0), ((v3 + col0) < p0));
  float v14[8];
  load_bf16_8(v14 + 0, (const unsigned short*)p2 + ((v3 + col0) % 2048), ((v3 + col0) < p0));
  float v16[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v16[i] = round_bf16((v10[i] * v14[i]));
  float v21[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v21[i] = v16[i] / (1.0f + (expf((-v16[i]))));
  store_bf16_8((unsigned short*)p3 + (v3 + col0), v21 + 0, ((v3 + col0) < p0));
}
