// Bytes128_64, meet, meet_or, narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_2, store_bf16_8, smem, shared_address, copy_tile, init_mbarrier, arrive, arrive_expecting, await_phase, wgmma_fence, wgmma_commit, descriptor, wgmma_128_bf16_tb, wgmma_wait_0, wgmma_wait_1, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 8, give_up 3, await_relaxed, await, wait 8, wait_slots
extern "C" __global__ void __launch_bounds__(384, 1) gemm_reduce_mm_reduce_scatter_tensor_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, unsigned char* p11, long long p12, unsigned char* p13, unsigned char* p14, unsigned char* p15, unsigned char* p16, const __grid_constant__ Bytes128_64 p17, const __grid_constant__ Bytes128_64 p18) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row1 = lane / 16 % 2 + warp % 8 * 2;
  const int col2 = lane % 16 * 8;
  const int col3 = lane % 32 * 8 + warp % 8 * 256;
  const int at5 = lane % 32 * 2 + lane / 4 % 8 * 128 + warp % 8 * 2048;
  const int at6 = ((lane % 32 * 8) ^ (lane / 16 % 2 * 8) ^ (warp % 4 * 16)) + warp % 8 * 256;
  const int at7 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  const long long v9 = 8 * p7;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 5; ++i) {
      init_mbarrier(shared + 196608 + 8 * i, 1);
      init_mbarrier(shared + 196648 + 8 * i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp < 8) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int v19 = 0;
    for (long long v18 = (long long)blockIdx.x; v18 < v9; v18 += (long long)gridDim.x) {
      const int v21 = (int)v18;
      const int v22 = (int)p7;
      const int v24 = v21 % v22;
      const long long v28 = (((long long)rank + 1) + (v21 / v22)) % 8;
      const int v33 = (int)p10;
      unsigned char* const v42 = peers.base[v28] + p8;
      unsigned char* const v45 = v42 + (((long long)rank * (p9 * 2048)) * 2);
      float v51[64];
      int v52 = v19;
      for (long long v50 = 0; v50 < 1024; v50 += 64) {
        await_phase(shared + 196608 + (unsigned)v52 % 5 * 8, (unsigned)v52 / 5 & 1);
        const int v56 = v52 % 5;
        const bool v57 = 0 < v50;
        {
          const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
          const unsigned long long a = descriptor(shared + 0 + (int)v56 * 16384 + (group % 2) * 8192, 16);
          const unsigned long long b = descriptor(shared + 81920 + (int)v56 * 16384, 8192);
          wgmma_fence();
          wgmma_128_bf16_tb(v51 + 0, a + 0, b + 0, v57);
          wgmma_128_bf16_tb(v51 + 0, a + 2, b + 128, true);
          wgmma_128_bf16_tb(v51 + 0, a + 4, b + 256, true);
          wgmma_128_bf16_tb(v51 + 0, a + 6, b + 384, true);
          wgmma_commit();
        }
        wgmma_wait_1();
        const int v60 = v52 - 1;
        if (threadIdx.x % 128 == 0 && v57) arrive(shared + 196648 + (unsigned)v60 % 5 * 8);
        const int v62 = v52 + 1;
        v52 = v62;
      }
#pragma unroll
      for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(v51[i]) :: "memory");
      wgmma_wait_0();
#pragma unroll
      for (int i = 0; i < 64; ++i)
        asm volatile("" : "+f"(v51[i]) :: "memory");
      const int v66 = v52 - 1;
      if (threadIdx.x % 128 == 0) arrive(shared + 196648 + (unsigned)v66 % 5 * 8);
      const int v68 = (int)((v24 % v33) * 128);
      int v70[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v70[i] = v68 + (row1 + i % 8 * 16);
      bool v71[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v71[i] = v70[i] < p9;
      const int v72 = (int)((v24 / v33) * 128);
      float v78[64];
      unsigned short* const s78 = (unsigned short*)(smem + 163840);
      meet();
#pragma unroll
      for (int i = 0; i < 64; i += 2)
        store_bf16_2(s78 + ((at5 ^ (i / 4 % 16 * 8)) + i % 2 + i / 2 % 2 * 1024), v51 + i, true);
      meet();
#pragma unroll
      for (int i = 0; i < 64; i += 8)
        load_bf16_8(v78 + i, s78 + (at6 + i % 8 + i / 8 % 8 * 2048), true);
      int v79[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v79[i] = v70[i] * 2048;
#pragma unroll
      for (int i = 0; i < 64; i += 8)
        store_bf16_8((unsigned short*)v45 + (v79[i / 8 % 8] + (v72 + (col2 + i % 8))), v78 + i, v71[i / 8 % 8]);
      v19 = v52;
    }
    signal(comm, peers, (long long)blockIdx.x);
    if (!wait_slots(comm, peers, 0, (long long)gridDim.x)) return;
    float v160[8];
    load_bf16_8(v160 + 0, (const unsigned short*)p14 + col3, true);
    const bool v214 = (long long)blockIdx.x < p9;
    const long long v219 = ((long long)blockIdx.x * 2048) * 2;
    unsigned char* const v220 = p11 + v219;
    float v221[8];
    load_bf16_8(v221 + 0, (const unsigned short*)v220 + col3, v214);
    unsigned char* const v224 = p11 + (p12 * 2);
    unsigned char* const v225 = v224 + v219;
    float v226[8];
    load_bf16_8(v226 + 0, (const unsigned short*)v225 + col3, v214);
    unsigned char* const v229 = p11 + ((2 * p12) * 2);
    unsigned char* const v230 = v229 + v219;
    float v231[8];
    load_bf16_8(v231 + 0, (const unsigned short*)v230 + col3, v214);
    unsigned char* const v235 = p11 + ((3 * p12) * 2);
    unsigned char* const v236 = v235 + v219;
    float v237[8];
    load_bf16_8(v237 + 0, (const unsigned short*)v236 + col3, v214);
    unsigned char* const v241 = p11 + ((4 * p12) * 2);
    unsigned char* const v242 = v241 + v219;
    float v243[8];
    load_bf16_8(v243 + 0, (const unsigned short*)v242 + col3, v214);
    unsigned char* const v247 = p11 + ((5 * p12) * 2);
    unsigned char* const v248 = v247 + v219;
    float v249[8];
    load_bf16_8(v249 + 0, (const unsigned short*)v248 + col3, v214);
    unsigned char* const v253 = p11 + ((6 * p12) * 2);
    unsigned char* const v254 = v253 + v219;
    float v255[8];
    load_bf16_8(v255 + 0, (const unsigned short*)v254 + col3, v214);
    unsigned char* const v259 = p11 + ((7 * p12) * 2);
    unsigned char* const v260 = v259 + v219;
    float v261[8];
    load_bf16_8(v261 + 0, (const unsigned short*)v260 + col3, v214);
    unsigned char* const v263 = p13 + v219;
    float v264[8];
    load_bf16_8(v264 + 0, (const unsigned short*)v263 + col3, v214);
    const long long v265 = (long long)blockIdx.x + (long long)gridDim.x;
    const bool v266 = v265 < p9;
    const long long v268 = (v265 * 2048) * 2;
    unsigned char* const v269 = p11 + v268;
    float v270[8];
    load_bf16_8(v270 + 0, (const unsigned short*)v269 + col3, v266);
    unsigned char* const v271 = v224 + v268;
    float v272[8];
    load_bf16_8(v272 + 0, (const unsigned short*)v271 + col3, v266);
    unsigned char* const v273 = v229 + v268;
    float v274[8];
    load_bf16_8(v274 + 0, (const unsigned short*)v273 + col3, v266);
    unsigned char* const v275 = v235 + v268;
    float v276[8];
    load_bf16_8(v276 + 0, (const unsigned short*)v275 + col3, v266);
    unsigned char* const v277 = v241 + v268;
    float v278[8];
    load_bf16_8(v278 + 0, (const unsigned short*)v277 + col3, v266);
    unsigned char* const v279 = v247 + v268;
    float v280[8];
    load_bf16_8(v280 + 0, (const unsigned short*)v279 + col3, v266);
    unsigned char* const v281 = v253 + v268;
    float v282[8];
    load_bf16_8(v282 + 0, (const unsigned short*)v281 + col3, v266);
    unsigned char* const v283 = v259 + v268;
    float v284[8];
    load_bf16_8(v284 + 0, (const unsigned short*)v283 + col3, v266);
    unsigned char* const v285 = p13 + v268;
    float v286[8];
    load_bf16_8(v286 + 0, (const unsigned short*)v285 + col3, v266);
    float v98[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v98[i] = v221[i];
    float v341[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v341[i] = v270[i];
    float v102[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v102[i] = v226[i];
    float v342[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v342[i] = v272[i];
    float v108[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v108[i] = v231[i];
    float v343[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v343[i] = v274[i];
    float v115[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v115[i] = v237[i];
    float v344[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v344[i] = v276[i];
    float v122[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v122[i] = v243[i];
    float v345[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v345[i] = v278[i];
    float v129[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v129[i] = v249[i];
    float v346[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v346[i] = v280[i];
    float v136[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v136[i] = v255[i];
    float v347[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v347[i] = v282[i];
    float v143[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v143[i] = v261[i];
    float v348[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v348[i] = v284[i];
    float v148[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v148[i] = v264[i];
    float v349[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v349[i] = v286[i];
    for (long long v87 = (long long)blockIdx.x; v87 < p9;) {
#pragma unroll
      for (int turn = 0; turn < 3; ++turn, v87 += (long long)gridDim.x) {
        if (turn > 0 && !(v87 < p9)) goto after_v87;
        const long long v289 = v87 + ((long long)gridDim.x * 2);
        const bool v290 = v289 < p9;
        const long long v294 = (v289 * 2048) * 2;
        unsigned char* const v295 = p11 + v294;
        float v297[8];
        load_bf16_8(v297 + 0, (const unsigned short*)v295 + col3, v290);
        unsigned char* const v300 = p11 + (p12 * 2);
        unsigned char* const v301 = v300 + v294;
        float v302[8];
        load_bf16_8(v302 + 0, (const unsigned short*)v301 + col3, v290);
        unsigned char* const v305 = p11 + ((2 * p12) * 2);
        unsigned char* const v306 = v305 + v294;
        float v307[8];
        load_bf16_8(v307 + 0, (const unsigned short*)v306 + col3, v290);
        unsigned char* const v311 = p11 + ((3 * p12) * 2);
        unsigned char* const v312 = v311 + v294;
        float v313[8];
        load_bf16_8(v313 + 0, (const unsigned short*)v312 + col3, v290);
        unsigned char* const v317 = p11 + ((4 * p12) * 2);
        unsigned char* const v318 = v317 + v294;
        float v319[8];
        load_bf16_8(v319 + 0, (const unsigned short*)v318 + col3, v290);
        unsigned char* const v323 = p11 + ((5 * p12) * 2);
        unsigned char* const v324 = v323 + v294;
        float v325[8];
        load_bf16_8(v325 + 0, (const unsigned short*)v324 + col3, v290);
        unsigned char* const v329 = p11 + ((6 * p12) * 2);
        unsigned char* const v330 = v329 + v294;
        float v331[8];
        load_bf16_8(v331 + 0, (const unsigned short*)v330 + col3, v290);
        unsigned char* const v335 = p11 + ((7 * p12) * 2);
        unsigned char* const v336 = v335 + v294;
        float v337[8];
        load_bf16_8(v337 + 0, (const unsigned short*)v336 + col3, v290);
        unsigned char* const v339 = p13 + v294;
        float v340[8];
        load_bf16_8(v340 + 0, (const unsigned short*)v339 + col3, v290);
        const long long v96 = (v87 * 2048) * 2;
        float v150[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v150[i] = round_bf16(((round_bf16((((((((v98[i] + v102[i]) + v108[i]) + v115[i]) + v122[i]) + v129[i]) + v136[i]) + v143[i]))) + v148[i]));
        float v152[1];
        v152[0] = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v152[0] = v152[0] + (v150[i] * v150[i]);
        v152[0] = v152[0] + __shfl_xor_sync(0xffffffffu, v152[0], 1);
        v152[0] = v152[0] + __shfl_xor_sync(0xffffffffu, v152[0], 2);
        v152[0] = v152[0] + __shfl_xor_sync(0xffffffffu, v152[0], 4);
        v152[0] = v152[0] + __shfl_xor_sync(0xffffffffu, v152[0], 8);
        v152[0] = v152[0] + __shfl_xor_sync(0xffffffffu, v152[0], 16);
        float* const s152 = (float*)(smem + 196736);
        meet();
        if ((lane & 31) == 0) {
          s152[at7] = v152[0];
        }
        meet();
        v152[0] = s152[0];
#pragma unroll
        for (int w = 1; w < 8; ++w) {
          v152[0] = v152[0] + s152[0 + w];
        }
        const float v154 = (float)2048;
        float v157[1];
        v157[0] = rsqrtf(((v152[0] / v154) + 1e-05f));
        float v161[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v161[i] = (v150[i] * v157[0]) * v160[i];
        unsigned char* const v164 = p15 + v96;
        store_bf16_8((unsigned short*)v164 + col3, v161 + 0, true);
        unsigned char* const v167 = p16 + v96;
        store_bf16_8((unsigned short*)v167 + col3, v150 + 0, true);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v98[i] = v341[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v341[i] = v297[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v102[i] = v342[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v342[i] = v302[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v108[i] = v343[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v343[i] = v307[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v115[i] = v344[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v344[i] = v313[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v122[i] = v345[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v345[i] = v319[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v129[i] = v346[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v346[i] = v325[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v136[i] = v347[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v347[i] = v331[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v143[i] = v348[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v348[i] = v337[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v148[i] = v349[i];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          v349[i] = v340[i];
      }
    }
    after_v87:;
    const long long v169 = (long long)gridDim.x + (long long)blockIdx.x;
    if (p6) signal(comm, peers, v169);
    if (p6 && !wait(comm, peers, v169)) return;
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) {
      int v175 = 0;
      for (long long v174 = (long long)blockIdx.x; v174 < v9; v174 += (long long)gridDim.x) {
        const int v177 = (int)v174;
        const int v178 = (int)p7;
        const int v180 = v177 % v178;
        const int v189 = (int)p10;
        const int v194 = (v180 % v189) * 128;
        const int v195 = (v180 / v189) * 128;
        const long long v196 = ((((long long)rank + 1) + (v177 / v178)) % 8) * p9;
        int v200 = v175;
        for (long long v199 = 0; v199 < 1024; v199 += 64) {
          await_phase(shared + 196648 + (unsigned)v200 % 5 * 8, (unsigned)v200 / 5 & 1 ^ 1);
          arrive_expecting(shared + 196608 + (unsigned)v200 % 5 * 8, 32768);
          const long long v203 = v194 + v196;
          copy_tile(shared + 0 + (int)((unsigned)v200 % 5) * 16384 + 0, ((unsigned char*)p17.bytes), shared + 196608 + (unsigned)v200 % 5 * 8, (int)v199 + 0, (int)v203 + 0);
          copy_tile(shared + 81920 + (int)((unsigned)v200 % 5) * 16384 + 0, ((unsigned char*)p18.bytes), shared + 196608 + (unsigned)v200 % 5 * 8, (int)v195 + 0, (int)v199 + 0);
          copy_tile(shared + 81920 + (int)((unsigned)v200 % 5) * 16384 + 8192, ((unsigned char*)p18.bytes), shared + 196608 + (unsigned)v200 % 5 * 8, (int)v195 + 64, (int)v199 + 0);
          const int v209 = v200 + 1;
          v200 = v209;
        }
        v175 = v200;
      }
    }
  }
  close_comm(comm);
}
