__device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ void load_f32_1(float* v, const float* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w);
}
__device__ __forceinline__ void load_f32_2(float* v, const float* p, bool ok) {
  uint2 w = make_uint2(0u, 0u);
  if (ok) w = *(const uint2*)p;
  v[0] = __uint_as_float(w.x);
  v[1] = __uint_as_float(w.y);
}
__device__ __forceinline__ void store_bf16_2(unsigned short* p, const float* v, bool ok) {
  unsigned w;
  w = (unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16;
  if (ok) *(unsigned*)p = w;
}
__device__ __forceinline__ long long min_i64(long long a, long long b) { return a < b ? a : b; }
extern __shared__ __align__(1024) unsigned char smem[];
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void copy_async_1(unsigned to, const void* from, bool ok) {
  unsigned short value = 0;
  if (ok) value = *(const unsigned char*)from;
  asm volatile("st.shared.u8 [%0], %1;" :: "r"(to), "h"(value) : "memory");
}
// 16 bytes from global to shared memory; zeros when not ok.
__device__ __forceinline__ void copy_async_16(unsigned to, const void* from, bool ok) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(to), "l"(from), "r"(ok ? 16 : 0) : "memory");
}
__device__ __forceinline__ void wait_group_6() {
  asm volatile("cp.async.wait_group 6;" ::: "memory");
  __syncthreads();
}
__device__ __forceinline__ void ldmatrix(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void mma_e4m3_e4m3(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(32, 1) gemm_scaled_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 8 % 4;
  const int col0 = lane % 8 * 16;
  const int col1 = lane % 4 * 2;
  const int row2 = lane / 4 % 8;
  const int at3 = (lane % 32 * 16) ^ (lane / 8 % 4 * 16);
  const int at4 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at5 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 128 + lane / 16 % 2 * 1024;
  const int v1 = (int)(long long)blockIdx.x;
  const int v8 = (v1 / 64) * 8;
  const int v9 = v1 % 64;
  const int v11 = min_i64((((int)p0) - v8), 8);
  const int v16 = (v8 + (v9 % v11)) * 16;
  const int v17 = (v9 / v11) * 16;
  const int v69 = (int)v16;
  const int v73 = (int)0;
  const int v79 = (int)v17;
  const bool v82 = 0 < 256;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)p2 + (((v69 + (row0 + i / 16 % 4 * 4)) * 256) + (v73 + (col0 + i % 16))), v82 && ((v69 + (row0 + i / 16 % 4 * 4)) < p1));
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 16384 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)p3 + (((v73 + (col0 + i % 16)) * 128) + (v79 + (row0 + i / 16 % 4 * 4))), v82);
  commit_group();
  const bool v90 = 128 < 256;
  unsigned char* const v91 = p2 + 128;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)1 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v91 + (((v69 + (row0 + i / 16 % 4 * 4)) * 256) + (v73 + (col0 + i % 16))), v90 && ((v69 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v94 = p3 + 16384;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 16384 + (int)1 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v94 + (((v73 + (col0 + i % 16)) * 128) + (v79 + (row0 + i / 16 % 4 * 4))), v90);
  commit_group();
  const bool v99 = 256 < 256;
  unsigned char* const v100 = p2 + 256;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)2 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v100 + (((v69 + (row0 + i / 16 % 4 * 4)) * 256) + (v73 + (col0 + i % 16))), v99 && ((v69 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v103 = p3 + 32768;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 16384 + (int)2 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v103 + (((v73 + (col0 + i % 16)) * 128) + (v79 + (row0 + i / 16 % 4 * 4))), v99);
  commit_group();
  const bool v108 = 384 < 256;
  unsigned char* const v109 = p2 + 384;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)3 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v109 + (((v69 + (row0 + i / 16 % 4 * 4)) * 256) + (v73 + (col0 + i % 16))), v108 && ((v69 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v112 = p3 + 49152;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 16384 + (int)3 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v112 + (((v73 + (col0 + i % 16)) * 128) + (v79 + (row0 + i / 16 % 4 * 4))), v108);
  commit_group();
  const bool v117 = 512 < 256;
  unsigned char* const v118 = p2 + 512;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)4 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v118 + (((v69 + (row0 + i / 16 % 4 * 4)) * 256) + (v73 + (col0 + i % 16))), v117 && ((v69 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v121 = p3 + 65536;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 16384 + (int)4 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v121 + (((v73 + (col0 + i % 16)) * 128) + (v79 + (row0 + i / 16 % 4 * 4))), v117);
  commit_group();
  const bool v126 = 640 < 256;
  unsigned char* const v127 = p2 + 640;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)5 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v127 + (((v69 + (row0 + i / 16 % 4 * 4)) * 256) + (v73 + (col0 + i % 16))), v126 && ((v69 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v130 = p3 + 81920;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 16384 + (int)5 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v130 + (((v73 + (col0 + i % 16)) * 128) + (v79 + (row0 + i / 16 % 4 * 4))), v126);
  commit_group();
  const bool v135 = 768 < 256;
  unsigned char* const v136 = p2 + 768;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)6 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v136 + (((v69 + (row0 + i / 16 % 4 * 4)) * 256) + (v73 + (col0 + i % 16))), v135 && ((v69 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v139 = p3 + 98304;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 16384 + (int)6 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v139 + (((v73 + (col0 + i % 16)) * 128) + (v79 + (row0 + i / 16 % 4 * 4))), v135);
  commit_group();
  float v22[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v22[i] = 0.0f;
  int v143 = 0;
  int v145 = 7;
  for (long long v21 = 0; v21 < 256; v21 += 128) {
    wait_group_6();
    const long long v149 = v21 + 896;
    const bool v150 = v149 < 256;
    unsigned char* const v153 = p2 + v149;
    const int v154 = (int)v16;
#pragma unroll
    for (int i = 0; i < 64; i += 16)
      copy_async_16(shared + 0 + (int)v145 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v153 + (((v69 + (row0 + i / 16 % 4 * 4)) * 256) + (v73 + (col0 + i % 16))), v150 && ((v154 + (row0 + i / 16 % 4 * 4)) < p1));
    unsigned char* const v162 = p3 + (v149 * 128);
#pragma unroll 4
    for (int i = 0; i < 64; ++i)
      copy_async_1(shared + 16384 + (int)v145 * 2048 + ((at3 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v162 + (((v73 + (col0 + i % 16)) * 128) + (v79 + (row0 + i / 16 % 4 * 4))), v150);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v143 * 2048;
      const unsigned b = shared + 16384 + (int)v143 * 2048;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at4 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix(fb[n], b + (at5 ^ (k % 4 * 32)));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_e4m3_e4m3(v22 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v167 = v143 + 1;
    const int v171 = (v167 < 8) ? v167 : 0;
    const int v172 = v145 + 1;
    const int v174 = (v172 < 8) ? v172 : 0;
    v143 = v171;
    v145 = v174;
  }
  const int v45 = (int)v16;
  int v47[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v47[i] = v45 + (row2 + i % 2 * 8);
  bool v49[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v49[i] = v47[i] < p1;
  const int v50 = (int)v17;
  float v55[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v55 + i, (const float*)p4 + v47[i], v49[i]);
  float v58[8];
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    load_f32_2(v58 + i, (const float*)p5 + (v50 + (col1 + i % 2 + i / 4 % 2 * 8)), v49[i / 2 % 2]);
  float v59[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v59[i] = (v22[i] * v55[i / 2 % 2]) * v58[i];
  int v62[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v62[i] = v47[i] * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)p6 + (v62[i / 2 % 2] + (v50 + (col1 + i % 2 + i / 4 % 2 * 8))), v59 + i, v49[i / 2 % 2]);
}
