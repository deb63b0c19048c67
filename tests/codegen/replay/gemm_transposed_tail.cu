// narrow_f16, store_f16_1, smem, shared_address, commit_group, copy_async_2, wait_group_6, ldmatrix, mma_f16_f16
extern "C" __global__ void __launch_bounds__(32, 1) gemm_transpose_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 8 % 4;
  const int col0 = lane % 8 * 8;
  const int col1 = lane % 4 * 2;
  const int row2 = lane / 4 % 8;
  const int at3 = (lane % 32 * 16) ^ (lane / 8 % 4 * 16);
  const int at4 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at5 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 128 + lane / 16 % 2 * 1024;
  const int v1 = (int)(long long)blockIdx.x;
  const int v9 = (v1 / 40) * 8;
  const int v10 = v1 % 40;
  const int v12 = min((((int)p0) - v9), 8);
  const int v17 = (v9 + (v10 % v12)) * 16;
  const int v18 = (v10 / v12) * 16;
  const int v72 = (int)v17;
  const int v76 = (int)0;
  const int v80 = (int)v18;
  const bool v84 = 0 < 1001;
  const int v89 = (int)0;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)p2 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v84 && (((v72 + (row0 + i / 8 % 4 * 4)) < p1) && ((v89 + (col0 + i % 8)) < 1001)));
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 16384 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)p3 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v84 && (((v80 + (row0 + i / 8 % 4 * 4)) < 77) && ((v89 + (col0 + i % 8)) < 1001)));
  commit_group();
  const bool v101 = 64 < 1001;
  unsigned char* const v103 = p2 + 128;
  const int v104 = (int)64;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + (int)1 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v103 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v101 && (((v72 + (row0 + i / 8 % 4 * 4)) < p1) && ((v104 + (col0 + i % 8)) < 1001)));
  unsigned char* const v109 = p3 + 128;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 16384 + (int)1 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v109 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v101 && (((v80 + (row0 + i / 8 % 4 * 4)) < 77) && ((v104 + (col0 + i % 8)) < 1001)));
  commit_group();
  const bool v113 = 128 < 1001;
  unsigned char* const v115 = p2 + 256;
  const int v116 = (int)128;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + (int)2 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v115 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v113 && (((v72 + (row0 + i / 8 % 4 * 4)) < p1) && ((v116 + (col0 + i % 8)) < 1001)));
  unsigned char* const v121 = p3 + 256;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 16384 + (int)2 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v121 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v113 && (((v80 + (row0 + i / 8 % 4 * 4)) < 77) && ((v116 + (col0 + i % 8)) < 1001)));
  commit_group();
  const bool v127 = 192 < 1001;
  unsigned char* const v129 = p2 + 384;
  const int v130 = (int)192;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + (int)3 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v129 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v127 && (((v72 + (row0 + i / 8 % 4 * 4)) < p1) && ((v130 + (col0 + i % 8)) < 1001)));
  unsigned char* const v135 = p3 + 384;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 16384 + (int)3 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v135 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v127 && (((v80 + (row0 + i / 8 % 4 * 4)) < 77) && ((v130 + (col0 + i % 8)) < 1001)));
  commit_group();
  const bool v140 = 256 < 1001;
  unsigned char* const v142 = p2 + 512;
  const int v143 = (int)256;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + (int)4 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v142 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v140 && (((v72 + (row0 + i / 8 % 4 * 4)) < p1) && ((v143 + (col0 + i % 8)) < 1001)));
  unsigned char* const v148 = p3 + 512;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 16384 + (int)4 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v148 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v140 && (((v80 + (row0 + i / 8 % 4 * 4)) < 77) && ((v143 + (col0 + i % 8)) < 1001)));
  commit_group();
  const bool v154 = 320 < 1001;
  unsigned char* const v156 = p2 + 640;
  const int v157 = (int)320;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + (int)5 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v156 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v154 && (((v72 + (row0 + i / 8 % 4 * 4)) < p1) && ((v157 + (col0 + i % 8)) < 1001)));
  unsigned char* const v162 = p3 + 640;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 16384 + (int)5 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v162 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v154 && (((v80 + (row0 + i / 8 % 4 * 4)) < 77) && ((v157 + (col0 + i % 8)) < 1001)));
  commit_group();
  const bool v167 = 384 < 1001;
  unsigned char* const v169 = p2 + 768;
  const int v170 = (int)384;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 0 + (int)6 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v169 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v167 && (((v72 + (row0 + i / 8 % 4 * 4)) < p1) && ((v170 + (col0 + i % 8)) < 1001)));
  unsigned char* const v175 = p3 + 768;
