// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_2, store_bf16_8, smem, shared_address, commit_group, copy_async_16, wait_group_0, wait_group_4, ldmatrix, ldmatrix_trans, mma_bf16_bf16, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 3, give_up 3, await_relaxed, await, wait 3, wait_slots
extern "C" __global__ void __launch_bounds__(256, 1) gemm_reduce_mm_reduce_scatter_tensor_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, unsigned char* p11, unsigned char* p12, unsigned char* p13, long long p14, unsigned char* p15, unsigned char* p16, unsigned char* p17, unsigned char* p18) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 8 * 4;
  const int col0 = lane % 8 * 8;
  const int row1 = lane / 16 % 2 + warp % 8 * 2;
  const int col1 = lane % 16 * 8;
  const int row3 = lane / 16 % 2 + warp % 8 * 2;
  const int col4 = lane % 16 * 8;
  const int col5 = lane % 32 * 8 + warp % 8 * 256;
  const int at7 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 8 * 512;
  const int at8 = ((lane % 32 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + warp % 8 * 512;
  const int at9 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 4 % 2 * 8192;
  const int at10 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 64)) + lane % 16 * 256;
  const int at11 = ((lane % 32 * 2) ^ (warp % 4 * 32)) + lane / 4 % 8 * 128 + warp / 4 % 2 * 8192;
  const int at12 = ((lane % 32 * 8) ^ (lane / 16 % 2 * 8) ^ (warp % 4 * 16)) + warp % 8 * 256;
  const int at13 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  const long long v9 = 8 * p7;
  for (long long v13 = (long long)blockIdx.x; v13 < v9; v13 += (long long)gridDim.x) {
    const int v15 = (int)v13;
    const int v16 = (int)p7;
    const int v18 = v15 % v16;
    const long long v22 = (((long long)rank + 1) + (v15 / v16)) % 8;
    const int v27 = (int)p10;
    const int v32 = (v18 % v27) * 128;
    const int v33 = (v18 / v27) * 128;
    unsigned char* const v36 = peers.base[v22] + p8;
    unsigned char* const v39 = v36 + (((long long)rank * (p9 * 2048)) * 2);
    wait_group_0();
    const int v178 = (int)(v22 * p9);
    const int v179 = (int)v32;
    const int v184 = (int)0;
    const int v192 = (int)v33;
    const bool v196 = 0 < 1024;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 128 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)p11 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v196 && ((v179 + (row0 + i / 8 % 4 * 32)) < p9));
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98432 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)p12 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v196);
    commit_group();
    const bool v205 = 64 < 1024;
    unsigned char* const v207 = p11 + 128;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 128 + (int)1 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v207 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v205 && ((v179 + (row0 + i / 8 % 4 * 32)) < p9));
    unsigned char* const v211 = p12 + 262144;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98432 + (int)1 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v211 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v205);
    commit_group();
    const bool v214 = 128 < 1024;
    unsigned char* const v216 = p11 + 256;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 128 + (int)2 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v216 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v214 && ((v179 + (row0 + i / 8 % 4 * 32)) < p9));
    unsigned char* const v219 = p12 + 524288;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98432 + (int)2 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v219 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v214);
    commit_group();
    const bool v224 = 192 < 1024;
    unsigned char* const v226 = p11 + 384;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 128 + (int)3 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v226 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v224 && ((v179 + (row0 + i / 8 % 4 * 32)) < p9));
    unsigned char* const v230 = p12 + 786432;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98432 + (int)3 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v230 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v224);
    commit_group();
    const bool v234 = 256 < 1024;
    unsigned char* const v236 = p11 + 512;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 128 + (int)4 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v236 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v234 && ((v179 + (row0 + i / 8 % 4 * 32)) < p9));
    unsigned char* const v239 = p12 + 1048576;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 98432 + (int)4 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v239 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v234);
    commit_group();
    float v44[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v44[i] = 0.0f;
    int v243 = 0;
    int v245 = 5;
    for (long long v43 = 0; v43 < 1024; v43 += 64) {
      wait_group_4();
      const long long v249 = v43 + 320;
      const bool v250 = v249 < 1024;
      unsigned char* const v254 = p11 + (v249 * 2);
      const int v255 = (int)v32;
      unsigned char* const v263 = p12 + ((v249 * 2048) * 2);
      {
        const unsigned a = shared + 128 + (int)v243 * 16384;
        const unsigned b = shared + 98432 + (int)v243 * 16384;
#pragma unroll
        for (int k = 0; k < 1; ++k) {
          unsigned fa[4][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 4; ++m)
            ldmatrix(fa[m], a + ((at9 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at10 ^ (n / 2 % 2 * 32)) + k % 4 * 4096));
#pragma unroll
          for (int m = 0; m < 4; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v44 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < 16; i += 8)
        copy_async_16(shared + 128 + (int)v245 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v254 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v250 && ((v255 + (row0 + i / 8 % 4 * 32)) < p9));
      {
        const unsigned a = shared + 128 + (int)v243 * 16384;
        const unsigned b = shared + 98432 + (int)v243 * 16384;
#pragma unroll
        for (int k = 1; k < 2; ++k) {
          unsigned fa[4][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 4; ++m)
            ldmatrix(fa[m], a + ((at9 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at10 ^ (n / 2 % 2 * 32)) + k % 4 * 4096));
#pragma unroll
          for (int m = 0; m < 4; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v44 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
#pragma unroll
      for (int i = 16; i < 32; i += 8)
        copy_async_16(shared + 128 + (int)v245 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v254 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v250 && ((v255 + (row0 + i / 8 % 4 * 32)) < p9));
      {
        const unsigned a = shared + 128 + (int)v243 * 16384;
        const unsigned b = shared + 98432 + (int)v243 * 16384;
#pragma unroll
        for (int k = 2; k < 3; ++k) {
          unsigned fa[4][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 4; ++m)
            ldmatrix(fa[m], a + ((at9 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at10 ^ (n / 2 % 2 * 32)) + k % 4 * 4096));
#pragma unroll
          for (int m = 0; m < 4; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v44 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < 16; i += 8)
        copy_async_16(shared + 98432 + (int)v245 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v263 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v250);
      {
        const unsigned a = shared + 128 + (int)v243 * 16384;
        const unsigned b = shared + 98432 + (int)v243 * 16384;
#pragma unroll
        for (int k = 3; k < 4; ++k) {
          unsigned fa[4][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 4; ++m)
            ldmatrix(fa[m], a + ((at9 ^ (k % 4 * 32)) + m % 4 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at10 ^ (n / 2 % 2 * 32)) + k % 4 * 4096));
#pragma unroll
          for (int m = 0; m < 4; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v44 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
#pragma unroll
      for (int i = 16; i < 32; i += 8)
        copy_async_16(shared + 98432 + (int)v245 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v263 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v250);
      commit_group();
      const int v268 = v243 + 1;
      const int v272 = (v268 < 6) ? v268 : 0;
      const int v273 = v245 + 1;
      const int v275 = (v273 < 6) ? v273 : 0;
      v243 = v272;
      v245 = v275;
    }
    const int v70 = (int)v32;
    int v72[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v72[i] = v70 + (row3 + i % 8 * 16);
    bool v73[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v73[i] = v72[i] < p9;
    const int v74 = (int)v33;
    wait_group_0();
    float v80[64];
    unsigned short* const s80 = (unsigned short*)(smem + 128);
#pragma unroll
    for (int i = 0; i < 64; i += 2)
      store_bf16_2(s80 + ((at11 ^ (i / 4 % 4 * 8)) + i % 2 + i / 2 % 2 * 1024 + i / 16 % 4 * 2048), v44 + i, true);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      load_bf16_8(v80 + i, s80 + (at12 + i % 8 + i / 8 % 8 * 2048), true);
    int v81[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v81[i] = v72[i] * 2048;
#pragma unroll
    for (int i = 0; i < 64; i += 8)
      store_bf16_8((unsigned short*)v39 + (v81[i / 8 % 8] + (v74 + (col4 + i % 8))), v80 + i, v73[i / 8 % 8]);
  }
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait_slots(comm, peers, 0, (long long)gridDim.x)) return;
  float v161[8];
  load_bf16_8(v161 + 0, (const unsigned short*)p16 + col5, true);
  const bool v278 = (long long)blockIdx.x < p9;
  const long long v283 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v284 = p13 + v283;
  float v285[8];
  load_bf16_8(v285 + 0, (const unsigned short*)v284 + col5, v278);
  unsigned char* const v288 = p13 + (p14 * 2);
  unsigned char* const v289 = v288 + v283;
  float v290[8];
  load_bf16_8(v290 + 0, (const unsigned short*)v289 + col5, v278);
  unsigned char* const v293 = p13 + ((2 * p14) * 2);
  unsigned char* const v294 = v293 + v283;
  float v295[8];
  load_bf16_8(v295 + 0, (const unsigned short*)v294 + col5, v278);
  unsigned char* const v299 = p13 + ((3 * p14) * 2);
  unsigned char* const v300 = v299 + v283;
  float v301[8];
  load_bf16_8(v301 + 0, (const unsigned short*)v300 + col5, v278);
  unsigned char* const v305 = p13 + ((4 * p14) * 2);
  unsigned char* const v306 = v305 + v283;
  float v307[8];
  load_bf16_8(v307 + 0, (const unsigned short*)v306 + col5, v278);
  unsigned char* const v311 = p13 + ((5 * p14) * 2);
  unsigned char* const v312 = v311 + v283;
  float v313[8];
  load_bf16_8(v313 + 0, (const unsigned short*)v312 + col5, v278);
  unsigned char* const v317 = p13 + ((6 * p14) * 2);
  unsigned char* const v318 = v317 + v283;
  float v319[8];
  load_bf16_8(v319 + 0, (const unsigned short*)v318 + col5, v278);
  unsigned char* const v323 = p13 + ((7 * p14) * 2);
  unsigned char* const v324 = v323 + v283;
  float v325[8];
  load_bf16_8(v325 + 0, (const unsigned short*)v324 + col5, v278);
  unsigned char* const v327 = p15 + v283;
  float v328[8];
  load_bf16_8(v328 + 0, (const unsigned short*)v327 + col5, v278);
  const long long v329 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v330 = v329 < p9;
  const long long v332 = (v329 * 2048) * 2;
  unsigned char* const v333 = p13 + v332;
  float v334[8];
  load_bf16_8(v334 + 0, (const unsigned short*)v333 + col5, v330);
  unsigned char* const v335 = v288 + v332;
  float v336[8];
  load_bf16_8(v336 + 0, (const unsigned short*)v335 + col5, v330);
  unsigned char* const v337 = v293 + v332;
  float v338[8];
  load_bf16_8(v338 + 0, (const unsigned short*)v337 + col5, v330);
  unsigned char* const v339 = v299 + v332;
  float v340[8];
  load_bf16_8(v340 + 0, (const unsigned short*)v339 + col5, v330);
  unsigned char* const v341 = v305 + v332;
  float v342[8];
  load_bf16_8(v342 + 0, (const unsigned short*)v341 + col5, v330);
  unsigned char* const v343 = v311 + v332;
  float v344[8];
  load_bf16_8(v344 + 0, (const unsigned short*)v343 + col5, v330);
  unsigned char* const v345 = v317 + v332;
  float v346[8];
  load_bf16_8(v346 + 0, (const unsigned short*)v345 + col5, v330);
  unsigned char* const v347 = v323 + v332;
  float v348[8];
  load_bf16_8(v348 + 0, (const unsigned short*)v347 + col5, v330);
  unsigned char* const v349 = p15 + v332;
  float v350[8];
  load_bf16_8(v350 + 0, (const unsigned short*)v349 + col5, v330);
  float v99[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v99[i] = v285[i];
  float v405[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v405[i] = v334[i];
  float v103[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v103[i] = v290[i];
  float v406[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v406[i] = v336[i];
  float v109[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v109[i] = v295[i];
  float v407[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v407[i] = v338[i];
  float v116[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v116[i] = v301[i];
  float v408[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v408[i] = v340[i];
  float v123[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v123[i] = v307[i];
  float v409[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v409[i] = v342[i];
  float v130[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v130[i] = v313[i];
  float v410[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v410[i] = v344[i];
  float v137[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v137[i] = v319[i];
  float v411[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v411[i] = v346[i];
  float v144[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v144[i] = v325[i];
  float v412[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v412[i] = v348[i];
  float v149[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v149[i] = v328[i];
  float v413[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v413[i] = v350[i];
  for (long long v88 = (long long)blockIdx.x; v88 < p9;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v88 += (long long)gridDim.x) {
      if (turn > 0 && !(v88 < p9)) goto after_v88;
      const long long v353 = v88 + ((long long)gridDim.x * 2);
      const bool v354 = v353 < p9;
      const long long v358 = (v353 * 2048) * 2;
      unsigned char* const v359 = p13 + v358;
      float v361[8];
      load_bf16_8(v361 + 0, (const unsigned short*)v359 + col5, v354);
      unsigned char* const v364 = p13 + (p14 * 2);
      unsigned char* const v365 = v364 + v358;
      float v366[8];
      load_bf16_8(v366 + 0, (const unsigned short*)v365 + col5, v354);
      unsigned char* const v369 = p13 + ((2 * p14) * 2);
      unsigned char* const v370 = v369 + v358;
      float v371[8];
      load_bf16_8(v371 + 0, (const unsigned short*)v370 + col5, v354);
      unsigned char* const v375 = p13 + ((3 * p14) * 2);
      unsigned char* const v376 = v375 + v358;
      float v377[8];
      load_bf16_8(v377 + 0, (const unsigned short*)v376 + col5, v354);
      unsigned char* const v381 = p13 + ((4 * p14) * 2);
      unsigned char* const v382 = v381 + v358;
      float v383[8];
      load_bf16_8(v383 + 0, (const unsigned short*)v382 + col5, v354);
      unsigned char* const v387 = p13 + ((5 * p14) * 2);
      unsigned char* const v388 = v387 + v358;
      float v389[8];
      load_bf16_8(v389 + 0, (const unsigned short*)v388 + col5, v354);
      unsigned char* const v393 = p13 + ((6 * p14) * 2);
      unsigned char* const v394 = v393 + v358;
      float v395[8];
      load_bf16_8(v395 + 0, (const unsigned short*)v394 + col5, v354);
      unsigned char* const v399 = p13 + ((7 * p14) * 2);
      unsigned char* const v400 = v399 + v358;
      float v401[8];
      load_bf16_8(v401 + 0, (const unsigned short*)v400 + col5, v354);
      unsigned char* const v403 = p15 + v358;
      float v404[8];
      load_bf16_8(v404 + 0, (const unsigned short*)v403 + col5, v354);
      const long long v97 = (v88 * 2048) * 2;
      float v151[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v151[i] = round_bf16(((round_bf16((((((((v99[i] + v103[i]) + v109[i]) + v116[i]) + v123[i]) + v130[i]) + v137[i]) + v144[i]))) + v149[i]));
      float v153[1];
      v153[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v153[0] = v153[0] + (v151[i] * v151[i]);
      v153[0] = v153[0] + __shfl_xor_sync(0xffffffffu, v153[0], 1);
      v153[0] = v153[0] + __shfl_xor_sync(0xffffffffu, v153[0], 2);
      v153[0] = v153[0] + __shfl_xor_sync(0xffffffffu, v153[0], 4);
      v153[0] = v153[0] + __shfl_xor_sync(0xffffffffu, v153[0], 8);
      v153[0] = v153[0] + __shfl_xor_sync(0xffffffffu, v153[0], 16);
      float* const s153 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s153[at13] = v153[0];
      }
      __syncthreads();
      v153[0] = s153[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v153[0] = v153[0] + s153[0 + w];
      }
      const float v155 = (float)2048;
      float v158[1];
      v158[0] = rsqrtf(((v153[0] / v155) + 1e-05f));
      float v162[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v162[i] = (v151[i] * v158[0]) * v161[i];
      unsigned char* const v165 = p17 + v97;
      store_bf16_8((unsigned short*)v165 + col5, v162 + 0, true);
      unsigned char* const v168 = p18 + v97;
      store_bf16_8((unsigned short*)v168 + col5, v151 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v99[i] = v405[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v405[i] = v361[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v103[i] = v406[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v406[i] = v366[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v109[i] = v407[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v407[i] = v371[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v116[i] = v408[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v408[i] = v377[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v123[i] = v409[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v409[i] = v383[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v130[i] = v410[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v410[i] = v389[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v137[i] = v411[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v411[i] = v395[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v144[i] = v412[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v412[i] = v401[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v149[i] = v413[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v413[i] = v404[i];
    }
  }
  after_v88:;
  const long long v170 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v170);
  if (p6 && !wait(comm, peers, v170)) return;
  close_comm(comm);
}
