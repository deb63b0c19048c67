__device__ __forceinline__ void load_i32_4(long long* v, const int* p, bool ok) {
  uint4 w = make_uint4(0u, 0u, 0u, 0u);
  if (ok) w = *(const uint4*)p;
  v[0] = (int)(w.x);
  v[1] = (int)(w.y);
  v[2] = (int)(w.z);
  v[3] = (int)(w.w);
}
__device__ __forceinline__ long long round_i32(long long x) { return (int)x; }
__device__ __forceinline__ void store_i32_4(int* p, const long long* v, bool ok) {
  uint4 w;
  w.x = (unsigned)v[0];
  w.y = (unsigned)v[1];
  w.z = (unsigned)v[2];
  w.w = (unsigned)v[3];
  if (ok) *(uint4*)p = w;
}

extern "C" __global__ void __launch_bounds__(128, 1) elementwise_add(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  long long v10[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    load_i32_4(v10 + i, (const int*)p1 + (v3 + (col0 + i % 8)), ((v3 + (col0 + i % 8)) < p0));
  long long v12[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    load_i32_4(v12 + i, (const int*)p2 + (v3 + (col0 + i % 8)), ((v3 + (col0 + i % 8)) < p0));
  long long v14[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v14[i] = round_i32(((long long)((unsigned long long)v10[i] + (unsigned long long)v12[i])));
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    store_i32_4((int*)p3 + (v3 + (col0 + i % 8)), v14 + i, ((v3 + (col0 + i % 8)) < p0));
}
