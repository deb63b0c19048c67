// load_i32_4, store_i32_4
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_add(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  long long v10[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    load_i32_4(v10 + i, (const int*)p1 + (v3 + (col0 + i % 8)), ((v3 + (col0 + i % 8)) < p0));
  long long v13[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    load_i32_4(v13 + i, (const int*)p2 + (v3 + (col0 + i % 8)), ((v3 + (col0 + i % 8)) < p0));
  long long v16[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v16[i] = (long long)((int)((unsigned)((int)v10[i]) + (unsigned)((int)v13[i])));
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    store_i32_4((int*)p3 + (v3 + (col0 + i % 8)), v16 + i, ((v3 + (col0 + i % 8)) < p0));
}
