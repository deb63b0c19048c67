// narrow_pair_bf16, load_bf16_8, store_bf16_2, store_bf16_8, smem, shared_address, commit_group, copy_async_16, wait_group_0, wait_group_4, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(128, 1) gemm_mm_add(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 4 % 8 + warp % 4 * 8;
  const int col0 = lane % 4 * 8;
  const int row1 = lane / 16 % 2 + warp % 4 * 2;
  const int col1 = lane % 16 * 8;
  const int row3 = lane / 16 % 2 + warp % 4 * 2;
  const int col4 = lane % 16 * 8;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16)) + warp % 4 * 512;
  const int at6 = ((lane % 32 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + warp % 4 * 512;
  const int at7 = ((lane / 2 % 4 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 64;
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 64)) + lane % 16 * 256;
  const int at9 = ((lane % 32 * 2) ^ (warp % 4 * 32)) + lane / 4 % 8 * 128;
  const int at10 = ((lane % 32 * 8) ^ (lane / 16 % 2 * 8) ^ (warp % 4 * 16)) + warp % 4 * 256;
  const int v1 = (int)(long long)blockIdx.x;
  const int v7 = (v1 / 256) * 8;
  const int v8 = v1 % 256;
  const int v10 = min((32 - v7), 8);
  const int v15 = (v7 + (v8 % v10)) * 64;
  const int v17 = (v8 / v10) * 128;
  const int v68 = (int)v15;
  const int v72 = (int)0;
  const int v80 = (int)v17;
  const bool v84 = 0 < 1024;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)p0 + (((v68 + (row0 + i / 8 % 2 * 32)) * 1024) + (v72 + (col0 + i % 8))), v84);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p1 + (((v72 + (row1 + i / 8 % 4 * 8)) * 4096) + (v80 + (col1 + i % 8))), v84);
  commit_group();
  const bool v92 = 32 < 1024;
  unsigned char* const v94 = p0 + 64;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)1 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v94 + (((v68 + (row0 + i / 8 % 2 * 32)) * 1024) + (v72 + (col0 + i % 8))), v92);
  unsigned char* const v98 = p1 + 262144;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)1 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v98 + (((v72 + (row1 + i / 8 % 4 * 8)) * 4096) + (v80 + (col1 + i % 8))), v92);
  commit_group();
  const bool v101 = 64 < 1024;
  unsigned char* const v103 = p0 + 128;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)2 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v103 + (((v68 + (row0 + i / 8 % 2 * 32)) * 1024) + (v72 + (col0 + i % 8))), v101);
  unsigned char* const v106 = p1 + 524288;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)2 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v106 + (((v72 + (row1 + i / 8 % 4 * 8)) * 4096) + (v80 + (col1 + i % 8))), v101);
  commit_group();
  const bool v111 = 96 < 1024;
  unsigned char* const v113 = p0 + 192;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)3 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v113 + (((v68 + (row0 + i / 8 % 2 * 32)) * 1024) + (v72 + (col0 + i % 8))), v111);
  unsigned char* const v117 = p1 + 786432;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)3 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v117 + (((v72 + (row1 + i / 8 % 4 * 8)) * 4096) + (v80 + (col1 + i % 8))), v111);
  commit_group();
  const bool v121 = 128 < 1024;
  unsigned char* const v123 = p0 + 256;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    copy_async_16(shared + 0 + (int)4 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v123 + (((v68 + (row0 + i / 8 % 2 * 32)) * 1024) + (v72 + (col0 + i % 8))), v121);
  unsigned char* const v126 = p1 + 1048576;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 24576 + (int)4 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v126 + (((v72 + (row1 + i / 8 % 4 * 8)) * 4096) + (v80 + (col1 + i % 8))), v121);
  commit_group();
  float v21[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v21[i] = 0.0f;
  int v130 = 0;
  int v132 = 5;
  for (long long v20 = 0; v20 < 1024; v20 += 32) {
    wait_group_4();
    const long long v136 = v20 + 160;
    const bool v137 = v136 < 1024;
    unsigned char* const v141 = p0 + (v136 * 2);
    unsigned char* const v146 = p1 + ((v136 * 4096) * 2);
    {
      const unsigned a = shared + 0 + (int)v130 * 4096;
      const unsigned b = shared + 24576 + (int)v130 * 8192;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[4][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 4; ++m)
          ldmatrix(fa[m], a + ((at7 ^ (k % 2 * 32)) + m % 4 * 1024));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v21 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 0 + (int)v132 * 4096 + (at5 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v141 + (((v68 + (row0 + i / 8 % 2 * 32)) * 1024) + (v72 + (col0 + i % 8))), v137);
    copy_async_16(shared + 24576 + (int)v132 * 8192 + at6, (const unsigned short*)v146 + (((v72 + row1) * 4096) + (v80 + col1)), v137);
    {
      const unsigned a = shared + 0 + (int)v130 * 4096;
      const unsigned b = shared + 24576 + (int)v130 * 8192;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[4][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 4; ++m)
          ldmatrix(fa[m], a + ((at7 ^ (k % 2 * 32)) + m % 4 * 1024));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 2 * 4096));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v21 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 8; i < 32; i += 8)
      copy_async_16(shared + 24576 + (int)v132 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v146 + (((v72 + (row1 + i / 8 % 4 * 8)) * 4096) + (v80 + (col1 + i % 8))), v137);
    commit_group();
    const int v151 = v130 + 1;
    const int v155 = (v151 < 6) ? v151 : 0;
    const int v156 = v132 + 1;
    const int v158 = (v156 < 6) ? v156 : 0;
    v130 = v155;
    v132 = v158;
  }
  const int v46 = (int)v15;
  const int v49 = (int)v17;
  wait_group_0();
  float v53[64];
  unsigned short* const s53 = (unsigned short*)(smem + 0);
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_bf16_2(s53 + ((at9 ^ (i / 4 % 4 * 8)) + i % 2 + i / 2 % 2 * 1024 + i / 16 % 4 * 2048), v21 + i, true);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    load_bf16_8(v53 + i, s53 + (at10 + i % 8 + i / 8 % 8 * 1024), true);
  int v56[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v56[i] = (v46 + (row3 + i % 8 * 8)) * 4096;
  float v59[64];
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    load_bf16_8(v59 + i, (const unsigned short*)p2 + (v56[i / 8 % 8] + (v49 + (col4 + i % 8))), true);
  float v60[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v60[i] = v53[i] + v59[i];
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    store_bf16_8((unsigned short*)p3 + (v56[i / 8 % 8] + (v49 + (col4 + i % 8))), v60 + i, true);
}
