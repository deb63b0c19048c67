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

struct f8e4m3 { unsigned char bits; };
struct f8e5m2 { unsigned char bits; };

__device__ __forceinline__ float widen(f8e4m3 x) {
  const unsigned m = x.bits & 0x7fu;
  // The exponent's bias is 120 less.
  const float y = m == 0x7fu ? __uint_as_float(0x7fc00000u) : __uint_as_float(m << 20) * 0x1p120f;
  return x.bits & 0x80u ? -y : y;
}
__device__ __forceinline__ float widen(f8e5m2 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((unsigned short)(x.bits << 8)));
  return y;
}
// The code nearest to |x|, of an exponent with this bias and a mantissa of M bits; ties to even.
template <int M, int Bias>
__device__ __forceinline__ unsigned nearest_code(float x) {
  const unsigned u = __float_as_uint(x) & 0x7fffffffu;
  if (u < (unsigned)(128 - Bias) << 23) {
    return (unsigned)__float2int_rn(__uint_as_float(u) * (float)(1 << (Bias - 1 + M)));
  }
  const unsigned r = u + (1u << (22 - M)) - 1u + (u >> (23 - M) & 1u);
  return (r >> (23 - M)) - ((unsigned)(127 - Bias) << M);
}
__device__ __forceinline__ void narrow(f8e4m3& y, float x) {
  const unsigned m = nearest_code<3, 7>(x);
  // No infinity: what is too large becomes the largest value.
  y.bits = x != x ? 0x7fu : (m > 0x7eu ? 0x7eu : m) | (__float_as_uint(x) >> 24 & 0x80u);
}
__device__ __forceinline__ void narrow(f8e5m2& y, float x) {
  const unsigned m = nearest_code<2, 15>(x);
  y.bits = x != x ? 0x7fu : (m > 0x7cu ? 0x7cu : m) | (__float_as_uint(x) >> 24 & 0x80u);
}
__device__ __forceinline__ void take(f8e4m3& e, const unsigned* w, int i) { e.bits = w[i / 4] >> (i % 4 * 8); }
__device__ __forceinline__ void take(f8e5m2& e, const unsigned* w, int i) { e.bits = w[i / 4] >> (i % 4 * 8); }
__device__ __forceinline__ void put(f8e4m3 e, unsigned* w, int i) { w[i / 4] |= (unsigned)e.bits << (i % 4 * 8); }
__device__ __forceinline__ void put(f8e5m2 e, unsigned* w, int i) { w[i / 4] |= (unsigned)e.bits << (i % 4 * 8); }

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

