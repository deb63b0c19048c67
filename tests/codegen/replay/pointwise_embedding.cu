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
__device__ __forceinline__ void load_i64_1(long long* v, const long long* p, bool ok) {
  uint2 w = make_uint2(0u, 0u);
  if (ok) w = *(const uint2*)p;
  v[0] = (long long)((unsigned long long)w.y << 32 | w.x);
}
__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = narrow_pair_bf16(v[0], v[1]);
  w.y = narrow_pair_bf16(v[2], v[3]);
  w.z = narrow_pair_bf16(v[4], v[5]);
  w.w = narrow_pair_bf16(v[6], v[7]);
  if (ok) *(uint4*)p = w;
}

// What went wrong first on this rank, for the host.
struct Record {
  unsigned kind, step, block, slot, peer, expected, seen, node;
  long long index, extent;
};
__device__ __forceinline__ bool claim(Record* record, unsigned kind) {
  return atomicCAS(&record->kind, 0u, kind) == 0u;
}

__device__ __forceinline__ void bad_index(Record* record, int step, int node, long long index,
                                          long long extent) {
  if (!claim(record, 2)) return;
  record->step = step;
  record->node = node;
  record->index = index;
  record->extent = extent;
}

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
