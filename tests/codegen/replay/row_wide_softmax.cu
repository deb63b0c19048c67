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

// NaN wins, and -0 is below +0.
__device__ __forceinline__ float max_of(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ __forceinline__ float min_of(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ __forceinline__ long long max_of(long long a, long long b) { return a > b ? a : b; }
__device__ __forceinline__ long long min_of(long long a, long long b) { return a < b ? a : b; }
__device__ __forceinline__ float abs_of(float a) { return fabsf(a); }
__device__ __forceinline__ long long abs_of(long long a) {
  return a < 0 ? (long long)(0 - (unsigned long long)a) : a;
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

extern "C" __global__ void __launch_bounds__(1024, 1) elementwise_softmax(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = 0;
  const int col0 = lane % 32 * 8 + warp % 32 * 256;
  const int row1 = 0;
  const int col1 = 0;
  float v6[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v6[i] = __int_as_float(0xff800000);
  for (long long v5 = 0; v5 < 32000; v5 += 8192) {
    const int v8 = (int)v5;
    unsigned char* const v17 = p0 + (((long long)blockIdx.x * 32000) * 2);
    float v18[8];
    load<8>(v18 + 0, (const bf16*)v17 + (v8 + col0), ((v8 + col0) < 32000));
    float v21[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v21[i] = max_of(v6[i], (((v8 + (col0 + i % 8)) < 32000) ? v18[i] : __int_as_float(0xff800000)));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v6[i] = v21[i];
  }
  float v23[1];
  v23[0] = __int_as_float(0xff800000);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v23[0] = max_of(v23[0], v6[i]);
  v23[0] = max_of(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 1));
  v23[0] = max_of(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 2));
  v23[0] = max_of(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 4));
  v23[0] = max_of(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 8));
  v23[0] = max_of(v23[0], __shfl_xor_sync(0xffffffffu, v23[0], 16));
  float* const s23 = (float*)(smem + 0);
  if ((lane & 31) == 0) {
    s23[row1 * 32 + warp % 32] = v23[0];
  }
  __syncthreads();
  v23[0] = s23[row1 * 32];
#pragma unroll
  for (int w = 1; w < 32; ++w) {
    v23[0] = max_of(v23[0], s23[row1 * 32 + w]);
  }
  float v26[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v26[i] = 0.0f;
  for (long long v25 = 0; v25 < 32000; v25 += 8192) {
    const int v28 = (int)v25;
    unsigned char* const v37 = p0 + (((long long)blockIdx.x * 32000) * 2);
    float v38[8];
    load<8>(v38 + 0, (const bf16*)v37 + (v28 + col0), ((v28 + col0) < 32000));
    float v43[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v43[i] = v26[i] + (((v28 + (col0 + i % 8)) < 32000) ? (expf((v38[i] - v23[0]))) : 0.0f);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v26[i] = v43[i];
  }
  float v45[1];
  v45[0] = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v45[0] = v45[0] + v26[i];
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 1);
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 2);
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 4);
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 8);
  v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 16);
  float* const s45 = (float*)(smem + 256);
  if ((lane & 31) == 0) {
    s45[row1 * 32 + warp % 32] = v45[0];
  }
  __syncthreads();
  v45[0] = s45[row1 * 32];
#pragma unroll
  for (int w = 1; w < 32; ++w) {
    v45[0] = v45[0] + s45[row1 * 32 + w];
  }
  for (long long v46 = 0; v46 < 32000; v46 += 8192) {
    const int v48 = (int)v46;
    const long long v56 = ((long long)blockIdx.x * 32000) * 2;
    unsigned char* const v57 = p0 + v56;
    float v58[8];
    load<8>(v58 + 0, (const bf16*)v57 + (v48 + col0), ((v48 + col0) < 32000));
    float v61[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v61[i] = (expf((v58[i] - v23[0]))) / v45[0];
    unsigned char* const v64 = p1 + v56;
    store<8>((bf16*)v64 + (v48 + col0), v61 + 0, ((v48 + col0) < 32000));
  }
}
