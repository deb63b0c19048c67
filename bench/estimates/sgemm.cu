// Single-precision matrix products of n x n matrices, from the plainest to blocks of warp tiles:
// the steps whose times others have published. c = a b, row-major, n a multiple of a block's tile.

// One thread per element; neighbours in x take neighbouring rows, so that no access coalesces.
extern "C" __global__ void rows_along_x(const float* a, const float* b, float* c, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || col >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(a[row * n + k], b[k * n + col], sum);
  c[row * n + col] = sum;
}

// The same with neighbours in x on neighbouring columns.
extern "C" __global__ void columns_along_x(const float* a, const float* b, float* c, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || col >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(a[row * n + k], b[k * n + col], sum);
  c[row * n + col] = sum;
}

// One thread per element, over tiles of 32 x 32 in shared memory.
extern "C" __global__ void shared_tiles(const float* a, const float* b, float* c, int n) {
  constexpr int kTile = 32;
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int row = blockIdx.y * kTile + y;
  const int col = blockIdx.x * kTile + x;
  float sum = 0;
  for (int k0 = 0; k0 < n; k0 += kTile) {
    a_tile[y][x] = a[row * n + k0 + x];
    b_tile[y][x] = b[(k0 + y) * n + col];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum = fmaf(a_tile[y][k], b_tile[k][x], sum);
    __syncthreads();
  }
  c[row * n + col] = sum;
}

// A column of 8 results for each thread of a block of 64 x 64.
extern "C" __global__ void __launch_bounds__(512)
    column_tiles(const float* a, const float* b, float* c, int n) {
  constexpr int kSide = 64, kDepth = 8, kRows = 8;
  __shared__ float a_tile[kSide * kDepth];
  __shared__ float b_tile[kDepth * kSide];
  const int thread = threadIdx.x;
  const int col = thread % kSide;
  const int first = thread / kSide * kRows;
  a += blockIdx.y * kSide * n;
  b += blockIdx.x * kSide;
  c += blockIdx.y * kSide * n + blockIdx.x * kSide;
  float sums[kRows] = {};
  for (int k0 = 0; k0 < n; k0 += kDepth) {
    a_tile[thread] = a[thread / kDepth * n + k0 + thread % kDepth];
    b_tile[thread] = b[(k0 + thread / kSide) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float factor = b_tile[k * kSide + col];
      for (int i = 0; i < kRows; ++i)
        sums[i] = fmaf(a_tile[(first + i) * kDepth + k], factor, sums[i]);
    }
    __syncthreads();
  }
  for (int i = 0; i < kRows; ++i) c[(first + i) * n + col] = sums[i];
}

// 8 x 8 results for each of 256 threads of a block of 128 x 128; single words.
extern "C" __global__ void __launch_bounds__(256)
    square_tiles(const float* a, const float* b, float* c, int n) {
  constexpr int kSide = 128, kDepth = 8, kEach = 8, kThreads = 256;
  __shared__ float a_tile[kSide * kDepth];
  __shared__ float b_tile[kDepth * kSide];
  const int thread = threadIdx.x;
  const int row = thread / (kSide / kEach) * kEach;
  const int col = thread % (kSide / kEach) * kEach;
  a += blockIdx.y * kSide * n;
  b += blockIdx.x * kSide;
  c += blockIdx.y * kSide * n + blockIdx.x * kSide;
  float sums[kEach][kEach] = {};
  for (int k0 = 0; k0 < n; k0 += kDepth) {
    for (int i = thread; i < kSide * kDepth; i += kThreads) {
      a_tile[i] = a[i / kDepth * n + k0 + i % kDepth];
      b_tile[i] = b[(k0 + i / kSide) * n + i % kSide];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float left[kEach], right[kEach];
      for (int i = 0; i < kEach; ++i) left[i] = a_tile[(row + i) * kDepth + k];
      for (int i = 0; i < kEach; ++i) right[i] = b_tile[k * kSide + col + i];
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) c[(row + i) * n + col + j] = sums[i][j];
  }
}

