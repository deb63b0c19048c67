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
__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
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

extern "C" __global__ void __launch_bounds__(128, 1) gemm_scaled_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 16;
  const int col1 = lane % 4 * 2 + warp % 2 * 32;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int at3 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at4 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 2 * 4096;
  const int at5 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 128 + lane / 16 % 2 * 1024 + warp % 2 * 4096;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const int v61 = (int)v7;
  const int v65 = (int)0;
  const int v71 = (int)v9;
  const bool v74 = 0 < 256;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (at3 + i % 16 + i / 16 % 4 * 2048), (const unsigned char*)p2 + (((v61 + (row0 + i / 16 % 4 * 16)) * 256) + (v65 + (col0 + i % 16))), v74 && ((v61 + (row0 + i / 16 % 4 * 16)) < p1));
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 24576 + (at3 + i % 16 + i / 16 % 4 * 2048), (const unsigned char*)p3 + (((v65 + (col0 + i % 16)) * 128) + (v71 + (row0 + i / 16 % 4 * 16))), v74);
  commit_group();
  const bool v82 = 128 < 256;
  unsigned char* const v83 = p2 + 128;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)1 * 8192 + (at3 + i % 16 + i / 16 % 4 * 2048), (const unsigned char*)v83 + (((v61 + (row0 + i / 16 % 4 * 16)) * 256) + (v65 + (col0 + i % 16))), v82 && ((v61 + (row0 + i / 16 % 4 * 16)) < p1));
  unsigned char* const v86 = p3 + 16384;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async_1(shared + 24576 + (int)1 * 8192 + (at3 + i % 16 + i / 16 % 4 * 2048), (const unsigned char*)v86 + (((v65 + (col0 + i % 16)) * 128) + (v71 + (row0 + i / 16 % 4 * 16))), v82);
  commit_group();
  float v14[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v14[i] = 0.0f;
  int v90 = 0;
  int v92 = 2;
  for (long long v13 = 0; v13 < 256; v13 += 128) {
    wait_group_1();
    const long long v96 = v13 + 256;
    const bool v97 = v96 < 256;
    unsigned char* const v100 = p2 + v96;
    const int v101 = (int)v7;
#pragma unroll
    for (int i = 0; i < 64; i += 16)
      copy_async_16(shared + 0 + (int)v92 * 8192 + (at3 + i % 16 + i / 16 % 4 * 2048), (const unsigned char*)v100 + (((v61 + (row0 + i / 16 % 4 * 16)) * 256) + (v65 + (col0 + i % 16))), v97 && ((v101 + (row0 + i / 16 % 4 * 16)) < p1));
    unsigned char* const v109 = p3 + (v96 * 128);
#pragma unroll 4
    for (int i = 0; i < 64; ++i)
      copy_async_1(shared + 24576 + (int)v92 * 8192 + (at3 + i % 16 + i / 16 % 4 * 2048), (const unsigned char*)v109 + (((v65 + (col0 + i % 16)) * 128) + (v71 + (row0 + i / 16 % 4 * 16))), v97);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v90 * 8192;
      const unsigned b = shared + 24576 + (int)v90 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix(fb[n], b + ((at5 ^ (k % 4 * 32)) + n / 2 % 2 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_e4m3_e4m3(v14 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v114 = v90 + 1;
    const int v118 = (v114 < 3) ? v114 : 0;
    const int v119 = v92 + 1;
    const int v121 = (v119 < 3) ? v119 : 0;
    v90 = v118;
    v92 = v121;
  }
  const int v37 = (int)v7;
  int v39[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v39[i] = v37 + (row2 + i % 4 * 8);
  bool v41[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v41[i] = v39[i] < p1;
  const int v42 = (int)v9;
  float v47[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    load_f32_1(v47 + i, (const float*)p4 + v39[i], v41[i]);
  float v50[32];
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    load_f32_2(v50 + i, (const float*)p5 + (v42 + (col1 + i % 2 + i / 4 % 4 * 8)), v41[i / 2 % 2 + i / 16 % 2 * 2]);
  float v51[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v51[i] = (v14[i] * v47[i / 2 % 2 + i / 16 % 2 * 2]) * v50[i];
  int v54[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v54[i] = v39[i] * 128;
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store_bf16_2((unsigned short*)p6 + (v54[i / 2 % 2 + i / 16 % 2 * 2] + (v42 + (col1 + i % 2 + i / 4 % 4 * 8))), v51 + i, v41[i / 2 % 2 + i / 16 % 2 * 2]);
}
