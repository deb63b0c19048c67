// narrow_pair_bf16, load_bf16_8, store_bf16_2, store_bf16_8, smem, shared_address, commit_group, copy_async_16, wait_group_0, wait_group_4, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(256, 1) gemm_mm_add(unsigned char* __restrict__ p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 8 * 4;
  const int col0 = lane % 8 * 8;
  const int row1 = lane / 16 % 2 + warp % 8 * 2;
  const int col1 = lane % 16 * 8;
  const int row3 = lane / 16 % 2 + warp % 8 * 2;
  const int col4 = lane % 16 * 8;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 8 * 512;
  const int at6 = ((lane % 32 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + warp % 8 * 512;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 4 % 2 * 8192;
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 64)) + lane % 16 * 256;
  const int at9 = ((lane % 32 * 2) ^ (warp % 4 * 32)) + lane / 4 % 8 * 128 + warp / 4 % 2 * 8192;
  const int at10 = ((lane % 32 * 8) ^ (lane / 16 % 2 * 8) ^ (warp % 4 * 16)) + warp % 8 * 256;
  const int v1 = (int)(long long)blockIdx.x;
  const int v8 = (v1 / 256) * 8;
  const int v9 = v1 % 256;
  const int v11 = min((16 - v8), 8);
  const int v16 = (v8 + (v9 % v11)) * 128;
  const int v17 = (v9 / v11) * 128;
  const int v69 = (int)v16;
  const int v73 = (int)0;
  const int v81 = (int)v17;
  const bool v85 = 0 < 1024;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)p0 + (((v69 + (row0 + i / 8 % 4 * 32)) * 1024) + (v73 + (col0 + i % 8))), v85);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 98304 + (at6 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)p1 + (((v73 + (row1 + i / 8 % 4 * 16)) * 4096) + (v81 + (col1 + i % 8))), v85);
  commit_group();
  const bool v93 = 64 < 1024;
  unsigned char* const v95 = p0 + 128;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)1 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v95 + (((v69 + (row0 + i / 8 % 4 * 32)) * 1024) + (v73 + (col0 + i % 8))), v93);
  unsigned char* const v99 = p1 + 524288;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 98304 + (int)1 * 16384 + (at6 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v99 + (((v73 + (row1 + i / 8 % 4 * 16)) * 4096) + (v81 + (col1 + i % 8))), v93);
  commit_group();
  const bool v102 = 128 < 1024;
  unsigned char* const v104 = p0 + 256;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)2 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v104 + (((v69 + (row0 + i / 8 % 4 * 32)) * 1024) + (v73 + (col0 + i % 8))), v102);
  unsigned char* const v107 = p1 + 1048576;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 98304 + (int)2 * 16384 + (at6 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v107 + (((v73 + (row1 + i / 8 % 4 * 16)) * 4096) + (v81 + (col1 + i % 8))), v102);
  commit_group();
  const bool v112 = 192 < 1024;
  unsigned char* const v114 = p0 + 384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)3 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v114 + (((v69 + (row0 + i / 8 % 4 * 32)) * 1024) + (v73 + (col0 + i % 8))), v112);
  unsigned char* const v118 = p1 + 1572864;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 98304 + (int)3 * 16384 + (at6 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v118 + (((v73 + (row1 + i / 8 % 4 * 16)) * 4096) + (v81 + (col1 + i % 8))), v112);
  commit_group();
  const bool v122 = 256 < 1024;
  unsigned char* const v124 = p0 + 512;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 0 + (int)4 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v124 + (((v69 + (row0 + i / 8 % 4 * 32)) * 1024) + (v73 + (col0 + i % 8))), v122);
  unsigned char* const v127 = p1 + 2097152;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 98304 + (int)4 * 16384 + (at6 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v127 + (((v73 + (row1 + i / 8 % 4 * 16)) * 4096) + (v81 + (col1 + i % 8))), v122);
  commit_group();
  float v22[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v22[i] = 0.0f;
  int v131 = 0;
  int v133 = 5;
  for (long long v21 = 0; v21 < 1024; v21 += 64) {
    wait_group_4();
    const long long v137 = v21 + 320;
    const bool v138 = v137 < 1024;
    unsigned char* const v142 = p0 + (v137 * 2);
    unsigned char* const v147 = p1 + ((v137 * 4096) * 2);
    {
      const unsigned a = shared + 0 + (int)v131 * 16384;
      const unsigned b = shared + 98304 + (int)v131 * 16384;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[4][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 4; ++m)
          ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 4096));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v22 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 0 + (int)v133 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v142 + (((v69 + (row0 + i / 8 % 4 * 32)) * 1024) + (v73 + (col0 + i % 8))), v138);
    {
      const unsigned a = shared + 0 + (int)v131 * 16384;
      const unsigned b = shared + 98304 + (int)v131 * 16384;
#pragma unroll
      for (int k = 1; k < 2; ++k) {
        unsigned fa[4][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 4; ++m)
          ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 4096));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v22 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 16; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)v133 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v142 + (((v69 + (row0 + i / 8 % 4 * 32)) * 1024) + (v73 + (col0 + i % 8))), v138);
    {
      const unsigned a = shared + 0 + (int)v131 * 16384;
      const unsigned b = shared + 98304 + (int)v131 * 16384;
#pragma unroll
      for (int k = 2; k < 3; ++k) {
        unsigned fa[4][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 4; ++m)
          ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 4096));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v22 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)v133 * 16384 + (at6 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v147 + (((v73 + (row1 + i / 8 % 4 * 16)) * 4096) + (v81 + (col1 + i % 8))), v138);
    {
      const unsigned a = shared + 0 + (int)v131 * 16384;
      const unsigned b = shared + 98304 + (int)v131 * 16384;
#pragma unroll
      for (int k = 3; k < 4; ++k) {
        unsigned fa[4][4], fb[4][2];
#pragma unroll
        for (int m = 0; m < 4; ++m)
          ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
        for (int n = 0; n < 4; n += 2)
          ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 4096));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) mma_bf16_bf16(v22 + (m * 4 + n) * 4, fa[m], fb[n]);
        }
      }
    }
#pragma unroll
    for (int i = 16; i < 32; i += 8)
      copy_async_16(shared + 98304 + (int)v133 * 16384 + (at6 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v147 + (((v73 + (row1 + i / 8 % 4 * 16)) * 4096) + (v81 + (col1 + i % 8))), v138);
    commit_group();
    const int v152 = v131 + 1;
    const int v156 = (v152 < 6) ? v152 : 0;
    const int v157 = v133 + 1;
    const int v159 = (v157 < 6) ? v157 : 0;
    v131 = v156;
    v133 = v159;
  }
  const int v47 = (int)v16;
  const int v50 = (int)v17;
  wait_group_0();
  float v54[64];
  unsigned short* const s54 = (unsigned short*)(smem + 0);
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_bf16_2(s54 + ((at9 ^ (i / 4 % 4 * 8)) + i % 2 + i / 2 % 2 * 1024 + i / 16 % 4 * 2048), v22 + i, true);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    load_bf16_8(v54 + i, s54 + (at10 + i % 8 + i / 8 % 8 * 2048), true);
  int v57[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v57[i] = (v47 + (row3 + i % 8 * 16)) * 4096;
  float v60[64];
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    load_bf16_8(v60 + i, (const unsigned short*)p2 + (v57[i / 8 % 8] + (v50 + (col4 + i % 8))), true);
  float v61[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v61[i] = v54[i] + v60[i];
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    store_bf16_8((unsigned short*)p3 + (v57[i / 8 % 8] + (v50 + (col4 + i % 8))), v61 + i, true);
}
