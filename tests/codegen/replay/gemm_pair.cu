struct bf16 { unsigned short bits; };
struct f16 { unsigned short bits; };

__device__ __forceinline__ float widen(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ __forceinline__ float widen(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ long long widen(int x) { return x; }
__device__ __forceinline__ long long widen(long long x) { return x; }
__device__ __forceinline__ long long widen(unsigned char x) { return x; }

__device__ __forceinline__ void narrow(bf16& y, float x) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
}
__device__ __forceinline__ void narrow(f16& y, float x) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
}
__device__ __forceinline__ void narrow(float& y, float x) { y = x; }
__device__ __forceinline__ void narrow(int& y, long long x) { y = (int)x; }
__device__ __forceinline__ void narrow(long long& y, long long x) { y = x; }
__device__ __forceinline__ void narrow(unsigned char& y, long long x) { y = (unsigned char)x; }

// The value nearest to x that an E can hold.
template <class E, class V>
__device__ __forceinline__ V round_to(V x) {
  E y;
  narrow(y, x);
  return widen(y);
}

// The 32-bit words of one access, and elements in them.
__device__ __forceinline__ void read_words(unsigned (&w)[1], const void* p) { w[0] = *(const unsigned*)p; }
__device__ __forceinline__ void read_words(unsigned (&w)[2], const void* p) {
  const uint2 r = *(const uint2*)p;
  w[0] = r.x, w[1] = r.y;
}
__device__ __forceinline__ void read_words(unsigned (&w)[4], const void* p) {
  const uint4 r = *(const uint4*)p;
  w[0] = r.x, w[1] = r.y, w[2] = r.z, w[3] = r.w;
}
__device__ __forceinline__ void write_words(const unsigned (&w)[1], void* p) { *(unsigned*)p = w[0]; }
__device__ __forceinline__ void write_words(const unsigned (&w)[2], void* p) {
  *(uint2*)p = make_uint2(w[0], w[1]);
}
__device__ __forceinline__ void write_words(const unsigned (&w)[4], void* p) {
  *(uint4*)p = make_uint4(w[0], w[1], w[2], w[3]);
}
__device__ __forceinline__ void take(bf16& e, const unsigned* w, int i) { e.bits = w[i / 2] >> (i % 2 * 16); }
__device__ __forceinline__ void take(f16& e, const unsigned* w, int i) { e.bits = w[i / 2] >> (i % 2 * 16); }
__device__ __forceinline__ void take(float& e, const unsigned* w, int i) { e = __uint_as_float(w[i]); }
__device__ __forceinline__ void take(int& e, const unsigned* w, int i) { e = (int)w[i]; }
__device__ __forceinline__ void take(long long& e, const unsigned* w, int i) {
  e = (long long)((unsigned long long)w[2 * i + 1] << 32 | w[2 * i]);
}
__device__ __forceinline__ void take(unsigned char& e, const unsigned* w, int i) { e = w[i / 4] >> (i % 4 * 8); }
__device__ __forceinline__ void put(bf16 e, unsigned* w, int i) { w[i / 2] |= (unsigned)e.bits << (i % 2 * 16); }
__device__ __forceinline__ void put(f16 e, unsigned* w, int i) { w[i / 2] |= (unsigned)e.bits << (i % 2 * 16); }
__device__ __forceinline__ void put(float e, unsigned* w, int i) { w[i] = __float_as_uint(e); }
__device__ __forceinline__ void put(int e, unsigned* w, int i) { w[i] = (unsigned)e; }
__device__ __forceinline__ void put(long long e, unsigned* w, int i) {
  w[2 * i] = (unsigned)e;
  w[2 * i + 1] = (unsigned)(e >> 32);
}
__device__ __forceinline__ void put(unsigned char e, unsigned* w, int i) { w[i / 4] |= (unsigned)e << (i % 4 * 8); }

// N elements in one access; masked elements read as zero.
template <int N, class E, class V>
__device__ __forceinline__ void load(V* v, const E* p, bool ok) {
  if constexpr (N * sizeof(E) >= 4) {
    unsigned w[N * sizeof(E) / 4] = {};
    if (ok) read_words(w, p);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      E e;
      take(e, w, i);
      v[i] = widen(e);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      E e{};
      if (ok) e = p[i];
      v[i] = widen(e);
    }
  }
}
template <int N, class E, class V>
__device__ __forceinline__ void store(E* p, const V* v, bool ok) {
  if constexpr (N * sizeof(E) >= 4) {
    unsigned w[N * sizeof(E) / 4] = {};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      E e;
      narrow(e, v[i]);
      put(e, w, i);
    }
    if (ok) write_words(w, p);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      E e;
      narrow(e, v[i]);
      if (ok) p[i] = e;
    }
  }
}

extern __shared__ __align__(1024) unsigned char smem[];

// Element offset of (row, col) in a shared tile whose 16-byte pieces are swizzled.
template <int Cols, int Piece, int PerPhase, int Phases>
__device__ __forceinline__ int swizzle(int row, int col) {
  return row * Cols + (col ^ (row / PerPhase % Phases * Piece));
}
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

