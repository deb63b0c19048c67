// narrow_pair_bf16, load_bf16_2, load_bf16_8, load_f32_4, store_bf16_2, store_bf16_8, smem, shared_address, commit_group, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(32, 1) gemm_to_mul_addmm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 8 % 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 2 % 16;
  const int col3 = lane % 2 * 8;
  const int col4 = lane % 4 * 2;
  const int row5 = lane / 4 % 8;
  const int at6 = (lane % 32 * 8) ^ (lane / 8 % 4 * 8);
  const int at7 = (lane % 32 * 8) ^ (lane / 8 % 2 * 8);
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at9 = ((lane / 4 % 2 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 32;
  const int v1 = (int)(long long)blockIdx.x;
  const int v8 = (v1 / 64) * 8;
  const int v9 = v1 % 64;
  const int v11 = min((((int)p0) - v8), 8);
  const int v16 = (v8 + (v9 % v11)) * 16;
  const int v17 = (v9 / v11) * 16;
  const int v80 = (int)v16;
  int v82[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v82[i] = v80 + (row0 + i % 4 * 4);
  int v83[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v83[i] = v82[i] * 64;
  const int v84 = (int)0;
  bool v89[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v89[i] = v82[i] < p1;
  float v92[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v92 + i, (const unsigned short*)p2 + (v83[i / 8 % 4] + (v84 + (col1 + i % 8))), (v89[i / 8 % 4] && ((v84 + (col1 + i % 8)) < 64)));
  float v94[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v94 + i, (const unsigned short*)p3 + (v84 + (col1 + i % 8)), (v89[i / 8 % 4] && ((v84 + (col1 + i % 8)) < 64)));
  float v95[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v95[i] = v92[i] * v94[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0) + ((at6 ^ (i / 8 % 2 * 32)) + i % 8 + i / 8 % 4 * 256), v95 + i, true);
  int v100[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v100[i] = v84 + (row2 + i % 4 * 16);
  int v102[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v102[i] = v100[i] * 128;
  const int v103 = (int)v17;
  bool v107[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v107[i] = v100[i] < 64;
  float v110[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v110 + i, (const float*)p4 + (v102[i / 8 % 4] + (v103 + (col3 + i % 8))), (v107[i / 8 % 4] && ((v103 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 16384) + (at7 + i % 8 + i / 8 % 4 * 256), v110 + i, true);
  commit_group();
  const int v117 = (int)64;
  float v122[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v122 + i, (const unsigned short*)p2 + (v83[i / 8 % 4] + (v117 + (col1 + i % 8))), (v89[i / 8 % 4] && ((v117 + (col1 + i % 8)) < 64)));
  float v123[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v123 + i, (const unsigned short*)p3 + (v117 + (col1 + i % 8)), (v89[i / 8 % 4] && ((v117 + (col1 + i % 8)) < 64)));
  float v124[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v124[i] = v122[i] * v123[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)1 * 2048) + ((at6 ^ (i / 8 % 2 * 32)) + i % 8 + i / 8 % 4 * 256), v124 + i, true);
  int v127[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v127[i] = v117 + (row2 + i % 4 * 16);
  int v128[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v128[i] = v127[i] * 128;
  bool v130[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v130[i] = v127[i] < 64;
  float v132[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v132 + i, (const float*)p4 + (v128[i / 8 % 4] + (v103 + (col3 + i % 8))), (v130[i / 8 % 4] && ((v103 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 16384 + (int)1 * 2048) + (at7 + i % 8 + i / 8 % 4 * 256), v132 + i, true);
  commit_group();
  const int v138 = (int)128;
  float v143[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v143 + i, (const unsigned short*)p2 + (v83[i / 8 % 4] + (v138 + (col1 + i % 8))), (v89[i / 8 % 4] && ((v138 + (col1 + i % 8)) < 64)));
  float v144[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v144 + i, (const unsigned short*)p3 + (v138 + (col1 + i % 8)), (v89[i / 8 % 4] && ((v138 + (col1 + i % 8)) < 64)));
  float v145[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v145[i] = v143[i] * v144[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)2 * 2048) + ((at6 ^ (i / 8 % 2 * 32)) + i % 8 + i / 8 % 4 * 256), v145 + i, true);
  int v148[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v148[i] = v138 + (row2 + i % 4 * 16);
  int v149[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v149[i] = v148[i] * 128;
  bool v151[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v151[i] = v148[i] < 64;
  float v153[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v153 + i, (const float*)p4 + (v149[i / 8 % 4] + (v103 + (col3 + i % 8))), (v151[i / 8 % 4] && ((v103 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 16384 + (int)2 * 2048) + (at7 + i % 8 + i / 8 % 4 * 256), v153 + i, true);
  commit_group();
  const int v160 = (int)192;
  float v165[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v165 + i, (const unsigned short*)p2 + (v83[i / 8 % 4] + (v160 + (col1 + i % 8))), (v89[i / 8 % 4] && ((v160 + (col1 + i % 8)) < 64)));
  float v166[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v166 + i, (const unsigned short*)p3 + (v160 + (col1 + i % 8)), (v89[i / 8 % 4] && ((v160 + (col1 + i % 8)) < 64)));
  float v167[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v167[i] = v165[i] * v166[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)3 * 2048) + ((at6 ^ (i / 8 % 2 * 32)) + i % 8 + i / 8 % 4 * 256), v167 + i, true);
  int v170[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v170[i] = v160 + (row2 + i % 4 * 16);
  int v171[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v171[i] = v170[i] * 128;
  bool v173[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v173[i] = v170[i] < 64;
  float v175[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v175 + i, (const float*)p4 + (v171[i / 8 % 4] + (v103 + (col3 + i % 8))), (v173[i / 8 % 4] && ((v103 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 16384 + (int)3 * 2048) + (at7 + i % 8 + i / 8 % 4 * 256), v175 + i, true);
  commit_group();
  const int v182 = (int)256;
  float v187[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v187 + i, (const unsigned short*)p2 + (v83[i / 8 % 4] + (v182 + (col1 + i % 8))), (v89[i / 8 % 4] && ((v182 + (col1 + i % 8)) < 64)));
  float v188[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v188 + i, (const unsigned short*)p3 + (v182 + (col1 + i % 8)), (v89[i / 8 % 4] && ((v182 + (col1 + i % 8)) < 64)));
  float v189[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v189[i] = v187[i] * v188[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)4 * 2048) + ((at6 ^ (i / 8 % 2 * 32)) + i % 8 + i / 8 % 4 * 256), v189 + i, true);
  int v192[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v192[i] = v182 + (row2 + i % 4 * 16);
  int v193[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v193[i] = v192[i] * 128;
  bool v195[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v195[i] = v192[i] < 64;
  float v197[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v197 + i, (const float*)p4 + (v193[i / 8 % 4] + (v103 + (col3 + i % 8))), (v195[i / 8 % 4] && ((v103 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 16384 + (int)4 * 2048) + (at7 + i % 8 + i / 8 % 4 * 256), v197 + i, true);
  commit_group();
  const int v204 = (int)320;
  float v209[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v209 + i, (const unsigned short*)p2 + (v83[i / 8 % 4] + (v204 + (col1 + i % 8))), (v89[i / 8 % 4] && ((v204 + (col1 + i % 8)) < 64)));
  float v210[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v210 + i, (const unsigned short*)p3 + (v204 + (col1 + i % 8)), (v89[i / 8 % 4] && ((v204 + (col1 + i % 8)) < 64)));
  float v211[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v211[i] = v209[i] * v210[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)5 * 2048) + ((at6 ^ (i / 8 % 2 * 32)) + i % 8 + i / 8 % 4 * 256), v211 + i, true);
  int v214[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v214[i] = v204 + (row2 + i % 4 * 16);
  int v215[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v215[i] = v214[i] * 128;
  bool v217[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v217[i] = v214[i] < 64;
  float v219[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v219 + i, (const float*)p4 + (v215[i / 8 % 4] + (v103 + (col3 + i % 8))), (v217[i / 8 % 4] && ((v103 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 16384 + (int)5 * 2048) + (at7 + i % 8 + i / 8 % 4 * 256), v219 + i, true);
  commit_group();
  const int v226 = (int)384;
  float v231[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v231 + i, (const unsigned short*)p2 + (v83[i / 8 % 4] + (v226 + (col1 + i % 8))), (v89[i / 8 % 4] && ((v226 + (col1 + i % 8)) < 64)));
  float v232[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v232 + i, (const unsigned short*)p3 + (v226 + (col1 + i % 8)), (v89[i / 8 % 4] && ((v226 + (col1 + i % 8)) < 64)));
  float v233[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v233[i] = v231[i] * v232[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)6 * 2048) + ((at6 ^ (i / 8 % 2 * 32)) + i % 8 + i / 8 % 4 * 256), v233 + i, true);
  int v236[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v236[i] = v226 + (row2 + i % 4 * 16);
  int v237[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v237[i] = v236[i] * 128;
  bool v239[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v239[i] = v236[i] < 64;
  float v241[32];
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    load_f32_4(v241 + i, (const float*)p4 + (v237[i / 8 % 4] + (v103 + (col3 + i % 8))), (v239[i / 8 % 4] && ((v103 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 16384 + (int)6 * 2048) + (at7 + i % 8 + i / 8 % 4 * 256), v241 + i, true);
  commit_group();
  float v20[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v20[i] = 0.0f;
  int v246 = 0;
  int v248 = 7;
  for (long long v19 = 0; v19 < 64; v19 += 64) {
    wait_group_6();
    const int v255 = (int)v16;
    int v257[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v257[i] = v255 + (row0 + i % 4 * 4);
    int v258[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v258[i] = v257[i] * 64;
    const int v259 = (int)(v19 + 448);
    bool v264[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v264[i] = v257[i] < p1;
    float v267[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v267 + i, (const unsigned short*)p2 + (v258[i / 8 % 4] + (v259 + (col1 + i % 8))), (v264[i / 8 % 4] && ((v259 + (col1 + i % 8)) < 64)));
    float v269[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v269 + i, (const unsigned short*)p3 + (v259 + (col1 + i % 8)), (v264[i / 8 % 4] && ((v259 + (col1 + i % 8)) < 64)));
    float v270[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v270[i] = v267[i] * v269[i];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      store_bf16_8((unsigned short*)(smem + 0 + (int)v248 * 2048) + ((at6 ^ (i / 8 % 2 * 32)) + i % 8 + i / 8 % 4 * 256), v270 + i, true);
    int v275[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v275[i] = v259 + (row2 + i % 4 * 16);
    int v277[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v277[i] = v275[i] * 128;
    const int v278 = (int)v17;
    bool v282[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v282[i] = v275[i] < 64;
    float v285[32];
#pragma unroll
    for (int i = 0; i < 32; i += 4)
      load_f32_4(v285 + i, (const float*)p4 + (v277[i / 8 % 4] + (v278 + (col3 + i % 8))), (v282[i / 8 % 4] && ((v278 + (col3 + i % 8)) < 128)));
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      store_bf16_8((unsigned short*)(smem + 16384 + (int)v248 * 2048) + (at7 + i % 8 + i / 8 % 4 * 256), v285 + i, true);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v246 * 2048;
      const unsigned b = shared + 16384 + (int)v246 * 2048;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at8 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at9 + k % 4 * 512));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v20 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v291 = v246 + 1;
    const int v295 = (v291 < 8) ? v291 : 0;
    const int v296 = v248 + 1;
    const int v298 = (v296 < 8) ? v296 : 0;
    v246 = v295;
    v248 = v298;
  }
  const int v57 = (int)v16;
  int v59[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v59[i] = v57 + (row5 + i % 2 * 8);
  bool v61[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v61[i] = v59[i] < p1;
  const int v62 = (int)v17;
  float v67[8];
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    load_bf16_2(v67 + i, (const unsigned short*)p5 + (v62 + (col4 + i % 2 + i / 4 % 2 * 8)), v61[i / 2 % 2]);
  float v68[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v68[i] = v20[i] + v67[i];
  int v72[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v72[i] = v59[i] * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)p6 + (v72[i / 2 % 2] + (v62 + (col4 + i % 2 + i / 4 % 2 * 8))), v68 + i, v61[i / 2 % 2]);
}
