// narrow_bf16, narrow_pair_bf16, load_bf16_2, round_bf16, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(256, 1) gemm_mm_silu_mul(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 8 * 4;
  const int col0 = lane % 8 * 8;
  const int col1 = lane % 4 * 2 + warp % 4 * 16;
  const int row2 = lane / 4 % 8 + warp / 4 % 2 * 32;
  const int at3 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 8 * 512;
  const int at4 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 4 % 2 * 4096;
  const int at5 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + lane % 16 * 128;
  const int v1 = (int)(long long)blockIdx.x;
  const int v4 = (int)p0;
  const int v8 = (v1 % v4) * 64;
  const int v9 = (v1 / v4) * 64;
  const int v67 = (int)v8;
  const int v71 = (int)0;
  const int v78 = (int)v9;
  const bool v81 = 0 < 2048;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p2 + (((v67 + (row0 + i / 8 % 2 * 32)) * 2048) + (v71 + (col0 + i % 8))), v81 && ((v67 + (row0 + i / 8 % 2 * 32)) < p1));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p3 + (((v71 + (row0 + i / 8 % 2 * 32)) * 1408) + (v78 + (col0 + i % 8))), v81);
  commit_group();
  const bool v91 = 64 < 2048;
  unsigned char* const v93 = p2 + 128;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v93 + (((v67 + (row0 + i / 8 % 2 * 32)) * 2048) + (v71 + (col0 + i % 8))), v91 && ((v67 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v97 = p3 + 180224;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v97 + (((v71 + (row0 + i / 8 % 2 * 32)) * 1408) + (v78 + (col0 + i % 8))), v91);
  commit_group();
  const bool v100 = 128 < 2048;
  unsigned char* const v102 = p2 + 256;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)2 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v102 + (((v67 + (row0 + i / 8 % 2 * 32)) * 2048) + (v71 + (col0 + i % 8))), v100 && ((v67 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v105 = p3 + 360448;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)2 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v105 + (((v71 + (row0 + i / 8 % 2 * 32)) * 1408) + (v78 + (col0 + i % 8))), v100);
  commit_group();
  const bool v110 = 192 < 2048;
  unsigned char* const v112 = p2 + 384;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)3 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v112 + (((v67 + (row0 + i / 8 % 2 * 32)) * 2048) + (v71 + (col0 + i % 8))), v110 && ((v67 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v116 = p3 + 540672;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)3 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v116 + (((v71 + (row0 + i / 8 % 2 * 32)) * 1408) + (v78 + (col0 + i % 8))), v110);
  commit_group();
  const bool v120 = 256 < 2048;
  unsigned char* const v122 = p2 + 512;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)4 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v122 + (((v67 + (row0 + i / 8 % 2 * 32)) * 2048) + (v71 + (col0 + i % 8))), v120 && ((v67 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v125 = p3 + 720896;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)4 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v125 + (((v71 + (row0 + i / 8 % 2 * 32)) * 1408) + (v78 + (col0 + i % 8))), v120);
  commit_group();
  const bool v130 = 320 < 2048;
  unsigned char* const v132 = p2 + 640;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)5 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v132 + (((v67 + (row0 + i / 8 % 2 * 32)) * 2048) + (v71 + (col0 + i % 8))), v130 && ((v67 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v136 = p3 + 901120;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)5 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v136 + (((v71 + (row0 + i / 8 % 2 * 32)) * 1408) + (v78 + (col0 + i % 8))), v130);
  commit_group();
  const bool v140 = 384 < 2048;
  unsigned char* const v142 = p2 + 768;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)6 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v142 + (((v67 + (row0 + i / 8 % 2 * 32)) * 2048) + (v71 + (col0 + i % 8))), v140 && ((v67 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v145 = p3 + 1081344;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)6 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v145 + (((v71 + (row0 + i / 8 % 2 * 32)) * 1408) + (v78 + (col0 + i % 8))), v140);
  commit_group();
  float v13[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v13[i] = 0.0f;
  int v149 = 0;
  int v151 = 7;
  for (long long v12 = 0; v12 < 2048; v12 += 64) {
    wait_group_6();
    const long long v155 = v12 + 448;
    const bool v156 = v155 < 2048;
    unsigned char* const v160 = p2 + (v155 * 2);
    const int v161 = (int)v8;
    unsigned char* const v170 = p3 + ((v155 * 1408) * 2);
    {
      const unsigned a = shared + 0 + (int)v149 * 8192;
      const unsigned b = shared + 65536 + (int)v149 * 8192;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[2][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at5 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v151 * 8192 + at3, (const unsigned short*)v160 + (((v67 + row0) * 2048) + (v71 + col0)), v156 && ((v161 + row0) < p1));
    {
      const unsigned a = shared + 0 + (int)v149 * 8192;
      const unsigned b = shared + 65536 + (int)v149 * 8192;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[2][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at5 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v151 * 8192 + (at3 + 8 % 8 * 2 + 8 / 8 % 2 * 4096), (const unsigned short*)v160 + (((v67 + (row0 + 8 / 8 % 2 * 32)) * 2048) + (v71 + (col0 + 8 % 8))), v156 && ((v161 + (row0 + 8 / 8 % 2 * 32)) < p1));
    {
      const unsigned a = shared + 0 + (int)v149 * 8192;
      const unsigned b = shared + 65536 + (int)v149 * 8192;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[2][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at5 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 65536 + (int)v151 * 8192 + at3, (const unsigned short*)v170 + (((v71 + row0) * 1408) + (v78 + col0)), v156);
    {
      const unsigned a = shared + 0 + (int)v149 * 8192;
      const unsigned b = shared + 65536 + (int)v149 * 8192;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[2][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at4 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at5 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 65536 + (int)v151 * 8192 + (at3 + 8 % 8 * 2 + 8 / 8 % 2 * 4096), (const unsigned short*)v170 + (((v71 + (row0 + 8 / 8 % 2 * 32)) * 1408) + (v78 + (col0 + 8 % 8))), v156);
    commit_group();
    const int v175 = v149 + 1;
    const int v179 = (v175 < 8) ? v175 : 0;
    const int v180 = v151 + 1;
    const int v182 = (v180 < 8) ? v180 : 0;
    v149 = v179;
    v151 = v182;
  }
  const int v38 = (int)v8;
  int v40[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v40[i] = v38 + (row2 + i % 4 * 8);
  bool v42[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v42[i] = v40[i] < p1;
  const int v43 = (int)v9;
  int v49[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v49[i] = v40[i] * 1408;
  float v52[16];
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    load_bf16_2(v52 + i, (const unsigned short*)p4 + (v49[i / 2 % 2 + i / 8 % 2 * 2] + (v43 + (col1 + i % 2 + i / 4 % 2 * 8))), v42[i / 2 % 2 + i / 8 % 2 * 2]);
  float v59[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v59[i] = (round_bf16((v52[i] / (1.0f + (expf((-v52[i]))))))) * (round_bf16(v13[i]));
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    store_bf16_2((unsigned short*)p5 + (v49[i / 2 % 2 + i / 8 % 2 * 2] + (v43 + (col1 + i % 2 + i / 4 % 2 * 8))), v59 + i, v42[i / 2 % 2 + i / 8 % 2 * 2]);
}
