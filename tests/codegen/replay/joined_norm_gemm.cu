// narrow_pair_bf16, load_bf16_8, store_bf16_2, store_bf16_8, smem, shared_address, commit_group, copy_async_16, wait_group_0, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16, Record, claim, meet_blocks
extern "C" __global__ void __launch_bounds__(128, 1) elementwise_rms_norm_then_gemm_mm(long long p0, unsigned char* p1, unsigned char* p2, unsigned char* p3, unsigned* counter, long long timeout, Record* record, int step, long long p8, long long p9, unsigned char* p10, unsigned char* p11) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int row2 = lane / 8 % 4 + warp % 4 * 4;
  const int col2 = lane % 8 * 8;
  const int row3 = lane / 4 % 8 + warp % 4 * 8;
  const int col3 = lane % 4 * 8;
  const int col4 = lane % 4 * 2 + warp % 2 * 16;
  const int row5 = lane / 4 % 8 + warp / 2 % 2 * 16;
  const int at6 = warp % 4;
  const int at8 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at9 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16)) + warp % 4 * 512;
  const int at10 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 2 * 2048;
  const int at11 = ((lane / 2 % 4 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 32)) + lane % 16 * 64;
  float v23[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v23 + i, (const unsigned short*)p2 + (col0 + i % 8 + i / 8 % 4 * 1024), true);
  unsigned char* const v218 = p1 + (((long long)blockIdx.x * 4096) * 2);
  float v219[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v219 + i, (const unsigned short*)v218 + (col0 + i % 8 + i / 8 % 4 * 1024), ((long long)blockIdx.x < p0));
  const long long v220 = (long long)blockIdx.x + (long long)gridDim.x;
  unsigned char* const v224 = p1 + ((v220 * 4096) * 2);
  float v225[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v225 + i, (const unsigned short*)v224 + (col0 + i % 8 + i / 8 % 4 * 1024), (v220 < p0));
  float v13[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v13[i] = v219[i];
  float v237[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v237[i] = v225[i];
  for (long long v3 = (long long)blockIdx.x; v3 < p0;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v3 += (long long)gridDim.x) {
      if (turn > 0 && !(v3 < p0)) goto after_v3;
      const long long v228 = v3 + ((long long)gridDim.x * 2);
      unsigned char* const v234 = p1 + ((v228 * 4096) * 2);
      float v236[32];
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        load_bf16_8(v236 + i, (const unsigned short*)v234 + (col0 + i % 8 + i / 8 % 4 * 1024), (v228 < p0));
      float v15[1];
      float v15_parts[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v15_parts[i] = 0.0f;
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v15_parts[i / 8 % 4] = v15_parts[i / 8 % 4] + (v13[i] * v13[i]);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v15_parts[i] = v15_parts[i] + __shfl_xor_sync(0xffffffffu, v15_parts[i], 1);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v15_parts[i] = v15_parts[i] + __shfl_xor_sync(0xffffffffu, v15_parts[i], 2);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v15_parts[i] = v15_parts[i] + __shfl_xor_sync(0xffffffffu, v15_parts[i], 4);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v15_parts[i] = v15_parts[i] + __shfl_xor_sync(0xffffffffu, v15_parts[i], 8);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v15_parts[i] = v15_parts[i] + __shfl_xor_sync(0xffffffffu, v15_parts[i], 16);
      float* const s15 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s15[at6] = v15_parts[0];
        s15[at6 + 4] = v15_parts[0 + 1];
        s15[at6 + 8] = v15_parts[0 + 2];
        s15[at6 + 12] = v15_parts[0 + 3];
      }
      __syncthreads();
      v15[0] = s15[0];
#pragma unroll
      for (int w = 1; w < 16; ++w) {
        v15[0] = v15[0] + s15[0 + w];
      }
      const float v17 = (float)4096;
      float v20[1];
      v20[0] = rsqrtf(((v15[0] / v17) + 1e-05f));
      float v24[32];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v24[i] = (v13[i] * v20[0]) * v23[i];
      unsigned char* const v27 = p3 + ((v3 * 4096) * 2);
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        store_bf16_8((unsigned short*)v27 + (col0 + i % 8 + i / 8 % 4 * 1024), v24 + i, true);
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v13[i] = v237[i];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        v237[i] = v236[i];
    }
  }
  after_v3:;
  if (!meet_blocks(counter, record, step, timeout)) return;
  for (long long v35 = (long long)blockIdx.x; v35 < p8; v35 += (long long)gridDim.x) {
    const int v37 = (int)v35;
    const int v40 = (int)p9;
    const int v44 = (v37 % v40) * 32;
    const int v45 = (v37 / v40) * 32;
    wait_group_0();
    const int v95 = (int)v44;
    const int v99 = (int)0;
    const int v107 = (int)v45;
    const bool v111 = 0 < 4096;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 128 + (at8 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)p3 + (((v95 + (row2 + i / 8 % 2 * 16)) * 4096) + (v99 + (col2 + i % 8))), v111 && ((v95 + (row2 + i / 8 % 2 * 16)) < p0));
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 32896 + (at9 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)p10 + (((v99 + (row3 + i / 8 % 2 * 32)) * 256) + (v107 + (col3 + i % 8))), v111);
    commit_group();
    const bool v120 = 64 < 4096;
    unsigned char* const v122 = p3 + 128;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 128 + (int)1 * 4096 + (at8 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v122 + (((v95 + (row2 + i / 8 % 2 * 16)) * 4096) + (v99 + (col2 + i % 8))), v120 && ((v95 + (row2 + i / 8 % 2 * 16)) < p0));
    unsigned char* const v126 = p10 + 32768;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 32896 + (int)1 * 4096 + (at9 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v126 + (((v99 + (row3 + i / 8 % 2 * 32)) * 256) + (v107 + (col3 + i % 8))), v120);
    commit_group();
    const bool v129 = 128 < 4096;
    unsigned char* const v130 = p3 + 256;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 128 + (int)2 * 4096 + (at8 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v130 + (((v95 + (row2 + i / 8 % 2 * 16)) * 4096) + (v99 + (col2 + i % 8))), v129 && ((v95 + (row2 + i / 8 % 2 * 16)) < p0));
    unsigned char* const v133 = p10 + 65536;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 32896 + (int)2 * 4096 + (at9 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v133 + (((v99 + (row3 + i / 8 % 2 * 32)) * 256) + (v107 + (col3 + i % 8))), v129);
    commit_group();
    const bool v138 = 192 < 4096;
    unsigned char* const v140 = p3 + 384;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 128 + (int)3 * 4096 + (at8 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v140 + (((v95 + (row2 + i / 8 % 2 * 16)) * 4096) + (v99 + (col2 + i % 8))), v138 && ((v95 + (row2 + i / 8 % 2 * 16)) < p0));
    unsigned char* const v144 = p10 + 98304;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 32896 + (int)3 * 4096 + (at9 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v144 + (((v99 + (row3 + i / 8 % 2 * 32)) * 256) + (v107 + (col3 + i % 8))), v138);
    commit_group();
    const bool v148 = 256 < 4096;
    unsigned char* const v150 = p3 + 512;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 128 + (int)4 * 4096 + (at8 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v150 + (((v95 + (row2 + i / 8 % 2 * 16)) * 4096) + (v99 + (col2 + i % 8))), v148 && ((v95 + (row2 + i / 8 % 2 * 16)) < p0));
    unsigned char* const v153 = p10 + 131072;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 32896 + (int)4 * 4096 + (at9 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v153 + (((v99 + (row3 + i / 8 % 2 * 32)) * 256) + (v107 + (col3 + i % 8))), v148);
    commit_group();
    const bool v158 = 320 < 4096;
    unsigned char* const v160 = p3 + 640;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 128 + (int)5 * 4096 + (at8 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v160 + (((v95 + (row2 + i / 8 % 2 * 16)) * 4096) + (v99 + (col2 + i % 8))), v158 && ((v95 + (row2 + i / 8 % 2 * 16)) < p0));
    unsigned char* const v164 = p10 + 163840;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 32896 + (int)5 * 4096 + (at9 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v164 + (((v99 + (row3 + i / 8 % 2 * 32)) * 256) + (v107 + (col3 + i % 8))), v158);
    commit_group();
    const bool v168 = 384 < 4096;
    unsigned char* const v170 = p3 + 768;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 128 + (int)6 * 4096 + (at8 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v170 + (((v95 + (row2 + i / 8 % 2 * 16)) * 4096) + (v99 + (col2 + i % 8))), v168 && ((v95 + (row2 + i / 8 % 2 * 16)) < p0));
    unsigned char* const v173 = p10 + 196608;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 32896 + (int)6 * 4096 + (at9 + i % 8 * 2 + i / 8 % 2 * 2048), (const unsigned short*)v173 + (((v99 + (row3 + i / 8 % 2 * 32)) * 256) + (v107 + (col3 + i % 8))), v168);
    commit_group();
    float v50[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v50[i] = 0.0f;
    int v177 = 0;
    int v179 = 7;
    for (long long v49 = 0; v49 < 4096; v49 += 64) {
      wait_group_6();
      const long long v183 = v49 + 448;
      const bool v184 = v183 < 4096;
      unsigned char* const v188 = p3 + (v183 * 2);
      const int v189 = (int)v44;
      unsigned char* const v197 = p10 + ((v183 * 256) * 2);
      {
        const unsigned a = shared + 128 + (int)v177 * 4096;
        const unsigned b = shared + 32896 + (int)v177 * 4096;
#pragma unroll
        for (int k = 0; k < 1; ++k) {
          unsigned fa[1][4], fb[2][2];
#pragma unroll
          for (int m = 0; m < 1; ++m)
            ldmatrix(fa[m], a + (at10 ^ (k % 4 * 32)));
#pragma unroll
          for (int n = 0; n < 2; n += 2)
            ldmatrix_trans(fb[n], b + (at11 + k % 4 * 1024));
#pragma unroll
          for (int m = 0; m < 1; ++m) {
#pragma unroll
            for (int n = 0; n < 2; ++n) mma_bf16_bf16(v50 + (m * 2 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 128 + (int)v179 * 4096 + at8, (const unsigned short*)v188 + (((v95 + row2) * 4096) + (v99 + col2)), v184 && ((v189 + row2) < p0));
      {
        const unsigned a = shared + 128 + (int)v177 * 4096;
        const unsigned b = shared + 32896 + (int)v177 * 4096;
#pragma unroll
        for (int k = 1; k < 2; ++k) {
          unsigned fa[1][4], fb[2][2];
#pragma unroll
          for (int m = 0; m < 1; ++m)
            ldmatrix(fa[m], a + (at10 ^ (k % 4 * 32)));
#pragma unroll
          for (int n = 0; n < 2; n += 2)
            ldmatrix_trans(fb[n], b + (at11 + k % 4 * 1024));
#pragma unroll
          for (int m = 0; m < 1; ++m) {
#pragma unroll
            for (int n = 0; n < 2; ++n) mma_bf16_bf16(v50 + (m * 2 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 128 + (int)v179 * 4096 + (at8 + 8 % 8 * 2 + 8 / 8 % 2 * 2048), (const unsigned short*)v188 + (((v95 + (row2 + 8 / 8 % 2 * 16)) * 4096) + (v99 + (col2 + 8 % 8))), v184 && ((v189 + (row2 + 8 / 8 % 2 * 16)) < p0));
      {
        const unsigned a = shared + 128 + (int)v177 * 4096;
        const unsigned b = shared + 32896 + (int)v177 * 4096;
#pragma unroll
        for (int k = 2; k < 3; ++k) {
          unsigned fa[1][4], fb[2][2];
#pragma unroll
          for (int m = 0; m < 1; ++m)
            ldmatrix(fa[m], a + (at10 ^ (k % 4 * 32)));
#pragma unroll
          for (int n = 0; n < 2; n += 2)
            ldmatrix_trans(fb[n], b + (at11 + k % 4 * 1024));
#pragma unroll
          for (int m = 0; m < 1; ++m) {
#pragma unroll
            for (int n = 0; n < 2; ++n) mma_bf16_bf16(v50 + (m * 2 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 32896 + (int)v179 * 4096 + at9, (const unsigned short*)v197 + (((v99 + row3) * 256) + (v107 + col3)), v184);
      {
        const unsigned a = shared + 128 + (int)v177 * 4096;
        const unsigned b = shared + 32896 + (int)v177 * 4096;
#pragma unroll
        for (int k = 3; k < 4; ++k) {
          unsigned fa[1][4], fb[2][2];
#pragma unroll
          for (int m = 0; m < 1; ++m)
            ldmatrix(fa[m], a + (at10 ^ (k % 4 * 32)));
#pragma unroll
          for (int n = 0; n < 2; n += 2)
            ldmatrix_trans(fb[n], b + (at11 + k % 4 * 1024));
#pragma unroll
          for (int m = 0; m < 1; ++m) {
#pragma unroll
            for (int n = 0; n < 2; ++n) mma_bf16_bf16(v50 + (m * 2 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 32896 + (int)v179 * 4096 + (at9 + 8 % 8 * 2 + 8 / 8 % 2 * 2048), (const unsigned short*)v197 + (((v99 + (row3 + 8 / 8 % 2 * 32)) * 256) + (v107 + (col3 + 8 % 8))), v184);
      commit_group();
      const int v202 = v177 + 1;
      const int v206 = (v202 < 8) ? v202 : 0;
      const int v207 = v179 + 1;
      const int v209 = (v207 < 8) ? v207 : 0;
      v177 = v206;
      v179 = v209;
    }
    const int v76 = (int)v44;
    int v78[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v78[i] = v76 + (row5 + i % 2 * 8);
    bool v79[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v79[i] = v78[i] < p0;
    const int v80 = (int)v45;
    int v86[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v86[i] = v78[i] * 256;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      store_bf16_2((unsigned short*)p11 + (v86[i / 2 % 2] + (v80 + (col4 + i % 2 + i / 4 % 2 * 8))), v50 + i, v79[i / 2 % 2]);
  }
}
