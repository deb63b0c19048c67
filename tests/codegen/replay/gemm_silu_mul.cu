// Bytes128_64, narrow_bf16, narrow_pair_bf16, load_bf16_2, round_bf16, smem, shared_address, pack_bf16, copy_tile, init_mbarrier, arrive, arrive_expecting, await_phase, wgmma_fence, wgmma_commit, descriptor, push_tile, commit_pushes, await_pushes_read, fence_async, stmatrix, wgmma_64_bf16_tb, wgmma_wait_0, wgmma_wait_1
extern "C" __global__ void __launch_bounds__(256, 1) gemm_mm_silu_mul(long long p0, long long p1, unsigned char* __restrict__ p2, const __grid_constant__ Bytes128_64 p3, const __grid_constant__ Bytes128_64 p4, const __grid_constant__ Bytes128_64 p5) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 4 * 2;
  const int row1 = lane / 4 % 8 + warp % 4 * 16;
  const int at2 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp % 4 * 2048;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 8; ++i) {
      init_mbarrier(shared + 139264 + 8 * i, 1);
      init_mbarrier(shared + 139328 + 8 * i, 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp < 4) {
    const int v7 = (int)(long long)blockIdx.x;
    const int v10 = (int)p0;
    const int v14 = (v7 % v10) * 64;
    const int v15 = (v7 / v10) * 64;
    float v20[32];
    int v21 = 0;
    for (long long v19 = 0; v19 < 2048; v19 += 64) {
      await_phase(shared + 139264 + (unsigned)v21 % 8 * 8, (unsigned)v21 / 8 & 1);
      const int v25 = v21 % 8;
      const bool v26 = 0 < v19;
      {
        const unsigned long long a = descriptor(shared + 0 + (int)v25 * 8192, 16);
        const unsigned long long b = descriptor(shared + 65536 + (int)v25 * 8192, 8192);
        wgmma_fence();
        wgmma_64_bf16_tb(v20 + 0, a + 0, b + 0, v26);
        wgmma_64_bf16_tb(v20 + 0, a + 2, b + 128, true);
        wgmma_64_bf16_tb(v20 + 0, a + 4, b + 256, true);
        wgmma_64_bf16_tb(v20 + 0, a + 6, b + 384, true);
        wgmma_commit();
      }
      wgmma_wait_1();
      const int v29 = v21 - 1;
      if (threadIdx.x % 128 == 0 && v26) arrive(shared + 139328 + (unsigned)v29 % 8 * 8);
      const int v31 = v21 + 1;
      v21 = v31;
    }
#pragma unroll
    for (int i = 0; i < 32; ++i)
      asm volatile("" : "+f"(v20[i]) :: "memory");
    wgmma_wait_0();
#pragma unroll
    for (int i = 0; i < 32; ++i)
      asm volatile("" : "+f"(v20[i]) :: "memory");
    const int v35 = v21 - 1;
    if (threadIdx.x % 128 == 0) arrive(shared + 139328 + (unsigned)v35 % 8 * 8);
    const int v37 = (int)v14;
    int v39[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v39[i] = v37 + (row1 + i % 2 * 8);
    bool v41[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v41[i] = v39[i] < p1;
    const int v42 = (int)v15;
    int v48[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v48[i] = v39[i] * 1408;
    float v51[32];
#pragma unroll
    for (int i = 0; i < 32; i += 2)
      load_bf16_2(v51 + i, (const unsigned short*)p2 + (v48[i / 2 % 2] + (v42 + (col0 + i % 2 + i / 4 % 8 * 8))), v41[i / 2 % 2]);
    float v58[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v58[i] = (round_bf16((v51[i] / (1.0f + (expf((-v51[i]))))))) * (round_bf16(v20[i]));
    if (threadIdx.x == 0) await_pushes_read();
    asm volatile("bar.sync 1, 128;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i)
      stmatrix(shared + 131072 + (at2 ^ (i % 4 * 32)), pack_bf16(v58 + 0 + i * 8), pack_bf16(v58 + 2 + i * 8), pack_bf16(v58 + 4 + i * 8), pack_bf16(v58 + 6 + i * 8));
    fence_async();
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) {
      push_tile(((unsigned char*)p3.bytes), shared + 131072 + 0, (int)v15 + 0, (int)v14 + 0);
      commit_pushes();
    }
    if (threadIdx.x == 0) await_pushes_read();
  } else {
    if (threadIdx.x == 128) {
      const int v65 = (int)(long long)blockIdx.x;
      const int v68 = (int)p0;
      const int v72 = (v65 % v68) * 64;
      const int v73 = (v65 / v68) * 64;
      int v76 = 0;
      for (long long v75 = 0; v75 < 2048; v75 += 64) {
        await_phase(shared + 139328 + (unsigned)v76 % 8 * 8, (unsigned)v76 / 8 & 1 ^ 1);
        arrive_expecting(shared + 139264 + (unsigned)v76 % 8 * 8, 16384);
        copy_tile(shared + 0 + (int)((unsigned)v76 % 8) * 8192 + 0, ((unsigned char*)p4.bytes), shared + 139264 + (unsigned)v76 % 8 * 8, (int)v75 + 0, (int)v72 + 0);
        copy_tile(shared + 65536 + (int)((unsigned)v76 % 8) * 8192 + 0, ((unsigned char*)p5.bytes), shared + 139264 + (unsigned)v76 % 8 * 8, (int)v73 + 0, (int)v75 + 0);
        const int v84 = v76 + 1;
        v76 = v84;
      }
    }
  }
}
