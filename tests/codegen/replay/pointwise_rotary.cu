// narrow_pair_bf16, load_bf16_8, store_bf16_8
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_rotary_embedding(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  float v17[8];
  load_bf16_8(v17 + 0, (const unsigned short*)p1 + (v3 + col0), ((v3 + col0) < p0));
  float v21[8];
  load_bf16_8(v21 + 0, (const unsigned short*)p1 + ((((v3 + col0) / 64) * 64) + ((((v3 + col0) % 64) + 32) % 64)), ((v3 + col0) < p0));
  float v28[8];
  load_bf16_8(v28 + 0, (const unsigned short*)p2 + (((((v3 + col0) / 64) / 8) * 32) + (((v3 + col0) % 64) % 32)), ((v3 + col0) < p0));
  float v30[8];
  load_bf16_8(v30 + 0, (const unsigned short*)p3 + (((((v3 + col0) / 64) / 8) * 32) + (((v3 + col0) % 64) % 32)), ((v3 + col0) < p0));
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = v21[i] * v28[i];
  float v35[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v35[i] = (v17[i] * v30[i]) + ((((v3 + (col0 + i % 8)) % 64) < 32) ? (-v31[i]) : v31[i]);
  store_bf16_8((unsigned short*)p4 + (v3 + col0), v35 + 0, ((v3 + col0) < p0));
}
