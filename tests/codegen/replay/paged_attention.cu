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
  const int v120 = (int)(v39 * 4);
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
  const bool v263 = v139 < v140;
  const long long v270 = v70 * 64;
  const int v271 = (int)v139;
  const int v276 = v271 + 16;
  const bool v278 = (v271 < v107) && (v112 < v276);
  long long v279;
  load_i32_1(&v279, (const int*)p7 + (v270 + ((long long)(v271 / 16))), v278);
  const int v280 = (int)v279;
  const bool v287 = (v276 < v107) && (v112 < (v276 + 16));
  long long v288;
  load_i32_1(&v288, (const int*)p7 + (v270 + ((long long)(v276 / 16))), v287);
  const int v289 = (int)v288;
  int v290[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v290[i] = ((row2 + i % 8 * 4) < 16) ? v280 : v289;
  int v298[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v298[i] = (((int)v290[i]) * 4096) + (((int)((row2 + i % 8 * 4) % 16)) * 256);
  const int v300 = (int)v39;
  int v303[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v303[i] = v298[i] + ((0 + v300) * 128);
  int v306[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v306[i] = v271 + (row2 + i % 8 * 4);
  bool v316[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v316[i] = (((v306[i] < v107) && (!(v306[i] < v112))) && (-1 < v290[i])) && (v290[i] < 1000);
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 16384 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)p8 + (v303[i / 8 % 8] + (col3 + i % 8)), v263 && v316[i / 8 % 8]);
  int v322[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v322[i] = v298[i] + ((0 + v300) * 128);
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 32768 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)p9 + (v322[i / 8 % 8] + (col3 + i % 8)), v263 && v316[i / 8 % 8]);
  {
    bool bad = false;
    long long index = 0;
    if (v278 && (v280 < 0 || v280 >= 1000)) bad = true, index = v280;
    if (bad) bad_index(record, step, 196608, index, 1000);
  }
  {
    bool bad = false;
    long long index = 0;
    if (v287 && (v289 < 0 || v289 >= 1000)) bad = true, index = v289;
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
  int v329 = 0;
  int v331 = 1;
  for (long long v142 = v139; v142 < v140; v142 += 32) {
    wait_group_0();
    const long long v335 = v142 + 32;
    const bool v336 = v335 < v140;
    const long long v343 = v70 * 64;
    const int v344 = (int)v335;
    const int v349 = v344 + 16;
    const bool v351 = (v344 < v107) && (v112 < v349);
    long long v352;
    load_i32_1(&v352, (const int*)p7 + (v343 + ((long long)(v344 / 16))), v351);
    const int v353 = (int)v352;
    const bool v360 = (v349 < v107) && (v112 < (v349 + 16));
    long long v361;
    load_i32_1(&v361, (const int*)p7 + (v343 + ((long long)(v349 / 16))), v360);
    const int v362 = (int)v361;
    int v363[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v363[i] = ((row2 + i % 8 * 4) < 16) ? v353 : v362;
    int v371[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v371[i] = (((int)v363[i]) * 4096) + (((int)((row2 + i % 8 * 4) % 16)) * 256);
    const int v373 = (int)v39;
    int v376[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v376[i] = v371[i] + ((0 + v373) * 128);
    int v379[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v379[i] = v344 + (row2 + i % 8 * 4);
    bool v389[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v389[i] = (((v379[i] < v107) && (!(v379[i] < v112))) && (-1 < v363[i])) && (v363[i] < 1000);
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 16384 + (int)v331 * 8192 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)p8 + (v376[i / 8 % 8] + (col3 + i % 8)), v336 && v389[i / 8 % 8]);
    int v395[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v395[i] = v371[i] + ((0 + v373) * 128);
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 32768 + (int)v331 * 8192 + ((at8 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 8 * 1024), (const unsigned short*)p9 + (v395[i / 8 % 8] + (col3 + i % 8)), v336 && v389[i / 8 % 8]);
    {
      bool bad = false;
      long long index = 0;
      if (v351 && (v353 < 0 || v353 >= 1000)) bad = true, index = v353;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    {
      bool bad = false;
      long long index = 0;
      if (v360 && (v362 < 0 || v362 >= 1000)) bad = true, index = v362;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    const int v148 = (int)v142;
    float v204[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v204[i] = 0.0f;
    {
      const unsigned a = shared + 0;
      const unsigned b = shared + 16384 + (int)v329 * 8192;
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
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v204 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    int v412[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v412[i] = v90 + (row4 + i % 4 * 8);
    float v219[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v219[i] = (v412[i / 2 % 2 + i / 16 % 2 * 2] < ((((v148 + (col6 + i % 2 + i / 4 % 4 * 8)) - v99) * 4) + 2000)) ? ((!(v412[i / 2 % 2 + i / 16 % 2 * 2] < (((v148 + (col6 + i % 2 + i / 4 % 4 * 8)) - v99) * 4))) ? (tanhf((v204[i] * 0.00294627825f))) : __int_as_float(0xff800000)) : __int_as_float(0xff800000);
    float v220[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v220[i] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v220[i / 2 % 2 + i / 16 % 2 * 2] = max_f32(v220[i / 2 % 2 + i / 16 % 2 * 2], v219[i]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v220[i] = max_f32(v220[i], __shfl_xor_sync(0xffffffffu, v220[i], 1));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v220[i] = max_f32(v220[i], __shfl_xor_sync(0xffffffffu, v220[i], 2));
    float v221[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v221[i] = max_f32(v143[i], v220[i]);
    float v224[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v224[i] = (v221[i] == __int_as_float(0xff800000)) ? 0.0f : v221[i];
    float v226[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v226[i] = v224[i] * -43.2808512f;
    float v229[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v229[i] = exp2_approx((__fmaf_rn(v219[i], 43.2808512f, v226[i / 2 % 2 + i / 16 % 2 * 2])));
    float v232[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v232[i] = exp2_approx(((v143[i] - v224[i]) * 43.2808512f));
    float v234[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v234[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v234[i / 2 % 2 + i / 16 % 2 * 2] = v234[i / 2 % 2 + i / 16 % 2 * 2] + v229[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v234[i] = v234[i] + __shfl_xor_sync(0xffffffffu, v234[i], 1);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v234[i] = v234[i] + __shfl_xor_sync(0xffffffffu, v234[i], 2);
    float v235[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v235[i] = (v144[i] * v232[i]) + v234[i];
    float v236[128];
#pragma unroll
    for (int i = 0; i < 128; ++i)
      v236[i] = v145[i] * v232[i / 2 % 2 + i / 64 % 2 * 2];
    {
      const unsigned b = shared + 32768 + (int)v329 * 8192;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        unsigned fa[2][4], fb[16][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v229 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
        for (int n = 0; n < 16; n += 2)
          ldmatrix_trans(fb[n], b + ((at11 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 16; ++n) mma_bf16_bf16(v236 + (m * 16 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v404 = v329 + 1;
    const int v408 = (v404 < 2) ? v404 : 0;
    const int v409 = v331 + 1;
    const int v411 = (v409 < 2) ? v409 : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v143[i] = v221[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v144[i] = v235[i];
#pragma unroll
    for (int i = 0; i < 128; ++i)
      v145[i] = v236[i];
    v329 = v408;
    v331 = v411;
  }
  float v252[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v252[i] = 1.0f / ((v144[i] == 0.0f) ? 1.0f : v144[i]);
  float v253[128];
#pragma unroll
  for (int i = 0; i < 128; ++i)
    v253[i] = v145[i] * v252[i / 2 % 2 + i / 64 % 2 * 2];
  int v416[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v416[i] = v90 + (row4 + i % 4 * 8);
  int v424[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v424[i] = (((int)(v416[i] / 4)) * 1024) + ((v120 + ((int)(v416[i] % 4))) * 128);
  bool v426[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v426[i] = v416[i] < v91;
#pragma unroll
  for (int i = 0; i < 128; i += 2)
    store_bf16_2((unsigned short*)p10 + (v424[i / 2 % 2 + i / 64 % 2 * 2] + (col5 + i % 2 + i / 4 % 16 * 8)), v253 + i, v426[i / 2 % 2 + i / 64 % 2 * 2]);
}
