// Bytes128_64, narrow_pair_bf16, load_f32_1, smem, shared_address, pack_bf16, copy_tile, init_mbarrier, arrive, arrive_expecting, await_phase, wgmma_fence, wgmma_commit, descriptor, push_tile, commit_pushes, await_pushes_read, fence_async, stmatrix, wgmma_128_f8e4m3, wgmma_wait_0
extern "C" __global__ void __launch_bounds__(384, 1) gemm_transpose_scaled_mm(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, const __grid_constant__ Bytes128_64 p2, const __grid_constant__ Bytes128_64 p3, const __grid_constant__ Bytes128_64 p4) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row1 = lane / 4 % 8 + warp % 8 * 16;
  const int at2 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp % 8 * 2048;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) {
      init_mbarrier(shared + 229376 + 8 * i, 1);
      init_mbarrier(shared + 229408 + 8 * i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp < 8) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int v11 = 0;
    for (long long v10 = (long long)blockIdx.x; v10 < 256; v10 += (long long)gridDim.x) {
      const int v13 = (int)v10;
      const int v19 = (v13 / 128) * 8;
      const int v20 = v13 % 128;
      const int v22 = min((16 - v19), 8);
      const int v26 = (v19 + (v20 % v22)) * 128;
      const int v27 = (v20 / v22) * 256;
      float v32[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v32[i] = 0.0f;
      float v33[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v33[i] = 0.0f;
      int v34 = v11;
      for (long long v31 = 0; v31 < 512; v31 += 128) {
        const int v38 = ((int)v31) / 128;
        const int v39 = (int)v26;
        unsigned char* const v47 = p0 + (v38 * 4);
        float v48[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          load_f32_1(v48 + i, (const float*)v47 + ((v39 + (row1 + i % 2 * 8)) * 4), true);
        const int v53 = v38 * 32;
        unsigned char* const v56 = p1 + ((v53 + (((int)v27) / 128)) * 4);
        float v58[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          load_f32_1(v58 + i, (const float*)v56 + 0, true);
        unsigned char* const v64 = p1 + ((v53 + (((int)(v27 + 128)) / 128)) * 4);
        float v66[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          load_f32_1(v66 + i, (const float*)v64 + 0, true);
        await_phase(shared + 229376 + (unsigned)v34 % 4 * 8, (unsigned)v34 / 4 & 1);
        const int v69 = v34 % 4;
        const bool v70 = 0 < 0;
        float v71[64];
        {
          const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
          const unsigned long long a = descriptor(shared + 0 + (int)v69 * 16384 + (group % 2) * 8192, 16);
          const unsigned long long b = descriptor(shared + 65536 + (int)v69 * 16384, 16);
          wgmma_fence();
          wgmma_128_f8e4m3(v71 + 0, a + 0, b + 0, v70);
          wgmma_128_f8e4m3(v71 + 0, a + 2, b + 2, true);
          wgmma_128_f8e4m3(v71 + 0, a + 4, b + 4, true);
          wgmma_128_f8e4m3(v71 + 0, a + 6, b + 6, true);
          wgmma_commit();
        }
#pragma unroll
        for (int i = 0; i < 64; ++i)
          asm volatile("" : "+f"(v71[i]) :: "memory");
        wgmma_wait_0();
#pragma unroll
        for (int i = 0; i < 64; ++i)
          asm volatile("" : "+f"(v71[i]) :: "memory");
        float v75[64];
#pragma unroll
        for (int i = 0; i < 64; ++i)
          v75[i] = __fmaf_rn((v71[i] * v48[i / 2 % 2]), v58[i / 2 % 2], v32[i]);
        float v76[64];
        {
          const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
          const unsigned long long a = descriptor(shared + 0 + (int)v69 * 16384 + (group % 2) * 8192, 16);
          const unsigned long long b = descriptor(shared + 131072 + (int)v69 * 16384, 16);
          wgmma_fence();
          wgmma_128_f8e4m3(v76 + 0, a + 0, b + 0, v70);
          wgmma_128_f8e4m3(v76 + 0, a + 2, b + 2, true);
          wgmma_128_f8e4m3(v76 + 0, a + 4, b + 4, true);
          wgmma_128_f8e4m3(v76 + 0, a + 6, b + 6, true);
          wgmma_commit();
        }
#pragma unroll
        for (int i = 0; i < 64; ++i)
          asm volatile("" : "+f"(v76[i]) :: "memory");
        wgmma_wait_0();
#pragma unroll
        for (int i = 0; i < 64; ++i)
          asm volatile("" : "+f"(v76[i]) :: "memory");
        float v80[64];
#pragma unroll
        for (int i = 0; i < 64; ++i)
          v80[i] = __fmaf_rn((v76[i] * v48[i / 2 % 2]), v66[i / 2 % 2], v33[i]);
        if (threadIdx.x % 128 == 0) arrive(shared + 229408 + (unsigned)v34 % 4 * 8);
        const int v83 = v34 + 1;
#pragma unroll
        for (int i = 0; i < 64; ++i)
          v32[i] = v75[i];
#pragma unroll
        for (int i = 0; i < 64; ++i)
          v33[i] = v80[i];
        v34 = v83;
      }
      if (threadIdx.x == 0) await_pushes_read();
      asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
      for (int i = 0; i < 8; ++i)
        stmatrix(shared + 196608 + ((at2 ^ (i % 4 * 32)) + i / 4 % 2 * 16384), pack_bf16(v32 + 0 + i * 8), pack_bf16(v32 + 2 + i * 8), pack_bf16(v32 + 4 + i * 8), pack_bf16(v32 + 6 + i * 8));
      fence_async();
      asm volatile("bar.sync 1, 256;" ::: "memory");
      if (threadIdx.x == 0) {
        push_tile(((unsigned char*)p2.bytes), shared + 196608 + 0, (int)v27 + 0, (int)v26 + 0);
        push_tile(((unsigned char*)p2.bytes), shared + 196608 + 16384, (int)v27 + 64, (int)v26 + 0);
        commit_pushes();
      }
      const int v96 = v27 + 128;
      if (threadIdx.x == 0) await_pushes_read();
      asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
      for (int i = 0; i < 8; ++i)
        stmatrix(shared + 196608 + ((at2 ^ (i % 4 * 32)) + i / 4 % 2 * 16384), pack_bf16(v33 + 0 + i * 8), pack_bf16(v33 + 2 + i * 8), pack_bf16(v33 + 4 + i * 8), pack_bf16(v33 + 6 + i * 8));
      fence_async();
      asm volatile("bar.sync 1, 256;" ::: "memory");
      if (threadIdx.x == 0) {
        push_tile(((unsigned char*)p2.bytes), shared + 196608 + 0, (int)v96 + 0, (int)v26 + 0);
        push_tile(((unsigned char*)p2.bytes), shared + 196608 + 16384, (int)v96 + 64, (int)v26 + 0);
        commit_pushes();
      }
      v11 = v34;
    }
    if (threadIdx.x == 0) await_pushes_read();
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) {
      int v105 = 0;
      for (long long v104 = (long long)blockIdx.x; v104 < 256; v104 += (long long)gridDim.x) {
        const int v107 = (int)v104;
        const int v113 = (v107 / 128) * 8;
        const int v114 = v107 % 128;
        const int v116 = min((16 - v113), 8);
        const int v120 = (v113 + (v114 % v116)) * 128;
        const int v121 = (v114 / v116) * 256;
        int v124 = v105;
        for (long long v123 = 0; v123 < 512; v123 += 128) {
          await_phase(shared + 229408 + (unsigned)v124 % 4 * 8, (unsigned)v124 / 4 & 1 ^ 1);
          arrive_expecting(shared + 229376 + (unsigned)v124 % 4 * 8, 49152);
          copy_tile(shared + 0 + (int)((unsigned)v124 % 4) * 16384 + 0, ((unsigned char*)p3.bytes), shared + 229376 + (unsigned)v124 % 4 * 8, (int)v123 + 0, (int)v120 + 0);
          copy_tile(shared + 65536 + (int)((unsigned)v124 % 4) * 16384 + 0, ((unsigned char*)p4.bytes), shared + 229376 + (unsigned)v124 % 4 * 8, (int)v123 + 0, (int)v121 + 0);
          const int v131 = v121 + 128;
          copy_tile(shared + 131072 + (int)((unsigned)v124 % 4) * 16384 + 0, ((unsigned char*)p4.bytes), shared + 229376 + (unsigned)v124 % 4 * 8, (int)v123 + 0, (int)v131 + 0);
          const int v134 = v124 + 1;
          v124 = v134;
        }
        v105 = v124;
      }
    }
  }
}
