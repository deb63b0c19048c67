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

extern "C" __global__ void __launch_bounds__(128, 1) gemm_matmul(long long p0, long long p1, long long p2, unsigned char* __restrict__ p3, long long p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6, long long p7) {
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
  const int v6 = (int)p1;
  const long long v8 = (long long)(v1 / v6);
  const int v9 = v1 % v6;
  const int v12 = (v9 % v3) * 64;
  const int v14 = (v9 / v3) * 64;
  const bool v71 = 0 < 64;
  unsigned char* const v77 = p3 + ((v8 * p4) * 2);
  const int v78 = (int)v12;
  const int v82 = (int)0;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 0 + (int)0 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)v77 + (((v78 + (row1 + i / 8 % 4 * 16)) * 64) + (v82 + (col1 + i % 8))), v71 && ((v78 + (row1 + i / 8 % 4 * 16)) < p2));
  const int v93 = (int)v14;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 24576 + (int)0 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p5 + (((v82 + (row1 + i / 8 % 4 * 16)) * 128) + (v93 + (col1 + i % 8))), v71);
  commit_group();
  const bool v100 = 64 < 64;
  const int v101 = (int)64;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 0 + (int)1 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)v77 + (((v78 + (row1 + i / 8 % 4 * 16)) * 64) + (v101 + (col1 + i % 8))), v100 && ((v78 + (row1 + i / 8 % 4 * 16)) < p2));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async<16>(((bf16*)(smem + 24576 + (int)1 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p5 + (((v101 + (row1 + i / 8 % 4 * 16)) * 128) + (v93 + (col1 + i % 8))), v100);
  commit_group();
  float v17[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v17[i] = 0.0f;
  for (long long v16 = 0; v16 < 64; v16 += 64) {
    const long long v111 = (v16 - 0) / 64;
    const long long v112 = v111 % 3;
    wait_group<1>();
    const long long v116 = v16 + 128;
    const long long v118 = (v111 + 2) % 3;
    const bool v119 = v116 < 64;
    unsigned char* const v124 = p3 + ((v8 * p4) * 2);
    const int v125 = (int)v12;
    const int v129 = (int)v116;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async<16>(((bf16*)(smem + 0 + (int)v118 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)v124 + (((v125 + (row1 + i / 8 % 4 * 16)) * 64) + (v129 + (col1 + i % 8))), v119 && ((v125 + (row1 + i / 8 % 4 * 16)) < p2));
    const int v139 = (int)v14;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async<16>(((bf16*)(smem + 24576 + (int)v118 * 8192)) + swizzle<64, 8, 1, 8>((row1 + i / 8 % 4 * 16), (col1 + i % 8)), (const bf16*)p5 + (((v129 + (row1 + i / 8 % 4 * 16)) * 128) + (v139 + (col1 + i % 8))), v119);
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
          for (int n = 0; n < 4; ++n) mma(bf16{}, v17 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
  }
  const int v47 = (int)v12;
  int v49[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v49[i] = v47 + (row2 + i % 4 * 8);
  bool v51[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v51[i] = v49[i] < p2;
  const int v52 = (int)v14;
  int v60[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v60[i] = v49[i] * 128;
  unsigned char* const v65 = p6 + ((v8 * p7) * 2);
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store<2>((bf16*)v65 + (v60[i / 2 % 2 + i / 16 % 2 * 2] + (v52 + (col0 + i % 2 + i / 4 % 4 * 8))), v17 + i, v51[i / 2 % 2 + i / 16 % 2 * 2]);
}
