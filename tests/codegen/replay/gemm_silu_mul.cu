// narrow_bf16, narrow_pair_bf16, load_bf16_2, round_bf16, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(64, 1) gemm_mm_silu_mul(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5) {
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
  const int v8 = (v1 % v4) * 32;
  const int v9 = (v1 / v4) * 32;
  const int v70 = (int)v8;
  const int v74 = (int)0;
  const int v82 = (int)v9;
  const bool v86 = 0 < 2048;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)p2 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v86 && ((v70 + (row0 + i / 8 % 4 * 8)) < p1));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)p3 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v86);
  commit_group();
  const bool v96 = 64 < 2048;
  unsigned char* const v98 = p2 + 128;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)1 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v98 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v96 && ((v70 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v102 = p3 + 180224;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (int)1 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v102 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v96);
  commit_group();
  const bool v105 = 128 < 2048;
  unsigned char* const v107 = p2 + 256;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)2 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v107 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v105 && ((v70 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v110 = p3 + 360448;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (int)2 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v110 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v105);
  commit_group();
  const bool v115 = 192 < 2048;
  unsigned char* const v117 = p2 + 384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)3 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v117 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v115 && ((v70 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v121 = p3 + 540672;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (int)3 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v121 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v115);
  commit_group();
  const bool v125 = 256 < 2048;
  unsigned char* const v127 = p2 + 512;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)4 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v127 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v125 && ((v70 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v130 = p3 + 720896;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (int)4 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v130 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v125);
  commit_group();
  const bool v135 = 320 < 2048;
  unsigned char* const v137 = p2 + 640;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)5 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v137 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v135 && ((v70 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v141 = p3 + 901120;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (int)5 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v141 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v135);
  commit_group();
  const bool v145 = 384 < 2048;
  unsigned char* const v147 = p2 + 768;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)6 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v147 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v145 && ((v70 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v150 = p3 + 1081344;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (int)6 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v150 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v145);
  commit_group();
  float v14[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v14[i] = 0.0f;
  int v154 = 0;
  int v156 = 7;
  for (long long v13 = 0; v13 < 2048; v13 += 64) {
    wait_group_6();
    const long long v160 = v13 + 448;
    const bool v161 = v160 < 2048;
    unsigned char* const v165 = p2 + (v160 * 2);
    const int v166 = (int)v8;
    unsigned char* const v175 = p3 + ((v160 * 1408) * 2);
    {
      const unsigned a = shared + 0 + (int)v154 * 4096;
      const unsigned b = shared + 32768 + (int)v154 * 4096;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[2][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at6 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 0 + (int)v156 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v165 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v161 && ((v166 + (row0 + i / 8 % 4 * 8)) < p1));
    {
      const unsigned a = shared + 0 + (int)v154 * 4096;
      const unsigned b = shared + 32768 + (int)v154 * 4096;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[2][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at6 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 16; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)v156 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v165 + (((v70 + (row0 + i / 8 % 4 * 8)) * 2048) + (v74 + (col0 + i % 8))), v161 && ((v166 + (row0 + i / 8 % 4 * 8)) < p1));
    {
      const unsigned a = shared + 0 + (int)v154 * 4096;
      const unsigned b = shared + 32768 + (int)v154 * 4096;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[2][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at6 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 32768 + (int)v156 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v175 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v161);
    {
      const unsigned a = shared + 0 + (int)v154 * 4096;
      const unsigned b = shared + 32768 + (int)v154 * 4096;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[2][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at6 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 1024));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 16; i < 32; i += 8)
      copy_async_16(shared + 32768 + (int)v156 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v175 + (((v74 + (row1 + i / 8 % 4 * 16)) * 1408) + (v82 + (col1 + i % 8))), v161);
    commit_group();
    const int v180 = v154 + 1;
    const int v184 = (v180 < 8) ? v180 : 0;
    const int v185 = v156 + 1;
    const int v187 = (v185 < 8) ? v185 : 0;
    v154 = v184;
    v156 = v187;
  }
  const int v41 = (int)v8;
  int v43[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v43[i] = v41 + (row3 + i % 4 * 8);
  bool v45[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v45[i] = v43[i] < p1;
  const int v46 = (int)v9;
  int v52[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v52[i] = v43[i] * 1408;
  float v55[16];
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    load_bf16_2(v55 + i, (const unsigned short*)p4 + (v52[i / 2 % 2 + i / 8 % 2 * 2] + (v46 + (col2 + i % 2 + i / 4 % 2 * 8))), v45[i / 2 % 2 + i / 8 % 2 * 2]);
  float v62[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v62[i] = (round_bf16((v55[i] / (1.0f + (expf((-v55[i]))))))) * (round_bf16(v14[i]));
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    store_bf16_2((unsigned short*)p5 + (v52[i / 2 % 2 + i / 8 % 2 * 2] + (v46 + (col2 + i % 2 + i / 4 % 2 * 8))), v62 + i, v45[i / 2 % 2 + i / 8 % 2 * 2]);
}
