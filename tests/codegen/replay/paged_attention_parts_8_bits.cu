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
  const int v82 = max(v75, (min((max(((int)v78), 0)), v2)));
  const int v83 = v75 * 8;
  const int v90 = v83 + ((max((v46 - ((v83 / 16) + v51)), 0)) * 16);
  const int v91 = v82 * 8;
  long long v92;
  load_i32_1(&v92, (const int*)p2 + v71, true);
  const int v93 = (int)v92;
  const int v99 = (((-1 < v93) && (v93 < 4097)) ? v93 : 0) - v82;
  const int v109 = v38 * 512;
  const int v111 = min(((v90 < v91) ? ((v99 + (((min((v90 + 16), v91)) - 1) / 8)) + 1) : 0), (v109 + 512));
  int v113[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v113[i] = v90 + (row0 + i % 8 * 2);
  const int v119 = (int)(v41 * 8);
  int v120[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v120[i] = v119 + ((int)(v113[i] % 8));
  int v122[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v122[i] = (int)(v113[i] / 8);
  bool v123[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v123[i] = v113[i] < v91;
  int v129[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v129[i] = (v122[i] * 4096) + (v120[i] * 128);
  const long long v138 = (long long)((v109 / 32) * 32);
  const long long v139 = (long long)v111;
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 0 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 8 * 512), (const unsigned short*)p6 + (v129[i / 8 % 8] + (col1 + i % 8)), 1 && v123[i / 8 % 8]);
  const bool v259 = v138 < v139;
  const int v264 = (int)v138;
  const bool v269 = v264 < v111;
  long long v270;
  load_i32_1(&v270, (const int*)p7 + ((v71 * 64) + ((long long)(v264 / 64))), v269);
  const int v271 = (int)v270;
  const long long v282 = ((((int)v271) * 32768) + (((long long)((v264 % 64) / 32)) * 16384)) + (v41 * 128);
  unsigned char* const v283 = p8 + v282;
  int v286[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v286[i] = (row2 + i % 8 * 4) * 512;
  const bool v292 = -1 < v271;
  const bool v295 = v271 < 1000;
  bool v296[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v296[i] = (((v264 + (row2 + i % 8 * 4)) < v111) && v292) && v295;
#pragma unroll
  for (int i = 0; i < 128; i += 16)
    copy_async_16(shared + 4096 + ((at9 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 8 * 512), (const unsigned char*)v283 + (v286[i / 16 % 8] + (col3 + i % 16)), v259 && v296[i / 16 % 8]);
  unsigned char* const v299 = p10 + v282;
#pragma unroll
  for (int i = 0; i < 128; i += 16)
    copy_async_16(shared + 20480 + ((at9 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 8 * 512), (const unsigned char*)v299 + (v286[i / 16 % 8] + (col3 + i % 16)), v259 && v296[i / 16 % 8]);
  {
    bool bad = false;
    long long index = 0;
    if (v269 && (v271 < 0 || v271 >= 1000)) bad = true, index = v271;
    if (bad) bad_index(record, step, 196608, index, 1000);
  }
  commit_group();
  float v142[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v142[i] = __int_as_float(0xff800000);
  float v143[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v143[i] = 0.0f;
  float v144[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v144[i] = 0.0f;
  int v304 = 0;
  int v306 = 1;
  for (long long v141 = v138; v141 < v139; v141 += 32) {
    wait_group_0();
    const long long v310 = v141 + 32;
    const bool v311 = v310 < v139;
    const int v316 = (int)v310;
    const bool v321 = v316 < v111;
    long long v322;
    load_i32_1(&v322, (const int*)p7 + ((v71 * 64) + ((long long)(v316 / 64))), v321);
    const int v323 = (int)v322;
    const long long v334 = ((((int)v323) * 32768) + (((long long)((v316 % 64) / 32)) * 16384)) + (v41 * 128);
    unsigned char* const v335 = p8 + v334;
    int v338[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v338[i] = (row2 + i % 8 * 4) * 512;
    const bool v344 = -1 < v323;
    const bool v347 = v323 < 1000;
    bool v348[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v348[i] = (((v316 + (row2 + i % 8 * 4)) < v111) && v344) && v347;
#pragma unroll
    for (int i = 0; i < 128; i += 16)
      copy_async_16(shared + 4096 + (int)v306 * 4096 + ((at9 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 8 * 512), (const unsigned char*)v335 + (v338[i / 16 % 8] + (col3 + i % 16)), v311 && v348[i / 16 % 8]);
    unsigned char* const v351 = p10 + v334;
#pragma unroll
    for (int i = 0; i < 128; i += 16)
      copy_async_16(shared + 20480 + (int)v306 * 4096 + ((at9 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 8 * 512), (const unsigned char*)v351 + (v338[i / 16 % 8] + (col3 + i % 16)), v311 && v348[i / 16 % 8]);
    {
      bool bad = false;
      long long index = 0;
      if (v321 && (v323 < 0 || v323 >= 1000)) bad = true, index = v323;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    const int v147 = (int)v141;
#pragma unroll
    for (int i = 0; i < 128; i += 8)
      cast_f8e4m3_bf16_8((unsigned short*)(smem + 12288) + ((at10 ^ (i / 8 % 4 * 16)) + i % 8 + i / 8 % 16 * 256), (unsigned char*)(smem + 4096 + (int)v304 * 4096) + ((at11 ^ (i / 8 % 4 * 32)) + i % 8 + i / 8 % 16 * 256), true);
#pragma unroll
    for (int i = 0; i < 128; i += 8)
      cast_f8e4m3_bf16_8((unsigned short*)(smem + 28672) + ((at10 ^ (i / 8 % 4 * 16)) + i % 8 + i / 8 % 16 * 256), (unsigned char*)(smem + 20480 + (int)v304 * 4096) + ((at11 ^ (i / 8 % 4 * 32)) + i % 8 + i / 8 % 16 * 256), true);
    wait_group_1();
    float v186[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v186[i] = 0.0f;
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
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v186 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    float v188;
    load_f32_1(&v188, (const float*)p9 + 0, true);
    int v369[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v369[i] = v90 + (row4 + i % 2 * 8);
    float v197[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v197[i] = (!(v369[i / 2 % 2] < (((v147 + (col7 + i % 2 + i / 4 % 4 * 8)) - v99) * 8))) ? (v186[i] * v188) : __int_as_float(0xff800000);
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
      v199[i] = max_f32(v142[i], v198[i]);
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
      v210[i] = exp2_approx(((v142[i] - v202[i]) * 0.127517431f));
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
      v213[i] = (v143[i] * v210[i]) + v212[i];
    float v214[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v214[i] = v144[i] * v210[i / 2 % 2];
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
    const int v361 = v304 + 1;
    const int v365 = (v361 < 2) ? v361 : 0;
    const int v366 = v306 + 1;
    const int v368 = (v366 < 2) ? v366 : 0;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v142[i] = v199[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v143[i] = v213[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v144[i] = v214[i];
    v304 = v365;
    v306 = v368;
  }
  float v223;
  load_f32_1(&v223, (const float*)p11 + 0, true);
  float v224[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v224[i] = v144[i] * v223;
  const bool v225 = v109 < v111;
  const int v229 = v38 * ((int)p13);
  int v234[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v234[i] = (v122[i] * 4160) + (v120[i] * 130);
  unsigned char* const v237 = p12 + (v229 * 4);
  bool v238[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v238[i] = v123[i] && v225;
  int v372[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v372[i] = v90 + (row4 + i % 2 * 8);
  int v380[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v380[i] = (((int)(v372[i] / 8)) * 4160) + ((v119 + ((int)(v372[i] % 8))) * 130);
  bool v383[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v383[i] = (v372[i] < v91) && v225;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_f32_2((float*)v237 + (v380[i / 2 % 2] + (col5 + i % 2 + i / 4 % 16 * 8)), v224 + i, v383[i / 2 % 2]);
  float v384[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v384[i] = __shfl_sync(0xffffffffu, v142[(i / 4 % 2)], (at16 + i % 4 * 8));
  float v241[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v241[i] = v384[i] * 0.0883883476f;
  unsigned char* const v244 = p12 + ((v229 + 128) * 4);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v244 + v234[i], v241 + i, (lane & 15) == 0 && v123[i]);
  unsigned char* const v249 = p12 + ((v229 + 129) * 4);
  float v385[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v385[i] = __shfl_sync(0xffffffffu, v143[(i / 4 % 2)], (at16 + i % 4 * 8));
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v249 + v234[i], v385 + i, (lane & 15) == 0 && v123[i]);
}
