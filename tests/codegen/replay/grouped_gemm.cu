// narrow_bf16, narrow_pair_bf16, load_i32_1, round_bf16, store_bf16_2, max_i64, min_i64, smem, shared_address, commit_group, copy_async_16, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16, Record, claim, bad_index
extern "C" __global__ void __launch_bounds__(128, 1) grouped_gemm__grouped_mm_silu(long long p0, long long p1, unsigned char* __restrict__ p2, Record* record, int step, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6, unsigned char* __restrict__ p7) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int row1 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int col2 = lane % 4 * 2 + warp % 4 * 16;
  const int row3 = lane / 4 % 8;
  const int at4 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at6 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + lane % 16 * 128;
  const int v1 = (int)(long long)blockIdx.x;
  const int v8 = (v1 / 16) * 8;
  const int v9 = v1 % 16;
  const int v11 = min((((int)p0) - v8), 8);
  const long long v15 = (long long)(v8 + (v9 % v11));
  long long v21 = 0;
  long long v22 = 0;
  long long v23 = 0;
  long long v24 = 0;
  long long v25 = -1;
  for (long long v20 = 0; v20 < 8; v20 += 1) {
    const long long v27 = p1 + 1;
    long long v29;
    load_i32_1(&v29, (const int*)p2 + v20, true);
    {
      bool bad = false;
      long long index = 0;
      if ((v29 < 0 || v29 >= v27)) bad = true, index = v29;
      if (bad) bad_index(record, step, 0, index, v27);
    }
    {
      bool bad = false;
      long long index = 0;
      if (((v29 - v21) < 0 || (v29 - v21) >= v27)) bad = true, index = (v29 - v21);
      if (bad) bad_index(record, step, 0, index, v27);
    }
    const long long v36 = max_i64(v21, (min_i64(v29, p1)));
    const long long v40 = ((v36 - v21) + 15) / 16;
    const long long v41 = v15 - v22;
    const bool v44 = (-1 < v41) && (v41 < v40);
    const long long v47 = v22 + v40;
    const long long v48 = v44 ? (v21 + (v41 * 16)) : v23;
    const long long v49 = v44 ? v36 : v24;
    const long long v50 = v44 ? v20 : v25;
    v21 = v36;
    v22 = v47;
    v23 = v48;
    v24 = v49;
    v25 = v50;
  }
  const long long v60 = v15 - v22;
  const bool v63 = (-1 < v60) && (v60 < (((p1 - v21) + 15) / 16));
  const long long v67 = v63 ? (v21 + (v60 * 16)) : v23;
  const long long v68 = max_i64(v25, 0);
  const long long v71 = (-1 < v25) ? 64 : 0;
  const int v73 = (v9 / v11) * 64;
  const int v74 = (int)(v63 ? p1 : v24);
  const int v129 = (int)v67;
  const int v133 = (int)0;
  const int v141 = (int)v73;
  const bool v145 = 0 < v71;
  copy_async_16(shared + 0 + at4, (const unsigned short*)p5 + (((v129 + row0) * 64) + (v133 + col0)), v145 && ((v129 + row0) < v74));
  unsigned char* const v154 = p6 + ((v68 * 8192) * 2);
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v154 + (((v133 + (row1 + i / 8 % 4 * 16)) * 128) + (v141 + (col1 + i % 8))), v145);
  commit_group();
  const bool v158 = 64 < v71;
  unsigned char* const v159 = p5 + 128;
  copy_async_16(shared + 0 + (int)1 * 2048 + at4, (const unsigned short*)v159 + (((v129 + row0) * 64) + (v133 + col0)), v158 && ((v129 + row0) < v74));
  unsigned char* const v162 = v154 + 16384;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)1 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v162 + (((v133 + (row1 + i / 8 % 4 * 16)) * 128) + (v141 + (col1 + i % 8))), v158);
  commit_group();
  const bool v165 = 128 < v71;
  unsigned char* const v167 = p5 + 256;
  copy_async_16(shared + 0 + (int)2 * 2048 + at4, (const unsigned short*)v167 + (((v129 + row0) * 64) + (v133 + col0)), v165 && ((v129 + row0) < v74));
  unsigned char* const v170 = v154 + 32768;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)2 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v170 + (((v133 + (row1 + i / 8 % 4 * 16)) * 128) + (v141 + (col1 + i % 8))), v165);
  commit_group();
  const bool v175 = 192 < v71;
  unsigned char* const v177 = p5 + 384;
  copy_async_16(shared + 0 + (int)3 * 2048 + at4, (const unsigned short*)v177 + (((v129 + row0) * 64) + (v133 + col0)), v175 && ((v129 + row0) < v74));
  unsigned char* const v181 = v154 + 49152;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)3 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v181 + (((v133 + (row1 + i / 8 % 4 * 16)) * 128) + (v141 + (col1 + i % 8))), v175);
  commit_group();
  const bool v185 = 256 < v71;
  unsigned char* const v187 = p5 + 512;
  copy_async_16(shared + 0 + (int)4 * 2048 + at4, (const unsigned short*)v187 + (((v129 + row0) * 64) + (v133 + col0)), v185 && ((v129 + row0) < v74));
  unsigned char* const v190 = v154 + 65536;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)4 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v190 + (((v133 + (row1 + i / 8 % 4 * 16)) * 128) + (v141 + (col1 + i % 8))), v185);
  commit_group();
  const bool v195 = 320 < v71;
  unsigned char* const v197 = p5 + 640;
  copy_async_16(shared + 0 + (int)5 * 2048 + at4, (const unsigned short*)v197 + (((v129 + row0) * 64) + (v133 + col0)), v195 && ((v129 + row0) < v74));
  unsigned char* const v201 = v154 + 81920;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)5 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v201 + (((v133 + (row1 + i / 8 % 4 * 16)) * 128) + (v141 + (col1 + i % 8))), v195);
  commit_group();
  const bool v205 = 384 < v71;
  unsigned char* const v207 = p5 + 768;
  copy_async_16(shared + 0 + (int)6 * 2048 + at4, (const unsigned short*)v207 + (((v129 + row0) * 64) + (v133 + col0)), v205 && ((v129 + row0) < v74));
  unsigned char* const v210 = v154 + 98304;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (int)6 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v210 + (((v133 + (row1 + i / 8 % 4 * 16)) * 128) + (v141 + (col1 + i % 8))), v205);
  commit_group();
  float v77[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v77[i] = 0.0f;
  int v214 = 0;
  int v216 = 7;
  for (long long v76 = 0; v76 < v71; v76 += 64) {
    wait_group_6();
    const long long v220 = v76 + 448;
    const bool v221 = v220 < v71;
    unsigned char* const v225 = p5 + (v220 * 2);
    const int v226 = (int)v67;
    copy_async_16(shared + 0 + (int)v216 * 2048 + at4, (const unsigned short*)v225 + (((v129 + row0) * 64) + (v133 + col0)), v221 && ((v226 + row0) < v74));
    unsigned char* const v235 = p6 + ((v68 * 8192) * 2);
    unsigned char* const v238 = v235 + ((v220 * 128) * 2);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 16384 + (int)v216 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v238 + (((v133 + (row1 + i / 8 % 4 * 16)) * 128) + (v141 + (col1 + i % 8))), v221);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v214 * 2048;
      const unsigned b = shared + 16384 + (int)v214 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at6 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v77 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v243 = v214 + 1;
    const int v247 = (v243 < 8) ? v243 : 0;
    const int v248 = v216 + 1;
    const int v250 = (v248 < 8) ? v248 : 0;
    v214 = v247;
    v216 = v250;
  }
  const int v106 = (int)v67;
  int v108[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v108[i] = v106 + (row3 + i % 2 * 8);
  bool v109[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v109[i] = v108[i] < v74;
  const int v110 = (int)v73;
  float v113[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v113[i] = round_bf16(v77[i]);
  float v118[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v118[i] = v113[i] / (1.0f + (expf((-v113[i]))));
  int v122[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v122[i] = v108[i] * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)p7 + (v122[i / 2 % 2] + (v110 + (col2 + i % 2 + i / 4 % 2 * 8))), v118 + i, v109[i / 2 % 2]);
}
