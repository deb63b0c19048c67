// cast_pair_f8e4m3_bf16, narrow_pair_bf16, spread_signs, load_f32_1, load_i32_1, store_f32_1, store_f32_2, cast_f8e4m3_bf16_8, exp2_approx, max_f32, smem, shared_address, commit_group, copy_async_16, wait_group_0, wait_group_1, ldmatrix, ldmatrix_trans, mma_bf16_bf16, pack_bf16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(32, 1) paged_attention_paged_attention_parts(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, Record* record, int step, long long p5, unsigned char* __restrict__ p6, unsigned char* __restrict__ p7, unsigned char* __restrict__ p8, unsigned char* __restrict__ p9, unsigned char* __restrict__ p10, unsigned char* __restrict__ p11, unsigned char* __restrict__ p12, long long p13) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 16 % 2;
  const int col1 = lane % 16 * 8;
  const int row2 = lane / 8 % 4;
  const int col3 = lane % 8 * 16;
  const int row4 = lane / 4 % 8;
  const int col5 = lane % 4 * 2;
  const int col7 = lane % 4 * 2;
  const int at8 = (lane % 32 * 16) ^ (lane / 16 % 2 * 16);
  const int at9 = (lane % 32 * 16) ^ (lane / 8 % 4 * 16);
  const int at10 = (lane % 32 * 8) ^ (lane / 16 % 2 * 8);
  const int at11 = (lane % 32 * 8) ^ (lane / 16 % 2 * 16);
  const int at12 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256;
  const int at13 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 256 + lane / 16 % 2 * 2048;
  const int at14 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256;
  const int at16 = lane % 4 + lane / 16 % 2 * 4;
  const int v2 = (int)p0;
  const int v4 = (int)(long long)blockIdx.x;
  const bool v5 = v4 < v2;
  const int v7 = v4 + 1;
  const long long v8 = (long long)v4;
  long long v11;
  load_i32_1(&v11, (const int*)p1 + v8, v5);
  const int v12 = (int)v11;
  long long v14;
  load_i32_1(&v14, (const int*)p1 + ((long long)v7), v5);
  const int v15 = (int)v14;
  long long v17;
  load_i32_1(&v17, (const int*)p2 + v8, v5);
  const int v18 = (int)v17;
  const int v19 = v15 - v12;
  {
    bool bad = false;
    long long index = 0;
    if ((v4 < 1) && (v12 < 0 || v12 >= 1)) bad = true, index = v12;
    if (bad) bad_index(record, step, 327680, index, 1);
  }
  const long long v26 = (long long)(v2 + 1);
  {
    bool bad = false;
    long long index = 0;
    if (v5 && (v15 < 0 || v15 >= v26)) bad = true, index = v15;
    if (bad) bad_index(record, step, 327680, index, v26);
  }
  {
    bool bad = false;
    long long index = 0;
    if (v5 && (v19 < 0 || v19 >= v26)) bad = true, index = v19;
    if (bad) bad_index(record, step, 327680, index, v26);
  }
  {
    bool bad = false;
    long long index = 0;
    if ((v7 == v2) && ((v2 - v15) < 0 || (v2 - v15) >= 1)) bad = true, index = (v2 - v15);
    if (bad) bad_index(record, step, 327680, index, 1);
  }
  {
    bool bad = false;
    long long index = 0;
    if (v5 && (v18 < 0 || v18 >= 4097)) bad = true, index = v18;
    if (bad) bad_index(record, step, 262144, index, 4097);
  }
  {
    bool bad = false;
    long long index = 0;
    if (v5 && (v19 < 0 || v19 >= ((long long)(v18 + 1)))) bad = true, index = v19;
    if (bad) bad_index(record, step, 327680, index, ((long long)(v18 + 1)));
  }
  const int v38 = v4 % 8;
  const int v39 = v4 / 8;
  const long long v41 = (long long)(v39 % 4);
  const int v46 = (((int)p5) - 1) - (v39 / 4);
  int v51 = 0;
  int v52 = v2;
  for (long long v50 = 0; v50 < 9; v50 += 1) {
    const int v56 = (v51 + v52) / 2;
    long long v58;
    load_i32_1(&v58, (const int*)p1 + ((long long)v56), true);
    const bool v66 = v46 < ((((min((max(((int)v58), 0)), v2)) * 8) / 16) + v56);
    const int v67 = v66 ? v51 : v56;
    const int v68 = v66 ? v56 : v52;
    v51 = v67;
    v52 = v68;
  }
  const long long v71 = (long long)v51;
  long long v72;
  load_i32_1(&v72, (const int*)p1 + v71, true);
  const int v75 = min((max(((int)v72), 0)), v2);
  long long v78;
  load_i32_1(&v78, (const int*)p1 + ((long long)(v51 + 1)), true);
  const int v83 = (max(v75, (min((max(((int)v78), 0)), v2)))) - v75;
  const int v84 = v83 * 8;
  const int v91 = (max((v46 - (((v75 * 8) / 16) + v51)), 0)) * 16;
  long long v92;
  load_i32_1(&v92, (const int*)p2 + v71, true);
  const int v93 = (int)v92;
  const int v99 = (((-1 < v93) && (v93 < 4097)) ? v93 : 0) - v83;
  const int v109 = v38 * 512;
  const int v111 = min(((v91 < v84) ? ((v99 + (((min((v91 + 16), v84)) - 1) / 8)) + 1) : 0), (v109 + 512));
  int v113[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v113[i] = v91 + (row0 + i % 8 * 2);
  int v114[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v114[i] = v113[i] / 8;
  const int v120 = (int)(v41 * 8);
  int v121[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v121[i] = v120 + ((int)(v113[i] % 8));
  int v123[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v123[i] = (int)(v75 + v114[i]);
  bool v124[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v124[i] = v113[i] < v84;
  int v130[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v130[i] = (v123[i] * 4096) + (v121[i] * 128);
  const long long v139 = (long long)((v109 / 32) * 32);
  const long long v140 = (long long)v111;
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 0 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 8 * 512), (const unsigned short*)p6 + (v130[i / 8 % 8] + (col1 + i % 8)), 1 && v124[i / 8 % 8]);
  const bool v261 = v139 < v140;
  const int v266 = (int)v139;
  const bool v271 = v266 < v111;
  long long v272;
  load_i32_1(&v272, (const int*)p7 + ((v71 * 64) + ((long long)(v266 / 64))), v271);
  const int v273 = (int)v272;
  const long long v284 = ((((int)v273) * 32768) + (((long long)((v266 % 64) / 32)) * 16384)) + (v41 * 128);
  unsigned char* const v285 = p8 + v284;
  int v288[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v288[i] = (row2 + i % 8 * 4) * 512;
  const bool v294 = -1 < v273;
  const bool v297 = v273 < 1000;
  bool v298[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v298[i] = (((v266 + (row2 + i % 8 * 4)) < v111) && v294) && v297;
#pragma unroll
  for (int i = 0; i < 128; i += 16)
    copy_async_16(shared + 4096 + ((at9 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 8 * 512), (const unsigned char*)v285 + (v288[i / 16 % 8] + (col3 + i % 16)), v261 && v298[i / 16 % 8]);
  unsigned char* const v301 = p10 + v284;
#pragma unroll
  for (int i = 0; i < 128; i += 16)
    copy_async_16(shared + 20480 + ((at9 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 8 * 512), (const unsigned char*)v301 + (v288[i / 16 % 8] + (col3 + i % 16)), v261 && v298[i / 16 % 8]);
  {
    bool bad = false;
    long long index = 0;
    if (v271 && (v273 < 0 || v273 >= 1000)) bad = true, index = v273;
    if (bad) bad_index(record, step, 196608, index, 1000);
  }
  commit_group();
  float v143[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v143[i] = __int_as_float(0xff800000);
  float v144[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v144[i] = 0.0f;
  float v145[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v145[i] = 0.0f;
  int v306 = 0;
  int v308 = 1;
  for (long long v142 = v139; v142 < v140; v142 += 32) {
    wait_group_0();
    const long long v312 = v142 + 32;
    const bool v313 = v312 < v140;
    const int v318 = (int)v312;
    const bool v323 = v318 < v111;
    long long v324;
    load_i32_1(&v324, (const int*)p7 + ((v71 * 64) + ((long long)(v318 / 64))), v323);
    const int v325 = (int)v324;
    const long long v336 = ((((int)v325) * 32768) + (((long long)((v318 % 64) / 32)) * 16384)) + (v41 * 128);
    unsigned char* const v337 = p8 + v336;
    int v340[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v340[i] = (row2 + i % 8 * 4) * 512;
    const bool v346 = -1 < v325;
    const bool v349 = v325 < 1000;
    bool v350[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v350[i] = (((v318 + (row2 + i % 8 * 4)) < v111) && v346) && v349;
#pragma unroll
    for (int i = 0; i < 128; i += 16)
      copy_async_16(shared + 4096 + (int)v308 * 4096 + ((at9 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 8 * 512), (const unsigned char*)v337 + (v340[i / 16 % 8] + (col3 + i % 16)), v313 && v350[i / 16 % 8]);
    unsigned char* const v353 = p10 + v336;
#pragma unroll
    for (int i = 0; i < 128; i += 16)
      copy_async_16(shared + 20480 + (int)v308 * 4096 + ((at9 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 8 * 512), (const unsigned char*)v353 + (v340[i / 16 % 8] + (col3 + i % 16)), v313 && v350[i / 16 % 8]);
    {
      bool bad = false;
      long long index = 0;
      if (v323 && (v325 < 0 || v325 >= 1000)) bad = true, index = v325;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    const int v148 = (int)v142;
#pragma unroll
    for (int i = 0; i < 128; i += 8)
      cast_f8e4m3_bf16_8((unsigned short*)(smem + 12288) + ((at10 ^ (i / 8 % 4 * 16)) + i % 8 + i / 8 % 16 * 256), (unsigned char*)(smem + 4096 + (int)v306 * 4096) + ((at11 ^ (i / 8 % 4 * 32)) + i % 8 + i / 8 % 16 * 256), true);
    wait_group_1();
    float v187[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v187[i] = 0.0f;
    {
      const unsigned a = shared + 0;
      const unsigned b = shared + 12288;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        unsigned fa[1][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at12 ^ (k % 8 * 32)));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix(fb[n], b + ((at13 ^ (k % 8 * 32)) + n / 2 % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v187 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    float v189;
    load_f32_1(&v189, (const float*)p9 + 0, true);
    int v193[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v193[i] = v99 + v114[i];
    int v374[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v374[i] = v99 + ((v91 + (row4 + i % 2 * 8)) / 8);
    float v197[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v197[i] = (!(v374[i / 2 % 2] < (v148 + (col7 + i % 2 + i / 4 % 4 * 8)))) ? (v187[i] * v189) : __int_as_float(0xff800000);
    float v198[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v198[i] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v198[i / 2 % 2] = max_f32(v198[i / 2 % 2], v197[i]);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v198[i] = max_f32(v198[i], __shfl_xor_sync(0xffffffffu, v198[i], 1));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v198[i] = max_f32(v198[i], __shfl_xor_sync(0xffffffffu, v198[i], 2));
    float v199[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v199[i] = max_f32(v143[i], v198[i]);
    float v202[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v202[i] = (v199[i] == __int_as_float(0xff800000)) ? 0.0f : v199[i];
    float v204[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v204[i] = v202[i] * -0.127517431f;
    float v207[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v207[i] = exp2_approx((__fmaf_rn(v197[i], 0.127517431f, v204[i / 2 % 2])));
    float v210[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v210[i] = exp2_approx(((v143[i] - v202[i]) * 0.127517431f));
    float v212[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v212[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v212[i / 2 % 2] = v212[i / 2 % 2] + v207[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v212[i] = v212[i] + __shfl_xor_sync(0xffffffffu, v212[i], 1);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v212[i] = v212[i] + __shfl_xor_sync(0xffffffffu, v212[i], 2);
    float v213[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v213[i] = (v144[i] * v210[i]) + v212[i];
    float v214[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v214[i] = v145[i] * v210[i / 2 % 2];
#pragma unroll
    for (int i = 0; i < 128; i += 8)
      cast_f8e4m3_bf16_8((unsigned short*)(smem + 28672) + ((at10 ^ (i / 8 % 4 * 16)) + i % 8 + i / 8 % 16 * 256), (unsigned char*)(smem + 20480 + (int)v306 * 4096) + ((at11 ^ (i / 8 % 4 * 32)) + i % 8 + i / 8 % 16 * 256), true);
    wait_group_1();
    {
      const unsigned b = shared + 28672;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        unsigned fa[1][4], fb[16][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v207 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
        for (int n = 0; n < 16; n += 2)
          ldmatrix_trans(fb[n], b + ((at14 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 16; ++n) mma_bf16_bf16(v214 + (m * 16 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v364 = v306 + 1;
    const int v368 = (v364 < 2) ? v364 : 0;
    const int v369 = v308 + 1;
    const int v371 = (v369 < 2) ? v369 : 0;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v143[i] = v199[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v144[i] = v213[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v145[i] = v214[i];
    v306 = v368;
    v308 = v371;
  }
  float v223;
  load_f32_1(&v223, (const float*)p11 + 0, true);
  float v224[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v224[i] = v145[i] * v223;
  const bool v225 = v109 < v111;
  const int v229 = v38 * ((int)p13);
  int v234[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v234[i] = (v123[i] * 4160) + (v121[i] * 130);
  unsigned char* const v237 = p12 + (v229 * 4);
  bool v238[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v238[i] = v124[i] && v225;
  int v377[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v377[i] = v91 + (row4 + i % 2 * 8);
  int v386[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v386[i] = (((int)(v75 + (v377[i] / 8))) * 4160) + ((v120 + ((int)(v377[i] % 8))) * 130);
  bool v389[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v389[i] = (v377[i] < v84) && v225;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_f32_2((float*)v237 + (v386[i / 2 % 2] + (col5 + i % 2 + i / 4 % 16 * 8)), v224 + i, v389[i / 2 % 2]);
  float v241[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v241[i] = v143[i] * 0.0883883476f;
  float v242[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v242[i] = __shfl_sync(0xffffffffu, v241[(i / 4 % 2)], (at16 + i % 4 * 8));
  unsigned char* const v245 = p12 + ((v229 + 128) * 4);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v245 + v234[i], v242 + i, (lane & 15) == 0 && v124[i]);
  float v248[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v248[i] = __shfl_sync(0xffffffffu, v144[(i / 4 % 2)], (at16 + i % 4 * 8));
  unsigned char* const v251 = p12 + ((v229 + 129) * 4);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v251 + v234[i], v248 + i, (lane & 15) == 0 && v124[i]);
}
