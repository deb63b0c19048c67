// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_2, store_bf16_8, max_i64, min_i64, smem, shared_address, commit_group, copy_async_16, wait_group_0, wait_group_4, ldmatrix, ldmatrix_trans, mma_bf16_bf16, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 8, give_up 3, await_relaxed, await, wait 8, signal_one, wait_one
extern "C" __global__ void __launch_bounds__(128, 1) gather_gemm_all_gather_into_tensor_mm_mm_silu_mul(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, unsigned char* p8, long long p9, long long p10, unsigned char* p11, unsigned char* p12, unsigned char* p13, unsigned char* p14, int p15) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  const int row1 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 8 % 4 + warp % 4 * 4;
  const int col2 = lane % 8 * 8;
  const int col3 = lane % 4 * 2 + warp % 2 * 32;
  const int row4 = lane / 4 % 8 + warp / 2 % 2 * 64;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at6 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 2 * 8192;
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 64)) + lane % 16 * 128;
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
    const bool v276 = v41 < v40;
    unsigned char* const v278 = v27 + (v41 * 2);
    const long long v280 = v40 - v41;
    float v283[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v283 + i, (const unsigned short*)v278 + (col0 + i % 8 + i / 8 % 4 * 1024), (((col0 + i % 8 + i / 8 % 4 * 1024) < v280) && v276));
    const long long v284 = v41 + 4096;
    const bool v285 = v284 < v40;
    unsigned char* const v287 = v27 + (v284 * 2);
    const long long v288 = v40 - v284;
    float v291[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v291 + i, (const unsigned short*)v287 + (col0 + i % 8 + i / 8 % 4 * 1024), (((col0 + i % 8 + i / 8 % 4 * 1024) < v288) && v285));
    const long long v294 = v41 + 8192;
    const bool v295 = v294 < v40;
    unsigned char* const v297 = v27 + (v294 * 2);
    const long long v298 = v40 - v294;
    float v301[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v301 + i, (const unsigned short*)v297 + (col0 + i % 8 + i / 8 % 4 * 1024), (((col0 + i % 8 + i / 8 % 4 * 1024) < v298) && v295));
    const long long v304 = v41 + 12288;
    const bool v305 = v304 < v40;
    unsigned char* const v307 = v27 + (v304 * 2);
    const long long v308 = v40 - v304;
    float v311[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v311 + i, (const unsigned short*)v307 + (col0 + i % 8 + i / 8 % 4 * 1024), (((col0 + i % 8 + i / 8 % 4 * 1024) < v308) && v305));
    float v50[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v50[i] = v283[i];
    float v323[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v323[i] = v291[i];
    float v324[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v324[i] = v301[i];
    float v325[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v325[i] = v311[i];
    for (long long v43 = v41; v43 < v40;) {
#pragma unroll
      for (int turn = 0; turn < 5; ++turn, v43 += 4096) {
        if (turn > 0 && !(v43 < v40)) goto after_v43;
        const long long v314 = v43 + 16384;
        const bool v315 = v314 < v40;
        unsigned char* const v317 = v27 + (v314 * 2);
        const long long v319 = v40 - v314;
        float v322[32];
#pragma unroll
        for (int i = 0; i < 32; i += 8)
          load_bf16_8(v322 + i, (const unsigned short*)v317 + (col0 + i % 8 + i / 8 % 4 * 1024), (((col0 + i % 8 + i / 8 % 4 * 1024) < v319) && v315));
        const long long v46 = v40 - v43;
        unsigned char* const v51 = v34 + (v43 * 2);
#pragma unroll
        for (int i = 0; i < 32; i += 8)
          store_bf16_8((unsigned short*)v51 + (col0 + i % 8 + i / 8 % 4 * 1024), v50 + i, ((col0 + i % 8 + i / 8 % 4 * 1024) < v46));
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v50[i] = v323[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v323[i] = v324[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v324[i] = v325[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v325[i] = v322[i];
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
    const int v168 = (int)v94;
    const int v172 = (int)0;
    const int v180 = (int)v96;
    const bool v184 = 0 < 2048;
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 0 + (at5 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)v98 + (((v168 + (row1 + i / 8 % 8 * 16)) * 2048) + (v172 + (col1 + i % 8))), v184 && ((v168 + (row1 + i / 8 % 8 * 16)) < p7));
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98304 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p12 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v184);
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 147456 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)p13 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v184);
    commit_group();
    const bool v194 = 64 < 2048;
    unsigned char* const v196 = v98 + 128;
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 0 + (int)1 * 16384 + (at5 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)v196 + (((v168 + (row1 + i / 8 % 8 * 16)) * 2048) + (v172 + (col1 + i % 8))), v194 && ((v168 + (row1 + i / 8 % 8 * 16)) < p7));
    unsigned char* const v200 = p12 + 131072;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98304 + (int)1 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v200 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v194);
    unsigned char* const v202 = p13 + 131072;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 147456 + (int)1 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v202 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v194);
    commit_group();
    const bool v205 = 128 < 2048;
    unsigned char* const v207 = v98 + 256;
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 0 + (int)2 * 16384 + (at5 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)v207 + (((v168 + (row1 + i / 8 % 8 * 16)) * 2048) + (v172 + (col1 + i % 8))), v205 && ((v168 + (row1 + i / 8 % 8 * 16)) < p7));
    unsigned char* const v210 = p12 + 262144;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98304 + (int)2 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v210 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v205);
    unsigned char* const v212 = p13 + 262144;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 147456 + (int)2 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v212 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v205);
    commit_group();
    const bool v217 = 192 < 2048;
    unsigned char* const v219 = v98 + 384;
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 0 + (int)3 * 16384 + (at5 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)v219 + (((v168 + (row1 + i / 8 % 8 * 16)) * 2048) + (v172 + (col1 + i % 8))), v217 && ((v168 + (row1 + i / 8 % 8 * 16)) < p7));
    unsigned char* const v223 = p12 + 393216;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98304 + (int)3 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v223 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v217);
    unsigned char* const v225 = p13 + 393216;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 147456 + (int)3 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v225 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v217);
    commit_group();
    const bool v229 = 256 < 2048;
    unsigned char* const v231 = v98 + 512;
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      copy_async_16(shared + 0 + (int)4 * 16384 + (at5 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)v231 + (((v168 + (row1 + i / 8 % 8 * 16)) * 2048) + (v172 + (col1 + i % 8))), v229 && ((v168 + (row1 + i / 8 % 8 * 16)) < p7));
    unsigned char* const v234 = p12 + 524288;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98304 + (int)4 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v234 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v229);
    unsigned char* const v236 = p13 + 524288;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 147456 + (int)4 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v236 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v229);
    commit_group();
    float v102[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v102[i] = 0.0f;
    float v103[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v103[i] = 0.0f;
    int v240 = 0;
    int v242 = 5;
    for (long long v101 = 0; v101 < 2048; v101 += 64) {
      wait_group_4();
      const long long v246 = v101 + 320;
      const bool v247 = v246 < 2048;
      unsigned char* const v250 = v98 + (v246 * 2);
      const int v251 = (int)v94;
#pragma unroll
      for (int i = 0; i < 64; i += 8)
        copy_async_16(shared + 0 + (int)v242 * 16384 + (at5 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)v250 + (((v168 + (row1 + i / 8 % 8 * 16)) * 2048) + (v172 + (col1 + i % 8))), v247 && ((v251 + (row1 + i / 8 % 8 * 16)) < p7));
      const long long v258 = (v246 * 1024) * 2;
      unsigned char* const v259 = p12 + v258;
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 98304 + (int)v242 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v259 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v247);
      unsigned char* const v262 = p13 + v258;
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 147456 + (int)v242 * 8192 + (at6 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v262 + (((v172 + (row2 + i / 8 % 4 * 16)) * 1024) + (v180 + (col2 + i % 8))), v247);
      commit_group();
      {
        const unsigned a = shared + 0 + (int)v240 * 16384;
        const unsigned b = shared + 98304 + (int)v240 * 8192;
        const unsigned b1 = shared + 147456 + (int)v240 * 8192;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          unsigned fa[4][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 4; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 4; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v102 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b1 + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 4; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v103 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      const int v268 = v240 + 1;
      const int v272 = (v268 < 6) ? v268 : 0;
      const int v273 = v242 + 1;
      const int v275 = (v273 < 6) ? v273 : 0;
      v240 = v272;
      v242 = v275;
    }
    const int v131 = (int)v94;
    int v133[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v133[i] = v131 + (row4 + i % 8 * 8);
    bool v134[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v134[i] = v133[i] < p7;
    const int v135 = (int)v96;
    const int v138 = (int)(v75 * p7);
    float v140[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v140[i] = round_bf16(v102[i]);
    float v148[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v148[i] = (round_bf16((v140[i] / (1.0f + (expf((-v140[i]))))))) * (round_bf16(v103[i]));
    int v152[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v152[i] = (v138 + v133[i]) * 1024;
#pragma unroll
    for (int i = 0; i < 64; i += 2)
      store_bf16_2((unsigned short*)p14 + (v152[i / 2 % 2 + i / 16 % 4 * 2] + (v135 + (col3 + i % 2 + i / 4 % 4 * 8))), v148 + i, v134[i / 2 % 2 + i / 16 % 4 * 2]);
  }
  const bool v158 = v14 && (0 < p15);
  const long long v159 = 16 + (long long)blockIdx.x;
  if (v158) signal(comm, peers, v159);
  if (v158 && !wait(comm, peers, v159)) return;
  __syncthreads();
  close_comm(comm);
}
