// Bytes128_64, narrow_pair_bf16, load_f32_1, load_f32_2, smem, shared_address, pack_bf16, copy_tile, init_mbarrier, arrive, arrive_expecting, await_phase, wgmma_fence, wgmma_commit, descriptor, push_tile, commit_pushes, await_pushes_read, fence_async, stmatrix, wgmma_128_f8e4m3, wgmma_wait_0
extern "C" __global__ void __launch_bounds__(384, 1) gemm_transpose_scaled_mm(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, const __grid_constant__ Bytes128_64 p2, const __grid_constant__ Bytes128_64 p3, const __grid_constant__ Bytes128_64 p4) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 4 * 2;
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
        await_phase(shared + 229376 + (unsigned)v34 % 4 * 8, (unsigned)v34 / 4 & 1);
        const int v38 = v34 % 4;
        const bool v39 = 0 < 0;
        float v40[64];
        {
          const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
          const unsigned long long a = descriptor(shared + 0 + (int)v38 * 16384 + (group % 2) * 8192, 16);
          const unsigned long long b = descriptor(shared + 65536 + (int)v38 * 16384, 16);
          wgmma_fence();
          wgmma_128_f8e4m3(v40 + 0, a + 0, b + 0, v39);
          wgmma_128_f8e4m3(v40 + 0, a + 2, b + 2, true);
          wgmma_128_f8e4m3(v40 + 0, a + 4, b + 4, true);
          wgmma_128_f8e4m3(v40 + 0, a + 6, b + 6, true);
          wgmma_commit();
        }
#pragma unroll
        for (int i = 0; i < 64; ++i)
          asm volatile("" : "+f"(v40[i]) :: "memory");
        wgmma_wait_0();
#pragma unroll
        for (int i = 0; i < 64; ++i)
          asm volatile("" : "+f"(v40[i]) :: "memory");
        float v43[64];
#pragma unroll
        for (int i = 0; i < 64; ++i)
          v43[i] = v32[i] + v40[i];
        float v44[64];
        {
          const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
          const unsigned long long a = descriptor(shared + 0 + (int)v38 * 16384 + (group % 2) * 8192, 16);
          const unsigned long long b = descriptor(shared + 131072 + (int)v38 * 16384, 16);
          wgmma_fence();
          wgmma_128_f8e4m3(v44 + 0, a + 0, b + 0, v39);
          wgmma_128_f8e4m3(v44 + 0, a + 2, b + 2, true);
          wgmma_128_f8e4m3(v44 + 0, a + 4, b + 4, true);
          wgmma_128_f8e4m3(v44 + 0, a + 6, b + 6, true);
          wgmma_commit();
        }
#pragma unroll
        for (int i = 0; i < 64; ++i)
          asm volatile("" : "+f"(v44[i]) :: "memory");
        wgmma_wait_0();
#pragma unroll
        for (int i = 0; i < 64; ++i)
          asm volatile("" : "+f"(v44[i]) :: "memory");
        float v47[64];
#pragma unroll
        for (int i = 0; i < 64; ++i)
          v47[i] = v33[i] + v44[i];
        if (threadIdx.x % 128 == 0) arrive(shared + 229408 + (unsigned)v34 % 4 * 8);
        const int v50 = v34 + 1;
#pragma unroll
        for (int i = 0; i < 64; ++i)
          v32[i] = v43[i];
