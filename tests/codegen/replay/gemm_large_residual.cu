// Bytes128_64, narrow_bf16, narrow_pair_bf16, load_bf16_2, round_bf16, smem, shared_address, pack_bf16, copy_tile, init_mbarrier, arrive, arrive_expecting, await_phase, wgmma_fence, wgmma_commit, descriptor, push_tile, commit_pushes, await_pushes_read, fence_async, stmatrix, wgmma_128_bf16_tb, wgmma_wait_0, wgmma_wait_1
extern "C" __global__ void __launch_bounds__(384, 1) gemm_mm_add(unsigned char* __restrict__ p0, const __grid_constant__ Bytes128_64 p1, const __grid_constant__ Bytes128_64 p2, const __grid_constant__ Bytes128_64 p3) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 4 * 2;
  const int row1 = lane / 4 % 8 + warp % 8 * 16;
  const int at2 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp % 8 * 2048;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 6; ++i) {
      init_mbarrier(shared + 229376 + 8 * i, 1);
      init_mbarrier(shared + 229424 + 8 * i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp < 8) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int v10 = 0;
    for (long long v9 = (long long)blockIdx.x; v9 < 512; v9 += (long long)gridDim.x) {
      const int v12 = (int)v9;
      const int v19 = (v12 / 256) * 8;
      const int v20 = v12 % 256;
      const int v22 = min((16 - v19), 8);
      const int v27 = (v19 + (v20 % v22)) * 128;
      const int v28 = (v20 / v22) * 128;
      float v34[64];
      int v35 = v10;
      for (long long v33 = 0; v33 < 1024; v33 += 64) {
        await_phase(shared + 229376 + (unsigned)v35 % 6 * 8, (unsigned)v35 / 6 & 1);
        const int v39 = v35 % 6;
        const bool v40 = 0 < v33;
        {
          const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
          const unsigned long long a = descriptor(shared + 0 + (int)v39 * 16384 + (group % 2) * 8192, 16);
          const unsigned long long b = descriptor(shared + 98304 + (int)v39 * 16384, 8192);
          wgmma_fence();
          wgmma_128_bf16_tb(v34 + 0, a + 0, b + 0, v40);
          wgmma_128_bf16_tb(v34 + 0, a + 2, b + 128, true);
          wgmma_128_bf16_tb(v34 + 0, a + 4, b + 256, true);
          wgmma_128_bf16_tb(v34 + 0, a + 6, b + 384, true);
          wgmma_commit();
        }
        wgmma_wait_1();
        const int v43 = v35 - 1;
        if (threadIdx.x % 128 == 0 && v40) arrive(shared + 229424 + (unsigned)v43 % 6 * 8);
        const int v45 = v35 + 1;
        v35 = v45;
      }
#pragma unroll
      for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(v34[i]) :: "memory");
      wgmma_wait_0();
#pragma unroll
      for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(v34[i]) :: "memory");
      const int v49 = v35 - 1;
      if (threadIdx.x % 128 == 0) arrive(shared + 229424 + (unsigned)v49 % 6 * 8);
      const int v51 = (int)v27;
      const int v54 = (int)v28;
      int v60[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v60[i] = (v51 + (row1 + i % 2 * 8)) * 4096;
      float v63[64];
#pragma unroll
      for (int i = 0; i < 64; i += 2)
        load_bf16_2(v63 + i, (const unsigned short*)p0 + (v60[i / 2 % 2] + (v54 + (col0 + i % 2 + i / 4 % 16 * 8))), true);
      float v64[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v64[i] = (round_bf16(v34[i])) + v63[i];
      if (threadIdx.x == 0) await_pushes_read();
      asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
      for (int i = 0; i < 8; ++i)
        stmatrix(shared + 196608 + ((at2 ^ (i % 4 * 32)) + i / 4 % 2 * 16384), pack_bf16(v64 + 0 + i * 8), pack_bf16(v64 + 2 + i * 8), pack_bf16(v64 + 4 + i * 8), pack_bf16(v64 + 6 + i * 8));
      fence_async();
      asm volatile("bar.sync 1, 256;" ::: "memory");
      if (threadIdx.x == 0) {
        push_tile(((unsigned char*)p1.bytes), shared + 196608 + 0, (int)v28 + 0, (int)v27 + 0);
        push_tile(((unsigned char*)p1.bytes), shared + 196608 + 16384, (int)v28 + 64, (int)v27 + 0);
        commit_pushes();
      }
      v10 = v35;
    }
    if (threadIdx.x == 0) await_pushes_read();
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) {
      int v72 = 0;
      for (long long v71 = (long long)blockIdx.x; v71 < 512; v71 += (long long)gridDim.x) {
        const int v74 = (int)v71;
        const int v81 = (v74 / 256) * 8;
        const int v82 = v74 % 256;
        const int v84 = min((16 - v81), 8);
        const int v89 = (v81 + (v82 % v84)) * 128;
        const int v90 = (v82 / v84) * 128;
        int v94 = v72;
        for (long long v93 = 0; v93 < 1024; v93 += 64) {
          await_phase(shared + 229424 + (unsigned)v94 % 6 * 8, (unsigned)v94 / 6 & 1 ^ 1);
          arrive_expecting(shared + 229376 + (unsigned)v94 % 6 * 8, 32768);
          copy_tile(shared + 0 + (int)((unsigned)v94 % 6) * 16384 + 0, ((unsigned char*)p2.bytes), shared + 229376 + (unsigned)v94 % 6 * 8, (int)v93 + 0, (int)v89 + 0);
          copy_tile(shared + 98304 + (int)((unsigned)v94 % 6) * 16384 + 0, ((unsigned char*)p3.bytes), shared + 229376 + (unsigned)v94 % 6 * 8, (int)v90 + 0, (int)v93 + 0);
          copy_tile(shared + 98304 + (int)((unsigned)v94 % 6) * 16384 + 8192, ((unsigned char*)p3.bytes), shared + 229376 + (unsigned)v94 % 6 * 8, (int)v90 + 64, (int)v93 + 0);
          const int v102 = v94 + 1;
          v94 = v102;
        }
        v72 = v94;
      }
    }
  }
}
