// narrow_pair_bf16, load_bf16_8, store_bf16_8, max_f32, smem
extern "C" __global__ void __launch_bounds__(1024, 1) elementwise_softmax(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 32 * 256;
  const int at2 = warp % 32;
  float v6[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v6[i] = __int_as_float(0xff800000);
  for (long long v5 = 0; v5 < 32000; v5 += 8192) {
    const int v8 = (int)v5;
    unsigned char* const v17 = p0 + (((long long)blockIdx.x * 32000) * 2);
    float v18[8];
    load_bf16_8(v18 + 0, (const unsigned short*)v17 + (v8 + col0), ((v8 + col0) < 32000));
    float v21[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v21[i] = max_f32(v6[i], (((v8 + (col0 + i % 8)) < 32000) ? v18[i] : __int_as_float(0xff800000)));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v6[i] = v21[i];
  }
  float v23[1];
  v23[0] = __int_as_float(0xff800000);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v23[0] = max_f32(v23[0], v6[i]);
  v23[0] = max_f32(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 1));
  v23[0] = max_f32(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 2));
  v23[0] = max_f32(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 4));
  v23[0] = max_f32(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 8));
  v23[0] = max_f32(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 16));
  float* const s23 = (float*)(smem + 0);
  if ((lane & 31) == 0) {
    s23[at2] = v23[0];
  }
  __syncthreads();
  v23[0] = s23[0];
#pragma unroll
  for (int w = 1; w < 32; ++w) {
    v23[0] = max_f32(v23[0], s23[0 + w]);
  }
  float v26[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v26[i] = 0.0f;
  for (long long v25 = 0; v25 < 32000; v25 += 8192) {
    const int v28 = (int)v25;
    unsigned char* const v37 = p0 + (((long long)blockIdx.x * 32000) * 2);
    float v38[8];
    load_bf16_8(v38 + 0, (const unsigned short*)v37 + (v28 + col0), ((v28 + col0) < 32000));
    float v43[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v43[i] = v26[i] + (((v28 + (col0 + i % 8)) < 32000) ? (expf((v38[i] - v23[0]))) : 0.0f);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v26[i] = v43[i];
  }
  float v45[1];
  v45[0] = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v45[0] = v45[0] + v26[i];
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 1);
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 2);
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 4);
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 8);
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 16);
  float* const s45 = (float*)(smem + 128);
  if ((lane & 31) == 0) {
    s45[at2] = v45[0];
  }
  __syncthreads();
  v45[0] = s45[0];
#pragma unroll
  for (int w = 1; w < 32; ++w) {
    v45[0] = v45[0] + s45[0 + w];
  }
  for (long long v46 = 0; v46 < 32000; v46 += 8192) {
    const int v48 = (int)v46;
    const long long v56 = ((long long)blockIdx.x * 32000) * 2;
    unsigned char* const v57 = p0 + v56;
    float v58[8];
    load_bf16_8(v58 + 0, (const unsigned short*)v57 + (v48 + col0), ((v48 + col0) < 32000));
    float v61[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v61[i] = (expf((v58[i] - v23[0]))) / v45[0];
    unsigned char* const v64 = p1 + v56;
    store_bf16_8((unsigned short*)v64 + (v48 + col0), v61 + 0, ((v48 + col0) < 32000));
  }
}