// As square_tiles, with accesses of 16 bytes and a's tile transposed on the way to shared memory.
template <int kDepth>
__device__ void wide_square(const float* a, const float* b, float* c, int n) {
  constexpr int kSide = 128, kEach = 8, kThreads = 256;
  __shared__ float a_tile[kDepth * kSide];
  __shared__ float b_tile[kDepth * kSide];
  const int thread = threadIdx.x;
  const int row = thread / (kSide / kEach) * kEach;
  const int col = thread % (kSide / kEach) * kEach;
  a += blockIdx.y * kSide * n;
  b += blockIdx.x * kSide;
  c += blockIdx.y * kSide * n + blockIdx.x * kSide;
  float sums[kEach][kEach] = {};
  for (int k0 = 0; k0 < n; k0 += kDepth) {
    for (int i = thread * 4; i < kSide * kDepth; i += kThreads * 4) {
      const float4 part = *reinterpret_cast<const float4*>(&a[i / kDepth * n + k0 + i % kDepth]);
      a_tile[(i % kDepth + 0) * kSide + i / kDepth] = part.x;
      a_tile[(i % kDepth + 1) * kSide + i / kDepth] = part.y;
      a_tile[(i % kDepth + 2) * kSide + i / kDepth] = part.z;
      a_tile[(i % kDepth + 3) * kSide + i / kDepth] = part.w;
      *reinterpret_cast<float4*>(&b_tile[i]) =
          *reinterpret_cast<const float4*>(&b[(k0 + i / kSide) * n + i % kSide]);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float left[kEach], right[kEach];
      for (int i = 0; i < kEach; ++i) left[i] = a_tile[k * kSide + row + i];
      for (int i = 0; i < kEach; ++i) right[i] = b_tile[k * kSide + col + i];
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; j += 4) {
      *reinterpret_cast<float4*>(&c[(row + i) * n + col + j]) =
          make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
  }
}
extern "C" __global__ void __launch_bounds__(256)
    wide_tiles_8(const float* a, const float* b, float* c, int n) {
  wide_square<8>(a, b, c, n);
}
extern "C" __global__ void __launch_bounds__(256)
    wide_tiles_16(const float* a, const float* b, float* c, int n) {
  wide_square<16>(a, b, c, n);
}

// Warps of 64 x 64 in a block of 128 x 128 x 16: each thread has 8 x 4 results in each of 2 x 4
// parts.
extern "C" __global__ void __launch_bounds__(128)
    warp_tiles(const float* a, const float* b, float* c, int n) {
  constexpr int kSide = 128, kDepth = 16, kThreads = 128, kWarp = 64;
  constexpr int kRows = 8, kCols = 4, kPartsM = 1, kPartsN = 4;
  constexpr int kPartM = kWarp / kPartsM, kPartN = kWarp / kPartsN;  // 64 x 16: 8 x 4 threads
  __shared__ float a_tile[kDepth * kSide];
  __shared__ float b_tile[kDepth * kSide];
  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int row = warp / 2 * kWarp + lane / (kPartN / kCols) * kRows;
  const int col = warp % 2 * kWarp + lane % (kPartN / kCols) * kCols;
  a += blockIdx.y * kSide * n;
  b += blockIdx.x * kSide;
  c += blockIdx.y * kSide * n + blockIdx.x * kSide;
  float sums[kPartsM * kRows][kPartsN * kCols] = {};
  for (int k0 = 0; k0 < n; k0 += kDepth) {
    for (int i = thread * 4; i < kSide * kDepth; i += kThreads * 4) {
      const float4 part = *reinterpret_cast<const float4*>(&a[i / kDepth * n + k0 + i % kDepth]);
      a_tile[(i % kDepth + 0) * kSide + i / kDepth] = part.x;
      a_tile[(i % kDepth + 1) * kSide + i / kDepth] = part.y;
      a_tile[(i % kDepth + 2) * kSide + i / kDepth] = part.z;
      a_tile[(i % kDepth + 3) * kSide + i / kDepth] = part.w;
      *reinterpret_cast<float4*>(&b_tile[i]) =
          *reinterpret_cast<const float4*>(&b[(k0 + i / kSide) * n + i % kSide]);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float left[kPartsM * kRows], right[kPartsN * kCols];
      for (int part = 0; part < kPartsM; ++part) {
        for (int i = 0; i < kRows; ++i) {
          left[part * kRows + i] = a_tile[k * kSide + row + part * kPartM + i];
        }
      }
      for (int part = 0; part < kPartsN; ++part) {
        for (int i = 0; i < kCols; ++i) {
          right[part * kCols + i] = b_tile[k * kSide + col + part * kPartN + i];
        }
      }
      for (int i = 0; i < kPartsM * kRows; ++i) {
        for (int j = 0; j < kPartsN * kCols; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (int part = 0; part < kPartsN; ++part) {
    for (int i = 0; i < kRows; ++i) {
      *reinterpret_cast<float4*>(&c[(row + i) * n + col + part * kPartN]) = make_float4(
          sums[i][part * 4], sums[i][part * 4 + 1], sums[i][part * 4 + 2], sums[i][part * 4 + 3]);
    }
  }
}
