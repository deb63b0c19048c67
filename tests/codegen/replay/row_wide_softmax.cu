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
// NaN wins, and -0 is below +0.
__device__ __forceinline__ float max_f32(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
extern __shared__ __align__(1024) unsigned char smem[];

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
