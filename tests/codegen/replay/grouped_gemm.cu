// narrow_bf16, narrow_pair_bf16, load_i32_1, round_bf16, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(128, 1) grouped_gemm__grouped_mm_silu(long long p0, long long p1, unsigned char* __restrict__ p2, Record* record, int step, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6, unsigned char* __restrict__ p7) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int row1 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int col2 = lane % 4 * 2 + warp % 4 * 16;
  const int row3 = lane / 4 % 8;
  const int at4 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at6 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + lane % 16 * 128;
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
      if (bad) bad_index(record, step, 0, index, v32);
    }
    const int v37 = min((max(v31, 0)), v17);
    {
      bool bad = false;
      long long index = 0;
      if (((v37 - v23) < 0 || (v37 - v23) >= v32)) bad = true, index = (v37 - v23);
      if (bad) bad_index(record, step, 0, index, v32);
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
  const int v76 = v72 ? (v23 + (v68 * 16)) : v25;
  const long long v79 = (long long)(max(v27, 0));
  const long long v81 = (-1 < v27) ? 64 : 0;
  const int v83 = (v9 / v11) * 64;
  const int v84 = (int)(v72 ? v17 : v26);
  const int v139 = (int)v76;
  const int v143 = (int)0;
  const int v151 = (int)v83;
  const bool v155 = 0 < v81;
  copy_async_16(shared + 0 + at4, (const unsigned short*)p5 + (((v139 + row0) * 64) + (v143 + col0)), v155 && ((v139 + row0) < v84));
  unsigned char* const v164 = p6 + ((v79 * 8192) * 2);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v164 + (((v143 + (row1 + i / 8 % 4 * 16)) * 128) + (v151 + (col1 + i % 8))), v155);
  commit_group();
  const bool v168 = 64 < v81;
  unsigned char* const v169 = p5 + 128;
  copy_async_16(shared + 0 + (int)1 * 2048 + at4, (const unsigned short*)v169 + (((v139 + row0) * 64) + (v143 + col0)), v168 && ((v139 + row0) < v84));
  unsigned char* const v172 = v164 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)1 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v172 + (((v143 + (row1 + i / 8 % 4 * 16)) * 128) + (v151 + (col1 + i % 8))), v168);
  commit_group();
  const bool v175 = 128 < v81;
  unsigned char* const v177 = p5 + 256;
  copy_async_16(shared + 0 + (int)2 * 2048 + at4, (const unsigned short*)v177 + (((v139 + row0) * 64) + (v143 + col0)), v175 && ((v139 + row0) < v84));
  unsigned char* const v180 = v164 + 32768;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)2 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v180 + (((v143 + (row1 + i / 8 % 4 * 16)) * 128) + (v151 + (col1 + i % 8))), v175);
  commit_group();
  const bool v185 = 192 < v81;
  unsigned char* const v187 = p5 + 384;
  copy_async_16(shared + 0 + (int)3 * 2048 + at4, (const unsigned short*)v187 + (((v139 + row0) * 64) + (v143 + col0)), v185 && ((v139 + row0) < v84));
  unsigned char* const v191 = v164 + 49152;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)3 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v191 + (((v143 + (row1 + i / 8 % 4 * 16)) * 128) + (v151 + (col1 + i % 8))), v185);
  commit_group();
  const bool v195 = 256 < v81;
  unsigned char* const v197 = p5 + 512;
  copy_async_16(shared + 0 + (int)4 * 2048 + at4, (const unsigned short*)v197 + (((v139 + row0) * 64) + (v143 + col0)), v195 && ((v139 + row0) < v84));
  unsigned char* const v200 = v164 + 65536;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)4 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v200 + (((v143 + (row1 + i / 8 % 4 * 16)) * 128) + (v151 + (col1 + i % 8))), v195);
  commit_group();
  const bool v205 = 320 < v81;
  unsigned char* const v207 = p5 + 640;
  copy_async_16(shared + 0 + (int)5 * 2048 + at4, (const unsigned short*)v207 + (((v139 + row0) * 64) + (v143 + col0)), v205 && ((v139 + row0) < v84));
  unsigned char* const v211 = v164 + 81920;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)5 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v211 + (((v143 + (row1 + i / 8 % 4 * 16)) * 128) + (v151 + (col1 + i % 8))), v205);
  commit_group();
  const bool v215 = 384 < v81;
  unsigned char* const v217 = p5 + 768;
  copy_async_16(shared + 0 + (int)6 * 2048 + at4, (const unsigned short*)v217 + (((v139 + row0) * 64) + (v143 + col0)), v215 && ((v139 + row0) < v84));
  unsigned char* const v220 = v164 + 98304;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)6 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v220 + (((v143 + (row1 + i / 8 % 4 * 16)) * 128) + (v151 + (col1 + i % 8))), v215);
  commit_group();
  float v87[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v87[i] = 0.0f;
  int v224 = 0;
  int v226 = 7;
  for (long long v86 = 0; v86 < v81; v86 += 64) {
    wait_group_6();
    const long long v230 = v86 + 448;
    const bool v231 = v230 < v81;
    unsigned char* const v235 = p5 + (v230 * 2);
    const int v236 = (int)v76;
    unsigned char* const v245 = p6 + ((v79 * 8192) * 2);
    unsigned char* const v248 = v245 + ((v230 * 128) * 2);
    {
      const unsigned a = shared + 0 + (int)v224 * 2048;
      const unsigned b = shared + 16384 + (int)v224 * 8192;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v87 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v226 * 2048 + at4, (const unsigned short*)v235 + (((v139 + row0) * 64) + (v143 + col0)), v231 && ((v236 + row0) < v84));
    {
      const unsigned a = shared + 0 + (int)v224 * 2048;
      const unsigned b = shared + 16384 + (int)v224 * 8192;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v87 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 16384 + (int)v226 * 8192 + at5, (const unsigned short*)v248 + (((v143 + row1) * 128) + (v151 + col1)), v231);
    {
      const unsigned a = shared + 0 + (int)v224 * 2048;
      const unsigned b = shared + 16384 + (int)v224 * 8192;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v87 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 16384 + (int)v226 * 8192 + (at5 + 8 % 8 * 2 + 8 / 8 % 4 * 2048), (const unsigned short*)v248 + (((v143 + (row1 + 8 / 8 % 4 * 16)) * 128) + (v151 + (col1 + 8 % 8))), v231);
    {
      const unsigned a = shared + 0 + (int)v224 * 2048;
      const unsigned b = shared + 16384 + (int)v224 * 8192;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v87 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 16; i < 32; i += 8)
      copy_async_16(shared + 16384 + (int)v226 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v248 + (((v143 + (row1 + i / 8 % 4 * 16)) * 128) + (v151 + (col1 + i % 8))), v231);
    commit_group();
    const int v253 = v224 + 1;
    const int v257 = (v253 < 8) ? v253 : 0;
    const int v258 = v226 + 1;
    const int v260 = (v258 < 8) ? v258 : 0;
    v224 = v257;
    v226 = v260;
  }
  const int v116 = (int)v76;
  int v118[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v118[i] = v116 + (row3 + i % 2 * 8);
  bool v119[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v119[i] = v118[i] < v84;
  const int v120 = (int)v83;
  float v123[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v123[i] = round_bf16(v87[i]);
  float v128[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v128[i] = v123[i] / (1.0f + (expf((-v123[i]))));
  int v132[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v132[i] = v118[i] * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)p7 + (v132[i / 2 % 2] + (v120 + (col2 + i % 2 + i / 4 % 2 * 8))), v128 + i, v119[i / 2 % 2]);
}
