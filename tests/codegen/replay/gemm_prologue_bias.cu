__device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ void load_bf16_2(float* v, const unsigned short* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w << 16);
  v[1] = __uint_as_float(w & 0xffff0000u);
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
__device__ __forceinline__ void load_f32_4(float* v, const float* p, bool ok) {
  uint4 w = make_uint4(0u, 0u, 0u, 0u);
  if (ok) w = *(const uint4*)p;
  v[0] = __uint_as_float(w.x);
  v[1] = __uint_as_float(w.y);
  v[2] = __uint_as_float(w.z);
  v[3] = __uint_as_float(w.w);
}
__device__ __forceinline__ void store_bf16_2(unsigned short* p, const float* v, bool ok) {
  unsigned w;
  w = (unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16;
  if (ok) *(unsigned*)p = w;
}
__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = (unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16;
  w.y = (unsigned)narrow_bf16(v[2]) | (unsigned)narrow_bf16(v[3]) << 16;
  w.z = (unsigned)narrow_bf16(v[4]) | (unsigned)narrow_bf16(v[5]) << 16;
  w.w = (unsigned)narrow_bf16(v[6]) | (unsigned)narrow_bf16(v[7]) << 16;
  if (ok) *(uint4*)p = w;
}
extern __shared__ __align__(1024) unsigned char smem[];
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
}
__device__ __forceinline__ void ldmatrix(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void ldmatrix_trans(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void mma_bf16_bf16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_to_mul_addmm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int col1 = lane % 4 * 2 + warp % 2 * 32;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int at3 = ((lane % 32 * 8) ^ (lane / 8 % 4 * 8) ^ (warp % 2 * 32)) + warp % 4 * 256;
  const int at4 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 2 * 4096;
  const int at5 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 64)) + lane % 16 * 128;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const int v70 = (int)v7;
  const int v74 = (int)0;
  float v82[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v82 + i, (const unsigned short*)p2 + (((v70 + (row0 + i / 8 % 4 * 16)) * 64) + (v74 + (col0 + i % 8))), (((v70 + (row0 + i / 8 % 4 * 16)) < p1) && ((v74 + (col0 + i % 8)) < 64)));
  float v84[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v84 + i, (const unsigned short*)p3 + (v74 + (col0 + i % 8)), (((v70 + (row0 + i / 8 % 4 * 16)) < p1) && ((v74 + (col0 + i % 8)) < 64)));
  float v85[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v85[i] = v82[i] * v84[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0) + (at3 + i % 8 + i / 8 % 4 * 1024), v85 + i, true);
  const int v92 = (int)v9;
  float v98[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v98 + i, (const float*)p4 + (((v74 + (row0 + i / 8 % 4 * 16)) * 128) + (v92 + (col0 + i % 8))), (((v74 + (row0 + i / 8 % 4 * 16)) < 64) && ((v92 + (col0 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 24576) + (at3 + i % 8 + i / 8 % 4 * 1024), v98 + i, true);
  commit_group();
  const int v105 = (int)64;
  float v110[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v110 + i, (const unsigned short*)p2 + (((v70 + (row0 + i / 8 % 4 * 16)) * 64) + (v105 + (col0 + i % 8))), (((v70 + (row0 + i / 8 % 4 * 16)) < p1) && ((v105 + (col0 + i % 8)) < 64)));
  float v111[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v111 + i, (const unsigned short*)p3 + (v105 + (col0 + i % 8)), (((v70 + (row0 + i / 8 % 4 * 16)) < p1) && ((v105 + (col0 + i % 8)) < 64)));
  float v112[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v112[i] = v110[i] * v111[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), v112 + i, true);
  float v120[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v120 + i, (const float*)p4 + (((v105 + (row0 + i / 8 % 4 * 16)) * 128) + (v92 + (col0 + i % 8))), (((v105 + (row0 + i / 8 % 4 * 16)) < 64) && ((v92 + (col0 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 24576 + (int)1 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), v120 + i, true);
  commit_group();
  float v12[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v12[i] = 0.0f;
  int v125 = 0;
  int v127 = 2;
  for (long long v11 = 0; v11 < 64; v11 += 64) {
    wait_group_1();
    const int v134 = (int)v7;
    const int v138 = (int)(v11 + 128);
    float v146[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v146 + i, (const unsigned short*)p2 + (((v134 + (row0 + i / 8 % 4 * 16)) * 64) + (v138 + (col0 + i % 8))), (((v134 + (row0 + i / 8 % 4 * 16)) < p1) && ((v138 + (col0 + i % 8)) < 64)));
    float v148[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v148 + i, (const unsigned short*)p3 + (v138 + (col0 + i % 8)), (((v134 + (row0 + i / 8 % 4 * 16)) < p1) && ((v138 + (col0 + i % 8)) < 64)));
    float v149[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v149[i] = v146[i] * v148[i];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      store_bf16_8((unsigned short*)(smem + 0 + (int)v127 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), v149 + i, true);
    const int v155 = (int)v9;
    float v161[32];
#pragma unroll
    for (int i = 0; i < 32; i += 4)
      load_f32_4(v161 + i, (const float*)p4 + (((v138 + (row0 + i / 8 % 4 * 16)) * 128) + (v155 + (col0 + i % 8))), (((v138 + (row0 + i / 8 % 4 * 16)) < 64) && ((v155 + (col0 + i % 8)) < 128)));
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      store_bf16_8((unsigned short*)(smem + 24576 + (int)v127 * 8192) + (at3 + i % 8 + i / 8 % 4 * 1024), v161 + i, true);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v125 * 8192;
      const unsigned b = shared + 24576 + (int)v125 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at5 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v12 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v167 = v125 + 1;
    const int v171 = (v167 < 3) ? v167 : 0;
    const int v172 = v127 + 1;
    const int v174 = (v172 < 3) ? v172 : 0;
    v125 = v171;
    v127 = v174;
  }
  const int v47 = (int)v7;
  int v49[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v49[i] = v47 + (row2 + i % 4 * 8);
  bool v51[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v51[i] = v49[i] < p1;
  const int v52 = (int)v9;
  float v57[32];
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    load_bf16_2(v57 + i, (const unsigned short*)p5 + (v52 + (col1 + i % 2 + i / 4 % 4 * 8)), v51[i / 2 % 2 + i / 16 % 2 * 2]);
  float v58[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v58[i] = v12[i] + v57[i];
  int v62[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v62[i] = v49[i] * 128;
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store_bf16_2((unsigned short*)p6 + (v62[i / 2 % 2 + i / 16 % 2 * 2] + (v52 + (col1 + i % 2 + i / 4 % 4 * 8))), v58 + i, v51[i / 2 % 2 + i / 16 % 2 * 2]);
}
