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
  const int v82 = (max(v74, (min((max(((int)v77), 0)), v2)))) - v74;
  const int v84 = v82 * 4;
  const int v91 = (max((v44 - (((v74 * 4) / 64) + v49)), 0)) * 64;
  long long v92;
  load_i32_1(&v92, (const int*)p2 + v70, true);
  const int v93 = (int)v92;
  const int v99 = (((-1 < v93) && (v93 < 1025)) ? v93 : 0) - v82;
  const int v107 = (v91 < v84) ? ((v99 + (((min((v91 + 64), v84)) - 1) / 4)) + 1) : 0;
  const int v112 = max(((v99 + (v91 / 4)) - 499), 0);
  int v114[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v114[i] = v91 + (row0 + i % 8 * 8);
  int v115[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v115[i] = v114[i] / 4;
  const int v121 = (int)(v39 * 4);
  bool v125[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v125[i] = v114[i] < v84;
  int v131[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v131[i] = (((int)(v74 + v115[i])) * 1024) + ((v121 + ((int)(v114[i] % 4))) * 128);
  const long long v137 = (long long)((v112 / 32) * 32);
  const long long v138 = (long long)v107;
  const long long v144 = (v137 / 512) * 512;
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 0 + (at7 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)p6 + (v131[i / 8 % 8] + (col1 + i % 8)), 1 && v125[i / 8 % 8]);
  float v146[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v146[i] = __int_as_float(0xff800000);
  float v147[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v147[i] = 0.0f;
  float v148[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v148[i] = 0.0f;
  for (long long v145 = v144; v145 < v138; v145 += 512) {
    const long long v150 = max_i64(v145, v137);
    const long long v152 = min_i64((v145 + 512), v138);
    wait_group_0();
    const bool v280 = v150 < v152;
    const long long v283 = (v39 * 128) * 2;
    unsigned char* const v284 = p8 + v283;
    unsigned char* const v289 = p7 + ((v70 * 64) * 4);
    const int v290 = (int)v150;
    int v292[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v292[i] = v290 + (row4 + i % 4 * 8);
    bool v299[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v299[i] = (v292[i] < v107) && (!(v292[i] < v112));
    long long v300[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      load_i32_1(v300 + i, (const int*)v289 + ((int)(v292[i] / 16)), v299[i]);
    int v301[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v301[i] = (int)v300[i];
    int v309[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v309[i] = (((int)v301[i]) * 4096) + (((int)(v292[i] % 16)) * 256);
    bool v317[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v317[i] = (v299[i] && (-1 < v301[i])) && (v301[i] < 1000);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v284 + (v309[i / 8 % 4] + (col5 + i % 8)), v280 && v317[i / 8 % 4]);
    unsigned char* const v320 = p9 + v283;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 32768 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v320 + (v309[i / 8 % 4] + (col5 + i % 8)), v280 && v317[i / 8 % 4]);
    {
      bool bad = false;
      long long index = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (v299[i] && (v301[i] < 0 || v301[i] >= 1000)) bad = true, index = v301[i];
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    float v158[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v158[i] = __int_as_float(0xff800000);
    float v159[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v159[i] = 0.0f;
    float v160[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v160[i] = 0.0f;
    int v325 = 0;
    int v327 = 1;
    for (long long v157 = v150; v157 < v152; v157 += 32) {
      wait_group_0();
      const long long v331 = v157 + 32;
      const bool v332 = v331 < v152;
      const long long v335 = (v39 * 128) * 2;
      unsigned char* const v336 = p8 + v335;
      unsigned char* const v341 = p7 + ((v70 * 64) * 4);
      const int v342 = (int)v331;
      int v344[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v344[i] = v342 + (row4 + i % 4 * 8);
      bool v351[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v351[i] = (v344[i] < v107) && (!(v344[i] < v112));
      long long v352[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        load_i32_1(v352 + i, (const int*)v341 + ((int)(v344[i] / 16)), v351[i]);
      int v353[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v353[i] = (int)v352[i];
      int v361[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v361[i] = (((int)v353[i]) * 4096) + (((int)(v344[i] % 16)) * 256);
      bool v369[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v369[i] = (v351[i] && (-1 < v353[i])) && (v353[i] < 1000);
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 16384 + (int)v327 * 8192 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v336 + (v361[i / 8 % 4] + (col5 + i % 8)), v332 && v369[i / 8 % 4]);
      unsigned char* const v372 = p9 + v335;
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 32768 + (int)v327 * 8192 + (at8 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v372 + (v361[i / 8 % 4] + (col5 + i % 8)), v332 && v369[i / 8 % 4]);
      {
        bool bad = false;
        long long index = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (v351[i] && (v353[i] < 0 || v353[i] >= 1000)) bad = true, index = v353[i];
        if (bad) bad_index(record, step, 196608, index, 1000);
      }
      commit_group();
      const int v163 = (int)v157;
      float v202[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v202[i] = 0.0f;
      {
        const unsigned a = shared + 0;
        const unsigned b = shared + 16384 + (int)v325 * 8192;
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
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v202 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      int v208[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v208[i] = v99 + v115[i];
      int v212[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v212[i] = v208[i] - 500;
      int v389[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v389[i] = v99 + ((v91 + (row2 + i % 2 * 8)) / 4);
      int v392[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v392[i] = v389[i] - 500;
      float v216[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v216[i] = (v392[i / 2 % 2] < (v163 + (col6 + i % 2 + i / 4 % 4 * 8))) ? ((!(v389[i / 2 % 2] < (v163 + (col6 + i % 2 + i / 4 % 4 * 8)))) ? (tanhf((v202[i] * 0.00294627825f))) : __int_as_float(0xff800000)) : __int_as_float(0xff800000);
      float v217[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v217[i] = __int_as_float(0xff800000);
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v217[i / 2 % 2] = max_f32(v217[i / 2 % 2], v216[i]);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v217[i] = max_f32(v217[i], __shfl_xor_sync(0xffffffffu, v217[i], 1));
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v217[i] = max_f32(v217[i], __shfl_xor_sync(0xffffffffu, v217[i], 2));
      float v218[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v218[i] = max_f32(v158[i], v217[i]);
      float v221[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v221[i] = (v218[i] == __int_as_float(0xff800000)) ? 0.0f : v218[i];
      float v223[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v223[i] = v221[i] * -43.2808512f;
      float v226[16];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v226[i] = exp2_approx((__fmaf_rn(v216[i], 43.2808512f, v223[i / 2 % 2])));
      float v229[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v229[i] = exp2_approx(((v158[i] - v221[i]) * 43.2808512f));
      float v231[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v231[i] = 0.0f;
#pragma unroll
      for (int i = 0; i < 16; ++i)
        v231[i / 2 % 2] = v231[i / 2 % 2] + v226[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v231[i] = v231[i] + __shfl_xor_sync(0xffffffffu, v231[i], 1);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v231[i] = v231[i] + __shfl_xor_sync(0xffffffffu, v231[i], 2);
      float v232[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v232[i] = (v159[i] * v229[i]) + v231[i];
      float v233[64];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v233[i] = v160[i] * v229[i / 2 % 2];
      {
        const unsigned b = shared + 32768 + (int)v325 * 8192;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          unsigned fa[1][4], fb[16][2];
#pragma unroll
          for (int m = 0; m < 1; ++m)
            for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v226 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
          for (int n = 0; n < 16; n += 2)
            ldmatrix_trans(fb[n], b + ((at11 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
          for (int m = 0; m < 1; ++m) {
#pragma unroll
            for (int n = 0; n < 16; ++n) mma_bf16_bf16(v233 + (m * 16 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      const int v379 = v325 + 1;
      const int v383 = (v379 < 2) ? v379 : 0;
      const int v384 = v327 + 1;
      const int v386 = (v384 < 2) ? v384 : 0;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v158[i] = v218[i];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v159[i] = v232[i];
#pragma unroll
      for (int i = 0; i < 64; ++i)
        v160[i] = v233[i];
      v325 = v383;
      v327 = v386;
    }
    float v242[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v242[i] = v158[i] * 30.0f;
    float v243[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v243[i] = max_f32(v146[i], v242[i]);
    float v247[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v247[i] = (v243[i] == __int_as_float(0xff800000)) ? 0.0f : v243[i];
    float v251[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v251[i] = exp2_approx(((v146[i] - v247[i]) * 1.44269504f));
    float v254[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v254[i] = exp2_approx(((v242[i] - v247[i]) * 1.44269504f));
    bool v255[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v255[i] = v242[i] == __int_as_float(0xff800000);
    float v258[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v258[i] = __fmaf_rn(v159[i], v254[i], (v147[i] * v251[i]));
    float v260[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v260[i] = __fmaf_rn((v255[i / 2 % 2] ? 0.0f : v160[i]), v254[i / 2 % 2], (v148[i] * v251[i / 2 % 2]));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v146[i] = v243[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v147[i] = v258[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v148[i] = v260[i];
  }
  float v267[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v267[i] = (v147[i] == 0.0f) ? 1.0f : v147[i];
  float v268[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v268[i] = v148[i] / v267[i / 2 % 2];
  int v394[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v394[i] = v91 + (row2 + i % 2 * 8);
  int v403[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v403[i] = (((int)(v74 + (v394[i] / 4))) * 1024) + ((v121 + ((int)(v394[i] % 4))) * 128);
  bool v405[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v405[i] = v394[i] < v84;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_bf16_2((unsigned short*)p10 + (v403[i / 2 % 2] + (col3 + i % 2 + i / 4 % 16 * 8)), v268 + i, v405[i / 2 % 2]);
}