__device__ __forceinline__ void mma(f8e4m3, f8e4m3, float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma(f8e4m3, f8e5m2, float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma(f8e5m2, f8e4m3, float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_scaled_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int col0 = lane % 4 * 2 + warp % 2 * 32;
  const int row1 = lane / 16 % 2 + warp % 4 * 2;
  const int col1 = lane % 16 * 8;
  const int row2 = lane / 4 % 8 + warp / 2 % 2 * 32;
  const int col2 = 0;
  const int row3 = lane / 8 % 4 + warp % 4 * 4;
  const int col3 = lane % 8 * 16;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const bool v61 = 0 < 256;
  const int v63 = (int)v7;
  const int v67 = (int)0;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async<16>(((f8e4m3*)(smem + 0 + (int)0 * 8192)) + swizzle<128, 16, 1, 8>((row3 + i / 16 % 4 * 16), (col3 + i % 16)), (const f8e4m3*)p2 + (((v63 + (row3 + i / 16 % 4 * 16)) * 256) + (v67 + (col3 + i % 16))), v61 && ((v63 + (row3 + i / 16 % 4 * 16)) < p1));
  const int v76 = (int)v9;
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async<1>(((f8e4m3*)(smem + 24576 + (int)0 * 8192)) + swizzle<128, 16, 1, 8>((row3 + i / 16 % 4 * 16), (col3 + i % 16)), (const f8e4m3*)p3 + (((v67 + (col3 + i % 16)) * 128) + (v76 + (row3 + i / 16 % 4 * 16))), v61);
  commit_group();
  const bool v83 = 128 < 256;
  const int v84 = (int)128;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async<16>(((f8e4m3*)(smem + 0 + (int)1 * 8192)) + swizzle<128, 16, 1, 8>((row3 + i / 16 % 4 * 16), (col3 + i % 16)), (const f8e4m3*)p2 + (((v63 + (row3 + i / 16 % 4 * 16)) * 256) + (v84 + (col3 + i % 16))), v83 && ((v63 + (row3 + i / 16 % 4 * 16)) < p1));
#pragma unroll 4
  for (int i = 0; i < 64; ++i)
    copy_async<1>(((f8e4m3*)(smem + 24576 + (int)1 * 8192)) + swizzle<128, 16, 1, 8>((row3 + i / 16 % 4 * 16), (col3 + i % 16)), (const f8e4m3*)p3 + (((v84 + (col3 + i % 16)) * 128) + (v76 + (row3 + i / 16 % 4 * 16))), v83);
  commit_group();
  float v14[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v14[i] = 0.0f;
  for (long long v13 = 0; v13 < 256; v13 += 128) {
    const long long v93 = (v13 - 0) / 128;
    const long long v94 = v93 % 3;
    wait_group<1>();
    const long long v98 = v13 + 256;
    const long long v100 = (v93 + 2) % 3;
    const bool v101 = v98 < 256;
    const int v103 = (int)v7;
    const int v107 = (int)v98;
#pragma unroll
    for (int i = 0; i < 64; i += 16)
      copy_async<16>(((f8e4m3*)(smem + 0 + (int)v100 * 8192)) + swizzle<128, 16, 1, 8>((row3 + i / 16 % 4 * 16), (col3 + i % 16)), (const f8e4m3*)p2 + (((v103 + (row3 + i / 16 % 4 * 16)) * 256) + (v107 + (col3 + i % 16))), v101 && ((v103 + (row3 + i / 16 % 4 * 16)) < p1));
    const int v116 = (int)v9;
#pragma unroll 4
    for (int i = 0; i < 64; ++i)
      copy_async<1>(((f8e4m3*)(smem + 24576 + (int)v100 * 8192)) + swizzle<128, 16, 1, 8>((row3 + i / 16 % 4 * 16), (col3 + i % 16)), (const f8e4m3*)p3 + (((v107 + (col3 + i % 16)) * 128) + (v116 + (row3 + i / 16 % 4 * 16))), v101);
    commit_group();
    {
      const auto* const a = ((f8e4m3*)(smem + 0 + (int)v94 * 8192));
      const auto* const b = ((f8e4m3*)(smem + 24576 + (int)v94 * 8192));
      const int m0 = warp / 2 * 32;
      const int n0 = warp % 2 * 32;
#pragma unroll
      for (int k = 0; k < 128; k += 32) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + swizzle<128, 16, 1, 8>(m0 + m * 16 + lane % 16, k + lane / 16 * 16));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix(fb[n], b + swizzle<128, 16, 1, 8>(n0 + n * 8 + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 16));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma(f8e4m3{}, f8e4m3{}, v14 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
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
    load<1>(v47 + i, (const float*)p4 + v39[i], v41[i]);
  float v50[32];
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    load<2>(v50 + i, (const float*)p5 + (v42 + (col0 + i % 2 + i / 4 % 4 * 8)), v41[i / 2 % 2 + i / 16 % 2 * 2]);
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
    store<2>((bf16*)p6 + (v54[i / 2 % 2 + i / 16 % 2 * 2] + (v42 + (col0 + i % 2 + i / 4 % 4 * 8))), v51 + i, v41[i / 2 % 2 + i / 16 % 2 * 2]);
}
