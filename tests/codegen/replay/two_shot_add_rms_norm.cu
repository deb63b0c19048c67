// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_8, smem, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 3, give_up 3, await_relaxed, await, wait 3
extern "C" __global__ void __launch_bounds__(256, 1) all_reduce_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const long long v17 = (long long)blockIdx.x + (((((long long)rank + 8) - ((long long)blockIdx.x % 8)) % 8) * (long long)gridDim.x);
  const long long v18 = (long long)gridDim.x * 8;
  const bool v114 = v17 < p7;
  unsigned char* const v117 = peers.base[0] + p8;
  const long long v121 = (v17 * 2048) * 2;
  unsigned char* const v122 = v117 + v121;
  float v124[8];
  load_bf16_8(v124 + 0, (const unsigned short*)v122 + col0, v114);
  unsigned char* const v126 = peers.base[1] + p8;
  unsigned char* const v127 = v126 + v121;
  float v128[8];
  load_bf16_8(v128 + 0, (const unsigned short*)v127 + col0, v114);
  unsigned char* const v129 = peers.base[2] + p8;
  unsigned char* const v130 = v129 + v121;
  float v131[8];
  load_bf16_8(v131 + 0, (const unsigned short*)v130 + col0, v114);
  unsigned char* const v133 = peers.base[3] + p8;
  unsigned char* const v134 = v133 + v121;
  float v135[8];
  load_bf16_8(v135 + 0, (const unsigned short*)v134 + col0, v114);
  unsigned char* const v137 = peers.base[4] + p8;
  unsigned char* const v138 = v137 + v121;
  float v139[8];
  load_bf16_8(v139 + 0, (const unsigned short*)v138 + col0, v114);
  unsigned char* const v141 = peers.base[5] + p8;
  unsigned char* const v142 = v141 + v121;
  float v143[8];
  load_bf16_8(v143 + 0, (const unsigned short*)v142 + col0, v114);
  unsigned char* const v145 = peers.base[6] + p8;
  unsigned char* const v146 = v145 + v121;
  float v147[8];
  load_bf16_8(v147 + 0, (const unsigned short*)v146 + col0, v114);
  unsigned char* const v149 = peers.base[7] + p8;
  unsigned char* const v150 = v149 + v121;
  float v151[8];
  load_bf16_8(v151 + 0, (const unsigned short*)v150 + col0, v114);
  const long long v152 = v17 + v18;
  const bool v153 = v152 < p7;
  const long long v155 = (v152 * 2048) * 2;
  unsigned char* const v156 = v117 + v155;
  float v157[8];
  load_bf16_8(v157 + 0, (const unsigned short*)v156 + col0, v153);
  unsigned char* const v158 = v126 + v155;
  float v159[8];
  load_bf16_8(v159 + 0, (const unsigned short*)v158 + col0, v153);
  unsigned char* const v160 = v129 + v155;
  float v161[8];
  load_bf16_8(v161 + 0, (const unsigned short*)v160 + col0, v153);
  unsigned char* const v162 = v133 + v155;
  float v163[8];
  load_bf16_8(v163 + 0, (const unsigned short*)v162 + col0, v153);
  unsigned char* const v164 = v137 + v155;
  float v165[8];
  load_bf16_8(v165 + 0, (const unsigned short*)v164 + col0, v153);
  unsigned char* const v166 = v141 + v155;
  float v167[8];
  load_bf16_8(v167 + 0, (const unsigned short*)v166 + col0, v153);
  unsigned char* const v168 = v145 + v155;
  float v169[8];
  load_bf16_8(v169 + 0, (const unsigned short*)v168 + col0, v153);
  unsigned char* const v170 = v149 + v155;
  float v171[8];
  load_bf16_8(v171 + 0, (const unsigned short*)v170 + col0, v153);
  float v32[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v32[i] = v124[i];
  float v212[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v212[i] = v157[i];
  float v35[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v35[i] = v128[i];
  float v213[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v213[i] = v159[i];
  float v39[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v39[i] = v131[i];
  float v214[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v214[i] = v161[i];
  float v44[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v44[i] = v135[i];
  float v215[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v215[i] = v163[i];
  float v49[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v49[i] = v139[i];
  float v216[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v216[i] = v165[i];
  float v54[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v54[i] = v143[i];
  float v217[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v217[i] = v167[i];
  float v59[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v59[i] = v147[i];
  float v218[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v218[i] = v169[i];
  float v64[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v64[i] = v151[i];
  float v219[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v219[i] = v171[i];
  for (long long v20 = v17; v20 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v20 += v18) {
      if (turn > 0 && !(v20 < p7)) goto after_v20;
      const long long v174 = v20 + (v18 * 2);
      const bool v175 = v174 < p7;
      unsigned char* const v178 = peers.base[0] + p8;
      const long long v181 = (v174 * 2048) * 2;
      unsigned char* const v182 = v178 + v181;
      float v184[8];
      load_bf16_8(v184 + 0, (const unsigned short*)v182 + col0, v175);
      unsigned char* const v186 = peers.base[1] + p8;
      unsigned char* const v187 = v186 + v181;
      float v188[8];
      load_bf16_8(v188 + 0, (const unsigned short*)v187 + col0, v175);
      unsigned char* const v189 = peers.base[2] + p8;
      unsigned char* const v190 = v189 + v181;
      float v191[8];
      load_bf16_8(v191 + 0, (const unsigned short*)v190 + col0, v175);
      unsigned char* const v193 = peers.base[3] + p8;
      unsigned char* const v194 = v193 + v181;
      float v195[8];
      load_bf16_8(v195 + 0, (const unsigned short*)v194 + col0, v175);
      unsigned char* const v197 = peers.base[4] + p8;
      unsigned char* const v198 = v197 + v181;
      float v199[8];
      load_bf16_8(v199 + 0, (const unsigned short*)v198 + col0, v175);
      unsigned char* const v201 = peers.base[5] + p8;
      unsigned char* const v202 = v201 + v181;
      float v203[8];
      load_bf16_8(v203 + 0, (const unsigned short*)v202 + col0, v175);
      unsigned char* const v205 = peers.base[6] + p8;
      unsigned char* const v206 = v205 + v181;
      float v207[8];
      load_bf16_8(v207 + 0, (const unsigned short*)v206 + col0, v175);
      unsigned char* const v209 = peers.base[7] + p8;
      unsigned char* const v210 = v209 + v181;
      float v211[8];
      load_bf16_8(v211 + 0, (const unsigned short*)v210 + col0, v175);
      float v65[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v65[i] = ((((((v32[i] + v35[i]) + v39[i]) + v44[i]) + v49[i]) + v54[i]) + v59[i]) + v64[i];
      unsigned char* const v67 = peers.base[(long long)rank] + p8;
      unsigned char* const v68 = v67 + ((v20 * 2048) * 2);
      store_bf16_8((unsigned short*)v68 + col0, v65 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v32[i] = v212[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v212[i] = v184[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v35[i] = v213[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v213[i] = v188[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v39[i] = v214[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v214[i] = v191[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v44[i] = v215[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v215[i] = v195[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v49[i] = v216[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v216[i] = v199[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v54[i] = v217[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v217[i] = v203[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v59[i] = v218[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v218[i] = v207[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v64[i] = v219[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v219[i] = v211[i];
    }
  }
  after_v20:;
  const long long v70 = (long long)gridDim.x + (long long)blockIdx.x;
  signal(comm, peers, v70);
  if (!wait(comm, peers, v70)) return;
  float v102[8];
  load_bf16_8(v102 + 0, (const unsigned short*)p10 + col0, true);
  const bool v222 = (long long)blockIdx.x < p7;
  const long long v226 = ((long long)blockIdx.x + ((long long)blockIdx.x / (long long)gridDim.x)) % 8;
  unsigned char* const v227 = peers.base[v226] + p8;
  const long long v231 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v232 = v227 + v231;
  float v233[8];
  load_bf16_8(v233 + 0, (const unsigned short*)v232 + col0, v222);
  unsigned char* const v235 = p9 + v231;
  float v236[8];
  load_bf16_8(v236 + 0, (const unsigned short*)v235 + col0, v222);
  const long long v237 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v238 = v237 < p7;
  const long long v241 = ((long long)blockIdx.x + (v237 / (long long)gridDim.x)) % 8;
  unsigned char* const v242 = peers.base[v241] + p8;
  const long long v244 = (v237 * 2048) * 2;
  unsigned char* const v245 = v242 + v244;
  float v246[8];
  load_bf16_8(v246 + 0, (const unsigned short*)v245 + col0, v238);
  unsigned char* const v247 = p9 + v244;
  float v248[8];
  load_bf16_8(v248 + 0, (const unsigned short*)v247 + col0, v238);
  const long long v250 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v251 = v250 < p7;
  const long long v254 = ((long long)blockIdx.x + (v250 / (long long)gridDim.x)) % 8;
  unsigned char* const v255 = peers.base[v254] + p8;
  const long long v257 = (v250 * 2048) * 2;
  unsigned char* const v258 = v255 + v257;
  float v259[8];
  load_bf16_8(v259 + 0, (const unsigned short*)v258 + col0, v251);
  unsigned char* const v260 = p9 + v257;
  float v261[8];
  load_bf16_8(v261 + 0, (const unsigned short*)v260 + col0, v251);
  const long long v264 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v265 = v264 < p7;
  const long long v268 = ((long long)blockIdx.x + (v264 / (long long)gridDim.x)) % 8;
  unsigned char* const v269 = peers.base[v268] + p8;
  const long long v271 = (v264 * 2048) * 2;
  unsigned char* const v272 = v269 + v271;
  float v273[8];
  load_bf16_8(v273 + 0, (const unsigned short*)v272 + col0, v265);
  unsigned char* const v274 = p9 + v271;
  float v275[8];
  load_bf16_8(v275 + 0, (const unsigned short*)v274 + col0, v265);
  float v87[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v87[i] = v233[i];
  float v295[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v295[i] = v246[i];
  float v296[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v296[i] = v259[i];
  float v297[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v297[i] = v273[i];
  float v90[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v90[i] = v236[i];
  float v298[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v298[i] = v248[i];
  float v299[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v299[i] = v261[i];
  float v300[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v300[i] = v275[i];
  for (long long v73 = (long long)blockIdx.x; v73 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v73 += (long long)gridDim.x) {
      if (turn > 0 && !(v73 < p7)) goto after_v73;
      const long long v278 = v73 + ((long long)gridDim.x * 4);
      const bool v279 = v278 < p7;
      const long long v283 = ((long long)blockIdx.x + (v278 / (long long)gridDim.x)) % 8;
      unsigned char* const v284 = peers.base[v283] + p8;
      const long long v288 = (v278 * 2048) * 2;
      unsigned char* const v289 = v284 + v288;
      float v291[8];
      load_bf16_8(v291 + 0, (const unsigned short*)v289 + col0, v279);
      unsigned char* const v293 = p9 + v288;
      float v294[8];
      load_bf16_8(v294 + 0, (const unsigned short*)v293 + col0, v279);
      const long long v85 = (v73 * 2048) * 2;
      float v92[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v92[i] = round_bf16((v87[i] + v90[i]));
      float v94[1];
      v94[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v94[0] = v94[0] + (v92[i] * v92[i]);
      v94[0] = v94[0] + __shfl_xor_sync(0xffffffffu, v94[0], 1);
      v94[0] = v94[0] + __shfl_xor_sync(0xffffffffu, v94[0], 2);
      v94[0] = v94[0] + __shfl_xor_sync(0xffffffffu, v94[0], 4);
      v94[0] = v94[0] + __shfl_xor_sync(0xffffffffu, v94[0], 8);
      v94[0] = v94[0] + __shfl_xor_sync(0xffffffffu, v94[0], 16);
      float* const s94 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s94[at2] = v94[0];
      }
      __syncthreads();
      v94[0] = s94[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v94[0] = v94[0] + s94[0 + w];
      }
      const float v96 = (float)2048;
      float v99[1];
      v99[0] = rsqrtf(((v94[0] / v96) + 1e-05f));
      float v103[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v103[i] = (v92[i] * v99[0]) * v102[i];
      unsigned char* const v106 = p11 + v85;
      store_bf16_8((unsigned short*)v106 + col0, v103 + 0, true);
      unsigned char* const v109 = p12 + v85;
      store_bf16_8((unsigned short*)v109 + col0, v92 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v87[i] = v295[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v295[i] = v296[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v296[i] = v297[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v297[i] = v291[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v90[i] = v298[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v298[i] = v299[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v299[i] = v300[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v300[i] = v294[i];
    }
  }
  after_v73:;
  const long long v111 = (long long)gridDim.x + v70;
  if (p6) signal(comm, peers, v111);
  if (p6 && !wait(comm, peers, v111)) return;
  close_comm(comm);
}
