// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_8, smem, shared_address, commit_group, copy_async_16, wait_group_0, wait_group_2, ldmatrix, ldmatrix_trans, mma_bf16_bf16, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 3, give_up 3, await_relaxed, await, wait 3, wait_slots
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
  const int at11 = ((lane % 4 * 2) ^ (lane / 4 % 8 * 4)) + lane / 4 % 8 * 128 + warp % 4 * 32 + warp / 4 % 2 * 8192;
  const int at12 = ((lane % 32 * 8) ^ (warp % 4 * 8)) + lane / 16 % 2 * 4 + warp % 8 * 256;
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
      copy_async_16(shared + 0 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)p11 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v196 && ((v179 + (row0 + i / 8 % 4 * 32)) < p9));
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 65536 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)p12 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v196);
    commit_group();
    const bool v205 = 64 < 1024;
    unsigned char* const v207 = p11 + 128;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)1 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v207 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v205 && ((v179 + (row0 + i / 8 % 4 * 32)) < p9));
    unsigned char* const v211 = p12 + 262144;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 65536 + (int)1 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v211 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v205);
    commit_group();
    const bool v214 = 128 < 1024;
    unsigned char* const v216 = p11 + 256;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)2 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v216 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v214 && ((v179 + (row0 + i / 8 % 4 * 32)) < p9));
    unsigned char* const v219 = p12 + 524288;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 65536 + (int)2 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v219 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v214);
    commit_group();
    float v44[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v44[i] = 0.0f;
    int v223 = 0;
    int v225 = 3;
    for (long long v43 = 0; v43 < 1024; v43 += 64) {
      wait_group_2();
      const long long v229 = v43 + 192;
      const bool v230 = v229 < 1024;
      unsigned char* const v234 = p11 + (v229 * 2);
      const int v235 = (int)v32;
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 0 + (int)v225 * 16384 + (at7 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v234 + (((v178 + (v179 + (row0 + i / 8 % 4 * 32))) * 1024) + (v184 + (col0 + i % 8))), v230 && ((v235 + (row0 + i / 8 % 4 * 32)) < p9));
      unsigned char* const v243 = p12 + ((v229 * 2048) * 2);
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 65536 + (int)v225 * 16384 + (at8 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v243 + (((v184 + (row1 + i / 8 % 4 * 16)) * 2048) + (v192 + (col1 + i % 8))), v230);
      commit_group();
      {
        const unsigned a = shared + 0 + (int)v223 * 16384;
        const unsigned b = shared + 65536 + (int)v223 * 16384;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
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
      const int v248 = v223 + 1;
      const int v252 = (v248 < 4) ? v248 : 0;
      const int v253 = v225 + 1;
      const int v255 = (v253 < 4) ? v253 : 0;
      v223 = v252;
      v225 = v255;
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
    float v79[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v79[i] = round_bf16(v44[i]);
    float v80[64];
    float* const s80 = (float*)(smem + 131072);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; ++i)
      s80[((at11 ^ (i / 4 % 4 * 8)) + i % 2 + i / 2 % 2 * 1024 + i / 16 % 4 * 2048)] = v79[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v80[i] = s80[((at12 ^ (i % 8)) + i / 8 % 8 * 2048)];
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
  const bool v258 = (long long)blockIdx.x < p9;
  const long long v263 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v264 = p13 + v263;
  float v265[8];
  load_bf16_8(v265 + 0, (const unsigned short*)v264 + col5, v258);
  unsigned char* const v268 = p13 + (p14 * 2);
  unsigned char* const v269 = v268 + v263;
  float v270[8];
  load_bf16_8(v270 + 0, (const unsigned short*)v269 + col5, v258);
  unsigned char* const v273 = p13 + ((2 * p14) * 2);
  unsigned char* const v274 = v273 + v263;
  float v275[8];
  load_bf16_8(v275 + 0, (const unsigned short*)v274 + col5, v258);
  unsigned char* const v279 = p13 + ((3 * p14) * 2);
  unsigned char* const v280 = v279 + v263;
  float v281[8];
  load_bf16_8(v281 + 0, (const unsigned short*)v280 + col5, v258);
  unsigned char* const v285 = p13 + ((4 * p14) * 2);
  unsigned char* const v286 = v285 + v263;
  float v287[8];
  load_bf16_8(v287 + 0, (const unsigned short*)v286 + col5, v258);
  unsigned char* const v291 = p13 + ((5 * p14) * 2);
  unsigned char* const v292 = v291 + v263;
  float v293[8];
  load_bf16_8(v293 + 0, (const unsigned short*)v292 + col5, v258);
  unsigned char* const v297 = p13 + ((6 * p14) * 2);
  unsigned char* const v298 = v297 + v263;
  float v299[8];
  load_bf16_8(v299 + 0, (const unsigned short*)v298 + col5, v258);
  unsigned char* const v303 = p13 + ((7 * p14) * 2);
  unsigned char* const v304 = v303 + v263;
  float v305[8];
  load_bf16_8(v305 + 0, (const unsigned short*)v304 + col5, v258);
  unsigned char* const v307 = p15 + v263;
  float v308[8];
  load_bf16_8(v308 + 0, (const unsigned short*)v307 + col5, v258);
  const long long v309 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v310 = v309 < p9;
  const long long v312 = (v309 * 2048) * 2;
  unsigned char* const v313 = p13 + v312;
  float v314[8];
  load_bf16_8(v314 + 0, (const unsigned short*)v313 + col5, v310);
  unsigned char* const v315 = v268 + v312;
  float v316[8];
  load_bf16_8(v316 + 0, (const unsigned short*)v315 + col5, v310);
  unsigned char* const v317 = v273 + v312;
  float v318[8];
  load_bf16_8(v318 + 0, (const unsigned short*)v317 + col5, v310);
  unsigned char* const v319 = v279 + v312;
  float v320[8];
  load_bf16_8(v320 + 0, (const unsigned short*)v319 + col5, v310);
  unsigned char* const v321 = v285 + v312;
  float v322[8];
  load_bf16_8(v322 + 0, (const unsigned short*)v321 + col5, v310);
  unsigned char* const v323 = v291 + v312;
  float v324[8];
  load_bf16_8(v324 + 0, (const unsigned short*)v323 + col5, v310);
  unsigned char* const v325 = v297 + v312;
  float v326[8];
  load_bf16_8(v326 + 0, (const unsigned short*)v325 + col5, v310);
  unsigned char* const v327 = v303 + v312;
  float v328[8];
  load_bf16_8(v328 + 0, (const unsigned short*)v327 + col5, v310);
  unsigned char* const v329 = p15 + v312;
  float v330[8];
  load_bf16_8(v330 + 0, (const unsigned short*)v329 + col5, v310);
  float v99[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v99[i] = v265[i];
  float v385[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v385[i] = v314[i];
  float v103[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v103[i] = v270[i];
  float v386[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v386[i] = v316[i];
  float v109[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v109[i] = v275[i];
  float v387[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v387[i] = v318[i];
  float v116[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v116[i] = v281[i];
  float v388[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v388[i] = v320[i];
  float v123[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v123[i] = v287[i];
  float v389[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v389[i] = v322[i];
  float v130[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v130[i] = v293[i];
  float v390[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v390[i] = v324[i];
  float v137[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v137[i] = v299[i];
  float v391[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v391[i] = v326[i];
  float v144[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v144[i] = v305[i];
  float v392[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v392[i] = v328[i];
  float v149[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v149[i] = v308[i];
  float v393[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v393[i] = v330[i];
  for (long long v88 = (long long)blockIdx.x; v88 < p9;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v88 += (long long)gridDim.x) {
      if (turn > 0 && !(v88 < p9)) goto after_v88;
      const long long v333 = v88 + ((long long)gridDim.x * 2);
      const bool v334 = v333 < p9;
      const long long v338 = (v333 * 2048) * 2;
      unsigned char* const v339 = p13 + v338;
      float v341[8];
      load_bf16_8(v341 + 0, (const unsigned short*)v339 + col5, v334);
      unsigned char* const v344 = p13 + (p14 * 2);
      unsigned char* const v345 = v344 + v338;
      float v346[8];
      load_bf16_8(v346 + 0, (const unsigned short*)v345 + col5, v334);
      unsigned char* const v349 = p13 + ((2 * p14) * 2);
      unsigned char* const v350 = v349 + v338;
      float v351[8];
      load_bf16_8(v351 + 0, (const unsigned short*)v350 + col5, v334);
      unsigned char* const v355 = p13 + ((3 * p14) * 2);
      unsigned char* const v356 = v355 + v338;
      float v357[8];
      load_bf16_8(v357 + 0, (const unsigned short*)v356 + col5, v334);
      unsigned char* const v361 = p13 + ((4 * p14) * 2);
      unsigned char* const v362 = v361 + v338;
      float v363[8];
      load_bf16_8(v363 + 0, (const unsigned short*)v362 + col5, v334);
      unsigned char* const v367 = p13 + ((5 * p14) * 2);
      unsigned char* const v368 = v367 + v338;
      float v369[8];
      load_bf16_8(v369 + 0, (const unsigned short*)v368 + col5, v334);
      unsigned char* const v373 = p13 + ((6 * p14) * 2);
      unsigned char* const v374 = v373 + v338;
      float v375[8];
      load_bf16_8(v375 + 0, (const unsigned short*)v374 + col5, v334);
      unsigned char* const v379 = p13 + ((7 * p14) * 2);
      unsigned char* const v380 = v379 + v338;
      float v381[8];
      load_bf16_8(v381 + 0, (const unsigned short*)v380 + col5, v334);
      unsigned char* const v383 = p15 + v338;
      float v384[8];
      load_bf16_8(v384 + 0, (const unsigned short*)v383 + col5, v334);
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
      float* const s153 = (float*)(smem + 196608);
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
        v99[i] = v385[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v385[i] = v341[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v103[i] = v386[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v386[i] = v346[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v109[i] = v387[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v387[i] = v351[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v116[i] = v388[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v388[i] = v357[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v123[i] = v389[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v389[i] = v363[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v130[i] = v390[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v390[i] = v369[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v137[i] = v391[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v391[i] = v375[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v144[i] = v392[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v392[i] = v381[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v149[i] = v393[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v393[i] = v384[i];
    }
  }
  after_v88:;
  const long long v170 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v170);
  if (p6 && !wait(comm, peers, v170)) return;
  close_comm(comm);
}
