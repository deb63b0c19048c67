// narrow_pair_bf16, load_i32_1, store_bf16_2, exp2_approx, max_f32, smem, shared_address, commit_group, copy_async_16, wait_group_0, ldmatrix, ldmatrix_trans, mma_bf16_bf16, pack_bf16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(64, 1) paged_attention(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, Record* record, int step, long long p5, unsigned char* __restrict__ p6, unsigned char* __restrict__ p7, unsigned char* __restrict__ p8, unsigned char* __restrict__ p9, unsigned char* __restrict__ p10) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 16 % 2 + warp % 2 * 2;
  const int col1 = lane % 16 * 8;
  const int row2 = lane / 16 % 2 + warp % 2 * 2;
  const int col3 = lane % 16 * 8;
  const int row4 = lane / 4 % 8 + warp % 2 * 32;
  const int col5 = lane % 4 * 2;
  const int col6 = lane % 4 * 2;
  const int at7 = ((lane % 32 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 32)) + warp % 2 * 512;
  const int at8 = ((lane % 32 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 32)) + warp % 2 * 512;
  const int at9 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256 + warp % 2 * 8192;
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
  int v114[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v114[i] = v91 + (row0 + i % 16 * 4);
  int v115[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v115[i] = v114[i] / 4;
  const int v121 = (int)(v39 * 4);
  bool v125[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v125[i] = v114[i] < v84;
  int v131[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v131[i] = (((int)(v74 + v115[i])) * 1024) + ((v121 + ((int)(v114[i] % 4))) * 128);
  const long long v140 = (long long)((v112 / 32) * 32);
  const long long v141 = (long long)v107;
#pragma unroll 4
  for (int i = 0; i < 128; i += 8)
    copy_async_16(shared + 0 + ((at7 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 16 * 1024), (const unsigned short*)p6 + (v131[i / 8 % 16] + (col1 + i % 8)), 1 && v125[i / 8 % 16]);
  const bool v241 = v140 < v141;
  const long long v244 = (v39 * 128) * 2;
  unsigned char* const v245 = p8 + v244;
  unsigned char* const v250 = p7 + ((v70 * 64) * 4);
  const int v251 = (int)v140;
  int v253[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v253[i] = v251 + (row2 + i % 8 * 4);
  bool v260[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v260[i] = (v253[i] < v107) && (!(v253[i] < v112));
  long long v261[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_i32_1(v261 + i, (const int*)v250 + ((int)(v253[i] / 16)), v260[i]);
  int v262[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v262[i] = (int)v261[i];
  int v270[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v270[i] = (((int)v262[i]) * 4096) + (((int)(v253[i] % 16)) * 256);
  bool v278[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v278[i] = (v260[i] && (-1 < v262[i])) && (v262[i] < 1000);
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 16384 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)v245 + (v270[i / 8 % 8] + (col3 + i % 8)), v241 && v278[i / 8 % 8]);
  unsigned char* const v281 = p9 + v244;
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 32768 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)v281 + (v270[i / 8 % 8] + (col3 + i % 8)), v241 && v278[i / 8 % 8]);
  {
    bool bad = false;
    long long index = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (v260[i] && (v262[i] < 0 || v262[i] >= 1000)) bad = true, index = v262[i];
    if (bad) bad_index(record, step, 196608, index, 1000);
  }
  commit_group();
  float v144[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v144[i] = __int_as_float(0xff800000);
  float v145[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v145[i] = 0.0f;
  float v146[128];
#pragma unroll
  for (int i = 0; i < 128; ++i)
    v146[i] = 0.0f;
  int v286 = 0;
  int v288 = 1;
  for (long long v143 = v140; v143 < v141; v143 += 32) {
    wait_group_0();
    const long long v292 = v143 + 32;
    const bool v293 = v292 < v141;
    const long long v296 = (v39 * 128) * 2;
    unsigned char* const v297 = p8 + v296;
    unsigned char* const v302 = p7 + ((v70 * 64) * 4);
    const int v303 = (int)v292;
    int v305[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v305[i] = v303 + (row2 + i % 8 * 4);
    bool v312[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v312[i] = (v305[i] < v107) && (!(v305[i] < v112));
    long long v313[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_i32_1(v313 + i, (const int*)v302 + ((int)(v305[i] / 16)), v312[i]);
    int v314[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v314[i] = (int)v313[i];
    int v322[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v322[i] = (((int)v314[i]) * 4096) + (((int)(v305[i] % 16)) * 256);
    bool v330[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v330[i] = (v312[i] && (-1 < v314[i])) && (v314[i] < 1000);
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 16384 + (int)v288 * 8192 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)v297 + (v322[i / 8 % 8] + (col3 + i % 8)), v293 && v330[i / 8 % 8]);
    unsigned char* const v333 = p9 + v296;
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 32768 + (int)v288 * 8192 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)v333 + (v322[i / 8 % 8] + (col3 + i % 8)), v293 && v330[i / 8 % 8]);
    {
      bool bad = false;
      long long index = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (v312[i] && (v314[i] < 0 || v314[i] >= 1000)) bad = true, index = v314[i];
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    const int v149 = (int)v143;
    float v188[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v188[i] = 0.0f;
    {
      const unsigned a = shared + 0;
      const unsigned b = shared + 16384 + (int)v286 * 8192;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at9 ^ (k % 8 * 32)) + m % 2 * 4096));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix(fb[n], b + ((at10 ^ (k % 8 * 32)) + n / 2 % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v188 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    int v194[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v194[i] = v99 + v115[i];
    int v198[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v198[i] = v194[i] - 500;
    int v350[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v350[i] = v99 + ((v91 + (row4 + i % 4 * 8)) / 4);
    int v353[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v353[i] = v350[i] - 500;
    float v202[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v202[i] = (v353[i / 2 % 2 + i / 16 % 2 * 2] < (v149 + (col6 + i % 2 + i / 4 % 4 * 8))) ? ((!(v350[i / 2 % 2 + i / 16 % 2 * 2] < (v149 + (col6 + i % 2 + i / 4 % 4 * 8)))) ? (tanhf((v188[i] * 0.00294627825f))) : __int_as_float(0xff800000)) : __int_as_float(0xff800000);
    float v203[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v203[i] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v203[i / 2 % 2 + i / 16 % 2 * 2] = max_f32(v203[i / 2 % 2 + i / 16 % 2 * 2], v202[i]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v203[i] = max_f32(v203[i], __shfl_xor_sync(0xffffffffu, v203[i], 1));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v203[i] = max_f32(v203[i], __shfl_xor_sync(0xffffffffu, v203[i], 2));
    float v204[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v204[i] = max_f32(v144[i], v203[i]);
    float v207[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v207[i] = (v204[i] == __int_as_float(0xff800000)) ? 0.0f : v204[i];
    float v209[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v209[i] = v207[i] * -43.2808512f;
    float v212[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v212[i] = exp2_approx((__fmaf_rn(v202[i], 43.2808512f, v209[i / 2 % 2 + i / 16 % 2 * 2])));
    float v215[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v215[i] = exp2_approx(((v144[i] - v207[i]) * 43.2808512f));
    float v217[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v217[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v217[i / 2 % 2 + i / 16 % 2 * 2] = v217[i / 2 % 2 + i / 16 % 2 * 2] + v212[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v217[i] = v217[i] + __shfl_xor_sync(0xffffffffu, v217[i], 1);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v217[i] = v217[i] + __shfl_xor_sync(0xffffffffu, v217[i], 2);
    float v218[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v218[i] = (v145[i] * v215[i]) + v217[i];
    float v219[128];
#pragma unroll
    for (int i = 0; i < 128; ++i)
      v219[i] = v146[i] * v215[i / 2 % 2 + i / 64 % 2 * 2];
    {
      const unsigned b = shared + 32768 + (int)v286 * 8192;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        unsigned fa[2][4], fb[16][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v212 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
        for (int n = 0; n < 16; n += 2)
          ldmatrix_trans(fb[n], b + ((at11 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 16; ++n) mma_bf16_bf16(v219 + (m * 16 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v340 = v286 + 1;
    const int v344 = (v340 < 2) ? v340 : 0;
    const int v345 = v288 + 1;
    const int v347 = (v345 < 2) ? v345 : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v144[i] = v204[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v145[i] = v218[i];
#pragma unroll
    for (int i = 0; i < 128; ++i)
      v146[i] = v219[i];
    v286 = v344;
    v288 = v347;
  }
  float v230[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v230[i] = (v145[i] == 0.0f) ? 1.0f : v145[i];
  float v231[128];
#pragma unroll
  for (int i = 0; i < 128; ++i)
    v231[i] = v146[i] / v230[i / 2 % 2 + i / 64 % 2 * 2];
  int v355[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v355[i] = v91 + (row4 + i % 4 * 8);
  int v364[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v364[i] = (((int)(v74 + (v355[i] / 4))) * 1024) + ((v121 + ((int)(v355[i] % 4))) * 128);
  bool v366[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v366[i] = v355[i] < v84;
#pragma unroll
  for (int i = 0; i < 128; i += 2)
    store_bf16_2((unsigned short*)p10 + (v364[i / 2 % 2 + i / 64 % 2 * 2] + (col5 + i % 2 + i / 4 % 16 * 8)), v231 + i, v366[i / 2 % 2 + i / 64 % 2 * 2]);
}
