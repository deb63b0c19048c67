// narrow_pair_bf16, load_i32_1, store_f32_1, store_f32_2, exp2_approx, max_f32, smem, shared_address, commit_group, copy_async_16, wait_group_0, ldmatrix, ldmatrix_trans, mma_bf16_bf16, pack_bf16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(32, 1) paged_attention_paged_attention_parts(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, Record* record, int step, long long p5, unsigned char* __restrict__ p6, unsigned char* __restrict__ p7, unsigned char* __restrict__ p8, unsigned char* __restrict__ p9, unsigned char* __restrict__ p10, long long p11) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 16 % 2;
  const int col1 = lane % 16 * 8;
  const int row2 = lane / 16 % 2;
  const int col3 = lane % 16 * 8;
  const int row4 = lane / 4 % 8;
  const int col5 = lane % 4 * 2;
  const int col6 = lane % 4 * 2;
  const int at7 = (lane % 32 * 16) ^ (lane / 16 % 2 * 16);
  const int at8 = (lane % 32 * 16) ^ (lane / 16 % 2 * 16);
  const int at9 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256;
  const int at10 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 256 + lane / 16 % 2 * 2048;
  const int at11 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256;
  const int at13 = lane % 4 + lane / 16 % 2 * 4;
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
    copy_async_16(shared + 0 + ((at7 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 8 * 512), (const unsigned short*)p6 + (v130[i / 8 % 8] + (col1 + i % 8)), 1 && v124[i / 8 % 8]);
  const bool v255 = v139 < v140;
  const int v260 = (int)v139;
  const bool v265 = v260 < v111;
  long long v266;
  load_i32_1(&v266, (const int*)p7 + ((v71 * 64) + ((long long)(v260 / 64))), v265);
  const int v267 = (int)v266;
  const long long v280 = (((((int)v267) * 32768) + (((long long)((v260 % 64) / 32)) * 16384)) + (v41 * 128)) * 2;
  unsigned char* const v281 = p8 + v280;
  int v284[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v284[i] = (row2 + i % 16 * 2) * 512;
  const bool v290 = -1 < v267;
  const bool v293 = v267 < 1000;
  bool v294[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v294[i] = (((v260 + (row2 + i % 16 * 2)) < v111) && v290) && v293;
#pragma unroll 4
  for (int i = 0; i < 128; i += 8)
    copy_async_16(shared + 4096 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 16 * 512), (const unsigned short*)v281 + (v284[i / 8 % 16] + (col3 + i % 8)), v255 && v294[i / 8 % 16]);
  unsigned char* const v297 = p9 + v280;
#pragma unroll 4
  for (int i = 0; i < 128; i += 8)
    copy_async_16(shared + 20480 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 16 * 512), (const unsigned short*)v297 + (v284[i / 8 % 16] + (col3 + i % 8)), v255 && v294[i / 8 % 16]);
  {
    bool bad = false;
    long long index = 0;
    if (v265 && (v267 < 0 || v267 >= 1000)) bad = true, index = v267;
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
  int v302 = 0;
  int v304 = 1;
  for (long long v142 = v139; v142 < v140; v142 += 32) {
    wait_group_0();
    const long long v308 = v142 + 32;
    const bool v309 = v308 < v140;
    const int v314 = (int)v308;
    const bool v319 = v314 < v111;
    long long v320;
    load_i32_1(&v320, (const int*)p7 + ((v71 * 64) + ((long long)(v314 / 64))), v319);
    const int v321 = (int)v320;
    const long long v334 = (((((int)v321) * 32768) + (((long long)((v314 % 64) / 32)) * 16384)) + (v41 * 128)) * 2;
    unsigned char* const v335 = p8 + v334;
    int v338[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v338[i] = (row2 + i % 16 * 2) * 512;
    const bool v344 = -1 < v321;
    const bool v347 = v321 < 1000;
    bool v348[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v348[i] = (((v314 + (row2 + i % 16 * 2)) < v111) && v344) && v347;
#pragma unroll 4
    for (int i = 0; i < 128; i += 8)
      copy_async_16(shared + 4096 + (int)v304 * 8192 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 16 * 512), (const unsigned short*)v335 + (v338[i / 8 % 16] + (col3 + i % 8)), v309 && v348[i / 8 % 16]);
    unsigned char* const v351 = p9 + v334;
#pragma unroll 4
    for (int i = 0; i < 128; i += 8)
      copy_async_16(shared + 20480 + (int)v304 * 8192 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 16 * 512), (const unsigned short*)v351 + (v338[i / 8 % 16] + (col3 + i % 8)), v309 && v348[i / 8 % 16]);
    {
      bool bad = false;
      long long index = 0;
      if (v319 && (v321 < 0 || v321 >= 1000)) bad = true, index = v321;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    const int v148 = (int)v142;
    float v189[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v189[i] = 0.0f;
    {
      const unsigned a = shared + 0;
      const unsigned b = shared + 4096 + (int)v302 * 8192;
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
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v189 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    int v192[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v192[i] = v99 + v114[i];
    int v368[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v368[i] = v99 + ((v91 + (row4 + i % 2 * 8)) / 8);
    float v196[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v196[i] = (!(v368[i / 2 % 2] < (v148 + (col6 + i % 2 + i / 4 % 4 * 8)))) ? v189[i] : __int_as_float(0xff800000);
    float v197[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v197[i] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v197[i / 2 % 2] = max_f32(v197[i / 2 % 2], v196[i]);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v197[i] = max_f32(v197[i], __shfl_xor_sync(0xffffffffu, v197[i], 1));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v197[i] = max_f32(v197[i], __shfl_xor_sync(0xffffffffu, v197[i], 2));
    float v198[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v198[i] = max_f32(v143[i], v197[i]);
    float v201[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v201[i] = (v198[i] == __int_as_float(0xff800000)) ? 0.0f : v198[i];
    float v203[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v203[i] = v201[i] * -0.127517431f;
    float v206[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v206[i] = exp2_approx((__fmaf_rn(v196[i], 0.127517431f, v203[i / 2 % 2])));
    float v209[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v209[i] = exp2_approx(((v143[i] - v201[i]) * 0.127517431f));
    float v211[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v211[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v211[i / 2 % 2] = v211[i / 2 % 2] + v206[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v211[i] = v211[i] + __shfl_xor_sync(0xffffffffu, v211[i], 1);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v211[i] = v211[i] + __shfl_xor_sync(0xffffffffu, v211[i], 2);
    float v212[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v212[i] = (v144[i] * v209[i]) + v211[i];
    float v213[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v213[i] = v145[i] * v209[i / 2 % 2];
    {
      const unsigned b = shared + 20480 + (int)v302 * 8192;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        unsigned fa[1][4], fb[16][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v206 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
        for (int n = 0; n < 16; n += 2)
          ldmatrix_trans(fb[n], b + ((at11 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 16; ++n) mma_bf16_bf16(v213 + (m * 16 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v358 = v302 + 1;
    const int v362 = (v358 < 2) ? v358 : 0;
    const int v363 = v304 + 1;
    const int v365 = (v363 < 2) ? v363 : 0;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v143[i] = v198[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v144[i] = v212[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v145[i] = v213[i];
    v302 = v362;
    v304 = v365;
  }
  const bool v221 = v109 < v111;
  const int v225 = v38 * ((int)p11);
  int v230[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v230[i] = (v123[i] * 4160) + (v121[i] * 130);
  unsigned char* const v233 = p10 + (v225 * 4);
  bool v234[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v234[i] = v124[i] && v221;
  int v371[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v371[i] = v91 + (row4 + i % 2 * 8);
  int v380[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v380[i] = (((int)(v75 + (v371[i] / 8))) * 4160) + ((v120 + ((int)(v371[i] % 8))) * 130);
  bool v383[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v383[i] = (v371[i] < v84) && v221;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_f32_2((float*)v233 + (v380[i / 2 % 2] + (col5 + i % 2 + i / 4 % 16 * 8)), v145 + i, v383[i / 2 % 2]);
  float v237[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v237[i] = v143[i] * 0.0883883476f;
  float v238[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v238[i] = __shfl_sync(0xffffffffu, v237[(i / 4 % 2)], (at13 + i % 4 * 8));
  unsigned char* const v241 = p10 + ((v225 + 128) * 4);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v241 + v230[i], v238 + i, (lane & 15) == 0 && v124[i]);
  float v244[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v244[i] = __shfl_sync(0xffffffffu, v144[(i / 4 % 2)], (at13 + i % 4 * 8));
  unsigned char* const v247 = p10 + ((v225 + 129) * 4);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v247 + v230[i], v244 + i, (lane & 15) == 0 && v124[i]);
}