#pragma unroll 4
  for (int i = 0; i < 32; ++i)
    copy_async_2(shared + 16384 + (int)6 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v175 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v167 && (((v80 + (row0 + i / 8 % 4 * 4)) < 77) && ((v170 + (col0 + i % 8)) < 1001)));
  commit_group();
  float v23[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v23[i] = 0.0f;
  int v180 = 0;
  int v182 = 7;
  for (long long v22 = 0; v22 < 1001; v22 += 64) {
    wait_group_6();
    const long long v186 = v22 + 448;
    const bool v187 = v186 < 1001;
    const long long v190 = v186 * 2;
    unsigned char* const v191 = p2 + v190;
    const int v192 = (int)v17;
    const int v197 = (int)v186;
    unsigned char* const v204 = p3 + v190;
    const int v205 = (int)v18;
    {
      const unsigned a = shared + 0 + (int)v180 * 2048;
      const unsigned b = shared + 16384 + (int)v180 * 2048;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at4 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix(fb[n], b + (at5 ^ (k % 4 * 32)));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_f16_f16(v23 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll 4
    for (int i = 0; i < 16; ++i)
      copy_async_2(shared + 0 + (int)v182 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v191 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v187 && (((v192 + (row0 + i / 8 % 4 * 4)) < p1) && ((v197 + (col0 + i % 8)) < 1001)));
    {
      const unsigned a = shared + 0 + (int)v180 * 2048;
      const unsigned b = shared + 16384 + (int)v180 * 2048;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at4 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix(fb[n], b + (at5 ^ (k % 4 * 32)));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_f16_f16(v23 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll 4
    for (int i = 16; i < 32; ++i)
      copy_async_2(shared + 0 + (int)v182 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v191 + (((v72 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v187 && (((v192 + (row0 + i / 8 % 4 * 4)) < p1) && ((v197 + (col0 + i % 8)) < 1001)));
    {
      const unsigned a = shared + 0 + (int)v180 * 2048;
      const unsigned b = shared + 16384 + (int)v180 * 2048;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at4 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix(fb[n], b + (at5 ^ (k % 4 * 32)));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_f16_f16(v23 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll 4
    for (int i = 0; i < 16; ++i)
      copy_async_2(shared + 16384 + (int)v182 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v204 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v187 && (((v205 + (row0 + i / 8 % 4 * 4)) < 77) && ((v197 + (col0 + i % 8)) < 1001)));
    {
      const unsigned a = shared + 0 + (int)v180 * 2048;
      const unsigned b = shared + 16384 + (int)v180 * 2048;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at4 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix(fb[n], b + (at5 ^ (k % 4 * 32)));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_f16_f16(v23 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll 4
    for (int i = 16; i < 32; ++i)
      copy_async_2(shared + 16384 + (int)v182 * 2048 + ((at3 ^ (i / 8 % 2 * 64)) + i % 8 * 2 + i / 8 % 4 * 512), (const unsigned short*)v204 + (((v80 + (row0 + i / 8 % 4 * 4)) * 1001) + (v76 + (col0 + i % 8))), v187 && (((v205 + (row0 + i / 8 % 4 * 4)) < 77) && ((v197 + (col0 + i % 8)) < 1001)));
    commit_group();
    const int v214 = v180 + 1;
    const int v218 = (v214 < 8) ? v214 : 0;
    const int v219 = v182 + 1;
    const int v221 = (v219 < 8) ? v219 : 0;
    v180 = v218;
    v182 = v221;
  }
  const int v51 = (int)v17;
  int v53[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v53[i] = v51 + (row2 + i % 2 * 8);
  bool v55[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v55[i] = v53[i] < p1;
  const int v56 = (int)v18;
  int v63[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v63[i] = v53[i] * 77;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    store_f16_1((unsigned short*)p4 + (v63[i / 2 % 2] + (v56 + (col1 + i % 2 + i / 4 % 2 * 8))), v23 + i, (v55[i / 2 % 2] && ((v56 + (col1 + i % 2 + i / 4 % 2 * 8)) < 77)));
}
