// narrow_pair_f16, load_i32_2, store_f16_8, store_i32_1, max_i64, min_i64, saturate_i64, smem, shared_address, commit_group, wait_group_0, ldmatrix, ldmatrix_trans, mma_f16_f16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(128, 1) moe_routing(long long p0, unsigned char* __restrict__ p1, Record* record, int step, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6, unsigned char* __restrict__ p7) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 2 % 16;
  const int col0 = lane % 2 * 8;
  const int row1 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 4 % 8;
  const int col2 = lane % 4 * 2 + warp % 4 * 16;
  const int row4 = lane / 8 % 4 + warp % 4 * 4;
  const int col4 = lane % 8 * 8;
  const int row5 = lane % 16;
  const int at6 = (lane % 32 * 8) ^ (lane / 8 % 2 * 8);
  const int at7 = ((lane % 32 * 8) ^ (lane / 8 % 4 * 8) ^ (warp % 2 * 32)) + warp % 4 * 256;
  const int at8 = ((lane / 4 % 2 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 32;
  const int at9 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + lane % 16 * 128;
  const int at10 = lane / 4 % 8 * 4 + warp % 4;
  const int at11 = lane / 4 % 8 * 4;
  const int at12 = ((lane % 32 * 8) ^ (lane / 8 % 4 * 8) ^ (warp % 2 * 32)) + warp % 4 * 256;
  const int at13 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at14 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + lane % 16 * 128;
  const int at15 = lane / 4 % 8;
  const int at16 = lane % 16;
  const int v1 = (int)(long long)blockIdx.x;
  float v10[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v10[i] = ((col0 + i % 8) < 16) ? 1.0f : 0.0f;
  store_f16_8((unsigned short*)(smem + 1536) + at6, v10 + 0, (warp & 3) == 0);
  const int v112 = (int)0;
  long long v121[8];
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    load_i32_2(v121 + i, (const int*)p1 + (v112 + ((row1 * 64) + (col1 + i % 8))), ((v112 + ((row1 * 64) + (col1 + i % 8))) < p0));
  float v128[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v128[i] = (((v112 + ((row1 * 64) + (col1 + i % 8))) < p0) && ((min_i64((max_i64(v121[i], 0)), 7)) < v1)) ? 1.0f : 0.0f;
  store_f16_8((unsigned short*)(smem + 2048) + at7, v128 + 0, true);
  {
    bool bad = false;
    long long index = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (((v112 + ((row1 * 64) + (col1 + i % 8))) < p0) && (v121[i] < 0 || v121[i] >= 8)) bad = true, index = v121[i];
    if (bad) bad_index(record, step, 0, index, 8);
  }
  commit_group();
  float v14[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v14[i] = 0.0f;
  int v134 = 0;
  int v136 = 1;
  for (long long v13 = 0; v13 < p0; v13 += 1024) {
    wait_group_0();
    const int v142 = (int)(v13 + 1024);
    long long v151[8];
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      load_i32_2(v151 + i, (const int*)p1 + (v142 + ((row1 * 64) + (col1 + i % 8))), ((v142 + ((row1 * 64) + (col1 + i % 8))) < p0));
    float v158[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v158[i] = (((v142 + ((row1 * 64) + (col1 + i % 8))) < p0) && ((min_i64((max_i64(v151[i], 0)), 7)) < v1)) ? 1.0f : 0.0f;
    store_f16_8((unsigned short*)(smem + 2048 + (int)v136 * 2048) + at7, v158 + 0, true);
    {
      bool bad = false;
      long long index = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (((v142 + ((row1 * 64) + (col1 + i % 8))) < p0) && (v151[i] < 0 || v151[i] >= 8)) bad = true, index = v151[i];
      if (bad) bad_index(record, step, 0, index, 8);
    }
    commit_group();
    {
      const unsigned a = shared + 1536;
      const unsigned b = shared + 2048 + (int)v134 * 2048;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + at8);
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + at9);
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_f16_f16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v165 = v134 + 1;
    const int v169 = (v165 < 2) ? v165 : 0;
    const int v170 = v136 + 1;
    const int v172 = (v170 < 2) ? v170 : 0;
    v134 = v169;
    v136 = v172;
  }
  long long v41[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v41[i] = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v41[i / 2 % 2] = (long long)((unsigned long long)v41[i / 2 % 2] + (unsigned long long)(saturate_i64(v14[i])));
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v41[i] = (long long)((unsigned long long)v41[i] + (unsigned long long)__shfl_xor_sync(0xffffffffu, v41[i], 1));
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v41[i] = (long long)((unsigned long long)v41[i] + (unsigned long long)__shfl_xor_sync(0xffffffffu, v41[i], 2));
  long long* const s41 = (long long*)(smem + 0);
  if ((lane & 3) == 0) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      s41[(at10 + i % 2 * 32)] = v41[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v41[i] = s41[(at11 + i % 2 * 32)];
#pragma unroll
  for (int w = 1; w < 4; ++w) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v41[i] = (long long)((unsigned long long)v41[i] + (unsigned long long)s41[(at11 + i % 2 * 32) + w]);
  }
  float v44[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v44[i] = ((col0 + i % 8) < row0) ? 1.0f : 0.0f;
  float v50[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v50[i] = (!((col4 + i % 8) < (row4 + i / 8 % 4 * 16))) ? 1.0f : 0.0f;
  wait_group_0();
  store_f16_8((unsigned short*)(smem + 1536) + at6, v44 + 0, (warp & 3) == 0);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_f16_8((unsigned short*)(smem + 6144) + (at12 + i % 8 + i / 8 % 4 * 1024), v50 + i, true);
  store_f16_8((unsigned short*)(smem + 14336) + at6, v10 + 0, (warp & 3) == 0);
  const int v182 = (int)0;
  long long v191[8];
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    load_i32_2(v191 + i, (const int*)p1 + (v182 + ((row1 * 64) + (col1 + i % 8))), ((v182 + ((row1 * 64) + (col1 + i % 8))) < p0));
  float v198[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v198[i] = (((v182 + ((row1 * 64) + (col1 + i % 8))) < p0) && ((min_i64((max_i64(v191[i], 0)), 7)) == v1)) ? 1.0f : 0.0f;
  store_f16_8((unsigned short*)(smem + 2048) + at7, v198 + 0, true);
  commit_group();
  long long v52[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v52[i] = v41[i];
  int v202 = 0;
  int v204 = 1;
  for (long long v51 = 0; v51 < p0; v51 += 1024) {
    wait_group_0();
    const int v210 = (int)(v51 + 1024);
    long long v219[8];
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      load_i32_2(v219 + i, (const int*)p1 + (v210 + ((row1 * 64) + (col1 + i % 8))), ((v210 + ((row1 * 64) + (col1 + i % 8))) < p0));
    float v226[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v226[i] = (((v210 + ((row1 * 64) + (col1 + i % 8))) < p0) && ((min_i64((max_i64(v219[i], 0)), 7)) == v1)) ? 1.0f : 0.0f;
    store_f16_8((unsigned short*)(smem + 2048 + (int)v204 * 2048) + at7, v226 + 0, true);
    commit_group();
    const int v59 = (int)v51;
    long long v64[8];
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      load_i32_2(v64 + i, (const int*)p1 + (v59 + (((row2 + i / 2 % 2 * 8) * 64) + (col2 + i % 2 + i / 4 % 2 * 8))), ((v59 + (((row2 + i / 2 % 2 * 8) * 64) + (col2 + i % 2 + i / 4 % 2 * 8))) < p0));
    bool v70[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v70[i] = ((v59 + (((row2 + i / 2 % 2 * 8) * 64) + (col2 + i % 2 + i / 4 % 2 * 8))) < p0) && ((min_i64((max_i64(v64[i], 0)), 7)) == v1);
    float v73[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v73[i] = 0.0f;
    {
      const unsigned a = shared + 1536;
      const unsigned b = shared + 2048 + (int)v202 * 2048;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + at8);
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + at9);
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_f16_f16(v73 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    long long v75[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v75[i] = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v75[i / 2 % 2] = (long long)((unsigned long long)v75[i / 2 % 2] + (unsigned long long)(saturate_i64(v73[i])));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v75[i] = (long long)((unsigned long long)v75[i] + (unsigned long long)__shfl_xor_sync(0xffffffffu, v75[i], 1));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v75[i] = (long long)((unsigned long long)v75[i] + (unsigned long long)__shfl_xor_sync(0xffffffffu, v75[i], 2));
    long long* const s75 = (long long*)(smem + 512);
    __syncthreads();
    if ((lane & 3) == 0) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        s75[(at10 + i % 2 * 32)] = v75[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v75[i] = s75[(at11 + i % 2 * 32)];
#pragma unroll
    for (int w = 1; w < 4; ++w) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v75[i] = (long long)((unsigned long long)v75[i] + (unsigned long long)s75[(at11 + i % 2 * 32) + w]);
    }
    long long v76[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v76[i] = v52[i] + v75[i];
    float v77[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v77[i] = 0.0f;
    {
      const unsigned a = shared + 2048 + (int)v202 * 2048;
      const unsigned b = shared + 6144;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at13 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at14 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_f16_f16(v77 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    long long v80[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v80[i] = (v76[i / 2 % 2] + (saturate_i64(v77[i]))) - 1;
    long long v81[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v81[i] = (long long)v80[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_i32_1((int*)p4 + (v59 + (((row2 + i / 2 % 2 * 8) * 64) + (col2 + i % 2 + i / 4 % 2 * 8))), v81 + i, v70[i]);
    long long v86[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v86[i] = (long long)((v59 + (((row2 + i / 2 % 2 * 8) * 64) + (col2 + i % 2 + i / 4 % 2 * 8))) / 2);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_i32_1((int*)p5 + v80[i], v86 + i, v70[i]);
    long long v91[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v91[i] = (long long)(0 + v1);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_i32_1((int*)p6 + v80[i], v91 + i, v70[i]);
    float v94[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v94[i] = 0.0f;
    {
      const unsigned a = shared + 14336;
      const unsigned b = shared + 2048 + (int)v202 * 2048;
#pragma unroll
      for (int k = 0; k < 1; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + at8);
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + at9);
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_f16_f16(v94 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    long long v96[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v96[i] = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v96[i / 2 % 2] = (long long)((unsigned long long)v96[i / 2 % 2] + (unsigned long long)(saturate_i64(v94[i])));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v96[i] = (long long)((unsigned long long)v96[i] + (unsigned long long)__shfl_xor_sync(0xffffffffu, v96[i], 1));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v96[i] = (long long)((unsigned long long)v96[i] + (unsigned long long)__shfl_xor_sync(0xffffffffu, v96[i], 2));
    long long* const s96 = (long long*)(smem + 1024);
    __syncthreads();
    if ((lane & 3) == 0) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        s96[(at10 + i % 2 * 32)] = v96[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v96[i] = s96[(at11 + i % 2 * 32)];
#pragma unroll
    for (int w = 1; w < 4; ++w) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v96[i] = (long long)((unsigned long long)v96[i] + (unsigned long long)s96[(at11 + i % 2 * 32) + w]);
    }
    long long v97[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v97[i] = v52[i] + v96[i];
    const int v233 = v202 + 1;
    const int v237 = (v233 < 2) ? v233 : 0;
    const int v238 = v204 + 1;
    const int v240 = (v238 < 2) ? v238 : 0;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v52[i] = v97[i];
    v202 = v237;
    v204 = v240;
  }
  wait_group_0();
  long long v241[1];
  long long* const s241 = (long long*)(smem + 1536);
  if ((lane & 3) == 0 && (warp & 3) == 0) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      s241[(at15 + i % 2 * 8)] = v52[i];
  }
  __syncthreads();
  v241[0] = s241[at16];
  long long v104[1];
  v104[0] = (long long)v241[0];
  store_i32_1((int*)p7 + (0 + v1), v104 + 0, (lane & 16) == 0 && (warp & 3) == 0 && (row5 < 1));
}
