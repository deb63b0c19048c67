// narrow_pair_bf16, load_f32_1, load_f32_4, store_bf16_4, widen_pair_e4m3, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, ldmatrix_trans_bytes, mma_e4m3_e4m3_by_2_native, mma_f16_f16_by_2, widen_2_words_e4m3, widen_4_words_e4m3, mma_e4m3_e4m3_by_2
extern "C" __global__ void __launch_bounds__(32, 1) gemm_scaled_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 8 % 4;
  const int col0 = lane % 8 * 16;
  const int row1 = lane % 32;
  const int col2 = lane % 4 * 4;
  const int row3 = lane / 4 % 8;
  const int at4 = (lane % 32 * 16) ^ (lane / 8 % 4 * 16);
  const int at5 = lane % 2 * 16 + lane / 2 % 2 * 128 + lane / 4 % 4 * 32 + lane / 16 % 2 * 256;
  const int at6 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at7 = lane % 32 * 16;
  const int v1 = (int)(long long)blockIdx.x;
  const int v8 = (v1 / 64) * 8;
  const int v9 = v1 % 64;
  const int v11 = min((((int)p0) - v8), 8);
  const int v16 = (v8 + (v9 % v11)) * 16;
  const int v17 = (v9 / v11) * 16;
  const int v72 = (int)v16;
  const int v76 = (int)0;
  const int v84 = (int)v17;
  const bool v88 = 0 < 256;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)p2 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v88 && ((v72 + (row0 + i / 16 % 4 * 4)) < p1));
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)p3 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v88);
  commit_group();
  const bool v96 = 128 < 256;
  unsigned char* const v97 = p2 + 128;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)1 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v97 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v96 && ((v72 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v100 = p3 + 16384;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)1 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v100 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v96);
  commit_group();
  const bool v105 = 256 < 256;
  unsigned char* const v106 = p2 + 256;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)2 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v106 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v105 && ((v72 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v109 = p3 + 32768;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)2 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v109 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v105);
  commit_group();
  const bool v114 = 384 < 256;
  unsigned char* const v115 = p2 + 384;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)3 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v115 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v114 && ((v72 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v118 = p3 + 49152;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)3 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v118 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v114);
  commit_group();
  const bool v123 = 512 < 256;
  unsigned char* const v124 = p2 + 512;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)4 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v124 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v123 && ((v72 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v127 = p3 + 65536;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)4 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v127 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v123);
  commit_group();
  const bool v132 = 640 < 256;
  unsigned char* const v133 = p2 + 640;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)5 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v133 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v132 && ((v72 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v136 = p3 + 81920;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)5 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v136 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v132);
  commit_group();
  const bool v141 = 768 < 256;
  unsigned char* const v142 = p2 + 768;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)6 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v142 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v141 && ((v72 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v145 = p3 + 98304;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)6 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v145 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v141);
  commit_group();
  float v22[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v22[i] = 0.0f;
  int v149 = 0;
  int v151 = 7;
  for (long long v21 = 0; v21 < 256; v21 += 128) {
    wait_group_6();
    const long long v155 = v21 + 896;
    const bool v156 = v155 < 256;
    unsigned char* const v159 = p2 + v155;
    const int v160 = (int)v16;
    unsigned char* const v168 = p3 + (v155 * 128);
    {
      const unsigned a = shared + 0 + (int)v149 * 2048;
      const unsigned b = shared + 16384 + (int)v149 * 2048;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans_bytes(fb[n], b + (at7 + k % 4 * 512));
        unsigned wa[1][8], wb[2][4];
#pragma unroll
        for (int m = 0; m < 1; ++m) widen_4_words_e4m3(wa[m], fa[m]);
#pragma unroll
        for (int n = 0; n < 2; ++n) widen_2_words_e4m3(wb[n], fb[n]);
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_e4m3_e4m3_by_2(v22 + (m * 2 + n / 2 * 2) * 4 + n % 2, wa[m], wb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 32; i += 16)
      copy_async_16(shared + 0 + (int)v151 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v159 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v156 && ((v160 + (row0 + i / 16 % 4 * 4)) < p1));
    {
      const unsigned a = shared + 0 + (int)v149 * 2048;
      const unsigned b = shared + 16384 + (int)v149 * 2048;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans_bytes(fb[n], b + (at7 + k % 4 * 512));
        unsigned wa[1][8], wb[2][4];
#pragma unroll
        for (int m = 0; m < 1; ++m) widen_4_words_e4m3(wa[m], fa[m]);
#pragma unroll
        for (int n = 0; n < 2; ++n) widen_2_words_e4m3(wb[n], fb[n]);
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_e4m3_e4m3_by_2(v22 + (m * 2 + n / 2 * 2) * 4 + n % 2, wa[m], wb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 32; i < 64; i += 16)
      copy_async_16(shared + 0 + (int)v151 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v159 + (((v72 + (row0 + i / 16 % 4 * 4)) * 256) + (v76 + (col0 + i % 16))), v156 && ((v160 + (row0 + i / 16 % 4 * 4)) < p1));
    {
      const unsigned a = shared + 0 + (int)v149 * 2048;
      const unsigned b = shared + 16384 + (int)v149 * 2048;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans_bytes(fb[n], b + (at7 + k % 4 * 512));
        unsigned wa[1][8], wb[2][4];
#pragma unroll
        for (int m = 0; m < 1; ++m) widen_4_words_e4m3(wa[m], fa[m]);
#pragma unroll
        for (int n = 0; n < 2; ++n) widen_2_words_e4m3(wb[n], fb[n]);
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_e4m3_e4m3_by_2(v22 + (m * 2 + n / 2 * 2) * 4 + n % 2, wa[m], wb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 32; i += 16)
      copy_async_16(shared + 16384 + (int)v151 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v168 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v156);
    {
      const unsigned a = shared + 0 + (int)v149 * 2048;
      const unsigned b = shared + 16384 + (int)v149 * 2048;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans_bytes(fb[n], b + (at7 + k % 4 * 512));
        unsigned wa[1][8], wb[2][4];
#pragma unroll
        for (int m = 0; m < 1; ++m) widen_4_words_e4m3(wa[m], fa[m]);
#pragma unroll
        for (int n = 0; n < 2; ++n) widen_2_words_e4m3(wb[n], fb[n]);
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_e4m3_e4m3_by_2(v22 + (m * 2 + n / 2 * 2) * 4 + n % 2, wa[m], wb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 32; i < 64; i += 16)
      copy_async_16(shared + 16384 + (int)v151 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v168 + (((v76 + (row1 + i / 16 % 4 * 32)) * 128) + (v84 + (i % 16))), v156);
    commit_group();
    const int v173 = v149 + 1;
    const int v177 = (v173 < 8) ? v173 : 0;
    const int v178 = v151 + 1;
    const int v180 = (v178 < 8) ? v178 : 0;
    v149 = v177;
    v151 = v180;
  }
  const int v48 = (int)v16;
  int v50[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v50[i] = v48 + (row3 + i % 2 * 8);
  bool v52[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v52[i] = v50[i] < p1;
  const int v53 = (int)v17;
  float v58[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v58 + i, (const float*)p4 + v50[i], v52[i]);
  float v61[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    load_f32_4(v61 + i, (const float*)p5 + (v53 + (col2 + i % 4)), v52[i / 4 % 2]);
  float v62[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v62[i] = (v22[i] * v58[i / 4 % 2]) * v61[i];
  int v65[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v65[i] = v50[i] * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    store_bf16_4((unsigned short*)p6 + (v65[i / 4 % 2] + (v53 + (col2 + i % 4))), v62 + i, v52[i / 4 % 2]);
}
