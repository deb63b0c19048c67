// load_f32_1, store_i64_1, max_f32, min_i64, smem
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_argmax(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int at2 = warp % 4;
  unsigned char* const v9 = p0 + (((long long)blockIdx.x * 1001) * 4);
  float v10[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v10 + i, (const float*)v9 + (col0 + i % 8), ((col0 + i % 8) < 1001));
  float v13[1];
  v13[0] = __int_as_float(0xff800000);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v13[0] = max_f32(v13[0], (((col0 + i % 8) < 1001) ? v10[i] : __int_as_float(0xff800000)));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 1));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 2));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 4));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 8));
  v13[0] = max_f32(v13[0], __shfl_xor_sync(0xffffffffu, v13[0], 16));
  float* const s13 = (float*)(smem + 0);
  if ((lane & 31) == 0) {
    s13[at2] = v13[0];
  }
  __syncthreads();
  v13[0] = s13[0];
#pragma unroll
  for (int w = 1; w < 4; ++w) {
    v13[0] = max_f32(v13[0], s13[0 + w]);
  }
  long long v22[1];
  v22[0] = 9223372036854775807LL;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v22[0] = min_i64(v22[0], (((col0 + i % 8) < 1001) ? (((!(v10[i] == v13[0])) && (v10[i] == v10[i])) ? 9223372036854775807LL : ((long long)(col0 + i % 8))) : 9223372036854775807LL));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 1));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 2));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 4));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 8));
  v22[0] = min_i64(v22[0], __shfl_xor_sync(0xffffffffu, v22[0], 16));
  long long* const s22 = (long long*)(smem + 128);
  if ((lane & 31) == 0) {
    s22[at2] = v22[0];
  }
  __syncthreads();
  v22[0] = s22[0];
#pragma unroll
  for (int w = 1; w < 4; ++w) {
    v22[0] = min_i64(v22[0], s22[0 + w]);
  }
  unsigned char* const v26 = p1 + ((long long)blockIdx.x * 8);
  store_i64_1((long long*)v26 + 0, v22 + 0, (lane & 31) == 0 && (warp & 3) == 0);
}
