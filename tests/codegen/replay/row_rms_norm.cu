// narrow_pair_bf16, load_bf16_8, store_bf16_8, smem
extern "C" __global__ void __launch_bounds__(256, 1) elementwise_rms_norm(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  const long long v7 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v8 = p0 + v7;
  float v9[8];
  load_bf16_8(v9 + 0, (const unsigned short*)v8 + col0, true);
  float v11[1];
  v11[0] = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v11[0] = v11[0] + (v9[i] * v9[i]);
  v11[0] = v11[0] + __shfl_xor_sync(0xffffffffu, v11[0], 1);
  v11[0] = v11[0] + __shfl_xor_sync(0xffffffffu, v11[0], 2);
  v11[0] = v11[0] + __shfl_xor_sync(0xffffffffu, v11[0], 4);
  v11[0] = v11[0] + __shfl_xor_sync(0xffffffffu, v11[0], 8);
  v11[0] = v11[0] + __shfl_xor_sync(0xffffffffu, v11[0], 16);
  float* const s11 = (float*)(smem + 0);
  if ((lane & 31) == 0) {
    s11[at2] = v11[0];
  }
  __syncthreads();
  v11[0] = s11[0];
#pragma unroll
  for (int w = 1; w < 8; ++w) {
    v11[0] = v11[0] + s11[0 + w];
  }
  const float v13 = (float)2048;
  float v16[1];
  v16[0] = rsqrtf(((v11[0] / v13) + 1e-05f));
  float v19[8];
  load_bf16_8(v19 + 0, (const unsigned short*)p1 + col0, true);
  float v20[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v20[i] = (v9[i] * v16[0]) * v19[i];
  unsigned char* const v23 = p2 + v7;
  store_bf16_8((unsigned short*)v23 + col0, v20 + 0, true);
}
