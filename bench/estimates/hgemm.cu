// Half-precision matrix products with f32 sums by mma.sync: c = a b^T, a [m, k], b [n, k],
// row-major. Blocks of 128 x 256 x 32, eight warps of 64 x 64, a ring of three copies to shared
// memory.

namespace {
constexpr int kM = 128, kN = 256, kK = 32, kStages = 3, kThreads = 256;
constexpr int kTileBytes = (kM + kN) * kK * 2;

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
// Rows of 64 bytes, two to a line of 128: the chunk of 16 bytes goes where it meets no other of 8
// rows.
__device__ unsigned place(int row, int chunk) {
  const int in_line = (row % 2 * 4 + chunk) ^ (row / 2 % 4);
  return static_cast<unsigned>(row / 2 * 128 + in_line * 16);
}
// A thread's chunks of a tile: the first one, and others 64 rows further each.
template <int kRows>
__device__ void copy_rows(const unsigned short* from, int stride, unsigned to) {
#pragma unroll
  for (int i = 0; i < kRows / 64; ++i) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i * 64 * kK * 2),
                 "l"(from + static_cast<long long>(i * 64) * stride));
  }
}
__device__ void load_matrix(unsigned (&to)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}
__device__ unsigned pack(float low, float high) {
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    half_tiles(const unsigned short* a, const unsigned short* b, unsigned short* c, int n) {
  extern __shared__ __align__(128) char memory[];
  const int thread = threadIdx.x;
  const int lane = thread % 32;
  const int warp_m = thread / 32 % 2 * 64;
  const int warp_n = thread / 64 * 64;
  // Columns of eight rows of blocks, so that blocks that run at once share what they read.
  const int blocks_m = gridDim.y;
  const int index = blockIdx.y * gridDim.x + blockIdx.x;
  const int group = index / (8 * gridDim.x);
  const int rows = min(8, blocks_m - group * 8);
  const int block_m = (group * 8 + index % (8 * gridDim.x) % rows) * kM;
  const int block_n = index % (8 * gridDim.x) / rows * kN;
  a += static_cast<long long>(block_m + thread / 4) * n + thread % 4 * 8;
  b += static_cast<long long>(block_n + thread / 4) * n + thread % 4 * 8;
  const unsigned base = shared_address(memory);
  const unsigned copied = base + place(thread / 4, thread % 4);
  const unsigned a_rows = base + place(warp_m + lane % 16, lane / 16);
  const unsigned b_rows = base + kM * kK * 2 + place(warp_n + lane % 16, lane / 16);
  float sums[4][8][4] = {};
  const int steps = n / kK;
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    copy_rows<kM>(a, n, copied + stage * kTileBytes);
    copy_rows<kN>(b, n, copied + stage * kTileBytes + kM * kK * 2);
    a += kK;
    b += kK;
    asm volatile("cp.async.commit_group;");
  }
  unsigned at = 0, next = (kStages - 1) * kTileBytes;
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    if (step + kStages - 1 < steps) {
      copy_rows<kM>(a, n, copied + next);
      copy_rows<kN>(b, n, copied + next + kM * kK * 2);
      a += kK;
      b += kK;
    }
    asm volatile("cp.async.commit_group;");
#pragma unroll
    for (int k = 0; k < kK / 16; ++k) {
      unsigned left[4][4], right[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        // The next two chunks of a row are where its first are, but for one bit.
        load_matrix(left[i], ((a_rows + at) ^ (k * 32)) + i * 16 * kK * 2);
        load_matrix(right[i], ((b_rows + at) ^ (k * 32)) + i * 16 * kK * 2);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          float* sum = sums[i][j];
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
              "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
              : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
              : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]),
                "r"(right[j / 2][j % 2]), "r"(right[j / 2][j % 2 + 2]));
        }
      }
    }
    at = at == (kStages - 1) * kTileBytes ? 0 : at + kTileBytes;
    next = next == (kStages - 1) * kTileBytes ? 0 : next + kTileBytes;
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int half = 0; half < 2; ++half) {
        const int row = block_m + warp_m + i * 16 + half * 8 + lane / 4;
        const int col = block_n + warp_n + j * 8 + lane % 4 * 2;
        *reinterpret_cast<unsigned*>(&c[static_cast<long long>(row) * n + col]) =
            pack(sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
      }
    }
  }
}
