// The steps by which products by mma.sync get quicker: c = a b^T, a [m, k], b [n, k], row-major,
// f16, f32 sums. One kernel for each step; none chooses its blocks in another order.

namespace {
__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ unsigned both(const unsigned short* p) {
  return static_cast<unsigned>(p[0]) | static_cast<unsigned>(p[1]) << 16;
}
__device__ unsigned pack(float low, float high) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

/// Tiles of 16 in k, two bytes at a time: eight warps in two rows, kEach x kEach products each.
template <int kEach>
__device__ void by_elements(const unsigned short* a, const unsigned short* b, float* c, int n) {
  constexpr int kSide = 32 * kEach;
  __shared__ unsigned short left[kSide][16], right[16][kSide];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = warp / 4 * 16 + lane / 4, col = warp % 4 * 8, pair = lane % 4 * 2;
  a += blockIdx.y * kSide * n;
  b += blockIdx.x * kSide;  // here [k, n]
  float sums[kEach][kEach][4] = {};
  for (int k = 0; k < n; k += 16) {
#pragma unroll
    for (int i = 0; i < 2 * kEach; ++i) {
      left[i * 16 + y][x] = a[(i * 16 + y) * n + k + x];
      right[y][i * 16 + x] = b[(k + y) * n + i * 16 + x];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const unsigned short* at = &left[i * 32 + row][pair];
      const unsigned from[4] = {both(at), both(at + 8 * 16), both(at + 8), both(at + 8 * 16 + 8)};
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const unsigned short* to = &right[pair][j * 32 + col + lane / 4];
        const auto two = [&](int k) {
          return static_cast<unsigned>(to[k * kSide]) |
                 static_cast<unsigned>(to[(k + 1) * kSide]) << 16;
        };
        multiply(sums[i][j], from, two(0), two(8));
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      float* to = c + (blockIdx.y * kSide + i * 32 + row) * n + blockIdx.x * kSide + j * 32 + col;
      for (int e = 0; e < 4; ++e) to[e / 2 * 8 * n + pair + e % 2] = sums[i][j][e];
    }
  }
}

enum class Layout { kPlain, kPadded, kSwizzled };
/// kStages: -1 by elements, one after the other, 0 through registers, 1 by asynchronous copies that
/// are waited for at once. kWideB: loads
/// four matrices of b at a time, not two. kHalves: f16 results.
template <int kSide, int kK, int kWarpsM, int kWarpsN, Layout kLayout, int kStages, bool kWideB,
          bool kHalves>
__device__ void by_tiles(const unsigned short* a, const unsigned short* b, void* c, int n) {
  constexpr int kThreads = kWarpsM * kWarpsN * 32;
  constexpr int kM = kSide / kWarpsM, kN = kSide / kWarpsN;  // of a warp
  constexpr int kRow = kK * 2 + (kLayout == Layout::kPadded ? 16 : 0);
  constexpr int kTile = kSide * kRow, kChunks = kK / 8;
  constexpr int kRing = kStages < 2 ? 1 : kStages;
  extern __shared__ __align__(128) char memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_m = warp / kWarpsN * kM, warp_n = warp % kWarpsN * kN;
  const int blocks = n / kSide;
  const int block_m = blockIdx.x / blocks * kSide, block_n = blockIdx.x % blocks * kSide;
  const auto place = [](int row, int chunk) {
    if (kLayout != Layout::kSwizzled) return row * kRow + chunk * 16;
    if (kK == 64) return row * kRow + (chunk ^ row % 8) * 16;
    return row / 2 * 128 + ((row % 2 * 4 + chunk) ^ row / 2 % 4) * 16;
  };
  const unsigned base = shared_address(memory);
  constexpr int kRows = kThreads / kChunks;  // that all threads copy at a time
  const int row = threadIdx.x / kChunks, chunk = threadIdx.x % kChunks;
  const unsigned short* from[2] = {a + (block_m + row) * n + chunk * 8,
                                   b + (block_n + row) * n + chunk * 8};
  const auto copy = [&](int stage, int k) {
    if (kStages < 0) {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        const unsigned short* source = (which == 0 ? a + block_m * n : b + block_n * n) + k;
#pragma unroll 1
        for (int i = threadIdx.x; i < kSide * kK; i += kThreads) {
          char* to = memory + which * kTile + place(i / kK, i % kK / 8) + i % 8 * 2;
          *reinterpret_cast<unsigned short*>(to) = source[i / kK * n + i % kK];
        }
      }
      return;
    }
#pragma unroll
    for (int which = 0; which < 2; ++which) {
#pragma unroll
      for (int i = 0; i < kSide / kRows; ++i) {
        const int to = (stage * 2 + which) * kTile + place(row + i * kRows, chunk);
        const unsigned short* source = from[which] + i * kRows * n + k;
        if (kStages == 0) {
          *reinterpret_cast<uint4*>(memory + to) = *reinterpret_cast<const uint4*>(source);
        } else {
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + to), "l"(source));
        }
      }
    }
    if (kStages > 0) asm volatile("cp.async.commit_group;");
  };
  float sums[kM / 16][kN / 8][4] = {};
  const auto compute = [&](int stage) {
    const unsigned a_tile = base + stage * 2 * kTile, b_tile = a_tile + kTile;
#pragma unroll
    for (int k = 0; k < kK / 16; ++k) {
      unsigned left[kM / 16][4], right[kN / 8][2];
#pragma unroll
      for (int i = 0; i < kM / 16; ++i) {
        const unsigned at = a_tile + place(warp_m + i * 16 + lane % 16, k * 2 + lane / 16);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(left[i][0]), "=r"(left[i][1]), "=r"(left[i][2]), "=r"(left[i][3])
                     : "r"(at));
      }
#pragma unroll
      for (int j = 0; j < kN / 8; j += kWideB ? 2 : 1) {
        if (kWideB) {
          const unsigned at = b_tile + place(warp_n + j * 8 + lane % 8 + lane / 16 * 8,
                                             k * 2 + lane / 8 % 2);
          asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                       : "=r"(right[j][0]), "=r"(right[j][1]), "=r"(right[j + 1][0]),
                         "=r"(right[j + 1][1])
                       : "r"(at));
        } else {
          const unsigned at = b_tile + place(warp_n + j * 8 + lane % 8, k * 2 + lane / 8 % 2);
          asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                       : "=r"(right[j][0]), "=r"(right[j][1])
                       : "r"(at));
        }
      }
