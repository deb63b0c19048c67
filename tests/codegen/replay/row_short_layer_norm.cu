__device__ __forceinline__ unsigned narrow_pair_bf16(float x, float y) {
  unsigned w;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));
  return w;
}
__device__ __forceinline__ void load_bf16_8(float* v, const unsigned short* p, bool ok) {
  uint4 w = make_uint4(0u, 0u, 0u, 0u);
  if (ok) w = *(const uint4*)p;
  v[0] = __uint_as_float(w.x << 16);
  v[1] = __uint_as_float(w.x & 0xffff0000u);
  v[2] = __uint_as_float(w.y << 16);
  v[3] = __uint_as_float(w.y & 0xffff0000u);
  v[4] = __uint_as_float(w.z << 16);
  v[5] = __uint_as_float(w.z & 0xffff0000u);
  v[6] = __uint_as_float(w.w << 16);
  v[7] = __uint_as_float(w.w & 0xffff0000u);
}
__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = narrow_pair_bf16(v[0], v[1]);
  w.y = narrow_pair_bf16(v[2], v[3]);
  w.z = narrow_pair_bf16(v[4], v[5]);
  w.w = narrow_pair_bf16(v[6], v[7]);
  if (ok) *(uint4*)p = w;
}

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
