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