// Bytes from global to shared memory; zeros when not ok. Narrow pieces go through a register.
template <int Bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool ok) {
  const unsigned size = ok ? Bytes : 0;
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(to)), "l"(from), "r"(size) : "memory");
  } else if constexpr (Bytes >= 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(shared_address(to)), "l"(from), "n"(Bytes), "r"(size) : "memory");
  } else if constexpr (Bytes == 2) {
    unsigned short value = 0;
    if (ok) value = *(const unsigned short*)from;
    *(unsigned short*)to = value;
  } else {
    *(unsigned char*)to = ok ? *(const unsigned char*)from : 0;
  }
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wait_group() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
  __syncthreads();
}

__device__ __forceinline__ void ldmatrix(unsigned* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void ldmatrix_trans(unsigned* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void mma(bf16, float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma(f16, float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_mm_mm_silu_mul(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int col0 = lane % 4 * 2 + warp % 2 * 32;
  const int row1 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int col2 = 0;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const bool v73 = 0 < 2048;
  const int v75 = (int)v7;
  const int v79 = (int)0;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 0 + (int)0 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p2 + (((v75 + (row1 + i / 8 % 4 * 16)) * 2048) + (v79 + (col1 + i % 8))), v73 && ((v75 + (row1 + i / 8 % 4 * 16)) < p1));
  const int v90 = (int)v9;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 24576 + (int)0 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p3 + (((v79 + (row1 + i / 8 % 4 * 16)) * 1408) + (v90 + (col1 + i % 8))), v73);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 49152 + (int)0 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p4 + (((v79 + (row1 + i / 8 % 4 * 16)) * 1408) + (v90 + (col1 + i % 8))), v73);
  commit_group();
  const bool v99 = 64 < 2048;
  const int v100 = (int)64;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 0 + (int)1 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p2 + (((v75 + (row1 + i / 8 % 4 * 16)) * 2048) + (v100 + (col1 + i % 8))), v99 && ((v75 + (row1 + i / 8 % 4 * 16)) < p1));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 24576 + (int)1 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p3 + (((v100 + (row1 + i / 8 % 4 * 16)) * 1408) + (v90 + (col1 + i % 8))), v99);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 49152 + (int)1 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p4 + (((v100 + (row1 + i / 8 % 4 * 16)) * 1408) + (v90 + (col1 + i % 8))), v99);
  commit_group();
  float v14[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v14[i] = 0.0f;
  float v15[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v15[i] = 0.0f;
  for (long long v13 = 0; v13 < 2048; v13 += 64) {
    const long long v111 = (v13 - 0) / 64;
    const long long v112 = v111 % 3;
    wait_group<1>();
    const long long v116 = v13 + 128;
    const long long v118 = (v111 + 2) % 3;
    const bool v119 = v116 < 2048;
    const int v121 = (int)v7;
    const int v125 = (int)v116;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async<16>(((bf16*)(smem + 0 + (int)v118 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p2 + (((v121 + (row1 + i / 8 % 4 * 16)) * 2048) + (v125 + (col1 + i % 8))), v119 && ((v121 + (row1 + i / 8 % 4 * 16)) < p1));
    const int v136 = (int)v9;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async<16>(((bf16*)(smem + 24576 + (int)v118 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p3 + (((v125 + (row1 + i / 8 % 4 * 16)) * 1408) + (v136 + (col1 + i % 8))), v119);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async<16>(((bf16*)(smem + 49152 + (int)v118 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p4 + (((v125 + (row1 + i / 8 % 4 * 16)) * 1408) + (v136 + (col1 + i % 8))), v119);
    commit_group();
    {
      const auto* const a = ((bf16*)(smem + 0 + (int)v112 * 8192));
      const auto* const b = ((bf16*)(smem + 24576 + (int)v112 * 8192));
      const int m0 = warp / 2 * 32;
      const int n0 = warp % 2 * 32;
#pragma unroll
      for (int k = 0; k < 64; k += 16) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + swizzle<64, 8, 1, 8>(m0 + m * 16 + lane % 16, k + lane / 16 * 8));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + swizzle<64, 8, 1, 8>(k + lane % 16, n0 + n * 8 + lane / 16 * 8));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma(bf16{}, v14 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    {
      const auto* const a = ((bf16*)(smem + 0 + (int)v112 * 8192));
      const auto* const b = ((bf16*)(smem + 49152 + (int)v112 * 8192));
      const int m0 = warp / 2 * 32;
      const int n0 = warp % 2 * 32;
#pragma unroll
      for (int k = 0; k < 64; k += 16) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + swizzle<64, 8, 1, 8>(m0 + m * 16 + lane % 16, k + lane / 16 * 8));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + swizzle<64, 8, 1, 8>(k + lane % 16, n0 + n * 8 + lane / 16 * 8));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma(bf16{}, v15 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
  }
  const int v44 = (int)v7;
  int v46[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v46[i] = v44 + (row2 + i % 4 * 8);
  bool v48[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v48[i] = v46[i] < p1;
  const int v49 = (int)v9;
  float v52[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v52[i] = round_to<bf16>(v14[i]);
  float v60[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v60[i] = (round_to<bf16>((v52[i] / (1.0f + (expf((-v52[i]))))))) * (round_to<bf16>(v15[i]));
  int v64[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v64[i] = v46[i] * 1408;
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store<2>((bf16*)p5 + (v64[i / 2 % 2 + i / 16 % 2 * 2] + (v49 + (col0 + i % 2 + i / 4 % 4 * 8))), v60 + i, v48[i / 2 % 2 + i / 16 % 2 * 2]);
}
