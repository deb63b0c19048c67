// The steps by which products by wgmma get quicker: c = a b^T, a [m, k], b [n, k], row-major, f16,
// f32 sums. Tiles come by tensor maps, 64 in k at a time. One kernel for each step.

namespace {
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};
constexpr int kK = 64, kGroup = 128;

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ void init(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void arrive_at(unsigned barrier, int block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}
__device__ void expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ void wait(unsigned barrier, unsigned phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
          barrier),
      "r"(phase)
      : "memory");
}
template <int kCluster>
__device__ void copy(unsigned to, const TensorMap* map, unsigned barrier, int x, int y) {
  if (kCluster == 1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%3, %4}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y),
        "h"(static_cast<unsigned short>((1 << kCluster) - 1))
        : "memory");
  }
}
__device__ void store(const TensorMap* map, unsigned from, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y)
      : "memory");
}
// Rows of 128 bytes in the swizzle of 128, eight of them to 1024 bytes.
__device__ unsigned long long descriptor(unsigned address) {
  return (address & 0x3FFFFULL) >> 4 | 1ULL << 16 | 64ULL << 32 | 1ULL << 62;
}
__device__ unsigned pack(float low, float high) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)
__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b, int more) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : R16(0), R16(16)
      : "l"(a), "l"(b), "r"(more));
}
__device__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b, int more) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
      "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "
      "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0;\n}"
      : R16(0), R16(16), R16(32), R16(48)
      : "l"(a), "l"(b), "r"(more));
}
__device__ void multiply(float (&d)[128], unsigned long long a, unsigned long long b, int more) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
      "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "
      "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, "
      "%69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "
      "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, "
      "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, "
      "%116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 0;\n}"
      : R16(0), R16(16), R16(32), R16(48), R16(64), R16(80), R16(96), R16(112)
      : "l"(a), "l"(b), "r"(more));
}

__device__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft>
__device__ void wait_for_groups() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
template <int kCount>
__device__ void keep(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// A group's 64 rows, two results at a time.
template <int kN>
__device__ void write(const float (&sums)[kN / 2], unsigned short* c, int n, int row, int col) {
  const int lane = threadIdx.x % 32;
  row += threadIdx.x / 32 % 4 * 16 + lane / 4;
  col += lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < kN / 2; i += 2) {
    *reinterpret_cast<unsigned*>(&c[(row + i % 4 / 2 * 8) * n + col + i / 4 * 8]) =
        pack(sums[i], sums[i + 1]);
  }
}

extern __shared__ __align__(1024) unsigned char memory[];

