// Bytes128_64, narrow_bf16, narrow_pair_bf16, round_bf16, smem, shared_address, pack_bf16, copy_tile, init_mbarrier, arrive, arrive_expecting, await_phase, wgmma_fence, wgmma_commit, descriptor, push_tile, commit_pushes, await_pushes_read, fence_async, stmatrix, wgmma_64_bf16_tb, wgmma_wait_0, wgmma_wait_2
extern "C" __global__ void __launch_bounds__(256, 1) gemm_mm_mm_silu_mul(long long p0, long long p1, const __grid_constant__ Bytes128_64 p2, const __grid_constant__ Bytes128_64 p3, const __grid_constant__ Bytes128_64 p4, const __grid_constant__ Bytes128_64 p5) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int at1 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp % 4 * 2048;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 8; ++i) {
      init_mbarrier(shared + 204800 + 8 * i, 1);
      init_mbarrier(shared + 204864 + 8 * i, 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp < 4) {
    const int v8 = (int)(long long)blockIdx.x;
    const int v11 = (int)p0;
    const int v15 = (v8 % v11) * 64;
    const int v16 = (v8 / v11) * 64;
    float v22[32];
    float v23[32];
    int v24 = 0;
    for (long long v21 = 0; v21 < 2048; v21 += 64) {
      await_phase(shared + 204800 + (unsigned)v24 % 8 * 8, (unsigned)v24 / 8 & 1);
      const int v28 = v24 % 8;
      const bool v29 = 0 < v21;
      {
        const unsigned long long a = descriptor(shared + 0 + (int)v28 * 8192, 16);
        const unsigned long long b = descriptor(shared + 65536 + (int)v28 * 8192, 8192);
        wgmma_fence();
        wgmma_64_bf16_tb(v22 + 0, a + 0, b + 0, v29);
        wgmma_64_bf16_tb(v22 + 0, a + 2, b + 128, true);
        wgmma_64_bf16_tb(v22 + 0, a + 4, b + 256, true);
        wgmma_64_bf16_tb(v22 + 0, a + 6, b + 384, true);
        wgmma_commit();
      }
      {
        const unsigned long long a = descriptor(shared + 0 + (int)v28 * 8192, 16);
        const unsigned long long b = descriptor(shared + 131072 + (int)v28 * 8192, 8192);
        wgmma_fence();
        wgmma_64_bf16_tb(v23 + 0, a + 0, b + 0, v29);
        wgmma_64_bf16_tb(v23 + 0, a + 2, b + 128, true);
        wgmma_64_bf16_tb(v23 + 0, a + 4, b + 256, true);
        wgmma_64_bf16_tb(v23 + 0, a + 6, b + 384, true);
        wgmma_commit();
      }
      wgmma_wait_2();
      const int v33 = v24 - 1;
      if (threadIdx.x % 128 == 0 && v29) arrive(shared + 204864 + (unsigned)v33 % 8 * 8);
      const int v35 = v24 + 1;
      v24 = v35;
    }
#pragma unroll
    for (int i = 0; i < 32; ++i)
      asm volatile("" : "+f"(v22[i]) :: "memory");
    wgmma_wait_0();
#pragma unroll
    for (int i = 0; i < 32; ++i)
      asm volatile("" : "+f"(v22[i]) :: "memory");
#pragma unroll
    for (int i = 0; i < 32; ++i)
      asm volatile("" : "+f"(v23[i]) :: "memory");
    wgmma_wait_0();
#pragma unroll
    for (int i = 0; i < 32; ++i)
      asm volatile("" : "+f"(v23[i]) :: "memory");
    const int v41 = v24 - 1;
    if (threadIdx.x % 128 == 0) arrive(shared + 204864 + (unsigned)v41 % 8 * 8);
    float v51[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v51[i] = round_bf16(v22[i]);
    float v59[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v59[i] = (round_bf16((v51[i] / (1.0f + (expf((-v51[i]))))))) * (round_bf16(v23[i]));
    if (threadIdx.x == 0) await_pushes_read();
    asm volatile("bar.sync 1, 128;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i)
      stmatrix(shared + 196608 + (at1 ^ (i % 4 * 32)), pack_bf16(v59 + 0 + i * 8), pack_bf16(v59 + 2 + i * 8), pack_bf16(v59 + 4 + i * 8), pack_bf16(v59 + 6 + i * 8));
    fence_async();
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) {
      push_tile(((unsigned char*)p2.bytes), shared + 196608 + 0, (int)v16 + 0, (int)v15 + 0);
      commit_pushes();
    }
    if (threadIdx.x == 0) await_pushes_read();
  } else {
    if (threadIdx.x == 128) {
      const int v66 = (int)(long long)blockIdx.x;
      const int v69 = (int)p0;
      const int v73 = (v66 % v69) * 64;
      const int v74 = (v66 / v69) * 64;
      int v77 = 0;
      for (long long v76 = 0; v76 < 2048; v76 += 64) {
        await_phase(shared + 204864 + (unsigned)v77 % 8 * 8, (unsigned)v77 / 8 & 1 ^ 1);
        arrive_expecting(shared + 204800 + (unsigned)v77 % 8 * 8, 24576);
        copy_tile(shared + 0 + (int)((unsigned)v77 % 8) * 8192 + 0, ((unsigned char*)p3.bytes), shared + 204800 + (unsigned)v77 % 8 * 8, (int)v76 + 0, (int)v73 + 0);
        copy_tile(shared + 65536 + (int)((unsigned)v77 % 8) * 8192 + 0, ((unsigned char*)p4.bytes), shared + 204800 + (unsigned)v77 % 8 * 8, (int)v74 + 0, (int)v76 + 0);
        copy_tile(shared + 131072 + (int)((unsigned)v77 % 8) * 8192 + 0, ((unsigned char*)p5.bytes), shared + 204800 + (unsigned)v77 % 8 * 8, (int)v74 + 0, (int)v76 + 0);
        const int v87 = v77 + 1;
        v77 = v87;
      }
    }
  }
}
