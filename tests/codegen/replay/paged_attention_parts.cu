// narrow_pair_bf16, load_f32_1, load_i32_1, store_f32_1, store_f32_2, exp2_approx, max_f32, smem, shared_address, commit_group, copy_async_16, wait_group_0, ldmatrix, ldmatrix_trans, mma_bf16_bf16, pack_bf16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(32, 1) paged_attention_paged_attention_parts(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, Record* record, int step, long long p5, unsigned char* __restrict__ p6, unsigned char* __restrict__ p7, unsigned char* __restrict__ p8, unsigned char* __restrict__ p9, unsigned char* __restrict__ p10, long long p11) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 16 % 2;
  const int col1 = lane % 16 * 8;
  const int row2 = lane / 16 % 2;
  const int col3 = lane % 16 * 8;
  const int col4 = lane % 4 * 2;
  const int col5 = lane % 4 * 2;
  const int row6 = lane / 4 % 8;
  const int at7 = (lane % 32 * 16) ^ (lane / 16 % 2 * 16);
  const int at8 = (lane % 32 * 16) ^ (lane / 16 % 2 * 16);
  const int at9 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256;
  const int at10 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 256 + lane / 16 % 2 * 2048;
  const int at12 = lane % 4 + lane / 16 % 2 * 4;
  const int at13 = lane / 16 % 2;
  const int at14 = lane / 4 % 8;
  const int at15 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 256;
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
  const bool v249 = v139 < v140;
  const int v254 = (int)v139;
  const bool v259 = v254 < v111;
  long long v260;
  load_i32_1(&v260, (const int*)p7 + ((v71 * 64) + ((long long)(v254 / 64))), v259);
  const int v261 = (int)v260;
  const long long v268 = ((((int)v261) * 32768) + (v41 * 128)) * 2;
  unsigned char* const v269 = p8 + v268;
  int v271[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v271[i] = v254 + (row2 + i % 16 * 2);
  int v275[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v275[i] = ((int)(v271[i] % 64)) * 512;
  const bool v280 = -1 < v261;
  const bool v283 = v261 < 1000;
  bool v284[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v284[i] = ((v271[i] < v111) && v280) && v283;
#pragma unroll 4
  for (int i = 0; i < 128; i += 8)
    copy_async_16(shared + 4096 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 16 * 512), (const unsigned short*)v269 + (v275[i / 8 % 16] + (col3 + i % 8)), v249 && v284[i / 8 % 16]);
  unsigned char* const v287 = p9 + v268;
#pragma unroll 4
  for (int i = 0; i < 128; i += 8)
    copy_async_16(shared + 20480 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 16 * 512), (const unsigned short*)v287 + (v275[i / 8 % 16] + (col3 + i % 8)), v249 && v284[i / 8 % 16]);
  {
    bool bad = false;
    long long index = 0;
    if (v259 && (v261 < 0 || v261 >= 1000)) bad = true, index = v261;
    if (bad) bad_index(record, step, 196608, index, 1000);
  }
  commit_group();
  float v143[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v143[i] = __int_as_float(0xff800000);
  float v144[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v144[i] = 0.0f;
  float v145[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v145[i] = 0.0f;
  int v292 = 0;
  int v294 = 1;
  for (long long v142 = v139; v142 < v140; v142 += 32) {
    wait_group_0();
    const long long v298 = v142 + 32;
    const bool v299 = v298 < v140;
    const int v304 = (int)v298;
    const bool v309 = v304 < v111;
    long long v310;
    load_i32_1(&v310, (const int*)p7 + ((v71 * 64) + ((long long)(v304 / 64))), v309);
    const int v311 = (int)v310;
    const long long v318 = ((((int)v311) * 32768) + (v41 * 128)) * 2;
    unsigned char* const v319 = p8 + v318;
    int v321[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v321[i] = v304 + (row2 + i % 16 * 2);
    int v325[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v325[i] = ((int)(v321[i] % 64)) * 512;
    const bool v330 = -1 < v311;
    const bool v333 = v311 < 1000;
    bool v334[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v334[i] = ((v321[i] < v111) && v330) && v333;
#pragma unroll 4
    for (int i = 0; i < 128; i += 8)
      copy_async_16(shared + 4096 + (int)v294 * 8192 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 16 * 512), (const unsigned short*)v319 + (v325[i / 8 % 16] + (col3 + i % 8)), v299 && v334[i / 8 % 16]);
    unsigned char* const v337 = p9 + v318;
#pragma unroll 4
    for (int i = 0; i < 128; i += 8)
      copy_async_16(shared + 20480 + (int)v294 * 8192 + ((at8 ^ (i / 8 % 4 * 32)) + i % 8 * 2 + i / 8 % 16 * 512), (const unsigned short*)v337 + (v325[i / 8 % 16] + (col3 + i % 8)), v299 && v334[i / 8 % 16]);
    {
      bool bad = false;
      long long index = 0;
      if (v309 && (v311 < 0 || v311 >= 1000)) bad = true, index = v311;
      if (bad) bad_index(record, step, 196608, index, 1000);
    }
    commit_group();
    const int v148 = (int)v142;
    float v185[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v185[i] = 0.0f;
    {
      const unsigned a = shared + 0;
      const unsigned b = shared + 4096 + (int)v292 * 8192;
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
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v185 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    int v188[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v188[i] = v99 + v114[i];
    int v354[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v354[i] = v99 + ((v91 + (row6 + i % 2 * 8)) / 8);
    float v192[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v192[i] = (!(v354[i / 2 % 2] < (v148 + (col5 + i % 2 + i / 4 % 4 * 8)))) ? v185[i] : __int_as_float(0xff800000);
    float v357[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v357[i] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v357[i / 2 % 2] = max_f32(v357[i / 2 % 2], v192[i]);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v357[i] = max_f32(v357[i], __shfl_xor_sync(0xffffffffu, v357[i], 1));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v357[i] = max_f32(v357[i], __shfl_xor_sync(0xffffffffu, v357[i], 2));
    float v193[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v193[i] = __shfl_sync(0xffffffffu, v357[(i / 4 % 2)], (at12 + i % 4 * 8));
    float v194[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v194[i] = max_f32(v143[i], v193[i]);
    float v197[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v197[i] = (v194[i] == __int_as_float(0xff800000)) ? 0.0f : v194[i];
    float v199[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v199[i] = v197[i] * -0.127517431f;
    float v358[2];
    float* const s358 = (float*)(smem + 36864);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_f32_1(s358 + (at13 + i % 8 * 2), v199 + i, (lane & 15) == 0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v358 + i, s358 + (at14 + i % 2 * 8), true);
    float v202[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v202[i] = exp2_approx((__fmaf_rn(v192[i], 0.127517431f, v358[i / 2 % 2])));
    float v205[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v205[i] = exp2_approx(((v143[i] - v197[i]) * 0.127517431f));
    float v359[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v359[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v359[i / 2 % 2] = v359[i / 2 % 2] + v202[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v359[i] = v359[i] + __shfl_xor_sync(0xffffffffu, v359[i], 1);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v359[i] = v359[i] + __shfl_xor_sync(0xffffffffu, v359[i], 2);
    float v207[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v207[i] = __shfl_sync(0xffffffffu, v359[(i / 4 % 2)], (at12 + i % 4 * 8));
    float v208[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v208[i] = (v144[i] * v205[i]) + v207[i];
    float v360[2];
    float* const s360 = (float*)(smem + 36864);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_f32_1(s360 + (at13 + i % 8 * 2), v205 + i, (lane & 15) == 0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v360 + i, s360 + (at14 + i % 2 * 8), true);
    float v209[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v209[i] = v145[i] * v360[i / 2 % 2];
    {
      const unsigned b = shared + 20480 + (int)v292 * 8192;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        unsigned fa[1][4], fb[16][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v202 + ((m * 2 + k) * 4 + w) * 2);
#pragma unroll
        for (int n = 0; n < 16; n += 2)
          ldmatrix_trans(fb[n], b + ((at15 ^ (n / 2 % 8 * 32)) + k % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 16; ++n) mma_bf16_bf16(v209 + (m * 16 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v344 = v292 + 1;
    const int v348 = (v344 < 2) ? v344 : 0;
    const int v349 = v294 + 1;
    const int v351 = (v349 < 2) ? v349 : 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v143[i] = v194[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v144[i] = v208[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v145[i] = v209[i];
    v292 = v348;
    v294 = v351;
  }
  const bool v217 = v109 < v111;
  const int v221 = v38 * ((int)p11);
  int v226[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v226[i] = (v123[i] * 4160) + (v121[i] * 130);
  unsigned char* const v229 = p10 + (v221 * 4);
  bool v230[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v230[i] = v124[i] && v217;
  int v361[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v361[i] = v91 + (row6 + i % 2 * 8);
  int v370[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v370[i] = (((int)(v75 + (v361[i] / 8))) * 4160) + ((v120 + ((int)(v361[i] % 8))) * 130);
  bool v373[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v373[i] = (v361[i] < v84) && v217;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_f32_2((float*)v229 + (v370[i / 2 % 2] + (col4 + i % 2 + i / 4 % 16 * 8)), v145 + i, v373[i / 2 % 2]);
  float v233[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v233[i] = v143[i] * 0.0883883476f;
  unsigned char* const v236 = p10 + ((v221 + 128) * 4);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v236 + v226[i], v233 + i, (lane & 15) == 0 && v124[i]);
  unsigned char* const v241 = p10 + ((v221 + 129) * 4);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f32_1((float*)v241 + v226[i], v144 + i, (lane & 15) == 0 && v124[i]);
}