/// One group of warps that copies a tile of a and of b, multiplies them, and copies the next.
template <int kM, int kN>
__device__ void at_once(const TensorMap& a, const TensorMap& b, unsigned short* c, int n) {
  __shared__ __align__(8) unsigned long long full_barrier;
  const unsigned a_tile = shared_address(memory), b_tile = a_tile + kM * kK * 2;
  const unsigned full = shared_address(&full_barrier);
  const int row = blockIdx.x / (n / kN) * kM, col = blockIdx.x % (n / kN) * kN;
  if (threadIdx.x == 0) {
    init(full, 1);
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  float sums[kM / 64][kN / 2];
  for (int step = 0; step < n / kK; ++step) {
    if (threadIdx.x == 0) {
      expect(full, (kM + kN) * kK * 2);
      copy<1>(a_tile, &a, full, step * kK, row);
      copy<1>(b_tile, &b, full, step * kK, col);
    }
    wait(full, step % 2);
    begin_multiplying();
#pragma unroll
    for (int k = 0; k < kK / 16; ++k) {
#pragma unroll
      for (int m = 0; m < kM / 64; ++m) {
        multiply(sums[m], descriptor(a_tile + m * 64 * kK * 2) + k * 2, descriptor(b_tile) + k * 2,
                 step + k);
      }
    }
    commit();
    wait_for_groups<0>();
    __syncthreads();
  }
#pragma unroll
  for (int m = 0; m < kM / 64; ++m) write<kN>(sums[m], c, n, row + m * 64, col);
}

/// The tile that comes `index`-th, columns of kTall rows of them.
template <int kTall>
__device__ void place(int index, int rows, int cols, int& row, int& col) {
  const int first = index / (kTall * cols) * kTall;
  const int tall = min(kTall, rows - first);
  const int in_group = index % (kTall * cols);
  row = first + in_group % tall;
  col = in_group / tall;
}

/// A group that copies into a ring, and others that multiply 64 * kEach rows each. kAll: all threads
/// arrive at barriers, also where they wait for what is full.
template <int kEach, int kGroups, int kN, int kStages, int kTall, int kCluster, bool kAll,
          bool kBulkStore>
__device__ void ring(const TensorMap& a, const TensorMap& b, const TensorMap& to,
                     unsigned short* c, int n) {
  constexpr int kM = 64 * kEach * kGroups, kATile = kM * kK * 2, kBTile = kN * kK * 2;
  __shared__ __align__(8) unsigned long long barriers[2 * kStages];
  const unsigned base = shared_address(memory), b_tiles = base + kStages * kATile;
  const unsigned full = shared_address(barriers), empty = full + 8 * kStages;
  const int group = threadIdx.x / kGroup, in_group = threadIdx.x % kGroup;
  const int rows = n / kM / kCluster, cols = n / kN, steps = n / kK;
  int rank = 0;
  if (kCluster > 1) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init(full + 8 * s, kAll ? 1 + kGroups * kGroup : 1);
      init(empty + 8 * s, kAll ? 1 + kGroups * kGroup : kGroups * kCluster);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (kCluster > 1) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  } else {
    __syncthreads();
  }
  int stage = 0;
  unsigned phase = 0;
  const auto next = [&] {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  };
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kGroups == 1 ? 24 : 40));
    if (threadIdx.x != 0) return;
    for (int tile = blockIdx.x / kCluster; tile < rows * cols; tile += gridDim.x / kCluster) {
      int row, col;
      place<kTall>(tile, rows, cols, row, col);
      for (int step = 0; step < steps; ++step) {
        if (kAll) arrive(empty + 8 * stage);
        wait(empty + 8 * stage, kAll ? phase : phase ^ 1);
        expect(full + 8 * stage, kATile + kBTile);
        copy<1>(base + stage * kATile, &a, full + 8 * stage, step * kK,
                (row * kCluster + rank) * kM);
        // Each block brings a part of b to all of them.
        copy<kCluster>(b_tiles + stage * kBTile + rank * (kBTile / kCluster), &b, full + 8 * stage,
                       step * kK, col * kN + rank * (kN / kCluster));
        next();
      }
    }
    if (kCluster > 1) {
      // A block stays until nobody arrives in its memory any more.
      for (int s = 0; s < kStages; ++s, next()) wait(empty + 8 * stage, phase ^ 1);
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kGroups == 1 ? 240 : 232));
  const int first = (group - 1) * 64 * kEach;
  const auto release = [&](int s) {
    if (kAll) return arrive(empty + 8 * s);
    if (kCluster == 1 && in_group == 0) arrive(empty + 8 * s);
    if (kCluster > 1 && in_group < kCluster) arrive_at(empty + 8 * s, in_group);
  };
  if (kAll) {
    for (int s = 0; s < kStages; ++s) arrive(empty + 8 * s);
  }
  for (int tile = blockIdx.x / kCluster; tile < rows * cols; tile += gridDim.x / kCluster) {
    int row, col;
    place<kTall>(tile, rows, cols, row, col);
    row = (row * kCluster + rank) * kM + first;
    col *= kN;
    float sums[kEach][kN / 2];
    int before = 0;
    for (int step = 0; step < steps; ++step) {
      if (kAll) arrive(full + 8 * stage);
      wait(full + 8 * stage, phase);
      begin_multiplying();
#pragma unroll
      for (int k = 0; k < kK / 16; ++k) {
#pragma unroll
        for (int m = 0; m < kEach; ++m) {
          multiply(sums[m],
                   descriptor(base + stage * kATile + (first + m * 64) * kK * 2) + k * 2,
                   descriptor(b_tiles + stage * kBTile) + k * 2, step + k);
        }
      }
      commit();
      if (kAll) {
        wait_for_groups<0>();
        release(stage);
      } else {
        wait_for_groups<1>();
        if (step > 0) release(before);
      }
      before = stage;
      next();
    }
#pragma unroll
    for (int m = 0; m < kEach; ++m) keep(sums[m]);
    wait_for_groups<0>();
#pragma unroll
    for (int m = 0; m < kEach; ++m) keep(sums[m]);
    if (!kAll) release(before);
    if (!kBulkStore) {
#pragma unroll
      for (int m = 0; m < kEach; ++m) write<kN>(sums[m], c, n, row + m * 64, col);
      continue;
    }
    // Through 64 x 64 at a time, in the swizzle of 128.
    const unsigned staging = b_tiles + kStages * kBTile + (group - 1) * (64 * kN * 2);
    const int lane = in_group % 32, line = in_group / 32 * 16 + lane % 16;
    if (in_group == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
#pragma unroll
    for (int i = 0; i < kN / 16; ++i) {
      const float* d = &sums[0][i * 8];
      const unsigned at =
          staging + i / 4 * 8192 + line * 128 + ((i % 4 * 2 + lane / 16) ^ line % 8) * 16;
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                   "r"(pack(d[0], d[1])), "r"(pack(d[2], d[3])), "r"(pack(d[4], d[5])),
                   "r"(pack(d[6], d[7]))
                   : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
    if (in_group == 0) {
#pragma unroll
      for (int i = 0; i < kN / 64; ++i) store(&to, staging + i * 8192, col + i * 64, row);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
  if (kBulkStore && in_group == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
}  // namespace

#define KERNEL(name, cluster, threads, body)                                            \
  extern "C" __global__ void __cluster_dims__(cluster) __launch_bounds__(threads, 1)    \
      name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,    \
           const __grid_constant__ TensorMap to, unsigned short* c, int n) {            \
    body;                                                                               \
  }

extern "C" __global__ void __launch_bounds__(128)
    small_at_once(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                  const __grid_constant__ TensorMap, unsigned short* c, int n) {
  at_once<64, 64>(a, b, c, n);
}
extern "C" __global__ void __launch_bounds__(128)
    square_at_once(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                   const __grid_constant__ TensorMap, unsigned short* c, int n) {
  at_once<128, 128>(a, b, c, n);
}
KERNEL(square_ring, 1, 256, (ring<2, 1, 128, 5, 1, 1, true, false>(a, b, to, c, n)))
KERNEL(wide_ring, 1, 384, (ring<1, 2, 256, 4, 1, 1, true, false>(a, b, to, c, n)))
KERNEL(wide_in_order, 1, 384, (ring<1, 2, 256, 4, 16, 1, true, false>(a, b, to, c, n)))
KERNEL(wide_few_arrivals, 1, 384, (ring<1, 2, 256, 4, 16, 1, false, false>(a, b, to, c, n)))
KERNEL(wide_cluster, 2, 384, (ring<1, 2, 256, 4, 8, 2, false, false>(a, b, to, c, n)))
KERNEL(wide_bulk_store, 2, 384, (ring<1, 2, 256, 3, 8, 2, false, true>(a, b, to, c, n)))