#pragma unroll
      for (int i = 0; i < kM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < kN / 8; ++j) multiply(sums[i][j], left[i], right[j][0], right[j][1]);
      }
    }
  };
  const int steps = n / kK;
  if (kStages < 2) {
    for (int step = 0; step < steps; ++step) {
      copy(0, step * kK);
      if (kStages == 1) asm volatile("cp.async.wait_group 0;");
      __syncthreads();
      compute(0);
      __syncthreads();
    }
  } else {
#pragma unroll
    for (int stage = 0; stage < kRing - 1; ++stage) copy(stage, stage * kK);
    int stage = 0, next = kRing - 1;
    for (int step = 0; step < steps; ++step) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kRing - 2));
      __syncthreads();
      // Those past the end copy the last one once more.
      copy(next, min(step + kRing - 1, steps - 1) * kK);
      compute(stage);
      stage = stage == kRing - 1 ? 0 : stage + 1;
      next = next == kRing - 1 ? 0 : next + 1;
    }
  }
  for (int i = 0; i < kM / 16; ++i) {
    for (int j = 0; j < kN / 8; ++j) {
      for (int half = 0; half < 2; ++half) {
        const int at = (block_m + warp_m + i * 16 + half * 8 + lane / 4) * n + block_n + warp_n +
                       j * 8 + lane % 4 * 2;
        const float* two = &sums[i][j][half * 2];
        if (kHalves) {
          *reinterpret_cast<unsigned*>(static_cast<unsigned short*>(c) + at) = pack(two[0], two[1]);
        } else {
          *reinterpret_cast<float2*>(static_cast<float*>(c) + at) = make_float2(two[0], two[1]);
        }
      }
    }
  }
}
}  // namespace

#define KERNEL(name, threads, ...)                                             \
  extern "C" __global__ void __launch_bounds__(threads)                        \
      name(const unsigned short* a, const unsigned short* b, void* c, int n) { \
    by_tiles<__VA_ARGS__>(a, b, c, n);                                         \
  }

// Four warps of 64 x 64, steps of 64 in k.
KERNEL(large_by_registers, 128, 128, 64, 2, 2, Layout::kPlain, 0, false, true)
KERNEL(large_at_once, 128, 128, 64, 2, 2, Layout::kPlain, 1, false, true)
KERNEL(large_padded, 128, 128, 64, 2, 2, Layout::kPadded, 1, false, true)
KERNEL(large_swizzled, 128, 128, 64, 2, 2, Layout::kSwizzled, 1, false, true)
KERNEL(large_wide, 128, 128, 64, 2, 2, Layout::kSwizzled, 1, true, true)
KERNEL(large_2_stages, 128, 128, 64, 2, 2, Layout::kSwizzled, 2, true, true)

// 16 warps of 32 x 32, then four of 64 x 64, steps of 32 in k, f32 results.
KERNEL(fine_by_elements, 512, 128, 32, 4, 4, Layout::kPlain, -1, true, false)
KERNEL(fine_by_elements_swizzled, 512, 128, 32, 4, 4, Layout::kSwizzled, -1, true, false)
KERNEL(fine_at_once, 512, 128, 32, 4, 4, Layout::kSwizzled, 1, true, false)
KERNEL(fine_2_stages, 512, 128, 32, 4, 4, Layout::kSwizzled, 2, true, false)
KERNEL(coarse_2_stages, 128, 128, 32, 2, 2, Layout::kSwizzled, 2, true, false)

// Eight warps in two rows, f32 results.
extern "C" __global__ void __launch_bounds__(256)
    elements_1(const unsigned short* a, const unsigned short* b, float* c, int n) {
  by_elements<1>(a, b, c, n);
}
extern "C" __global__ void __launch_bounds__(256)
    elements_2(const unsigned short* a, const unsigned short* b, float* c, int n) {
  by_elements<2>(a, b, c, n);
}
KERNEL(small_swizzled, 256, 64, 32, 2, 4, Layout::kSwizzled, 0, false, false)
KERNEL(small_3_stages, 256, 64, 32, 2, 4, Layout::kSwizzled, 3, false, false)
KERNEL(square_3_stages, 256, 128, 32, 2, 4, Layout::kSwizzled, 3, false, false)