#pragma unroll
        for (int i = 0; i < 64; ++i)
          v33[i] = v47[i];
        v34 = v50;
      }
      const int v54 = (int)v26;
      int v56[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v56[i] = v54 + (row1 + i % 2 * 8);
      const int v57 = (int)v27;
      float v62[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        load_f32_1(v62 + i, (const float*)p0 + v56[i], true);
      float v65[64];
#pragma unroll
      for (int i = 0; i < 64; i += 2)
        load_f32_2(v65 + i, (const float*)p1 + (v57 + (col0 + i % 2 + i / 4 % 16 * 8)), true);
      float v66[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v66[i] = (v32[i] * v62[i / 2 % 2]) * v65[i];
      if (threadIdx.x == 0) await_pushes_read();
      asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
      for (int i = 0; i < 8; ++i)
        stmatrix(shared + 196608 + ((at2 ^ (i % 4 * 32)) + i / 4 % 2 * 16384), pack_bf16(v66 + 0 + i * 8), pack_bf16(v66 + 2 + i * 8), pack_bf16(v66 + 4 + i * 8), pack_bf16(v66 + 6 + i * 8));
      fence_async();
      asm volatile("bar.sync 1, 256;" ::: "memory");
      if (threadIdx.x == 0) {
        push_tile(((unsigned char*)p2.bytes), shared + 196608 + 0, (int)v27 + 0, (int)v26 + 0);
        push_tile(((unsigned char*)p2.bytes), shared + 196608 + 16384, (int)v27 + 64, (int)v26 + 0);
        commit_pushes();
      }
      const int v70 = v27 + 128;
      const int v71 = (int)v70;
      float v73[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        load_f32_1(v73 + i, (const float*)p0 + v56[i], true);
      float v75[64];
#pragma unroll
      for (int i = 0; i < 64; i += 2)
        load_f32_2(v75 + i, (const float*)p1 + (v71 + (col0 + i % 2 + i / 4 % 16 * 8)), true);
      float v76[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v76[i] = (v33[i] * v73[i / 2 % 2]) * v75[i];
      if (threadIdx.x == 0) await_pushes_read();
      asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
      for (int i = 0; i < 8; ++i)
        stmatrix(shared + 196608 + ((at2 ^ (i % 4 * 32)) + i / 4 % 2 * 16384), pack_bf16(v76 + 0 + i * 8), pack_bf16(v76 + 2 + i * 8), pack_bf16(v76 + 4 + i * 8), pack_bf16(v76 + 6 + i * 8));
      fence_async();
      asm volatile("bar.sync 1, 256;" ::: "memory");
      if (threadIdx.x == 0) {
        push_tile(((unsigned char*)p2.bytes), shared + 196608 + 0, (int)v70 + 0, (int)v26 + 0);
        push_tile(((unsigned char*)p2.bytes), shared + 196608 + 16384, (int)v70 + 64, (int)v26 + 0);
        commit_pushes();
      }
      v11 = v34;
    }
    if (threadIdx.x == 0) await_pushes_read();
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) {
      int v83 = 0;
      for (long long v82 = (long long)blockIdx.x; v82 < 256; v82 += (long long)gridDim.x) {
        const int v85 = (int)v82;
        const int v91 = (v85 / 128) * 8;
        const int v92 = v85 % 128;
        const int v94 = min((16 - v91), 8);
        const int v98 = (v91 + (v92 % v94)) * 128;
        const int v99 = (v92 / v94) * 256;
        int v102 = v83;
        for (long long v101 = 0; v101 < 512; v101 += 128) {
          await_phase(shared + 229408 + (unsigned)v102 % 4 * 8, (unsigned)v102 / 4 & 1 ^ 1);
          arrive_expecting(shared + 229376 + (unsigned)v102 % 4 * 8, 49152);
          copy_tile(shared + 0 + (int)((unsigned)v102 % 4) * 16384 + 0, ((unsigned char*)p3.bytes), shared + 229376 + (unsigned)v102 % 4 * 8, (int)v101 + 0, (int)v98 + 0);
          copy_tile(shared + 65536 + (int)((unsigned)v102 % 4) * 16384 + 0, ((unsigned char*)p4.bytes), shared + 229376 + (unsigned)v102 % 4 * 8, (int)v101 + 0, (int)v99 + 0);
          const int v109 = v99 + 128;
          copy_tile(shared + 131072 + (int)((unsigned)v102 % 4) * 16384 + 0, ((unsigned char*)p4.bytes), shared + 229376 + (unsigned)v102 % 4 * 8, (int)v101 + 0, (int)v109 + 0);
          const int v112 = v102 + 1;
          v102 = v112;
        }
        v83 = v102;
      }
    }
  }
}
