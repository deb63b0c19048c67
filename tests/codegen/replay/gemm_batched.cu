// narrow_pair_bf16, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(128, 1) gemm_matmul(long long p0, long long p1, long long p2, unsigned char* __restrict__ p3, long long p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6, long long p7) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int row1 = lane / 4 % 8 + warp % 4 * 8;
  const int col1 = lane % 4 * 8;
  const int col2 = lane % 4 * 2 + warp % 2 * 16;
  const int row3 = lane / 4 % 8 + warp / 2 % 2 * 16;
  const int at4 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16)) + warp % 4 * 512;
  const int at6 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 2 * 2048;
  const int at7 = ((lane / 2 % 4 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 32)) + lane % 16 * 64;
  const int v1 = (int)(long long)blockIdx.x;
  const int v4 = (int)p0;
  const long long v6 = (long long)(v1 / v4);
  const int v7 = v1 % v4;
  const int v9 = (int)p1;
  const int v13 = (v7 % v9) * 32;
  const int v14 = (v7 / v9) * 32;
  const int v74 = (int)v13;
  const int v78 = (int)0;
  const int v86 = (int)v14;
  const bool v90 = 0 < 64;
  unsigned char* const v96 = p3 + ((v6 * p4) * 2);
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (at4 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v96 + (((v74 + (row0 + i / 8 % 2 * 16)) * 64) + (v78 + (col0 + i % 8))), v90 && ((v74 + (row0 + i / 8 % 2 * 16)) < p2));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 32768 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)p5 + (((v78 + (row1 + i / 8 % 2 * 32)) * 128) + (v86 + (col1 + i % 8))), v90);
  commit_group();
  const bool v104 = 64 < 64;
  unsigned char* const v105 = v96 + 128;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)1 * 4096 + (at4 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v105 + (((v74 + (row0 + i / 8 % 2 * 16)) * 64) + (v78 + (col0 + i % 8))), v104 && ((v74 + (row0 + i / 8 % 2 * 16)) < p2));
  unsigned char* const v109 = p5 + 16384;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 32768 + (int)1 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v109 + (((v78 + (row1 + i / 8 % 2 * 32)) * 128) + (v86 + (col1 + i % 8))), v104);
  commit_group();
  const bool v112 = 128 < 64;
  unsigned char* const v114 = v96 + 256;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)2 * 4096 + (at4 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v114 + (((v74 + (row0 + i / 8 % 2 * 16)) * 64) + (v78 + (col0 + i % 8))), v112 && ((v74 + (row0 + i / 8 % 2 * 16)) < p2));
  unsigned char* const v117 = p5 + 32768;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 32768 + (int)2 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v117 + (((v78 + (row1 + i / 8 % 2 * 32)) * 128) + (v86 + (col1 + i % 8))), v112);
  commit_group();
  const bool v122 = 192 < 64;
  unsigned char* const v124 = v96 + 384;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)3 * 4096 + (at4 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v124 + (((v74 + (row0 + i / 8 % 2 * 16)) * 64) + (v78 + (col0 + i % 8))), v122 && ((v74 + (row0 + i / 8 % 2 * 16)) < p2));
  unsigned char* const v128 = p5 + 49152;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 32768 + (int)3 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v128 + (((v78 + (row1 + i / 8 % 2 * 32)) * 128) + (v86 + (col1 + i % 8))), v122);
  commit_group();
  const bool v132 = 256 < 64;
  unsigned char* const v134 = v96 + 512;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)4 * 4096 + (at4 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v134 + (((v74 + (row0 + i / 8 % 2 * 16)) * 64) + (v78 + (col0 + i % 8))), v132 && ((v74 + (row0 + i / 8 % 2 * 16)) < p2));
  unsigned char* const v137 = p5 + 65536;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 32768 + (int)4 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v137 + (((v78 + (row1 + i / 8 % 2 * 32)) * 128) + (v86 + (col1 + i % 8))), v132);
  commit_group();
  const bool v142 = 320 < 64;
  unsigned char* const v144 = v96 + 640;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)5 * 4096 + (at4 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v144 + (((v74 + (row0 + i / 8 % 2 * 16)) * 64) + (v78 + (col0 + i % 8))), v142 && ((v74 + (row0 + i / 8 % 2 * 16)) < p2));
  unsigned char* const v148 = p5 + 81920;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 32768 + (int)5 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v148 + (((v78 + (row1 + i / 8 % 2 * 32)) * 128) + (v86 + (col1 + i % 8))), v142);
  commit_group();
  const bool v152 = 384 < 64;
  unsigned char* const v154 = v96 + 768;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)6 * 4096 + (at4 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v154 + (((v74 + (row0 + i / 8 % 2 * 16)) * 64) + (v78 + (col0 + i % 8))), v152 && ((v74 + (row0 + i / 8 % 2 * 16)) < p2));
  unsigned char* const v157 = p5 + 98304;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 32768 + (int)6 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v157 + (((v78 + (row1 + i / 8 % 2 * 32)) * 128) + (v86 + (col1 + i % 8))), v152);
  commit_group();
  float v18[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v18[i] = 0.0f;
  int v161 = 0;
  int v163 = 7;
  for (long long v17 = 0; v17 < 64; v17 += 64) {
    wait_group_6();
    const long long v167 = v17 + 448;
    const bool v168 = v167 < 64;
    unsigned char* const v174 = p3 + ((v6 * p4) * 2);
    unsigned char* const v176 = v174 + (v167 * 2);
    const int v177 = (int)v13;
    unsigned char* const v186 = p5 + ((v167 * 128) * 2);
    {
      const unsigned a = shared + 0 + (int)v161 * 4096;
      const unsigned b = shared + 32768 + (int)v161 * 4096;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v18 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v163 * 4096 + at4, (const unsigned short*)v176 + (((v74 + row0) * 64) + (v78 + col0)), v168 && ((v177 + row0) < p2));
    {
      const unsigned a = shared + 0 + (int)v161 * 4096;
      const unsigned b = shared + 32768 + (int)v161 * 4096;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v18 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v163 * 4096 + (at4 + 8 % 8 * 2 + 8 / 8 % 2 * 2048), (const unsigned short*)v176 + (((v74 + (row0 + 8 / 8 % 2 * 16)) * 64) + (v78 + (col0 + 8 % 8))), v168 && ((v177 + (row0 + 8 / 8 % 2 * 16)) < p2));
    {
      const unsigned a = shared + 0 + (int)v161 * 4096;
      const unsigned b = shared + 32768 + (int)v161 * 4096;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v18 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 32768 + (int)v163 * 4096 + at5, (const unsigned short*)v186 + (((v78 + row1) * 128) + (v86 + col1)), v168);
    {
      const unsigned a = shared + 0 + (int)v161 * 4096;
      const unsigned b = shared + 32768 + (int)v161 * 4096;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v18 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 32768 + (int)v163 * 4096 + (at5 + 8 % 8 * 2 + 8 / 8 % 2 * 2048), (const unsigned short*)v186 + (((v78 + (row1 + 8 / 8 % 2 * 32)) * 128) + (v86 + (col1 + 8 % 8))), v168);
    commit_group();
    const int v191 = v161 + 1;
    const int v195 = (v191 < 8) ? v191 : 0;
    const int v196 = v163 + 1;
    const int v198 = (v196 < 8) ? v196 : 0;
    v161 = v195;
    v163 = v198;
  }
  const int v50 = (int)v13;
  int v52[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v52[i] = v50 + (row3 + i % 2 * 8);
  bool v54[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v54[i] = v52[i] < p2;
  const int v55 = (int)v14;
  int v63[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v63[i] = v52[i] * 128;
  unsigned char* const v68 = p6 + ((v6 * p7) * 2);
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)v68 + (v63[i / 2 % 2] + (v55 + (col2 + i % 2 + i / 4 % 2 * 8))), v18 + i, v54[i / 2 % 2]);
}
