// Bytes128_64, meet, meet_or, narrow_bf16, narrow_pair_bf16, load_f32_4, round_bf16, store_bf16_2, store_f32_4, max_i64, min_i64, smem, shared_address, copy_tile, copy_tile_3d, init_mbarrier, arrive, arrive_expecting, await_phase, wgmma_fence, wgmma_commit, descriptor, wgmma_64_bf16_tb, wgmma_wait_0, wgmma_wait_2, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 8, give_up 3, await_relaxed, await, wait 8, await_alone, signal_one, wait_one
extern "C" __global__ void __launch_bounds__(384, 1) gather_gemm_all_gather_into_tensor_mm_mm_silu_mul(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, long long p8, unsigned char* p9, long long p10, unsigned char* p11, int p12, const __grid_constant__ Bytes128_64 p13, const __grid_constant__ Bytes128_64 p14, const __grid_constant__ Bytes128_64 p15, const __grid_constant__ Bytes128_64 p16) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int col1 = lane % 4 * 2;
  const int row2 = lane / 4 % 8 + warp % 8 * 16;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  const long long v12 = min_i64(16, (max_i64(1, ((long long)gridDim.x / 4))));
  const bool v14 = (long long)blockIdx.x < v12;
  const long long v17 = 8 * p6;
  const long long v19 = v14 ? v17 : ((long long)blockIdx.x - v12);
  const long long v20 = (long long)gridDim.x - v12;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 6; ++i) {
      init_mbarrier(shared + 196608 + 8 * i, 1);
      init_mbarrier(shared + 196656 + 8 * i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp < 8) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if (v14) signal(comm, peers, (long long)blockIdx.x);
    if (v14 && !wait(comm, peers, (long long)blockIdx.x)) return;
    const long long v28 = v14 ? (long long)blockIdx.x : 16;
    for (long long v30 = v28; v30 < 16; v30 += v12) {
      const long long v36 = ((long long)rank + ((v30 / 2) + 1)) % 8;
      unsigned char* const v37 = peers.base[v36] + p7;
      unsigned char* const v44 = p9 + ((v36 * (p8 * 2048)) * 2);
      const long long v47 = (v30 % 2) * 128;
      const long long v51 = (min_i64((v47 + 128), p8)) * 1024;
      const long long v52 = v47 * 1024;
      const bool v196 = v52 < v51;
      unsigned char* const v198 = v37 + (v52 * 4);
      const long long v200 = v51 - v52;
      float v203[16];
#pragma unroll
      for (int i = 0; i < 16; i += 4)
        load_f32_4(v203 + i, (const float*)v198 + (col0 + i % 8 + i / 8 % 2 * 2048), (((col0 + i % 8 + i / 8 % 2 * 2048) < v200) && v196));
      const long long v204 = v52 + 4096;
      const bool v205 = v204 < v51;
      unsigned char* const v207 = v37 + (v204 * 4);
      const long long v208 = v51 - v204;
      float v211[16];
#pragma unroll
      for (int i = 0; i < 16; i += 4)
        load_f32_4(v211 + i, (const float*)v207 + (col0 + i % 8 + i / 8 % 2 * 2048), (((col0 + i % 8 + i / 8 % 2 * 2048) < v208) && v205));
      const long long v214 = v52 + 8192;
      const bool v215 = v214 < v51;
      unsigned char* const v217 = v37 + (v214 * 4);
      const long long v218 = v51 - v214;
      float v221[16];
#pragma unroll
      for (int i = 0; i < 16; i += 4)
        load_f32_4(v221 + i, (const float*)v217 + (col0 + i % 8 + i / 8 % 2 * 2048), (((col0 + i % 8 + i / 8 % 2 * 2048) < v218) && v215));
      const long long v224 = v52 + 12288;
      const bool v225 = v224 < v51;
      unsigned char* const v227 = v37 + (v224 * 4);
      const long long v228 = v51 - v224;
      float v231[16];
#pragma unroll
      for (int i = 0; i < 16; i += 4)
        load_f32_4(v231 + i, (const float*)v227 + (col0 + i % 8 + i / 8 % 2 * 2048), (((col0 + i % 8 + i / 8 % 2 * 2048) < v228) && v225));
      float v61[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v61[i] = v203[i];
      float v243[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v243[i] = v211[i];
      float v244[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v244[i] = v221[i];
      float v245[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v245[i] = v231[i];
      for (long long v54 = v52; v54 < v51;) {
#pragma unroll
        for (int turn = 0; turn < 5; ++turn, v54 += 4096) {
          if (turn > 0 && !(v54 < v51)) goto after_v54;
          const long long v234 = v54 + 16384;
          const bool v235 = v234 < v51;
          unsigned char* const v237 = v37 + (v234 * 4);
          const long long v239 = v51 - v234;
          float v242[16];
#pragma unroll
          for (int i = 0; i < 16; i += 4)
            load_f32_4(v242 + i, (const float*)v237 + (col0 + i % 8 + i / 8 % 2 * 2048), (((col0 + i % 8 + i / 8 % 2 * 2048) < v239) && v235));
          const long long v57 = v51 - v54;
          unsigned char* const v62 = v44 + (v54 * 4);
#pragma unroll
          for (int i = 0; i < 16; i += 4)
            store_f32_4((float*)v62 + (col0 + i % 8 + i / 8 % 2 * 2048), v61 + i, ((col0 + i % 8 + i / 8 % 2 * 2048) < v57));
#pragma unroll
          for (int i = 0; i < 16; ++i)
            v61[i] = v243[i];
#pragma unroll
          for (int i = 0; i < 16; ++i)
            v243[i] = v244[i];
#pragma unroll
          for (int i = 0; i < 16; ++i)
            v244[i] = v245[i];
#pragma unroll
          for (int i = 0; i < 16; ++i)
            v245[i] = v242[i];
        }
      }
      after_v54:;
      const bool v65 = v30 < 14;
      const long long v67 = 32 + v30;
      if (v65) signal_one(comm, peers, v67, (long long)rank);
    }
    int v71 = 0;
    for (long long v70 = v19; v70 < v17; v70 += v20) {
      const int v73 = (int)v70;
      const int v74 = (int)p6;
      const int v76 = v73 % v74;
      const int v80 = (int)p10;
      float v95[32];
      float v96[32];
      int v97 = v71;
      for (long long v94 = 0; v94 < 2048; v94 += 64) {
        await_phase(shared + 196608 + (unsigned)v97 % 6 * 8, (unsigned)v97 / 6 & 1);
        const int v101 = v97 % 6;
        const bool v102 = 0 < v94;
        {
          const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
          const unsigned long long a = descriptor(shared + 0 + (int)v101 * 16384 + (group % 2) * 8192, 16);
          const unsigned long long b = descriptor(shared + 98304 + (int)v101 * 8192, 8192);
          wgmma_fence();
          wgmma_64_bf16_tb(v95 + 0, a + 0, b + 0, v102);
          wgmma_64_bf16_tb(v95 + 0, a + 2, b + 128, true);
          wgmma_64_bf16_tb(v95 + 0, a + 4, b + 256, true);
          wgmma_64_bf16_tb(v95 + 0, a + 6, b + 384, true);
          wgmma_commit();
        }
        {
          const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
          const unsigned long long a = descriptor(shared + 0 + (int)v101 * 16384 + (group % 2) * 8192, 16);
          const unsigned long long b = descriptor(shared + 147456 + (int)v101 * 8192, 8192);
          wgmma_fence();
          wgmma_64_bf16_tb(v96 + 0, a + 0, b + 0, v102);
          wgmma_64_bf16_tb(v96 + 0, a + 2, b + 128, true);
          wgmma_64_bf16_tb(v96 + 0, a + 4, b + 256, true);
          wgmma_64_bf16_tb(v96 + 0, a + 6, b + 384, true);
          wgmma_commit();
        }
        wgmma_wait_2();
        const int v106 = v97 - 1;
        if (threadIdx.x % 128 == 0 && v102) arrive(shared + 196656 + (unsigned)v106 % 6 * 8);
        const int v108 = v97 + 1;
        v97 = v108;
      }
#pragma unroll
      for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(v95[i]) :: "memory");
      wgmma_wait_0();
#pragma unroll
      for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(v95[i]) :: "memory");
#pragma unroll
      for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(v96[i]) :: "memory");
      wgmma_wait_0();
#pragma unroll
      for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(v96[i]) :: "memory");
      const int v114 = v97 - 1;
      if (threadIdx.x % 128 == 0) arrive(shared + 196656 + (unsigned)v114 % 6 * 8);
      const int v116 = (int)((v76 % v80) * 128);
      int v118[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v118[i] = v116 + (row2 + i % 2 * 8);
      bool v119[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v119[i] = v118[i] < p8;
      const int v120 = (int)((v76 / v80) * 64);
      const int v123 = (int)((((long long)rank + (v73 / v74)) % 8) * p8);
      float v125[32];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v125[i] = round_bf16(v95[i]);
      float v133[32];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v133[i] = (round_bf16((v125[i] / (1.0f + (expf((-v125[i]))))))) * (round_bf16(v96[i]));
      int v137[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v137[i] = (v123 + v118[i]) * 1024;
#pragma unroll
      for (int i = 0; i < 32; i += 2)
        store_bf16_2((unsigned short*)p11 + (v137[i / 2 % 2] + (v120 + (col1 + i % 2 + i / 4 % 8 * 8))), v133 + i, v119[i / 2 % 2]);
      v71 = v97;
    }
    const bool v144 = v14 && (0 < p12);
    const long long v145 = 16 + (long long)blockIdx.x;
    if (v144) signal(comm, peers, v145);
    if (v144 && !wait(comm, peers, v145)) return;
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) {
      int v151 = 0;
      for (long long v150 = v19; v150 < v17; v150 += v20) {
        const int v153 = (int)v150;
        const int v154 = (int)p6;
        const int v155 = v153 / v154;
        const int v156 = v153 % v154;
        const int v160 = (int)p10;
        const int v161 = v156 % v160;
        const int v165 = v161 * 128;
        const int v167 = (v156 / v160) * 64;
        const bool v170 = 0 < v155;
        const int v176 = 32 + (((v155 - 1) * 2) + v161);
        if (v170) await_alone(comm, peers, v176, (long long)rank);
        unsigned char* const v180 = v170 ? ((unsigned char*)p14.bytes) : ((unsigned char*)p13.bytes);
        const long long v181 = v170 ? (((long long)rank + v155) % 8) : 0;
        int v184 = v151;
        for (long long v183 = 0; v183 < 2048; v183 += 64) {
          await_phase(shared + 196656 + (unsigned)v184 % 6 * 8, (unsigned)v184 / 6 & 1 ^ 1);
          arrive_expecting(shared + 196608 + (unsigned)v184 % 6 * 8, 32768);
          copy_tile_3d(shared + 0 + (int)((unsigned)v184 % 6) * 16384 + 0, v180, shared + 196608 + (unsigned)v184 % 6 * 8, (int)v183 + 0, (int)v165 + 0, (int)v181);
          copy_tile(shared + 98304 + (int)((unsigned)v184 % 6) * 8192 + 0, ((unsigned char*)p15.bytes), shared + 196608 + (unsigned)v184 % 6 * 8, (int)v167 + 0, (int)v183 + 0);
          copy_tile(shared + 147456 + (int)((unsigned)v184 % 6) * 8192 + 0, ((unsigned char*)p16.bytes), shared + 196608 + (unsigned)v184 % 6 * 8, (int)v167 + 0, (int)v183 + 0);
          const int v193 = v184 + 1;
          v184 = v193;
        }
        v151 = v184;
      }
    }
  }
  close_comm(comm);
}
