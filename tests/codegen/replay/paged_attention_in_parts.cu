// narrow_pair_bf16, load_i32_1, store_bf16_2, exp2_approx, max_f32, max_i64, min_i64, smem, shared_address, commit_group, copy_async_16, wait_group_0, ldmatrix, ldmatrix_trans, mma_bf16_bf16, pack_bf16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(128, 1) paged_attention_paged_attention_in_parts(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, Record* record, int step, long long p5, unsigned char* __restrict__ p6, unsigned char* __restrict__ p7, unsigned char* __restrict__ p8, unsigned char* __restrict__ p9, unsigned char* __restrict__ p10) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 16 % 2 + warp % 4 * 2;
  const int col1 = lane % 16 * 8;
  const int row2 = lane / 4 % 8 + warp % 4 * 16;
  const int col3 = lane % 4 * 2;
  const int row4 = lane / 16 % 2 + warp % 4 * 2;
  const int col5 = lane % 16 * 8;
  const int col6 = lane % 4 * 2;
  const int at7 = ((lane % 32 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + warp % 4 * 512;
  const int at8 = ((lane % 32 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + warp % 4 * 512;
  const int at9 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256 + warp % 4 * 4096;
  const int at10 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 256 + lane / 16 % 2 * 2048;
  const int at11 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256;
  const int v2 = (int)p0;
  const int v5 = (int)(long long)blockIdx.x;
  const bool v6 = v5 < 20;
  const int v8 = v5 + 1;
  const long long v9 = (long long)v5;
  long long v12;
  load_i32_1(&v12, (const int*)p1 + v9, v6);
  const int v13 = (int)v12;
  long long v15;
  load_i32_1(&v15, (const int*)p1 + ((long long)v8), v6);
  const int v16 = (int)v15;
  long long v18;
  load_i32_1(&v18, (const int*)p2 + v9, v6);
  const int v19 = (int)v18;
  const int v20 = v16 - v13;
  {
    bool bad = false;
    long long index = 0;
    if ((v5 < 1) && (v13 < 0 || v13 >= 1)) bad = true, index = v13;
    if (bad) bad_index(record, step, 327680, index, 1);
  }
  const long long v27 = (long long)(v2 + 1);
  {
    bool bad = false;
    long long index = 0;
    if (v6 && (v16 < 0 || v16 >= v27)) bad = true, index = v16;
    if (bad) bad_index(record, step, 327680, index, v27);
  }
  {
    bool bad = false;
    long long index = 0;
    if (v6 && (v20 < 0 || v20 >= v27)) bad = true, index = v20;
    if (bad) bad_index(record, step, 327680, index, v27);
  }
  {
    bool bad = false;
    long long index = 0;
    if ((v8 == 20) && ((v2 - v16) < 0 || (v2 - v16) >= 1)) bad = true, index = (v2 - v16);
    if (bad) bad_index(record, step, 327680, index, 1);
  }
  {
    bool bad = false;
    long long index = 0;
    if (v6 && (v19 < 0 || v19 >= 1025)) bad = true, index = v19;
    if (bad) bad_index(record, step, 262144, index, 1025);
  }
  {
    bool bad = false;
    long long index = 0;
    if (v6 && (v20 < 0 || v20 >= ((long long)(v19 + 1)))) bad = true, index = v20;
    if (bad) bad_index(record, step, 327680, index, ((long long)(v19 + 1)));
  }
  const int v38 = v5 % 2;
  const int v44 = (((int)p5) - 1) - (v5 / 2);
  int v49 = 0;
  long long v50 = 20;
  for (long long v48 = 0; v48 < 5; v48 += 1) {
    const long long v54 = (v49 + v50) / 2;
    long long v56;
    load_i32_1(&v56, (const int*)p1 + ((long long)v54), true);
    const bool v65 = v44 < ((((min((max(((int)v56), 0)), v2)) * 4) / 64) + v54);
    const int v66 = v65 ? v49 : v54;
    const long long v67 = v65 ? v54 : v50;
    v49 = v66;
    v50 = v67;
  }
  const long long v70 = (long long)v49;
  long long v71;
  load_i32_1(&v71, (const int*)p1 + v70, true);
  const int v74 = min((max(((int)v71), 0)), v2);
  long long v77;
  load_i32_1(&v77, (const int*)p1 + ((long long)(v49 + 1)), true);
  const int v81 = max(v74, (min((max(((int)v77), 0)), v2)));
  const int v83 = v74 * 4;
  const int v90 = v83 + ((max((v44 - ((v83 / 64) + v49)), 0)) * 64);
  const int v91 = v81 * 4;
  long long v92;
  load_i32_1(&v92, (const int*)p2 + v70, true);
  const int v93 = (int)v92;
  const int v99 = (((-1 < v93) && (v93 < 1025)) ? v93 : 0) - v81;
  const int v107 = (v90 < v91) ? ((v99 + (((min((v90 + 64), v91)) - 1) / 4)) + 1) : 0;
  const int v112 = max(((v99 + (v90 / 4)) - 499), 0);
  int v114[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v114[i] = v90 + (row0 + i % 8 * 8);
  const int v120 = (int)(((long long)v38) * 4);
  bool v124[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v124[i] = v114[i] < v91;
  int v130[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v130[i] = (((int)(v114[i] / 4)) * 1024) + ((v120 + ((int)(v114[i] % 4))) * 128);
  const long long v136 = (long long)((v112 / 32) * 32);
  const long long v137 = (long long)v107;
  const long long v143 = (v136 / 512) * 512;
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 0 + (at7 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)p6 + (v130[i / 8 % 8] + (col1 + i % 8)), 1 && v124[i / 8 % 8]);
  float v145[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v145[i] = __int_as_float(0xff800000);
  float v146[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v146[i] = 0.0f;
  float v147[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v147[i] = 0.0f;
  for (long long v144 = v143; v144 < v137; v144 += 512) {
    const long long v149 = max_i64(v144, v136);
    const long long v151 = min_i64((v144 + 512), v137);
    wait_group_0();
    const bool v301 = v149 < v151;
    const long long v308 = v70 * 64;
    const int v309 = (int)v149;
    const int v314 = v309 + 16;
    const bool v316 = (v309 < v107) && (v112 < v314);
    long long v317;
    load_i32_1(&v317, (const int*)p7 + (v308 + ((long long)(v309 / 16))), v316);
    const int v318 = (int)v317;
    const bool v325 = (v314 < v107) && (v112 < (v314 + 16));
    long long v326;
    load_i32_1(&v326, (const int*)p7 + (v308 + ((long long)(v314 / 16))), v325);
    const int v327 = (int)v326;
    int v328[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v328[i] = ((row4 + i % 4 * 8) < 16) ? v318 : v327;
    int v336[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v336[i] = (((int)v328[i]) * 4096) + (((int)((row4 + i % 4 * 8) % 16)) * 256);
    int v340[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v340[i] = v336[i] + ((0 + v38) * 128);
    int v343[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v343[i] = v309 + (row4 + i % 4 * 8);
    bool v353[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v353[i] = (((v343[i] < v107) && (!(v343[i] < v112))) && (-1 < v328[i])) && (v328[i] < 1000);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p8 + (v340[i / 8 % 4] + (col5 + i % 8)), v301 && v353[i / 8 % 4]);
    int v359[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v359[i] = v336[i] + ((0 + v38) * 128);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 32768 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p9 + (v359[i / 8 % 4] + (col5 + i % 8)), v301 && v353[i / 8 % 4]);
    {
      bool bad = false;
      long long index = 0;
      if (v316 && (v318 < 0 || v318 >= 1000)) bad = true, index = v318;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    {
      bool bad = false;
      long long index = 0;
      if (v325 && (v327 < 0 || v327 >= 1000)) bad = true, index = v327;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    float v157[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v157[i] = __int_as_float(0xff800000);
    float v158[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v158[i] = 0.0f;
    float v159[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v159[i] = 0.0f;
    int v366 = 0;
    int v368 = 1;
    for (long long v156 = v149; v156 < v151; v156 += 32) {
      wait_group_0();
      const long long v372 = v156 + 32;
      const bool v373 = v372 < v151;
      const long long v380 = v70 * 64;
      const int v381 = (int)v372;
      const int v386 = v381 + 16;
      const bool v388 = (v381 < v107) && (v112 < v386);
      long long v389;
      load_i32_1(&v389, (const int*)p7 + (v380 + ((long long)(v381 / 16))), v388);
      const int v390 = (int)v389;
      const bool v397 = (v386 < v107) && (v112 < (v386 + 16));
      long long v398;
      load_i32_1(&v398, (const int*)p7 + (v380 + ((long long)(v386 / 16))), v397);
      const int v399 = (int)v398;
      int v400[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v400[i] = ((row4 + i % 4 * 8) < 16) ? v390 : v399;
      int v408[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v408[i] = (((int)v400[i]) * 4096) + (((int)((row4 + i % 4 * 8) % 16)) * 256);
      int v412[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v412[i] = v408[i] + ((0 + v38) * 128);
      int v415[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v415[i] = v381 + (row4 + i % 4 * 8);
      bool v425[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v425[i] = (((v415[i] < v107) && (!(v415[i] < v112))) && (-1 < v400[i])) && (v400[i] < 1000);
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 16384 + (int)v368 * 8192 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p8 + (v412[i / 8 % 4] + (col5 + i % 8)), v373 && v425[i / 8 % 4]);
      int v431[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v431[i] = v408[i] + ((0 + v38) * 128);
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 32768 + (int)v368 * 8192 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p9 + (v431[i / 8 % 4] + (col5 + i % 8)), v373 && v425[i / 8 % 4]);
      {
        bool bad = false;
        long long index = 0;
        if (v388 && (v390 < 0 || v390 >= 1000)) bad = true, index = v390;
        if (bad) bad_index(record, step, 196608, index, 1000);
      }
      {
        bool bad = false;
        long long index = 0;
        if (v397 && (v399 < 0 || v399 >= 1000)) bad = true, index = v399;
        if (bad) bad_index(record, step, 196608, index, 1000);
      }
      commit_group();
      const int v162 = (int)v156;
      float v217[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v217[i] = 0.0f;
      {
        const unsigned a = shared + 0;
        const unsigned b = shared + 16384 + (int)v366 * 8192;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          unsigned fa[1][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 1; ++m)
            ldmatrix(fa[m], a + (at9 ^ (k % 8 * 32)));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix(fb[n], b + ((at10 ^ (k % 8 * 32)) + n / 2 % 2 * 4096));
#pragma unroll
          for (int m = 0; m < 1; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v217 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      int v448[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v448[i] = v90 + (row2 + i % 2 * 8);
      float v232[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v232[i] = (v448[i / 2 % 2] < ((((v162 + (col6 + i % 2 + i / 4 % 4 * 8)) - v99) * 4) + 2000)) ? ((!(v448[i / 2 % 2] < (((v162 + (col6 + i % 2 + i / 4 % 4 * 8)) - v99) * 4))) ? (tanhf((v217[i] * 0.00294627825f))) : __int_as_float(0xff800000)) : __int_as_float(0xff800000);
      float v233[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v233[i] = __int_as_float(0xff800000);
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v233[i / 2 % 2] = max_f32(v233[i / 2 % 2], v232[i]);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v233[i] = max_f32(v233[i], __shfl_xor_sync(0xffffffffu, v233[i], 1));
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v233[i] = max_f32(v233[i], __shfl_xor_sync(0xffffffffu, v233[i], 2));
      float v234[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v234[i] = max_f32(v157[i], v233[i]);
      float v237[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v237[i] = (v234[i] == __int_as_float(0xff800000)) ? 0.0f : v234[i];
      float v239[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v239[i] = v237[i] * -43.2808512f;
      float v242[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v242[i] = exp2_approx((__fmaf_rn(v232[i], 43.2808512f, v239[i / 2 % 2])));
      float v245[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v245[i] = exp2_approx(((v157[i] - v237[i]) * 43.2808512f));
      float v247[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v247[i] = 0.0f;
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v247[i / 2 % 2] = v247[i / 2 % 2] + v242[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v247[i] = v247[i] + __shfl_xor_sync(0xffffffffu, v247[i], 1);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v247[i] = v247[i] + __shfl_xor_sync(0xffffffffu, v247[i], 2);
      float v248[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v248[i] = (v158[i] * v245[i]) + v247[i];
      float v249[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v249[i] = v159[i] * v245[i / 2 % 2];
      {
        const unsigned b = shared + 32768 + (int)v366 * 8192;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          unsigned fa[1][4], fb[16][2];
#pragma unroll
          for (int m = 0; m < 1; ++m)
            for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v242 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
          for (int n = 0; n < 16; n += 2)
            ldmatrix_trans(fb[n], b + ((at11 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
          for (int m = 0; m < 1; ++m) {
#pragma unroll
            for (int n = 0; n < 16; ++n) mma_bf16_bf16(v249 + (m * 16 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      const int v440 = v366 + 1;
      const int v444 = (v440 < 2) ? v440 : 0;
      const int v445 = v368 + 1;
      const int v447 = (v445 < 2) ? v445 : 0;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v157[i] = v234[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v158[i] = v248[i];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v159[i] = v249[i];
      v366 = v444;
      v368 = v447;
    }
    float v262[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v262[i] = v157[i] * 30.0f;
    float v263[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v263[i] = max_f32(v145[i], v262[i]);
    float v267[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v267[i] = (v263[i] == __int_as_float(0xff800000)) ? 0.0f : v263[i];
    float v271[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v271[i] = exp2_approx(((v145[i] - v267[i]) * 1.44269504f));
    float v274[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v274[i] = exp2_approx(((v262[i] - v267[i]) * 1.44269504f));
    bool v275[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v275[i] = v262[i] == __int_as_float(0xff800000);
    float v278[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v278[i] = __fmaf_rn(v158[i], v274[i], (v146[i] * v271[i]));
    float v280[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v280[i] = __fmaf_rn((v275[i / 2 % 2] ? 0.0f : v159[i]), v274[i / 2 % 2], (v147[i] * v271[i / 2 % 2]));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v145[i] = v263[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v146[i] = v278[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v147[i] = v280[i];
  }
  float v288[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v288[i] = 1.0f / ((v146[i] == 0.0f) ? 1.0f : v146[i]);
  float v289[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v289[i] = v147[i] * v288[i / 2 % 2];
  int v452[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v452[i] = v90 + (row2 + i % 2 * 8);
  int v460[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v460[i] = (((int)(v452[i] / 4)) * 1024) + ((v120 + ((int)(v452[i] % 4))) * 128);
  bool v462[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v462[i] = v452[i] < v91;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_bf16_2((unsigned short*)p10 + (v460[i / 2 % 2] + (col3 + i % 2 + i / 4 % 16 * 8)), v289 + i, v462[i / 2 % 2]);
}
