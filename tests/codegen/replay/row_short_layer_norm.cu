// narrow_pair_bf16, load_bf16_8, store_bf16_8
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_layer_norm(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int v3 = (int)((long long)blockIdx.x * 16);
  int v5[1];
  v5[0] = v3 + row0;
  bool v7[1];
  v7[0] = v5[0] < p0;
  int v11[1];
  v11[0] = v5[0] * 64;
  float v14[8];
  load_bf16_8(v14 + 0, (const unsigned short*)p1 + (v11[0] + col1), v7[0]);
  float v15[1];
  v15[0] = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v15[0] = v15[0] + v14[i];
  v15[0] = v15[0] + __shfl_xor_sync(0xffffffffu, v15[0], 1);
  v15[0] = v15[0] + __shfl_xor_sync(0xffffffffu, v15[0], 2);
  v15[0] = v15[0] + __shfl_xor_sync(0xffffffffu, v15[0], 4);
  const float v16 = (float)64;
  float v17[1];
  v17[0] = v15[0] / v16;
  float v18[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v18[i] = v14[i] - v17[0];
  float v20[1];
  v20[0] = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v20[0] = v20[0] + (v18[i] * v18[i]);
  v20[0] = v20[0] + __shfl_xor_sync(0xffffffffu, v20[0], 1);
  v20[0] = v20[0] + __shfl_xor_sync(0xffffffffu, v20[0], 2);
  v20[0] = v20[0] + __shfl_xor_sync(0xffffffffu, v20[0], 4);
  float v24[1];
  v24[0] = rsqrtf(((v20[0] / v16) + 1e-05f));
  float v27[8];
  load_bf16_8(v27 + 0, (const unsigned short*)p2 + col1, v7[0]);
  float v30[8];
  load_bf16_8(v30 + 0, (const unsigned short*)p3 + col1, v7[0]);
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = ((v18[i] * v24[0]) * v27[i]) + v30[i];
  store_bf16_8((unsigned short*)p4 + (v11[0] + col1), v31 + 0, v7[0]);
}
