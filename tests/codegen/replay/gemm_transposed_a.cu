// narrow_pair_bf16, store_bf16_2, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(128, 1) gemm_transpose_mm(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 2 % 16 + warp % 4 * 16;
  const int col0 = lane % 2 * 8;
  const int row1 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int col2 = lane % 4 * 2 + warp % 4 * 16;
  const int row3 = lane / 4 % 8;
  const int at4 = ((lane % 32 * 16) ^ (lane / 8 % 2 * 16)) + warp % 4 * 512;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at6 = ((lane / 4 % 2 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 32 + lane / 16 % 2 * 256;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + lane % 16 * 128;
  const int v1 = (int)(long long)blockIdx.x;
  const int v7 = (v1 % 4) * 16;
  const int v9 = (v1 / 4) * 64;
  const int v56 = (int)0;
  const int v60 = (int)v7;
  const int v68 = (int)v9;
  const bool v72 = 0 < 512;
  copy_async_16(shared + 0 + at4, (const unsigned short*)p0 + (((v56 + row0) * 64) + (v60 + col0)), v72);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p1 + (((v56 + (row1 + i / 8 % 4 * 16)) * 128) + (v68 + (col1 + i % 8))), v72);
  commit_group();
  const bool v79 = 64 < 512;
  unsigned char* const v82 = p0 + 8192;
  copy_async_16(shared + 0 + (int)1 * 2048 + at4, (const unsigned short*)v82 + (((v56 + row0) * 64) + (v60 + col0)), v79);
  unsigned char* const v85 = p1 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)1 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v85 + (((v56 + (row1 + i / 8 % 4 * 16)) * 128) + (v68 + (col1 + i % 8))), v79);
  commit_group();
  const bool v88 = 128 < 512;
  unsigned char* const v89 = p0 + 16384;
  copy_async_16(shared + 0 + (int)2 * 2048 + at4, (const unsigned short*)v89 + (((v56 + row0) * 64) + (v60 + col0)), v88);
  unsigned char* const v92 = p1 + 32768;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)2 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v92 + (((v56 + (row1 + i / 8 % 4 * 16)) * 128) + (v68 + (col1 + i % 8))), v88);
  commit_group();
  const bool v97 = 192 < 512;
  unsigned char* const v100 = p0 + 24576;
  copy_async_16(shared + 0 + (int)3 * 2048 + at4, (const unsigned short*)v100 + (((v56 + row0) * 64) + (v60 + col0)), v97);
  unsigned char* const v103 = p1 + 49152;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)3 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v103 + (((v56 + (row1 + i / 8 % 4 * 16)) * 128) + (v68 + (col1 + i % 8))), v97);
  commit_group();
  const bool v108 = 256 < 512;
  unsigned char* const v109 = p0 + 32768;
  copy_async_16(shared + 0 + (int)4 * 2048 + at4, (const unsigned short*)v109 + (((v56 + row0) * 64) + (v60 + col0)), v108);
  unsigned char* const v112 = p1 + 65536;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)4 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v112 + (((v56 + (row1 + i / 8 % 4 * 16)) * 128) + (v68 + (col1 + i % 8))), v108);
  commit_group();
  const bool v117 = 320 < 512;
  unsigned char* const v120 = p0 + 40960;
  copy_async_16(shared + 0 + (int)5 * 2048 + at4, (const unsigned short*)v120 + (((v56 + row0) * 64) + (v60 + col0)), v117);
  unsigned char* const v123 = p1 + 81920;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)5 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v123 + (((v56 + (row1 + i / 8 % 4 * 16)) * 128) + (v68 + (col1 + i % 8))), v117);
  commit_group();
  const bool v128 = 384 < 512;
  unsigned char* const v129 = p0 + 49152;
  copy_async_16(shared + 0 + (int)6 * 2048 + at4, (const unsigned short*)v129 + (((v56 + row0) * 64) + (v60 + col0)), v128);
  unsigned char* const v132 = p1 + 98304;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)6 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v132 + (((v56 + (row1 + i / 8 % 4 * 16)) * 128) + (v68 + (col1 + i % 8))), v128);
  commit_group();
  float v13[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v13[i] = 0.0f;
  int v136 = 0;
  int v138 = 7;
  for (long long v12 = 0; v12 < 512; v12 += 64) {
    wait_group_6();
    const long long v142 = v12 + 448;
    const bool v143 = v142 < 512;
    unsigned char* const v148 = p0 + ((v142 * 64) * 2);
    unsigned char* const v153 = p1 + ((v142 * 128) * 2);
    {
      const unsigned a = shared + 0 + (int)v136 * 2048;
      const unsigned b = shared + 16384 + (int)v136 * 8192;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix_trans(fa[m], a + (at6 + k % 4 * 512));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 0 + (int)v138 * 2048 + at4, (const unsigned short*)v148 + (((v56 + row0) * 64) + (v60 + col0)), v143);
    {
      const unsigned a = shared + 0 + (int)v136 * 2048;
      const unsigned b = shared + 16384 + (int)v136 * 8192;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix_trans(fa[m], a + (at6 + k % 4 * 512));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 16384 + (int)v138 * 8192 + at5, (const unsigned short*)v153 + (((v56 + row1) * 128) + (v68 + col1)), v143);
    {
      const unsigned a = shared + 0 + (int)v136 * 2048;
      const unsigned b = shared + 16384 + (int)v136 * 8192;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix_trans(fa[m], a + (at6 + k % 4 * 512));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    copy_async_16(shared + 16384 + (int)v138 * 8192 + (at5 + 8 % 8 * 2 + 8 / 8 % 4 * 2048), (const unsigned short*)v153 + (((v56 + (row1 + 8 / 8 % 4 * 16)) * 128) + (v68 + (col1 + 8 % 8))), v143);
    {
      const unsigned a = shared + 0 + (int)v136 * 2048;
      const unsigned b = shared + 16384 + (int)v136 * 8192;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix_trans(fa[m], a + (at6 + k % 4 * 512));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v13 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 16; i < 32; i += 8)
      copy_async_16(shared + 16384 + (int)v138 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v153 + (((v56 + (row1 + i / 8 % 4 * 16)) * 128) + (v68 + (col1 + i % 8))), v143);
    commit_group();
    const int v158 = v136 + 1;
    const int v162 = (v158 < 8) ? v158 : 0;
    const int v163 = v138 + 1;
    const int v165 = (v163 < 8) ? v163 : 0;
    v136 = v162;
    v138 = v165;
  }
  const int v38 = (int)v7;
  const int v41 = (int)v9;
  int v47[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v47[i] = (v38 + (row3 + i % 2 * 8)) * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)p2 + (v47[i / 2 % 2] + (v41 + (col2 + i % 2 + i / 4 % 2 * 8))), v13 + i, true);
}
