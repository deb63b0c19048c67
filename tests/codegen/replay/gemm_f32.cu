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

extern "C" __global__ void __launch_bounds__(128, 1) gemm_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 4;
  const int row1 = lane / 4 % 8 + warp % 4 * 8;
  const int col1 = lane % 4 * 8;
  const int row2 = lane / 8 % 4 + warp % 4 * 4;
  const int col2 = lane % 8 * 8;
  const int row3 = lane / 8 % 4 + warp % 4 * 4;
  const int col3 = 0;
  const int row4 = lane / 8 % 4 + warp % 4 * 4;
  const int col4 = lane % 8 * 4;
  const int row5 = lane / 16 % 2 + warp % 4 * 2;
  const int col5 = lane % 16 * 4;
  const int v1 = (int)(long long)blockIdx.x;
  const int v3 = (int)p0;
  const int v7 = (v1 % v3) * 64;
  const int v9 = (v1 / v3) * 64;
  const bool v66 = 0 < 130;
  const int v68 = (int)v7;
  const int v72 = (int)0;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async<8>(((float*)(smem + 0 + (int)0 * 8192)) + swizzle<32, 4, 1, 8>((row4 + i / 4 % 4 * 16), (col4 + i % 4)), (const float*)p2 + (((v68 + (row4 + i / 4 % 4 * 16)) * 130) + (v72 + (col4 + i % 4))), v66 && (((v68 + (row4 + i / 4 % 4 * 16)) < p1) && ((v72 + (col4 + i % 4)) < 130)));
  const int v86 = (int)v9;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async<8>(((float*)(smem + 24576 + (int)0 * 8192)) + swizzle<64, 4, 1, 8>((row5 + i / 4 % 4 * 8), (col5 + i % 4)), (const float*)p3 + (((v72 + (row5 + i / 4 % 4 * 8)) * 66) + (v86 + (col5 + i % 4))), v66 && (((v72 + (row5 + i / 4 % 4 * 8)) < 130) && ((v86 + (col5 + i % 4)) < 66)));
  commit_group();
  const bool v97 = 32 < 130;
  const int v98 = (int)32;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async<8>(((float*)(smem + 0 + (int)1 * 8192)) + swizzle<32, 4, 1, 8>((row4 + i / 4 % 4 * 16), (col4 + i % 4)), (const float*)p2 + (((v68 + (row4 + i / 4 % 4 * 16)) * 130) + (v98 + (col4 + i % 4))), v97 && (((v68 + (row4 + i / 4 % 4 * 16)) < p1) && ((v98 + (col4 + i % 4)) < 130)));
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async<8>(((float*)(smem + 24576 + (int)1 * 8192)) + swizzle<64, 4, 1, 8>((row5 + i / 4 % 4 * 8), (col5 + i % 4)), (const float*)p3 + (((v98 + (row5 + i / 4 % 4 * 8)) * 66) + (v86 + (col5 + i % 4))), v97 && (((v98 + (row5 + i / 4 % 4 * 8)) < 130) && ((v86 + (col5 + i % 4)) < 66)));
  commit_group();
  float v14[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v14[i] = 0.0f;
  for (long long v13 = 0; v13 < 130; v13 += 32) {
    const long long v112 = (v13 - 0) / 32;
    const long long v113 = v112 % 3;
    wait_group<1>();
    const long long v117 = v13 + 64;
    const long long v119 = (v112 + 2) % 3;
    const bool v120 = v117 < 130;
    const int v122 = (int)v7;
    const int v126 = (int)v117;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      copy_async<8>(((float*)(smem + 0 + (int)v119 * 8192)) + swizzle<32, 4, 1, 8>((row4 + i / 4 % 4 * 16), (col4 + i % 4)), (const float*)p2 + (((v122 + (row4 + i / 4 % 4 * 16)) * 130) + (v126 + (col4 + i % 4))), v120 && (((v122 + (row4 + i / 4 % 4 * 16)) < p1) && ((v126 + (col4 + i % 4)) < 130)));
    const int v140 = (int)v9;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      copy_async<8>(((float*)(smem + 24576 + (int)v119 * 8192)) + swizzle<64, 4, 1, 8>((row5 + i / 4 % 4 * 8), (col5 + i % 4)), (const float*)p3 + (((v126 + (row5 + i / 4 % 4 * 8)) * 66) + (v140 + (col5 + i % 4))), v120 && (((v126 + (row5 + i / 4 % 4 * 8)) < 130) && ((v140 + (col5 + i % 4)) < 66)));
    commit_group();
    {
      const float* const a = ((float*)(smem + 0 + (int)v113 * 8192));
      const float* const b = ((float*)(smem + 24576 + (int)v113 * 8192));
#pragma unroll 2
      for (int k = 0; k < 32; ++k) {
        float fa[4], fb[8];
#pragma unroll
        for (int m = 0; m < 4; ++m) fa[m] = a[swizzle<32, 4, 1, 8>((row0 + (m * 8) / 8 % 4 * 16), k)];
#pragma unroll
        for (int n = 0; n < 8; ++n) fb[n] = b[swizzle<64, 4, 1, 8>(k, (col0 + n % 4 + n / 4 % 2 * 32))];
#pragma unroll
        for (int i = 0; i < 32; ++i) v14[i] = __fmaf_rn(fa[i / 8], fb[i % 8], v14[i]);
      }
    }
  }
  const int v46 = (int)v7;
  int v48[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v48[i] = v46 + (row3 + i % 4 * 16);
  bool v50[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v50[i] = v48[i] < p1;
  const int v51 = (int)v9;
  int v57[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v57[i] = v48[i] * 66;
#pragma unroll
  for (int i = 0; i < 32; i += 2)
    store<2>((float*)p4 + (v57[i / 8 % 4] + (v51 + (col0 + i % 4 + i / 4 % 2 * 32))), v14 + i, (v50[i / 8 % 4] && ((v51 + (col0 + i % 4 + i / 4 % 2 * 32)) < 66)));
}
