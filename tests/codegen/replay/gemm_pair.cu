// narrow_bf16, narrow_pair_bf16, round_bf16, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(256, 1) gemm_mm_mm_silu_mul(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5) {
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
  const int v73 = (int)v8;
  const int v77 = (int)0;
  const int v84 = (int)v9;
  const bool v87 = 0 < 2048;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p2 + (((v73 + (row0 + i / 8 % 2 * 32)) * 2048) + (v77 + (col0 + i % 8))), v87 && ((v73 + (row0 + i / 8 % 2 * 32)) < p1));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p3 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v87);
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 131072 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p4 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v87);
  commit_group();
  const bool v99 = 64 < 2048;
  unsigned char* const v101 = p2 + 128;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v101 + (((v73 + (row0 + i / 8 % 2 * 32)) * 2048) + (v77 + (col0 + i % 8))), v99 && ((v73 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v105 = p3 + 180224;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v105 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v99);
  unsigned char* const v107 = p4 + 180224;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 131072 + (int)1 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v107 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v99);
  commit_group();
  const bool v110 = 128 < 2048;
  unsigned char* const v112 = p2 + 256;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)2 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v112 + (((v73 + (row0 + i / 8 % 2 * 32)) * 2048) + (v77 + (col0 + i % 8))), v110 && ((v73 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v115 = p3 + 360448;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)2 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v115 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v110);
  unsigned char* const v117 = p4 + 360448;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 131072 + (int)2 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v117 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v110);
  commit_group();
  const bool v122 = 192 < 2048;
  unsigned char* const v124 = p2 + 384;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)3 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v124 + (((v73 + (row0 + i / 8 % 2 * 32)) * 2048) + (v77 + (col0 + i % 8))), v122 && ((v73 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v128 = p3 + 540672;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)3 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v128 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v122);
  unsigned char* const v130 = p4 + 540672;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 131072 + (int)3 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v130 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v122);
  commit_group();
  const bool v134 = 256 < 2048;
  unsigned char* const v136 = p2 + 512;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)4 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v136 + (((v73 + (row0 + i / 8 % 2 * 32)) * 2048) + (v77 + (col0 + i % 8))), v134 && ((v73 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v139 = p3 + 720896;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)4 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v139 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v134);
  unsigned char* const v141 = p4 + 720896;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 131072 + (int)4 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v141 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v134);
  commit_group();
  const bool v146 = 320 < 2048;
  unsigned char* const v148 = p2 + 640;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)5 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v148 + (((v73 + (row0 + i / 8 % 2 * 32)) * 2048) + (v77 + (col0 + i % 8))), v146 && ((v73 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v152 = p3 + 901120;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)5 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v152 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v146);
  unsigned char* const v154 = p4 + 901120;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 131072 + (int)5 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v154 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v146);
  commit_group();
  const bool v158 = 384 < 2048;
  unsigned char* const v160 = p2 + 768;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)6 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v160 + (((v73 + (row0 + i / 8 % 2 * 32)) * 2048) + (v77 + (col0 + i % 8))), v158 && ((v73 + (row0 + i / 8 % 2 * 32)) < p1));
  unsigned char* const v163 = p3 + 1081344;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 65536 + (int)6 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v163 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v158);
  unsigned char* const v165 = p4 + 1081344;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 131072 + (int)6 * 8192 + (at3 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v165 + (((v77 + (row0 + i / 8 % 2 * 32)) * 1408) + (v84 + (col0 + i % 8))), v158);
  commit_group();
  float v14[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v14[i] = 0.0f;
  float v15[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v15[i] = 0.0f;
  int v169 = 0;
  int v171 = 7;
  for (long long v13 = 0; v13 < 2048; v13 += 64) {
    wait_group_6();
    const long long v175 = v13 + 448;
    const bool v176 = v175 < 2048;
    unsigned char* const v180 = p2 + (v175 * 2);
    const int v181 = (int)v8;
    const long long v189 = (v175 * 1408) * 2;
    unsigned char* const v190 = p3 + v189;
    unsigned char* const v193 = p4 + v189;
    {
      const unsigned a = shared + 0 + (int)v169 * 8192;
      const unsigned b = shared + 65536 + (int)v169 * 8192;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    {
      const unsigned a = shared + 0 + (int)v169 * 8192;
      const unsigned b = shared + 65536 + (int)v169 * 8192;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v171 * 8192 + at3, (const unsigned short*)v180 + (((v73 + row0) * 2048) + (v77 + col0)), v176 && ((v181 + row0) < p1));
    {
      const unsigned a = shared + 0 + (int)v169 * 8192;
      const unsigned b = shared + 65536 + (int)v169 * 8192;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v171 * 8192 + (at3 + 8 % 8 * 2 + 8 / 8 % 2 * 4096), (const unsigned short*)v180 + (((v73 + (row0 + 8 / 8 % 2 * 32)) * 2048) + (v77 + (col0 + 8 % 8))), v176 && ((v181 + (row0 + 8 / 8 % 2 * 32)) < p1));
    {
      const unsigned a = shared + 0 + (int)v169 * 8192;
      const unsigned b = shared + 65536 + (int)v169 * 8192;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 65536 + (int)v171 * 8192 + at3, (const unsigned short*)v190 + (((v77 + row0) * 1408) + (v84 + col0)), v176);
    {
      const unsigned a = shared + 0 + (int)v169 * 8192;
      const unsigned b = shared + 131072 + (int)v169 * 8192;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v15 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    {
      const unsigned a = shared + 0 + (int)v169 * 8192;
      const unsigned b = shared + 131072 + (int)v169 * 8192;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v15 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 65536 + (int)v171 * 8192 + (at3 + 8 % 8 * 2 + 8 / 8 % 2 * 4096), (const unsigned short*)v190 + (((v77 + (row0 + 8 / 8 % 2 * 32)) * 1408) + (v84 + (col0 + 8 % 8))), v176);
    {
      const unsigned a = shared + 0 + (int)v169 * 8192;
      const unsigned b = shared + 131072 + (int)v169 * 8192;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v15 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 131072 + (int)v171 * 8192 + at3, (const unsigned short*)v193 + (((v77 + row0) * 1408) + (v84 + col0)), v176);
    {
      const unsigned a = shared + 0 + (int)v169 * 8192;
      const unsigned b = shared + 131072 + (int)v169 * 8192;
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
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v15 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 131072 + (int)v171 * 8192 + (at3 + 8 % 8 * 2 + 8 / 8 % 2 * 4096), (const unsigned short*)v193 + (((v77 + (row0 + 8 / 8 % 2 * 32)) * 1408) + (v84 + (col0 + 8 % 8))), v176);
    commit_group();
    const int v199 = v169 + 1;
    const int v203 = (v199 < 8) ? v199 : 0;
    const int v204 = v171 + 1;
    const int v206 = (v204 < 8) ? v204 : 0;
    v169 = v203;
    v171 = v206;
  }
  const int v44 = (int)v8;
  int v46[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v46[i] = v44 + (row2 + i % 4 * 8);
  bool v48[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v48[i] = v46[i] < p1;
  const int v49 = (int)v9;
  float v52[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v52[i] = round_bf16(v14[i]);
  float v60[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v60[i] = (round_bf16((v52[i] / (1.0f + (expf((-v52[i]))))))) * (round_bf16(v15[i]));
  int v64[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v64[i] = v46[i] * 1408;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    store_bf16_2((unsigned short*)p5 + (v64[i / 2 % 2 + i / 8 % 2 * 2] + (v49 + (col1 + i % 2 + i / 4 % 2 * 8))), v60 + i, v48[i / 2 % 2 + i / 8 % 2 * 2]);
}
