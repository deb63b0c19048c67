// narrow_bf16, narrow_pair_bf16, round_bf16, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_4, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(64, 1) gemm_mm_mm_silu_mul(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5) {
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
  const int v76 = (int)v8;
  const int v80 = (int)0;
  const int v88 = (int)v9;
  const bool v92 = 0 < 2048;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)p2 + (((v76 + (row0 + i / 8 % 4 * 8)) * 2048) + (v80 + (col0 + i % 8))), v92 && ((v76 + (row0 + i / 8 % 4 * 8)) < p1));
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)p3 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v92);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 49152 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)p4 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v92);
  commit_group();
  const bool v104 = 64 < 2048;
  unsigned char* const v106 = p2 + 128;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)1 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v106 + (((v76 + (row0 + i / 8 % 4 * 8)) * 2048) + (v80 + (col0 + i % 8))), v104 && ((v76 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v110 = p3 + 180224;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)1 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v110 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v104);
  unsigned char* const v112 = p4 + 180224;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 49152 + (int)1 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v112 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v104);
  commit_group();
  const bool v115 = 128 < 2048;
  unsigned char* const v117 = p2 + 256;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)2 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v117 + (((v76 + (row0 + i / 8 % 4 * 8)) * 2048) + (v80 + (col0 + i % 8))), v115 && ((v76 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v120 = p3 + 360448;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)2 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v120 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v115);
  unsigned char* const v122 = p4 + 360448;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 49152 + (int)2 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v122 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v115);
  commit_group();
  const bool v127 = 192 < 2048;
  unsigned char* const v129 = p2 + 384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)3 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v129 + (((v76 + (row0 + i / 8 % 4 * 8)) * 2048) + (v80 + (col0 + i % 8))), v127 && ((v76 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v133 = p3 + 540672;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)3 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v133 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v127);
  unsigned char* const v135 = p4 + 540672;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 49152 + (int)3 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v135 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v127);
  commit_group();
  const bool v139 = 256 < 2048;
  unsigned char* const v141 = p2 + 512;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)4 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v141 + (((v76 + (row0 + i / 8 % 4 * 8)) * 2048) + (v80 + (col0 + i % 8))), v139 && ((v76 + (row0 + i / 8 % 4 * 8)) < p1));
  unsigned char* const v144 = p3 + 720896;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)4 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v144 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v139);
  unsigned char* const v146 = p4 + 720896;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 49152 + (int)4 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v146 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v139);
  commit_group();
  float v15[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v15[i] = 0.0f;
  float v16[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v16[i] = 0.0f;
  int v150 = 0;
  int v152 = 5;
  for (long long v14 = 0; v14 < 2048; v14 += 64) {
    wait_group_4();
    const long long v156 = v14 + 320;
    const bool v157 = v156 < 2048;
    unsigned char* const v161 = p2 + (v156 * 2);
    const int v162 = (int)v8;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)v152 * 4096 + (at4 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v161 + (((v76 + (row0 + i / 8 % 4 * 8)) * 2048) + (v80 + (col0 + i % 8))), v157 && ((v162 + (row0 + i / 8 % 4 * 8)) < p1));
    const long long v170 = (v156 * 1408) * 2;
    unsigned char* const v171 = p3 + v170;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 24576 + (int)v152 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v171 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v157);
    unsigned char* const v174 = p4 + v170;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 49152 + (int)v152 * 4096 + (at5 + i % 8 * 2 + i / 8 % 4 * 1024), (const unsigned short*)v174 + (((v80 + (row1 + i / 8 % 4 * 16)) * 1408) + (v88 + (col1 + i % 8))), v157);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v150 * 4096;
      const unsigned b = shared + 24576 + (int)v150 * 4096;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v15 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    {
      const unsigned a = shared + 0 + (int)v150 * 4096;
      const unsigned b = shared + 49152 + (int)v150 * 4096;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v16 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v180 = v150 + 1;
    const int v184 = (v180 < 6) ? v180 : 0;
    const int v185 = v152 + 1;
    const int v187 = (v185 < 6) ? v185 : 0;
    v150 = v184;
    v152 = v187;
  }
  const int v47 = (int)v8;
  int v49[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v49[i] = v47 + (row3 + i % 4 * 8);
  bool v51[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v51[i] = v49[i] < p1;
  const int v52 = (int)v9;
  float v55[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v55[i] = round_bf16(v15[i]);
  float v63[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v63[i] = (round_bf16((v55[i] / (1.0f + (expf((-v55[i]))))))) * (round_bf16(v16[i]));
  int v67[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v67[i] = v49[i] * 1408;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    store_bf16_2((unsigned short*)p5 + (v67[i / 2 % 2 + i / 8 % 2 * 2] + (v52 + (col2 + i % 2 + i / 4 % 2 * 8))), v63 + i, v51[i / 2 % 2 + i / 8 % 2 * 2]);
}
