// Bytes128_64, narrow_pair_bf16, load_bf16_2, store_bf16_2, exp2_approx, max_f32, min_i64, smem, shared_address, pack_bf16, copy_tile_3d, init_mbarrier, arrive, arrive_expecting, await_phase, wgmma_fence, wgmma_commit, descriptor, wgmma_r_128_bf16, wgmma_r_64_bf16_tb, wgmma_wait_0
extern "C" __global__ void __launch_bounds__(384, 1) attention_scaled_dot_product_attention(long long p0, long long p1, unsigned char* __restrict__ p2, long long p3, unsigned char* __restrict__ p4, const __grid_constant__ Bytes128_64 p5, const __grid_constant__ Bytes128_64 p6) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 4 % 8 + warp % 8 * 16;
  const int col0 = lane % 4 * 2;
  const int row1 = lane / 4 % 8 + warp % 8 * 16;
  const int row2 = lane / 4 % 8 + warp % 8 * 16;
  const int col2 = lane % 4 * 2;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      init_mbarrier(shared + 65536 + 8 * i, 1);
      init_mbarrier(shared + 65552 + 8 * i, 2);
    }
    for (int i = 0; i < 2; ++i) {
      init_mbarrier(shared + 65664 + 8 * i, 1);
      init_mbarrier(shared + 65680 + 8 * i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp < 8) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int v9 = (int)(long long)blockIdx.x;
    const long long v19 = ((long long)((((int)p0) - 1) - (v9 / 8))) * 128;
    const int v20 = (int)v19;
    const int v24 = (int)p1;
    const long long v35 = (((long long)(v9 % 8)) * p3) * 2;
    unsigned char* const v36 = p2 + v35;
    float v37[32];
#pragma unroll
    for (int i = 0; i < 32; i += 2)
      load_bf16_2(v37 + i, (const unsigned short*)v36 + (((v20 + (row0 + i / 2 % 2 * 8)) * 64) + (col0 + i % 2 + i / 4 % 8 * 8)), ((v20 + (row0 + i / 2 % 2 * 8)) < v24));
    const long long v42 = min_i64(p1, (v19 + 128));
    const long long v46 = ((min_i64(p1, (v19 + 1))) / 128) * 128;
    float v48[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v48[i] = __int_as_float(0xff800000);
    float v49[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v49[i] = 0.0f;
    float v50[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v50[i] = 0.0f;
    for (long long v47 = 0; v47 < v46; v47 += 128) {
      const int v54 = (int)(v47 / 128);
      await_phase(shared + 65536 + (unsigned)v54 % 2 * 8, (unsigned)v54 / 2 & 1);
      const bool v57 = 0 < 0;
      const int v58 = v54 % 2;
      float v52[64];
      {
        const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
        unsigned a[16];
#pragma unroll
        for (int w = 0; w < 16; ++w) a[w] = pack_bf16(v37 + 2 * w);
#pragma unroll
        for (int i = 0; i < 16; ++i)
          asm volatile("" : "+r"(a[i]) :: "memory");
        const unsigned long long b = descriptor(shared + 0 + (int)v58 * 16384, 16);
        wgmma_fence();
        wgmma_r_128_bf16(v52 + 0, a + 0, b + 0, v57);
        wgmma_r_128_bf16(v52 + 0, a + 4, b + 2, true);
        wgmma_r_128_bf16(v52 + 0, a + 8, b + 4, true);
        wgmma_r_128_bf16(v52 + 0, a + 12, b + 6, true);
        wgmma_commit();
      }
#pragma unroll
      for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(v52[i]) :: "memory");
      wgmma_wait_0();
#pragma unroll
      for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(v52[i]) :: "memory");
      if (threadIdx.x % 128 == 0) arrive(shared + 65552 + (unsigned)v54 % 2 * 8);
      float v62[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v62[i] = __int_as_float(0xff800000);
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v62[i / 2 % 2] = max_f32(v62[i / 2 % 2], v52[i]);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v62[i] = max_f32(v62[i], __shfl_xor_sync(0xffffffffu, v62[i], 1));
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v62[i] = max_f32(v62[i], __shfl_xor_sync(0xffffffffu, v62[i], 2));
      float v63[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v63[i] = max_f32(v48[i], v62[i]);
      float v67[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v67[i] = (v63[i] == __int_as_float(0xff800000)) ? 0.0f : v63[i];
      float v69[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v69[i] = v67[i] * -0.18033688f;
      float v72[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v72[i] = exp2_approx((__fmaf_rn(v52[i], 0.18033688f, v69[i / 2 % 2])));
      float v75[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v75[i] = exp2_approx(((v48[i] - v67[i]) * 0.18033688f));
      float v77[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v77[i] = 0.0f;
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v77[i / 2 % 2] = v77[i / 2 % 2] + v72[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v77[i] = v77[i] + __shfl_xor_sync(0xffffffffu, v77[i], 1);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v77[i] = v77[i] + __shfl_xor_sync(0xffffffffu, v77[i], 2);
      float v78[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v78[i] = (v49[i] * v75[i]) + v77[i];
      float v79[32];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v79[i] = v50[i] * v75[i / 2 % 2];
      await_phase(shared + 65664 + (unsigned)v54 % 2 * 8, (unsigned)v54 / 2 & 1);
      const bool v81 = 0 < 1;
      {
        const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
        unsigned a[32];
#pragma unroll
        for (int w = 0; w < 32; ++w) a[w] = pack_bf16(v72 + 2 * w);
#pragma unroll
        for (int i = 0; i < 32; ++i)
          asm volatile("" : "+r"(a[i]) :: "memory");
#pragma unroll
        for (int i = 0; i < 32; ++i)
          asm volatile("" : "+f"(v79[i]) :: "memory");
        const unsigned long long b = descriptor(shared + 32768 + (int)v58 * 16384, 16384);
        wgmma_fence();
        wgmma_r_64_bf16_tb(v79 + 0, a + 0, b + 0, v81);
        wgmma_r_64_bf16_tb(v79 + 0, a + 4, b + 128, true);
        wgmma_r_64_bf16_tb(v79 + 0, a + 8, b + 256, true);
        wgmma_r_64_bf16_tb(v79 + 0, a + 12, b + 384, true);
        wgmma_r_64_bf16_tb(v79 + 0, a + 16, b + 512, true);
        wgmma_r_64_bf16_tb(v79 + 0, a + 20, b + 640, true);
        wgmma_r_64_bf16_tb(v79 + 0, a + 24, b + 768, true);
        wgmma_r_64_bf16_tb(v79 + 0, a + 28, b + 896, true);
        wgmma_commit();
      }
#pragma unroll
      for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(v79[i]) :: "memory");
      wgmma_wait_0();
#pragma unroll
      for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(v79[i]) :: "memory");
      if (threadIdx.x % 128 == 0) arrive(shared + 65680 + (unsigned)v54 % 2 * 8);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v48[i] = v63[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v49[i] = v78[i];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v50[i] = v79[i];
    }
    float v89[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v89[i] = v48[i];
    float v90[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v90[i] = v49[i];
    float v91[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v91[i] = v50[i];
    for (long long v88 = v46; v88 < v42; v88 += 128) {
      const int v95 = (int)(v88 / 128);
      await_phase(shared + 65536 + (unsigned)v95 % 2 * 8, (unsigned)v95 / 2 & 1);
      const bool v98 = 0 < 0;
      const int v99 = v95 % 2;
      float v93[64];
      {
        const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
        unsigned a[16];
#pragma unroll
        for (int w = 0; w < 16; ++w) a[w] = pack_bf16(v37 + 2 * w);
#pragma unroll
        for (int i = 0; i < 16; ++i)
          asm volatile("" : "+r"(a[i]) :: "memory");
        const unsigned long long b = descriptor(shared + 0 + (int)v99 * 16384, 16);
        wgmma_fence();
        wgmma_r_128_bf16(v93 + 0, a + 0, b + 0, v98);
        wgmma_r_128_bf16(v93 + 0, a + 4, b + 2, true);
        wgmma_r_128_bf16(v93 + 0, a + 8, b + 4, true);
        wgmma_r_128_bf16(v93 + 0, a + 12, b + 6, true);
        wgmma_commit();
      }
#pragma unroll
      for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(v93[i]) :: "memory");
      wgmma_wait_0();
#pragma unroll
      for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(v93[i]) :: "memory");
      if (threadIdx.x % 128 == 0) arrive(shared + 65552 + (unsigned)v95 % 2 * 8);
      const int v106 = (int)v88;
      float v113[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v113[i] = (!((v20 + (row2 + i / 2 % 2 * 8)) < (v106 + (col2 + i % 2 + i / 4 % 16 * 8)))) ? v93[i] : __int_as_float(0xff800000);
      float v114[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v114[i] = __int_as_float(0xff800000);
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v114[i / 2 % 2] = max_f32(v114[i / 2 % 2], v113[i]);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v114[i] = max_f32(v114[i], __shfl_xor_sync(0xffffffffu, v114[i], 1));
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v114[i] = max_f32(v114[i], __shfl_xor_sync(0xffffffffu, v114[i], 2));
      float v115[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v115[i] = max_f32(v89[i], v114[i]);
      float v118[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v118[i] = (v115[i] == __int_as_float(0xff800000)) ? 0.0f : v115[i];
      float v120[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v120[i] = v118[i] * -0.18033688f;
      float v123[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v123[i] = exp2_approx((__fmaf_rn(v113[i], 0.18033688f, v120[i / 2 % 2])));
      float v126[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v126[i] = exp2_approx(((v89[i] - v118[i]) * 0.18033688f));
      float v128[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v128[i] = 0.0f;
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v128[i / 2 % 2] = v128[i / 2 % 2] + v123[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v128[i] = v128[i] + __shfl_xor_sync(0xffffffffu, v128[i], 1);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v128[i] = v128[i] + __shfl_xor_sync(0xffffffffu, v128[i], 2);
      float v129[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v129[i] = (v90[i] * v126[i]) + v128[i];
      float v130[32];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v130[i] = v91[i] * v126[i / 2 % 2];
      await_phase(shared + 65664 + (unsigned)v95 % 2 * 8, (unsigned)v95 / 2 & 1);
      const bool v132 = 0 < 1;
      {
        const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
        unsigned a[32];
#pragma unroll
        for (int w = 0; w < 32; ++w) a[w] = pack_bf16(v123 + 2 * w);
#pragma unroll
        for (int i = 0; i < 32; ++i)
          asm volatile("" : "+r"(a[i]) :: "memory");
#pragma unroll
        for (int i = 0; i < 32; ++i)
          asm volatile("" : "+f"(v130[i]) :: "memory");
        const unsigned long long b = descriptor(shared + 32768 + (int)v99 * 16384, 16384);
        wgmma_fence();
        wgmma_r_64_bf16_tb(v130 + 0, a + 0, b + 0, v132);
        wgmma_r_64_bf16_tb(v130 + 0, a + 4, b + 128, true);
        wgmma_r_64_bf16_tb(v130 + 0, a + 8, b + 256, true);
        wgmma_r_64_bf16_tb(v130 + 0, a + 12, b + 384, true);
        wgmma_r_64_bf16_tb(v130 + 0, a + 16, b + 512, true);
        wgmma_r_64_bf16_tb(v130 + 0, a + 20, b + 640, true);
        wgmma_r_64_bf16_tb(v130 + 0, a + 24, b + 768, true);
        wgmma_r_64_bf16_tb(v130 + 0, a + 28, b + 896, true);
        wgmma_commit();
      }
#pragma unroll
      for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(v130[i]) :: "memory");
      wgmma_wait_0();
#pragma unroll
      for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(v130[i]) :: "memory");
      if (threadIdx.x % 128 == 0) arrive(shared + 65680 + (unsigned)v95 % 2 * 8);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v89[i] = v115[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v90[i] = v129[i];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v91[i] = v130[i];
    }
    int v140[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v140[i] = v20 + (row1 + i % 2 * 8);
    bool v141[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v141[i] = v140[i] < v24;
    float v146[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v146[i] = 1.0f / ((v90[i] == 0.0f) ? 1.0f : v90[i]);
    float v147[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v147[i] = v91[i] * v146[i / 2 % 2];
    int v150[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v150[i] = v140[i] * 64;
    unsigned char* const v152 = p4 + v35;
#pragma unroll
    for (int i = 0; i < 32; i += 2)
      store_bf16_2((unsigned short*)v152 + (v150[i / 2 % 2] + (col0 + i % 2 + i / 4 % 8 * 8)), v147 + i, v141[i / 2 % 2]);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) {
      const int v163 = (int)(long long)blockIdx.x;
      const long long v167 = (long long)(v163 % 8);
      const long long v177 = min_i64(p1, ((((long long)((((int)p0) - 1) - (v163 / 8))) * 128) + 128));
      int v179 = 0;
      for (long long v178 = 0; v178 < v177; v178 += 128) {
        await_phase(shared + 65552 + (unsigned)v179 % 2 * 8, (unsigned)v179 / 2 & 1 ^ 1);
        arrive_expecting(shared + 65536 + (unsigned)v179 % 2 * 8, 16384);
        const long long v184 = (long long)(v167 / 4);
        copy_tile_3d(shared + 0 + (int)((unsigned)v179 % 2) * 16384 + 0, ((unsigned char*)p5.bytes), shared + 65536 + (unsigned)v179 % 2 * 8, (int)0 + 0, (int)v178 + 0, (int)v184);
        await_phase(shared + 65680 + (unsigned)v179 % 2 * 8, (unsigned)v179 / 2 & 1 ^ 1);
        arrive_expecting(shared + 65664 + (unsigned)v179 % 2 * 8, 16384);
        copy_tile_3d(shared + 32768 + (int)((unsigned)v179 % 2) * 16384 + 0, ((unsigned char*)p6.bytes), shared + 65664 + (unsigned)v179 % 2 * 8, (int)0 + 0, (int)v178 + 0, (int)v184);
        const int v191 = v179 + 1;
        v179 = v191;
      }
    }
  }
}
