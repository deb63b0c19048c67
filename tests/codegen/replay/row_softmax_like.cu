// load_f32_1, store_f32_1, smem
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_exp_sum_div(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int at2 = warp % 4;
  const long long v8 = ((long long)blockIdx.x * 1001) * 4;
  unsigned char* const v9 = p0 + v8;
  float v10[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v10 + i, (const float*)v9 + (col0 + i % 8), ((col0 + i % 8) < 1001));
  float v11[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v11[i] = expf(v10[i]);
  float v14[1];
  v14[0] = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v14[0] = v14[0] + (((col0 + i % 8) < 1001) ? v11[i] : 0.0f);
  v14[0] = v14[0] + __shfl_xor_sync(0xffffffffu, v14[0], 1);
  v14[0] = v14[0] + __shfl_xor_sync(0xffffffffu, v14[0], 2);
  v14[0] = v14[0] + __shfl_xor_sync(0xffffffffu, v14[0], 4);
  v14[0] = v14[0] + __shfl_xor_sync(0xffffffffu, v14[0], 8);
  v14[0] = v14[0] + __shfl_xor_sync(0xffffffffu, v14[0], 16);
  float* const s14 = (float*)(smem + 0);
  if ((lane & 31) == 0) {
    s14[at2] = v14[0];
  }
  __syncthreads();
  v14[0] = s14[0];
#pragma unroll
  for (int w = 1; w < 4; ++w) {
    v14[0] = v14[0] + s14[0 + w];
  }
  float v16[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v16[i] = v11[i] / v14[0];
  unsigned char* const v18 = p1 + v8;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v18 + (col0 + i % 8), v16 + i, ((col0 + i % 8) < 1001));
}
