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
  const int v74 = (int)v16;
  const int v78 = (int)0;
  const int v86 = (int)v17;
  const bool v90 = 0 < 256;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)p2 + (((v74 + (row0 + i / 16 % 4 * 4)) * 256) + (v78 + (col0 + i % 16))), v90 && ((v74 + (row0 + i / 16 % 4 * 4)) < p1));
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)p3 + (((v78 + (row1 + i / 16 % 4 * 32)) * 128) + (v86 + (i % 16))), v90);
  commit_group();
  const bool v98 = 128 < 256;
  unsigned char* const v99 = p2 + 128;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)1 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v99 + (((v74 + (row0 + i / 16 % 4 * 4)) * 256) + (v78 + (col0 + i % 16))), v98 && ((v74 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v102 = p3 + 16384;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)1 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v102 + (((v78 + (row1 + i / 16 % 4 * 32)) * 128) + (v86 + (i % 16))), v98);
  commit_group();
  const bool v107 = 256 < 256;
  unsigned char* const v108 = p2 + 256;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)2 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v108 + (((v74 + (row0 + i / 16 % 4 * 4)) * 256) + (v78 + (col0 + i % 16))), v107 && ((v74 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v111 = p3 + 32768;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)2 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v111 + (((v78 + (row1 + i / 16 % 4 * 32)) * 128) + (v86 + (i % 16))), v107);
  commit_group();
  const bool v116 = 384 < 256;
  unsigned char* const v117 = p2 + 384;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)3 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v117 + (((v74 + (row0 + i / 16 % 4 * 4)) * 256) + (v78 + (col0 + i % 16))), v116 && ((v74 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v120 = p3 + 49152;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)3 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v120 + (((v78 + (row1 + i / 16 % 4 * 32)) * 128) + (v86 + (i % 16))), v116);
  commit_group();
  const bool v125 = 512 < 256;
  unsigned char* const v126 = p2 + 512;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)4 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v126 + (((v74 + (row0 + i / 16 % 4 * 4)) * 256) + (v78 + (col0 + i % 16))), v125 && ((v74 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v129 = p3 + 65536;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)4 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v129 + (((v78 + (row1 + i / 16 % 4 * 32)) * 128) + (v86 + (i % 16))), v125);
  commit_group();
  const bool v134 = 640 < 256;
  unsigned char* const v135 = p2 + 640;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)5 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v135 + (((v74 + (row0 + i / 16 % 4 * 4)) * 256) + (v78 + (col0 + i % 16))), v134 && ((v74 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v138 = p3 + 81920;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)5 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v138 + (((v78 + (row1 + i / 16 % 4 * 32)) * 128) + (v86 + (i % 16))), v134);
  commit_group();
  const bool v143 = 768 < 256;
  unsigned char* const v144 = p2 + 768;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 0 + (int)6 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v144 + (((v74 + (row0 + i / 16 % 4 * 4)) * 256) + (v78 + (col0 + i % 16))), v143 && ((v74 + (row0 + i / 16 % 4 * 4)) < p1));
  unsigned char* const v147 = p3 + 98304;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    copy_async_16(shared + 16384 + (int)6 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v147 + (((v78 + (row1 + i / 16 % 4 * 32)) * 128) + (v86 + (i % 16))), v143);
  commit_group();
  float v22[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v22[i] = 0.0f;
  int v151 = 0;
  int v153 = 7;
  for (long long v21 = 0; v21 < 256; v21 += 128) {
    wait_group_6();
    const long long v157 = v21 + 896;
    const bool v158 = v157 < 256;
    unsigned char* const v161 = p2 + v157;
    const int v162 = (int)v16;
#pragma unroll
    for (int i = 0; i < 64; i += 16)
      copy_async_16(shared + 0 + (int)v153 * 2048 + ((at4 ^ (i / 16 % 2 * 64)) + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v161 + (((v74 + (row0 + i / 16 % 4 * 4)) * 256) + (v78 + (col0 + i % 16))), v158 && ((v162 + (row0 + i / 16 % 4 * 4)) < p1));
    unsigned char* const v170 = p3 + (v157 * 128);
#pragma unroll
    for (int i = 0; i < 64; i += 16)
      copy_async_16(shared + 16384 + (int)v153 * 2048 + (at5 + i % 16 + i / 16 % 4 * 512), (const unsigned char*)v170 + (((v78 + (row1 + i / 16 % 4 * 32)) * 128) + (v86 + (i % 16))), v158);
    commit_group();
    float v47[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v47[i] = 0.0f;
    {
      const unsigned a = shared + 0 + (int)v151 * 2048;
      const unsigned b = shared + 16384 + (int)v151 * 2048;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
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
          for (int n = 0; n < 2; ++n) mma_e4m3_e4m3_by_2(v47 + (m * 2 + n / 2 * 2) * 4 + n % 2, wa[m], wb[n]);
        }
      }
    }
    float v48[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v48[i] = v22[i] + v47[i];
    const int v175 = v151 + 1;
    const int v179 = (v175 < 8) ? v175 : 0;
    const int v180 = v153 + 1;
    const int v182 = (v180 < 8) ? v180 : 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v22[i] = v48[i];
    v151 = v179;
    v153 = v182;
  }
  const int v50 = (int)v16;
  int v52[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v52[i] = v50 + (row3 + i % 2 * 8);
  bool v54[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v54[i] = v52[i] < p1;
  const int v55 = (int)v17;
  float v60[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v60 + i, (const float*)p4 + v52[i], v54[i]);
  float v63[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    load_f32_4(v63 + i, (const float*)p5 + (v55 + (col2 + i % 4)), v54[i / 4 % 2]);
  float v64[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v64[i] = (v22[i] * v60[i / 4 % 2]) * v63[i];
  int v67[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v67[i] = v52[i] * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    store_bf16_4((unsigned short*)p6 + (v67[i / 4 % 2] + (v55 + (col2 + i % 4))), v64 + i, v54[i / 4 % 2]);
}
