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
  const long long v39 = (long long)(v5 % 2);
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
  const int v120 = (int)(v39 * 4);
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
    const bool v302 = v149 < v151;
    const long long v309 = v70 * 64;
    const int v310 = (int)v149;
    const int v315 = v310 + 16;
    const bool v317 = (v310 < v107) && (v112 < v315);
    long long v318;
    load_i32_1(&v318, (const int*)p7 + (v309 + ((long long)(v310 / 16))), v317);
    const int v319 = (int)v318;
    const bool v326 = (v315 < v107) && (v112 < (v315 + 16));
    long long v327;
    load_i32_1(&v327, (const int*)p7 + (v309 + ((long long)(v315 / 16))), v326);
    const int v328 = (int)v327;
    int v329[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v329[i] = ((row4 + i % 4 * 8) < 16) ? v319 : v328;
    int v337[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v337[i] = (((int)v329[i]) * 4096) + (((int)((row4 + i % 4 * 8) % 16)) * 256);
    const int v339 = (int)v39;
    int v342[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v342[i] = v337[i] + ((0 + v339) * 128);
    int v345[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v345[i] = v310 + (row4 + i % 4 * 8);
    bool v355[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v355[i] = (((v345[i] < v107) && (!(v345[i] < v112))) && (-1 < v329[i])) && (v329[i] < 1000);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p8 + (v342[i / 8 % 4] + (col5 + i % 8)), v302 && v355[i / 8 % 4]);
    int v361[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v361[i] = v337[i] + ((0 + v339) * 128);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 32768 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p9 + (v361[i / 8 % 4] + (col5 + i % 8)), v302 && v355[i / 8 % 4]);
    {
      bool bad = false;
      long long index = 0;
      if (v317 && (v319 < 0 || v319 >= 1000)) bad = true, index = v319;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    {
      bool bad = false;
      long long index = 0;
      if (v326 && (v328 < 0 || v328 >= 1000)) bad = true, index = v328;
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
    int v368 = 0;
    int v370 = 1;
    for (long long v156 = v149; v156 < v151; v156 += 32) {
      wait_group_0();
      const long long v374 = v156 + 32;
      const bool v375 = v374 < v151;
      const long long v382 = v70 * 64;
      const int v383 = (int)v374;
      const int v388 = v383 + 16;
      const bool v390 = (v383 < v107) && (v112 < v388);
      long long v391;
      load_i32_1(&v391, (const int*)p7 + (v382 + ((long long)(v383 / 16))), v390);
      const int v392 = (int)v391;
      const bool v399 = (v388 < v107) && (v112 < (v388 + 16));
      long long v400;
      load_i32_1(&v400, (const int*)p7 + (v382 + ((long long)(v388 / 16))), v399);
      const int v401 = (int)v400;
      int v402[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v402[i] = ((row4 + i % 4 * 8) < 16) ? v392 : v401;
      int v410[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v410[i] = (((int)v402[i]) * 4096) + (((int)((row4 + i % 4 * 8) % 16)) * 256);
      const int v412 = (int)v39;
      int v415[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v415[i] = v410[i] + ((0 + v412) * 128);
      int v418[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v418[i] = v383 + (row4 + i % 4 * 8);
      bool v428[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v428[i] = (((v418[i] < v107) && (!(v418[i] < v112))) && (-1 < v402[i])) && (v402[i] < 1000);
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 16384 + (int)v370 * 8192 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p8 + (v415[i / 8 % 4] + (col5 + i % 8)), v375 && v428[i / 8 % 4]);
      int v434[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v434[i] = v410[i] + ((0 + v412) * 128);
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 32768 + (int)v370 * 8192 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p9 + (v434[i / 8 % 4] + (col5 + i % 8)), v375 && v428[i / 8 % 4]);
      {
        bool bad = false;
        long long index = 0;
        if (v390 && (v392 < 0 || v392 >= 1000)) bad = true, index = v392;
        if (bad) bad_index(record, step, 196608, index, 1000);
      }
      {
        bool bad = false;
        long long index = 0;
        if (v399 && (v401 < 0 || v401 >= 1000)) bad = true, index = v401;
        if (bad) bad_index(record, step, 196608, index, 1000);
      }
      commit_group();
      const int v162 = (int)v156;
      float v218[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v218[i] = 0.0f;
      {
        const unsigned a = shared + 0;
        const unsigned b = shared + 16384 + (int)v368 * 8192;
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
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v218 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      int v451[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v451[i] = v90 + (row2 + i % 2 * 8);
      float v233[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v233[i] = (v451[i / 2 % 2] < ((((v162 + (col6 + i % 2 + i / 4 % 4 * 8)) - v99) * 4) + 2000)) ? ((!(v451[i / 2 % 2] < (((v162 + (col6 + i % 2 + i / 4 % 4 * 8)) - v99) * 4))) ? (tanhf((v218[i] * 0.00294627825f))) : __int_as_float(0xff800000)) : __int_as_float(0xff800000);
      float v234[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v234[i] = __int_as_float(0xff800000);
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v234[i / 2 % 2] = max_f32(v234[i / 2 % 2], v233[i]);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v234[i] = max_f32(v234[i], __shfl_xor_sync(0xffffffffu, v234[i], 1));
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v234[i] = max_f32(v234[i], __shfl_xor_sync(0xffffffffu, v234[i], 2));
      float v235[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v235[i] = max_f32(v157[i], v234[i]);
      float v238[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v238[i] = (v235[i] == __int_as_float(0xff800000)) ? 0.0f : v235[i];
      float v240[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v240[i] = v238[i] * -43.2808512f;
      float v243[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v243[i] = exp2_approx((__fmaf_rn(v233[i], 43.2808512f, v240[i / 2 % 2])));
      float v246[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v246[i] = exp2_approx(((v157[i] - v238[i]) * 43.2808512f));
      float v248[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v248[i] = 0.0f;
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v248[i / 2 % 2] = v248[i / 2 % 2] + v243[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v248[i] = v248[i] + __shfl_xor_sync(0xffffffffu, v248[i], 1);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v248[i] = v248[i] + __shfl_xor_sync(0xffffffffu, v248[i], 2);
      float v249[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v249[i] = (v158[i] * v246[i]) + v248[i];
      float v250[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v250[i] = v159[i] * v246[i / 2 % 2];
      {
        const unsigned b = shared + 32768 + (int)v368 * 8192;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          unsigned fa[1][4], fb[16][2];
#pragma unroll
          for (int m = 0; m < 1; ++m)
            for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v243 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
          for (int n = 0; n < 16; n += 2)
            ldmatrix_trans(fb[n], b + ((at11 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
          for (int m = 0; m < 1; ++m) {
#pragma unroll
            for (int n = 0; n < 16; ++n) mma_bf16_bf16(v250 + (m * 16 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      const int v443 = v368 + 1;
      const int v447 = (v443 < 2) ? v443 : 0;
      const int v448 = v370 + 1;
      const int v450 = (v448 < 2) ? v448 : 0;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v157[i] = v235[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v158[i] = v249[i];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v159[i] = v250[i];
      v368 = v447;
      v370 = v450;
    }
    float v263[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v263[i] = v157[i] * 30.0f;
    float v264[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v264[i] = max_f32(v145[i], v263[i]);
    float v268[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v268[i] = (v264[i] == __int_as_float(0xff800000)) ? 0.0f : v264[i];
    float v272[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v272[i] = exp2_approx(((v145[i] - v268[i]) * 1.44269504f));
    float v275[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v275[i] = exp2_approx(((v263[i] - v268[i]) * 1.44269504f));
    bool v276[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v276[i] = v263[i] == __int_as_float(0xff800000);
    float v279[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v279[i] = __fmaf_rn(v158[i], v275[i], (v146[i] * v272[i]));
    float v281[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v281[i] = __fmaf_rn((v276[i / 2 % 2] ? 0.0f : v159[i]), v275[i / 2 % 2], (v147[i] * v272[i / 2 % 2]));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v145[i] = v264[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v146[i] = v279[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v147[i] = v281[i];
  }
  float v289[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v289[i] = 1.0f / ((v146[i] == 0.0f) ? 1.0f : v146[i]);
  float v290[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v290[i] = v147[i] * v289[i / 2 % 2];
  int v455[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v455[i] = v90 + (row2 + i % 2 * 8);
  int v463[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v463[i] = (((int)(v455[i] / 4)) * 1024) + ((v120 + ((int)(v455[i] % 4))) * 128);
  bool v465[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v465[i] = v455[i] < v91;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_bf16_2((unsigned short*)p10 + (v463[i / 2 % 2] + (col3 + i % 2 + i / 4 % 16 * 8)), v290 + i, v465[i / 2 % 2]);
}
