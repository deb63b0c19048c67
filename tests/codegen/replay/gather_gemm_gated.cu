// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_2, store_bf16_8, max_i64, min_i64, smem, shared_address, commit_group, copy_async_16, wait_group_0, wait_group_4, ldmatrix, ldmatrix_trans, mma_bf16_bf16, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 3, give_up 3, await_relaxed, await, wait 3, signal_one, wait_one
extern "C" __global__ void __launch_bounds__(256, 1) gather_gemm_all_gather_into_tensor_mm_mm_silu_mul(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, unsigned char* p8, long long p9, long long p10, unsigned char* p11, unsigned char* p12, unsigned char* p13, unsigned char* p14, int p15) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int row1 = lane / 8 % 4 + warp % 8 * 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 8 % 4 + warp % 8 * 4;
  const int col2 = lane % 8 * 8;
  const int row4 = lane / 8 % 4 + warp % 8 * 4;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 8 * 512;
  const int at6 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 8 * 512;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 4 * 4096;
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 64)) + lane % 16 * 128;
  const int at9 = ((lane % 32 * 2) ^ (warp % 2 * 32)) + lane / 4 % 8 * 64 + warp / 2 % 4 * 2048;
  const int at10 = ((lane % 32 * 8) ^ (lane / 8 % 4 * 8) ^ (warp % 2 * 32)) + warp % 8 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  const long long v12 = min_i64(16, (max_i64(1, ((long long)gridDim.x / 4))));
  const bool v14 = (long long)blockIdx.x < v12;
  if (v14) signal(comm, peers, (long long)blockIdx.x);
  if (v14 && !wait(comm, peers, (long long)blockIdx.x)) return;
  const long long v17 = v14 ? (long long)blockIdx.x : 16;
  for (long long v19 = v17; v19 < 16; v19 += v12) {
    const long long v26 = ((long long)rank + ((v19 / 2) + 1)) % 8;
    unsigned char* const v27 = peers.base[v26] + p6;
    unsigned char* const v34 = p8 + ((v26 * (p7 * 2048)) * 2);
    const long long v37 = (v19 % 2) * 128;
    const long long v40 = (min_i64((v37 + 128), p7)) * 2048;
    const long long v41 = v37 * 2048;
    const bool v278 = v41 < v40;
    unsigned char* const v280 = v27 + (v41 * 2);
    const long long v282 = v40 - v41;
    float v285[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v285 + i, (const unsigned short*)v280 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v282) && v278));
    const long long v286 = v41 + 8192;
    const bool v287 = v286 < v40;
    unsigned char* const v289 = v27 + (v286 * 2);
    const long long v290 = v40 - v286;
    float v293[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v293 + i, (const unsigned short*)v289 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v290) && v287));
    const long long v296 = v41 + 16384;
    const bool v297 = v296 < v40;
    unsigned char* const v299 = v27 + (v296 * 2);
    const long long v300 = v40 - v296;
    float v303[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v303 + i, (const unsigned short*)v299 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v300) && v297));
    const long long v306 = v41 + 24576;
    const bool v307 = v306 < v40;
    unsigned char* const v309 = v27 + (v306 * 2);
    const long long v310 = v40 - v306;
    float v313[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v313 + i, (const unsigned short*)v309 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v310) && v307));
    float v50[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v50[i] = v285[i];
    float v325[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v325[i] = v293[i];
    float v326[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v326[i] = v303[i];
    float v327[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v327[i] = v313[i];
    for (long long v43 = v41; v43 < v40;) {
#pragma unroll
      for (int turn = 0; turn < 5; ++turn, v43 += 8192) {
        if (turn > 0 && !(v43 < v40)) goto after_v43;
        const long long v316 = v43 + 32768;
        const bool v317 = v316 < v40;
        unsigned char* const v319 = v27 + (v316 * 2);
        const long long v321 = v40 - v316;
        float v324[32];
#pragma unroll
        for (int i = 0; i < 32; i += 8)
          load_bf16_8(v324 + i, (const unsigned short*)v319 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v321) && v317));
        const long long v46 = v40 - v43;
        unsigned char* const v51 = v34 + (v43 * 2);
#pragma unroll
        for (int i = 0; i < 32; i += 8)
          store_bf16_8((unsigned short*)v51 + (col0 + i % 8 + i / 8 % 4 * 2048), v50 + i, ((col0 + i % 8 + i / 8 % 4 * 2048) < v46));
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v50[i] = v325[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v325[i] = v326[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v326[i] = v327[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v327[i] = v324[i];
      }
    }
    after_v43:;
    const bool v54 = v19 < 14;
    const long long v56 = 32 + v19;
    if (v54) signal_one(comm, peers, v56, (long long)rank);
  }
  const long long v60 = 8 * p9;
  const long long v62 = v14 ? v60 : ((long long)blockIdx.x - v12);
  const long long v63 = (long long)gridDim.x - v12;
  for (long long v64 = v62; v64 < v60; v64 += v63) {
    const int v66 = (int)v64;
    const int v67 = (int)p9;
    const int v68 = v66 / v67;
    const int v69 = v66 % v67;
    const int v71 = (int)p10;
    const int v72 = v69 % v71;
    const long long v75 = ((long long)rank + v68) % 8;
    const bool v77 = 0 < v68;
    const int v83 = 32 + (((v68 - 1) * 2) + v72);
    if (v77 && !wait_one(comm, peers, v83, (long long)rank)) return;
    unsigned char* const v92 = p8 + ((v75 * (p7 * 2048)) * 2);
    const int v94 = v72 * 128;
    const int v96 = (v69 / v71) * 64;
    unsigned char* const v98 = v77 ? v92 : p11;
    wait_group_0();
    const int v170 = (int)v94;
    const int v174 = (int)0;
    const int v182 = (int)v96;
    const bool v186 = 0 < 2048;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v98 + (((v170 + (row1 + i / 8 % 4 * 32)) * 2048) + (v174 + (col1 + i % 8))), v186 && ((v170 + (row1 + i / 8 % 4 * 32)) < p7));
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p12 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v186);
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p13 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v186);
    commit_group();
    const bool v196 = 64 < 2048;
    unsigned char* const v198 = v98 + 128;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)1 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v198 + (((v170 + (row1 + i / 8 % 4 * 32)) * 2048) + (v174 + (col1 + i % 8))), v196 && ((v170 + (row1 + i / 8 % 4 * 32)) < p7));
    unsigned char* const v202 = p12 + 131072;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)1 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v202 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v196);
    unsigned char* const v204 = p13 + 131072;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (int)1 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v204 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v196);
    commit_group();
    const bool v207 = 128 < 2048;
    unsigned char* const v209 = v98 + 256;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)2 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v209 + (((v170 + (row1 + i / 8 % 4 * 32)) * 2048) + (v174 + (col1 + i % 8))), v207 && ((v170 + (row1 + i / 8 % 4 * 32)) < p7));
    unsigned char* const v212 = p12 + 262144;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)2 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v212 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v207);
    unsigned char* const v214 = p13 + 262144;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (int)2 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v214 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v207);
    commit_group();
    const bool v219 = 192 < 2048;
    unsigned char* const v221 = v98 + 384;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)3 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v221 + (((v170 + (row1 + i / 8 % 4 * 32)) * 2048) + (v174 + (col1 + i % 8))), v219 && ((v170 + (row1 + i / 8 % 4 * 32)) < p7));
    unsigned char* const v225 = p12 + 393216;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)3 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v225 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v219);
    unsigned char* const v227 = p13 + 393216;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (int)3 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v227 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v219);
    commit_group();
    const bool v231 = 256 < 2048;
    unsigned char* const v233 = v98 + 512;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)4 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v233 + (((v170 + (row1 + i / 8 % 4 * 32)) * 2048) + (v174 + (col1 + i % 8))), v231 && ((v170 + (row1 + i / 8 % 4 * 32)) < p7));
    unsigned char* const v236 = p12 + 524288;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)4 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v236 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v231);
    unsigned char* const v238 = p13 + 524288;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (int)4 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v238 + (((v174 + (row2 + i / 8 % 2 * 32)) * 1024) + (v182 + (col2 + i % 8))), v231);
    commit_group();
    float v102[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v102[i] = 0.0f;
    float v103[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v103[i] = 0.0f;
    int v242 = 0;
    int v244 = 5;
    for (long long v101 = 0; v101 < 2048; v101 += 64) {
      wait_group_4();
      const long long v248 = v101 + 320;
      const bool v249 = v248 < 2048;
      unsigned char* const v252 = v98 + (v248 * 2);
      const int v253 = (int)v94;
      const long long v260 = (v248 * 1024) * 2;
      unsigned char* const v261 = p12 + v260;
      unsigned char* const v264 = p13 + v260;
      {
        const unsigned a = shared + 0 + (int)v242 * 16384;
        const unsigned b = shared + 98304 + (int)v242 * 8192;
#pragma unroll
        for (int k = 0; k < 1; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v102 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 0 + (int)v244 * 16384 + at5, (const unsigned short*)v252 + (((v170 + row1) * 2048) + (v174 + col1)), v249 && ((v253 + row1) < p7));
      {
        const unsigned a = shared + 0 + (int)v242 * 16384;
        const unsigned b = shared + 98304 + (int)v242 * 8192;
#pragma unroll
        for (int k = 1; k < 2; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v102 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 0 + (int)v244 * 16384 + (at5 + 8 % 8 * 2 + 8 / 8 % 4 * 4096), (const unsigned short*)v252 + (((v170 + (row1 + 8 / 8 % 4 * 32)) * 2048) + (v174 + (col1 + 8 % 8))), v249 && ((v253 + (row1 + 8 / 8 % 4 * 32)) < p7));
      {
        const unsigned a = shared + 0 + (int)v242 * 16384;
        const unsigned b = shared + 98304 + (int)v242 * 8192;
#pragma unroll
        for (int k = 2; k < 3; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v102 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 0 + (int)v244 * 16384 + (at5 + 16 % 8 * 2 + 16 / 8 % 4 * 4096), (const unsigned short*)v252 + (((v170 + (row1 + 16 / 8 % 4 * 32)) * 2048) + (v174 + (col1 + 16 % 8))), v249 && ((v253 + (row1 + 16 / 8 % 4 * 32)) < p7));
      {
        const unsigned a = shared + 0 + (int)v242 * 16384;
        const unsigned b = shared + 98304 + (int)v242 * 8192;
#pragma unroll
        for (int k = 3; k < 4; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v102 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 0 + (int)v244 * 16384 + (at5 + 24 % 8 * 2 + 24 / 8 % 4 * 4096), (const unsigned short*)v252 + (((v170 + (row1 + 24 / 8 % 4 * 32)) * 2048) + (v174 + (col1 + 24 % 8))), v249 && ((v253 + (row1 + 24 / 8 % 4 * 32)) < p7));
      {
        const unsigned a = shared + 0 + (int)v242 * 16384;
        const unsigned b = shared + 147456 + (int)v242 * 8192;
#pragma unroll
        for (int k = 0; k < 1; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v103 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 98304 + (int)v244 * 8192 + at6, (const unsigned short*)v261 + (((v174 + row2) * 1024) + (v182 + col2)), v249);
      {
        const unsigned a = shared + 0 + (int)v242 * 16384;
        const unsigned b = shared + 147456 + (int)v242 * 8192;
#pragma unroll
        for (int k = 1; k < 2; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v103 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 98304 + (int)v244 * 8192 + (at6 + 8 % 8 * 2 + 8 / 8 % 2 * 4096), (const unsigned short*)v261 + (((v174 + (row2 + 8 / 8 % 2 * 32)) * 1024) + (v182 + (col2 + 8 % 8))), v249);
      {
        const unsigned a = shared + 0 + (int)v242 * 16384;
        const unsigned b = shared + 147456 + (int)v242 * 8192;
#pragma unroll
        for (int k = 2; k < 3; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v103 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 147456 + (int)v244 * 8192 + at6, (const unsigned short*)v264 + (((v174 + row2) * 1024) + (v182 + col2)), v249);
      {
        const unsigned a = shared + 0 + (int)v242 * 16384;
        const unsigned b = shared + 147456 + (int)v242 * 8192;
#pragma unroll
        for (int k = 3; k < 4; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v103 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      copy_async_16(shared + 147456 + (int)v244 * 8192 + (at6 + 8 % 8 * 2 + 8 / 8 % 2 * 4096), (const unsigned short*)v264 + (((v174 + (row2 + 8 / 8 % 2 * 32)) * 1024) + (v182 + (col2 + 8 % 8))), v249);
      commit_group();
      const int v270 = v242 + 1;
      const int v274 = (v270 < 6) ? v270 : 0;
      const int v275 = v244 + 1;
      const int v277 = (v275 < 6) ? v275 : 0;
      v242 = v274;
      v244 = v277;
    }
    const int v131 = (int)v94;
    int v133[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v133[i] = v131 + (row4 + i % 4 * 32);
    bool v134[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v134[i] = v133[i] < p7;
    const int v135 = (int)v96;
    const int v138 = (int)(v75 * p7);
    wait_group_0();
    float v141[32];
    unsigned short* const s141 = (unsigned short*)(smem + 0);
#pragma unroll
    for (int i = 0; i < 32; i += 2)
      store_bf16_2(s141 + ((at9 ^ (i / 4 % 4 * 8)) + i % 2 + i / 2 % 2 * 512 + i / 16 % 2 * 1024), v102 + i, true);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v141 + i, s141 + (at10 + i % 8 + i / 8 % 4 * 2048), true);
    wait_group_0();
    float v143[32];
    unsigned short* const s143 = (unsigned short*)(smem + 0);
#pragma unroll
    for (int i = 0; i < 32; i += 2)
      store_bf16_2(s143 + ((at9 ^ (i / 4 % 4 * 8)) + i % 2 + i / 2 % 2 * 512 + i / 16 % 2 * 1024), v103 + i, true);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v143 + i, s143 + (at10 + i % 8 + i / 8 % 4 * 2048), true);
    float v150[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v150[i] = (round_bf16((v141[i] / (1.0f + (expf((-v141[i]))))))) * v143[i];
    int v154[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v154[i] = (v138 + v133[i]) * 1024;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      store_bf16_8((unsigned short*)p14 + (v154[i / 8 % 4] + (v135 + (col1 + i % 8))), v150 + i, v134[i / 8 % 4]);
  }
  const bool v160 = v14 && (0 < p15);
  const long long v161 = 16 + (long long)blockIdx.x;
  if (v160) signal(comm, peers, v161);
  if (v160 && !wait(comm, peers, v161)) return;
  __syncthreads();
  close_comm(comm);
}
