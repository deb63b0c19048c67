// narrow_pair_bf16, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(64, 1) gemm_matmul(long long p0, long long p1, long long p2, unsigned char* __restrict__ p3, long long p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6, long long p7) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 2 * 4;
  const int col0 = lane % 8 * 8;
  const int row1 = lane / 4 % 8 + warp % 2 * 8;
  const int col1 = lane % 4 * 8;
  const int col2 = lane % 4 * 2 + warp % 2 * 16;
  const int row3 = lane / 4 % 8;
  const int at4 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 2 * 512;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16)) + warp % 2 * 512;
  const int at6 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at7 = ((lane / 2 % 4 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 32)) + lane % 16 * 64;
  const int v1 = (int)(long long)blockIdx.x;
  const int v4 = (int)p0;
  const long long v6 = (long long)(v1 / v4);
  const int v7 = v1 % v4;
  const int v14 = (v7 / 32) * 8;
  const int v15 = v7 % 32;
  const int v17 = min((((int)p1) - v14), 8);
  const int v22 = (v14 + (v15 % v17)) * 16;
  const int v23 = (v15 / v17) * 32;
  const int v83 = (int)v22;
  const int v87 = (int)0;
  const int v95 = (int)v23;
  const bool v99 = 0 < 64;
  unsigned char* const v105 = p3 + ((v6 * p4) * 2);
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (at4 + i % 8 * 2 + i / 8 % 2 * 1024), (const unsigned short*)v105 + (((v83 + (row0 + i / 8 % 2 * 8)) * 64) + (v87 + (col0 + i % 8))), v99 && ((v83 + (row0 + i / 8 % 2 * 8)) < p2));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)p5 + (((v87 + (row1 + i / 8 % 4 * 16)) * 128) + (v95 + (col1 + i % 8))), v99);
  commit_group();
  const bool v113 = 64 < 64;
  unsigned char* const v114 = v105 + 128;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)1 * 2048 + (at4 + i % 8 * 2 + i / 8 % 2 * 1024), (const unsigned short*)v114 + (((v83 + (row0 + i / 8 % 2 * 8)) * 64) + (v87 + (col0 + i % 8))), v113 && ((v83 + (row0 + i / 8 % 2 * 8)) < p2));
  unsigned char* const v118 = p5 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)1 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v118 + (((v87 + (row1 + i / 8 % 4 * 16)) * 128) + (v95 + (col1 + i % 8))), v113);
  commit_group();
  const bool v121 = 128 < 64;
  unsigned char* const v123 = v105 + 256;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)2 * 2048 + (at4 + i % 8 * 2 + i / 8 % 2 * 1024), (const unsigned short*)v123 + (((v83 + (row0 + i / 8 % 2 * 8)) * 64) + (v87 + (col0 + i % 8))), v121 && ((v83 + (row0 + i / 8 % 2 * 8)) < p2));
  unsigned char* const v126 = p5 + 32768;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)2 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v126 + (((v87 + (row1 + i / 8 % 4 * 16)) * 128) + (v95 + (col1 + i % 8))), v121);
  commit_group();
  const bool v131 = 192 < 64;
  unsigned char* const v133 = v105 + 384;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)3 * 2048 + (at4 + i % 8 * 2 + i / 8 % 2 * 1024), (const unsigned short*)v133 + (((v83 + (row0 + i / 8 % 2 * 8)) * 64) + (v87 + (col0 + i % 8))), v131 && ((v83 + (row0 + i / 8 % 2 * 8)) < p2));
  unsigned char* const v137 = p5 + 49152;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)3 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v137 + (((v87 + (row1 + i / 8 % 4 * 16)) * 128) + (v95 + (col1 + i % 8))), v131);
  commit_group();
  const bool v141 = 256 < 64;
  unsigned char* const v143 = v105 + 512;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)4 * 2048 + (at4 + i % 8 * 2 + i / 8 % 2 * 1024), (const unsigned short*)v143 + (((v83 + (row0 + i / 8 % 2 * 8)) * 64) + (v87 + (col0 + i % 8))), v141 && ((v83 + (row0 + i / 8 % 2 * 8)) < p2));
  unsigned char* const v146 = p5 + 65536;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)4 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v146 + (((v87 + (row1 + i / 8 % 4 * 16)) * 128) + (v95 + (col1 + i % 8))), v141);
  commit_group();
  const bool v151 = 320 < 64;
  unsigned char* const v153 = v105 + 640;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)5 * 2048 + (at4 + i % 8 * 2 + i / 8 % 2 * 1024), (const unsigned short*)v153 + (((v83 + (row0 + i / 8 % 2 * 8)) * 64) + (v87 + (col0 + i % 8))), v151 && ((v83 + (row0 + i / 8 % 2 * 8)) < p2));
  unsigned char* const v157 = p5 + 81920;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)5 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v157 + (((v87 + (row1 + i / 8 % 4 * 16)) * 128) + (v95 + (col1 + i % 8))), v151);
  commit_group();
  const bool v161 = 384 < 64;
  unsigned char* const v163 = v105 + 768;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)6 * 2048 + (at4 + i % 8 * 2 + i / 8 % 2 * 1024), (const unsigned short*)v163 + (((v83 + (row0 + i / 8 % 2 * 8)) * 64) + (v87 + (col0 + i % 8))), v161 && ((v83 + (row0 + i / 8 % 2 * 8)) < p2));
  unsigned char* const v166 = p5 + 98304;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)6 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v166 + (((v87 + (row1 + i / 8 % 4 * 16)) * 128) + (v95 + (col1 + i % 8))), v161);
  commit_group();
  float v27[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v27[i] = 0.0f;
  int v170 = 0;
  int v172 = 7;
  for (long long v26 = 0; v26 < 64; v26 += 64) {
    wait_group_6();
    const long long v176 = v26 + 448;
    const bool v177 = v176 < 64;
    unsigned char* const v183 = p3 + ((v6 * p4) * 2);
    unsigned char* const v185 = v183 + (v176 * 2);
    const int v186 = (int)v22;
    unsigned char* const v195 = p5 + ((v176 * 128) * 2);
    {
      const unsigned a = shared + 0 + (int)v170 * 2048;
      const unsigned b = shared + 16384 + (int)v170 * 4096;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v27 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v172 * 2048 + at4, (const unsigned short*)v185 + (((v83 + row0) * 64) + (v87 + col0)), v177 && ((v186 + row0) < p2));
    {
      const unsigned a = shared + 0 + (int)v170 * 2048;
      const unsigned b = shared + 16384 + (int)v170 * 4096;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v27 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v172 * 2048 + (at4 + 8 % 8 * 2 + 8 / 8 % 2 * 1024), (const unsigned short*)v185 + (((v83 + (row0 + 8 / 8 % 2 * 8)) * 64) + (v87 + (col0 + 8 % 8))), v177 && ((v186 + (row0 + 8 / 8 % 2 * 8)) < p2));
    copy_async_16(shared + 16384 + (int)v172 * 4096 + at5, (const unsigned short*)v195 + (((v87 + row1) * 128) + (v95 + col1)), v177);
    {
      const unsigned a = shared + 0 + (int)v170 * 2048;
      const unsigned b = shared + 16384 + (int)v170 * 4096;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v27 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 16384 + (int)v172 * 4096 + (at5 + 8 % 8 * 2 + 8 / 8 % 4 * 1024), (const unsigned short*)v195 + (((v87 + (row1 + 8 / 8 % 4 * 16)) * 128) + (v95 + (col1 + 8 % 8))), v177);
    {
      const unsigned a = shared + 0 + (int)v170 * 2048;
      const unsigned b = shared + 16384 + (int)v170 * 4096;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v27 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 16; i < 32; i += 8)
      copy_async_16(shared + 16384 + (int)v172 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v195 + (((v87 + (row1 + i / 8 % 4 * 16)) * 128) + (v95 + (col1 + i % 8))), v177);
    commit_group();
    const int v200 = v170 + 1;
    const int v204 = (v200 < 8) ? v200 : 0;
    const int v205 = v172 + 1;
    const int v207 = (v205 < 8) ? v205 : 0;
    v170 = v204;
    v172 = v207;
  }
  const int v59 = (int)v22;
  int v61[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v61[i] = v59 + (row3 + i % 2 * 8);
  bool v63[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v63[i] = v61[i] < p2;
  const int v64 = (int)v23;
  int v72[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v72[i] = v61[i] * 128;
  unsigned char* const v77 = p6 + ((v6 * p7) * 2);
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)v77 + (v72[i / 2 % 2] + (v64 + (col2 + i % 2 + i / 4 % 2 * 8))), v27 + i, v63[i / 2 % 2]);
}
