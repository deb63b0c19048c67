// narrow_pair_bf16, load_bf16_8, load_i64_1, store_bf16_8, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_embedding(long long p0, unsigned char* __restrict__ p1, Record* record, int step, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int v3 = (int)((long long)blockIdx.x * 1024);
  long long v12[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_i64_1(v12 + i, (const long long*)p1 + ((v3 + (col0 + i % 8)) / 2048), ((v3 + (col0 + i % 8)) < p0));
  {
    bool bad = false;
    long long index = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (((v3 + (col0 + i % 8)) < p0) && (v12[i] < 0 || v12[i] >= 1000)) bad = true, index = v12[i];
    if (bad) bad_index(record, step, 0, index, 1000);
  }
  float v27[8];
  load_bf16_8(v27 + 0, (const unsigned short*)p4 + ((((int)v12[0]) * 2048) + ((v3 + col0) % 2048)), ((((v3 + col0) < p0) && (-1 < v12[0])) && (v12[0] < 1000)));
  store_bf16_8((unsigned short*)p5 + (v3 + col0), v27 + 0, ((v3 + col0) < p0));
}
