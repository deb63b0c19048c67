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
  int v114[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v114[i] = v90 + (row0 + i % 16 * 4);
  const int v120 = (int)(((long long)v38) * 4);
  bool v124[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v124[i] = v114[i] < v91;
  int v130[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v130[i] = (((int)(v114[i] / 4)) * 1024) + ((v120 + ((int)(v114[i] % 4))) * 128);
  const long long v139 = (long long)((v112 / 32) * 32);
  const long long v140 = (long long)v107;
#pragma unroll
  for (int i = 0; i < 128; i += 8)
    copy_async_16(shared + 0 + ((at7 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 16 * 1024), (const unsigned short*)p6 + (v130[i / 8 % 16] + (col1 + i % 8)), 1 && v124[i / 8 % 16]);
  const bool v262 = v139 < v140;
  const long long v269 = v70 * 64;
  const int v270 = (int)v139;
  const int v275 = v270 + 16;
  const bool v277 = (v270 < v107) && (v112 < v275);
  long long v278;
  load_i32_1(&v278, (const int*)p7 + (v269 + ((long long)(v270 / 16))), v277);
  const int v279 = (int)v278;
  const bool v286 = (v275 < v107) && (v112 < (v275 + 16));
  long long v287;
  load_i32_1(&v287, (const int*)p7 + (v269 + ((long long)(v275 / 16))), v286);
  const int v288 = (int)v287;
  int v289[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v289[i] = ((row2 + i % 8 * 4) < 16) ? v279 : v288;
  int v297[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v297[i] = (((int)v289[i]) * 4096) + (((int)((row2 + i % 8 * 4) % 16)) * 256);
  int v301[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v301[i] = v297[i] + ((0 + v38) * 128);
  int v304[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v304[i] = v270 + (row2 + i % 8 * 4);
  bool v314[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v314[i] = (((v304[i] < v107) && (!(v304[i] < v112))) && (-1 < v289[i])) && (v289[i] < 1000);
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 16384 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)p8 + (v301[i / 8 % 8] + (col3 + i % 8)), v262 && v314[i / 8 % 8]);
  int v320[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v320[i] = v297[i] + ((0 + v38) * 128);
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 32768 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)p9 + (v320[i / 8 % 8] + (col3 + i % 8)), v262 && v314[i / 8 % 8]);
  {
    bool bad = false;
    long long index = 0;
    if (v277 && (v279 < 0 || v279 >= 1000)) bad = true, index = v279;
    if (bad) bad_index(record, step, 196608, index, 1000);
  }
  {
    bool bad = false;
    long long index = 0;
    if (v286 && (v288 < 0 || v288 >= 1000)) bad = true, index = v288;
    if (bad) bad_index(record, step, 196608, index, 1000);
  }
  commit_group();
  float v143[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v143[i] = __int_as_float(0xff800000);
  float v144[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v144[i] = 0.0f;
  float v145[128];
#pragma unroll
  for (int i = 0; i < 128; ++i)
    v145[i] = 0.0f;
  int v327 = 0;
  int v329 = 1;
  for (long long v142 = v139; v142 < v140; v142 += 32) {
    wait_group_0();
    const long long v333 = v142 + 32;
    const bool v334 = v333 < v140;
    const long long v341 = v70 * 64;
    const int v342 = (int)v333;
    const int v347 = v342 + 16;
    const bool v349 = (v342 < v107) && (v112 < v347);
    long long v350;
    load_i32_1(&v350, (const int*)p7 + (v341 + ((long long)(v342 / 16))), v349);
    const int v351 = (int)v350;
    const bool v358 = (v347 < v107) && (v112 < (v347 + 16));
    long long v359;
    load_i32_1(&v359, (const int*)p7 + (v341 + ((long long)(v347 / 16))), v358);
    const int v360 = (int)v359;
    int v361[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v361[i] = ((row2 + i % 8 * 4) < 16) ? v351 : v360;
    int v369[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v369[i] = (((int)v361[i]) * 4096) + (((int)((row2 + i % 8 * 4) % 16)) * 256);
    int v373[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v373[i] = v369[i] + ((0 + v38) * 128);
    int v376[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v376[i] = v342 + (row2 + i % 8 * 4);
    bool v386[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v386[i] = (((v376[i] < v107) && (!(v376[i] < v112))) && (-1 < v361[i])) && (v361[i] < 1000);
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 16384 + (int)v329 * 8192 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)p8 + (v373[i / 8 % 8] + (col3 + i % 8)), v334 && v386[i / 8 % 8]);
    int v392[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v392[i] = v369[i] + ((0 + v38) * 128);
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 32768 + (int)v329 * 8192 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)p9 + (v392[i / 8 % 8] + (col3 + i % 8)), v334 && v386[i / 8 % 8]);
    {
      bool bad = false;
      long long index = 0;
      if (v349 && (v351 < 0 || v351 >= 1000)) bad = true, index = v351;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    {
      bool bad = false;
      long long index = 0;
      if (v358 && (v360 < 0 || v360 >= 1000)) bad = true, index = v360;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    const int v148 = (int)v142;
    float v203[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v203[i] = 0.0f;
    {
      const unsigned a = shared + 0;
      const unsigned b = shared + 16384 + (int)v327 * 8192;
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
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v203 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    int v409[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v409[i] = v90 + (row4 + i % 4 * 8);
    float v218[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v218[i] = (v409[i / 2 % 2 + i / 16 % 2 * 2] < ((((v148 + (col6 + i % 2 + i / 4 % 4 * 8)) - v99) * 4) + 2000)) ? ((!(v409[i / 2 % 2 + i / 16 % 2 * 2] < (((v148 + (col6 + i % 2 + i / 4 % 4 * 8)) - v99) * 4))) ? (tanhf((v203[i] * 0.00294627825f))) : __int_as_float(0xff800000)) : __int_as_float(0xff800000);
    float v219[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v219[i] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v219[i / 2 % 2 + i / 16 % 2 * 2] = max_f32(v219[i / 2 % 2 + i / 16 % 2 * 2], v218[i]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v219[i] = max_f32(v219[i], __shfl_xor_sync(0xffffffffu, v219[i], 1));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v219[i] = max_f32(v219[i], __shfl_xor_sync(0xffffffffu, v219[i], 2));
    float v220[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v220[i] = max_f32(v143[i], v219[i]);
    float v223[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v223[i] = (v220[i] == __int_as_float(0xff800000)) ? 0.0f : v220[i];
    float v225[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v225[i] = v223[i] * -43.2808512f;
    float v228[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v228[i] = exp2_approx((__fmaf_rn(v218[i], 43.2808512f, v225[i / 2 % 2 + i / 16 % 2 * 2])));
    float v231[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v231[i] = exp2_approx(((v143[i] - v223[i]) * 43.2808512f));
    float v233[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v233[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v233[i / 2 % 2 + i / 16 % 2 * 2] = v233[i / 2 % 2 + i / 16 % 2 * 2] + v228[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v233[i] = v233[i] + __shfl_xor_sync(0xffffffffu, v233[i], 1);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v233[i] = v233[i] + __shfl_xor_sync(0xffffffffu, v233[i], 2);
    float v234[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v234[i] = (v144[i] * v231[i]) + v233[i];
    float v235[128];
#pragma unroll
    for (int i = 0; i < 128; ++i)
      v235[i] = v145[i] * v231[i / 2 % 2 + i / 64 % 2 * 2];
    {
      const unsigned b = shared + 32768 + (int)v327 * 8192;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        unsigned fa[2][4], fb[16][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v228 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
        for (int n = 0; n < 16; n += 2)
          ldmatrix_trans(fb[n], b + ((at11 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 16; ++n) mma_bf16_bf16(v235 + (m * 16 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v401 = v327 + 1;
    const int v405 = (v401 < 2) ? v401 : 0;
    const int v406 = v329 + 1;
    const int v408 = (v406 < 2) ? v406 : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v143[i] = v220[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v144[i] = v234[i];
#pragma unroll
    for (int i = 0; i < 128; ++i)
      v145[i] = v235[i];
    v327 = v405;
    v329 = v408;
  }
  float v251[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v251[i] = 1.0f / ((v144[i] == 0.0f) ? 1.0f : v144[i]);
  float v252[128];
#pragma unroll
  for (int i = 0; i < 128; ++i)
    v252[i] = v145[i] * v251[i / 2 % 2 + i / 64 % 2 * 2];
  int v413[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v413[i] = v90 + (row4 + i % 4 * 8);
  int v421[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v421[i] = (((int)(v413[i] / 4)) * 1024) + ((v120 + ((int)(v413[i] % 4))) * 128);
  bool v423[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v423[i] = v413[i] < v91;
#pragma unroll
  for (int i = 0; i < 128; i += 2)
    store_bf16_2((unsigned short*)p10 + (v421[i / 2 % 2 + i / 64 % 2 * 2] + (col5 + i % 2 + i / 4 % 16 * 8)), v252 + i, v423[i / 2 % 2 + i / 64 % 2 * 2]);
}
