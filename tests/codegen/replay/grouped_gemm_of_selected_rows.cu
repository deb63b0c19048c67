// narrow_pair_bf16, load_i32_1, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(128, 1) grouped_gemm_index_select__grouped_mm(long long p0, long long p1, unsigned char* __restrict__ p2, Record* record, int step, unsigned char* __restrict__ p5, long long p6, unsigned char* __restrict__ p7, unsigned char* __restrict__ p8, unsigned char* __restrict__ p9) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 8 % 4 + warp % 4 * 4;
  const int col2 = lane % 8 * 8;
  const int col3 = lane % 4 * 2 + warp % 4 * 16;
  const int row4 = lane / 4 % 8;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at6 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + lane % 16 * 128;
  const int v1 = (int)(long long)blockIdx.x;
  const int v8 = (v1 / 16) * 8;
  const int v9 = v1 % 16;
  const int v11 = min((((int)p0) - v8), 8);
  const int v13 = v8 + (v9 % v11);
  const int v17 = (int)p1;
  int v23 = 0;
  int v24 = 0;
  int v25 = 0;
  int v26 = 0;
  int v27 = -1;
  for (long long v22 = 0; v22 < 8; v22 += 1) {
    long long v30;
    load_i32_1(&v30, (const int*)p2 + v22, true);
    const int v31 = (int)v30;
    const int v32 = v17 + 1;
    {
      bool bad = false;
      long long index = 0;
      if ((v31 < 0 || v31 >= v32)) bad = true, index = v31;
      if (bad) bad_index(record, step, 1, index, v32);
    }
    const int v37 = min((max(v31, 0)), v17);
    {
      bool bad = false;
      long long index = 0;
      if (((v37 - v23) < 0 || (v37 - v23) >= v32)) bad = true, index = (v37 - v23);
      if (bad) bad_index(record, step, 1, index, v32);
    }
    const int v40 = max(v23, v37);
    const int v45 = ((v40 - v23) + 15) / 16;
    const int v46 = v13 - v24;
    const bool v50 = (-1 < v46) && (v46 < v45);
    const int v53 = v24 + v45;
    const int v54 = v50 ? (v23 + (v46 * 16)) : v25;
    const int v55 = v50 ? v40 : v26;
    const int v57 = v50 ? ((int)v22) : v27;
    v23 = v40;
    v24 = v53;
    v25 = v54;
    v26 = v55;
    v27 = v57;
  }
  const int v68 = v13 - v24;
  const bool v72 = (-1 < v68) && (v68 < (((v17 - v23) + 15) / 16));
  const long long v79 = (long long)(max(v27, 0));
  const long long v81 = (-1 < v27) ? 64 : 0;
  const int v83 = (v9 / v11) * 64;
  const int v84 = (int)(v72 ? v17 : v26);
  const int v85 = (int)(v72 ? (v23 + (v68 * 16)) : v25);
  int v87[1];
  v87[0] = v85 + row0;
  bool v88[1];
  v88[0] = v87[0] < v84;
  long long v90[1];
  load_i32_1(v90 + 0, (const int*)p5 + v87[0], v88[0]);
  {
    bool bad = false;
    long long index = 0;
    if (v88[0] && (v90[0] < 0 || v90[0] >= p6)) bad = true, index = v90[0];
    if (bad) bad_index(record, step, 0, index, p6);
  }
  bool v95[1];
  v95[0] = -1 < v90[0];
  bool v96[1];
  v96[0] = v90[0] < p6;
  int v140[1];
  v140[0] = ((int)v90[0]) * 64;
  const int v141 = (int)0;
  const int v149 = (int)v83;
  const bool v153 = 0 < v81;
  bool v157[1];
  v157[0] = (v88[0] && v95[0]) && v96[0];
  copy_async_16(shared + 0 + at5, (const unsigned short*)p7 + (v140[0] + (v141 + col1)), v153 && v157[0]);
  unsigned char* const v163 = p8 + ((v79 * 8192) * 2);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v163 + (((v141 + (row2 + i / 8 % 4 * 16)) * 128) + (v149 + (col2 + i % 8))), v153);
  commit_group();
  const bool v167 = 64 < v81;
  unsigned char* const v168 = p7 + 128;
  copy_async_16(shared + 0 + (int)1 * 2048 + at5, (const unsigned short*)v168 + (v140[0] + (v141 + col1)), v167 && v157[0]);
  unsigned char* const v171 = v163 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)1 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v171 + (((v141 + (row2 + i / 8 % 4 * 16)) * 128) + (v149 + (col2 + i % 8))), v167);
  commit_group();
  const bool v174 = 128 < v81;
  unsigned char* const v176 = p7 + 256;
  copy_async_16(shared + 0 + (int)2 * 2048 + at5, (const unsigned short*)v176 + (v140[0] + (v141 + col1)), v174 && v157[0]);
  unsigned char* const v179 = v163 + 32768;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)2 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v179 + (((v141 + (row2 + i / 8 % 4 * 16)) * 128) + (v149 + (col2 + i % 8))), v174);
  commit_group();
  const bool v184 = 192 < v81;
  unsigned char* const v186 = p7 + 384;
  copy_async_16(shared + 0 + (int)3 * 2048 + at5, (const unsigned short*)v186 + (v140[0] + (v141 + col1)), v184 && v157[0]);
  unsigned char* const v190 = v163 + 49152;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)3 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v190 + (((v141 + (row2 + i / 8 % 4 * 16)) * 128) + (v149 + (col2 + i % 8))), v184);
  commit_group();
  const bool v194 = 256 < v81;
  unsigned char* const v196 = p7 + 512;
  copy_async_16(shared + 0 + (int)4 * 2048 + at5, (const unsigned short*)v196 + (v140[0] + (v141 + col1)), v194 && v157[0]);
  unsigned char* const v199 = v163 + 65536;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)4 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v199 + (((v141 + (row2 + i / 8 % 4 * 16)) * 128) + (v149 + (col2 + i % 8))), v194);
  commit_group();
  const bool v204 = 320 < v81;
  unsigned char* const v206 = p7 + 640;
  copy_async_16(shared + 0 + (int)5 * 2048 + at5, (const unsigned short*)v206 + (v140[0] + (v141 + col1)), v204 && v157[0]);
  unsigned char* const v210 = v163 + 81920;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)5 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v210 + (((v141 + (row2 + i / 8 % 4 * 16)) * 128) + (v149 + (col2 + i % 8))), v204);
  commit_group();
  const bool v214 = 384 < v81;
  unsigned char* const v216 = p7 + 768;
  copy_async_16(shared + 0 + (int)6 * 2048 + at5, (const unsigned short*)v216 + (v140[0] + (v141 + col1)), v214 && v157[0]);
  unsigned char* const v219 = v163 + 98304;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)6 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v219 + (((v141 + (row2 + i / 8 % 4 * 16)) * 128) + (v149 + (col2 + i % 8))), v214);
  commit_group();
  float v100[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v100[i] = 0.0f;
  int v223 = 0;
  int v225 = 7;
  for (long long v99 = 0; v99 < v81; v99 += 64) {
    wait_group_6();
    const long long v229 = v99 + 448;
    const bool v230 = v229 < v81;
    unsigned char* const v234 = p7 + (v229 * 2);
    bool v236[1];
    v236[0] = (v88[0] && v95[0]) && v96[0];
    unsigned char* const v242 = p8 + ((v79 * 8192) * 2);
    unsigned char* const v245 = v242 + ((v229 * 128) * 2);
    {
      const unsigned a = shared + 0 + (int)v223 * 2048;
      const unsigned b = shared + 16384 + (int)v223 * 8192;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at7 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at8 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v100 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v225 * 2048 + at5, (const unsigned short*)v234 + (v140[0] + (v141 + col1)), v230 && v236[0]);
    {
      const unsigned a = shared + 0 + (int)v223 * 2048;
      const unsigned b = shared + 16384 + (int)v223 * 8192;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at7 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at8 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v100 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 16384 + (int)v225 * 8192 + at6, (const unsigned short*)v245 + (((v141 + row2) * 128) + (v149 + col2)), v230);
    {
      const unsigned a = shared + 0 + (int)v223 * 2048;
      const unsigned b = shared + 16384 + (int)v223 * 8192;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at7 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at8 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v100 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 16384 + (int)v225 * 8192 + (at6 + 8 % 8 * 2 + 8 / 8 % 4 * 2048), (const unsigned short*)v245 + (((v141 + (row2 + 8 / 8 % 4 * 16)) * 128) + (v149 + (col2 + 8 % 8))), v230);
    {
      const unsigned a = shared + 0 + (int)v223 * 2048;
      const unsigned b = shared + 16384 + (int)v223 * 8192;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at7 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at8 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v100 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 16; i < 32; i += 8)
      copy_async_16(shared + 16384 + (int)v225 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v245 + (((v141 + (row2 + i / 8 % 4 * 16)) * 128) + (v149 + (col2 + i % 8))), v230);
    commit_group();
    const int v250 = v223 + 1;
    const int v254 = (v250 < 8) ? v250 : 0;
    const int v255 = v225 + 1;
    const int v257 = (v255 < 8) ? v255 : 0;
    v223 = v254;
    v225 = v257;
  }
  const int v127 = (int)v83;
  int v133[1];
  v133[0] = v87[0] * 128;
  int v258[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v258[i] = v85 + (row4 + i % 2 * 8);
  int v259[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v259[i] = v258[i] * 128;
  bool v261[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v261[i] = v258[i] < v84;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)p9 + (v259[i / 2 % 2] + (v127 + (col3 + i % 2 + i / 4 % 2 * 8))), v100 + i, v261[i / 2 % 2]);
}
