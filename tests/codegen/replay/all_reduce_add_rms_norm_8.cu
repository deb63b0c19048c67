// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_8, smem, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 3, give_up 3, await_relaxed, await, wait 3
extern "C" __global__ void __launch_bounds__(256, 1) all_reduce_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  float v73[8];
  load_bf16_8(v73 + 0, (const unsigned short*)p10 + col0, true);
  const bool v87 = (long long)blockIdx.x < p7;
  unsigned char* const v90 = peers.base[0] + p8;
  const long long v94 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v95 = v90 + v94;
  float v96[8];
  load_bf16_8(v96 + 0, (const unsigned short*)v95 + col0, v87);
  unsigned char* const v98 = peers.base[1] + p8;
  unsigned char* const v99 = v98 + v94;
  float v100[8];
  load_bf16_8(v100 + 0, (const unsigned short*)v99 + col0, v87);
  unsigned char* const v101 = peers.base[2] + p8;
  unsigned char* const v102 = v101 + v94;
  float v103[8];
  load_bf16_8(v103 + 0, (const unsigned short*)v102 + col0, v87);
  unsigned char* const v105 = peers.base[3] + p8;
  unsigned char* const v106 = v105 + v94;
  float v107[8];
  load_bf16_8(v107 + 0, (const unsigned short*)v106 + col0, v87);
  unsigned char* const v109 = peers.base[4] + p8;
  unsigned char* const v110 = v109 + v94;
  float v111[8];
  load_bf16_8(v111 + 0, (const unsigned short*)v110 + col0, v87);
  unsigned char* const v113 = peers.base[5] + p8;
  unsigned char* const v114 = v113 + v94;
  float v115[8];
  load_bf16_8(v115 + 0, (const unsigned short*)v114 + col0, v87);
  unsigned char* const v117 = peers.base[6] + p8;
  unsigned char* const v118 = v117 + v94;
  float v119[8];
  load_bf16_8(v119 + 0, (const unsigned short*)v118 + col0, v87);
  unsigned char* const v121 = peers.base[7] + p8;
  unsigned char* const v122 = v121 + v94;
  float v123[8];
  load_bf16_8(v123 + 0, (const unsigned short*)v122 + col0, v87);
  unsigned char* const v125 = p9 + v94;
  float v126[8];
  load_bf16_8(v126 + 0, (const unsigned short*)v125 + col0, v87);
  const long long v127 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v128 = v127 < p7;
  const long long v130 = (v127 * 2048) * 2;
  unsigned char* const v131 = v90 + v130;
  float v132[8];
  load_bf16_8(v132 + 0, (const unsigned short*)v131 + col0, v128);
  unsigned char* const v133 = v98 + v130;
  float v134[8];
  load_bf16_8(v134 + 0, (const unsigned short*)v133 + col0, v128);
  unsigned char* const v135 = v101 + v130;
  float v136[8];
  load_bf16_8(v136 + 0, (const unsigned short*)v135 + col0, v128);
  unsigned char* const v137 = v105 + v130;
  float v138[8];
  load_bf16_8(v138 + 0, (const unsigned short*)v137 + col0, v128);
  unsigned char* const v139 = v109 + v130;
  float v140[8];
  load_bf16_8(v140 + 0, (const unsigned short*)v139 + col0, v128);
  unsigned char* const v141 = v113 + v130;
  float v142[8];
  load_bf16_8(v142 + 0, (const unsigned short*)v141 + col0, v128);
  unsigned char* const v143 = v117 + v130;
  float v144[8];
  load_bf16_8(v144 + 0, (const unsigned short*)v143 + col0, v128);
  unsigned char* const v145 = v121 + v130;
  float v146[8];
  load_bf16_8(v146 + 0, (const unsigned short*)v145 + col0, v128);
  unsigned char* const v147 = p9 + v130;
  float v148[8];
  load_bf16_8(v148 + 0, (const unsigned short*)v147 + col0, v128);
  float v24[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v24[i] = v96[i];
  float v192[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v192[i] = v132[i];
  float v27[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v27[i] = v100[i];
  float v193[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v193[i] = v134[i];
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = v103[i];
  float v194[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v194[i] = v136[i];
  float v36[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v36[i] = v107[i];
  float v195[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v195[i] = v138[i];
  float v41[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v41[i] = v111[i];
  float v196[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v196[i] = v140[i];
  float v46[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v46[i] = v115[i];
  float v197[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v197[i] = v142[i];
  float v51[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v51[i] = v119[i];
  float v198[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v198[i] = v144[i];
  float v56[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v56[i] = v123[i];
  float v199[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v199[i] = v146[i];
  float v61[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v61[i] = v126[i];
  float v200[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v200[i] = v148[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v151 = v12 + ((long long)gridDim.x * 2);
      const bool v152 = v151 < p7;
      unsigned char* const v155 = peers.base[0] + p8;
      const long long v158 = (v151 * 2048) * 2;
      unsigned char* const v159 = v155 + v158;
      float v161[8];
      load_bf16_8(v161 + 0, (const unsigned short*)v159 + col0, v152);
      unsigned char* const v163 = peers.base[1] + p8;
      unsigned char* const v164 = v163 + v158;
      float v165[8];
      load_bf16_8(v165 + 0, (const unsigned short*)v164 + col0, v152);
      unsigned char* const v166 = peers.base[2] + p8;
      unsigned char* const v167 = v166 + v158;
      float v168[8];
      load_bf16_8(v168 + 0, (const unsigned short*)v167 + col0, v152);
      unsigned char* const v170 = peers.base[3] + p8;
      unsigned char* const v171 = v170 + v158;
      float v172[8];
      load_bf16_8(v172 + 0, (const unsigned short*)v171 + col0, v152);
      unsigned char* const v174 = peers.base[4] + p8;
      unsigned char* const v175 = v174 + v158;
      float v176[8];
      load_bf16_8(v176 + 0, (const unsigned short*)v175 + col0, v152);
      unsigned char* const v178 = peers.base[5] + p8;
      unsigned char* const v179 = v178 + v158;
      float v180[8];
      load_bf16_8(v180 + 0, (const unsigned short*)v179 + col0, v152);
      unsigned char* const v182 = peers.base[6] + p8;
      unsigned char* const v183 = v182 + v158;
      float v184[8];
      load_bf16_8(v184 + 0, (const unsigned short*)v183 + col0, v152);
      unsigned char* const v186 = peers.base[7] + p8;
      unsigned char* const v187 = v186 + v158;
      float v188[8];
      load_bf16_8(v188 + 0, (const unsigned short*)v187 + col0, v152);
      unsigned char* const v190 = p9 + v158;
      float v191[8];
      load_bf16_8(v191 + 0, (const unsigned short*)v190 + col0, v152);
      const long long v22 = (v12 * 2048) * 2;
      float v63[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v63[i] = round_bf16(((round_bf16((((((((v24[i] + v27[i]) + v31[i]) + v36[i]) + v41[i]) + v46[i]) + v51[i]) + v56[i]))) + v61[i]));
      float v65[1];
      v65[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v65[0] = v65[0] + (v63[i] * v63[i]);
      v65[0] = v65[0] + __shfl_xor_sync(0xffffffffu, v65[0], 1);
      v65[0] = v65[0] + __shfl_xor_sync(0xffffffffu, v65[0], 2);
      v65[0] = v65[0] + __shfl_xor_sync(0xffffffffu, v65[0], 4);
      v65[0] = v65[0] + __shfl_xor_sync(0xffffffffu, v65[0], 8);
      v65[0] = v65[0] + __shfl_xor_sync(0xffffffffu, v65[0], 16);
      float* const s65 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s65[at2] = v65[0];
      }
      __syncthreads();
      v65[0] = s65[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v65[0] = v65[0] + s65[0 + w];
      }
      const float v67 = (float)2048;
      float v70[1];
      v70[0] = rsqrtf(((v65[0] / v67) + 1e-05f));
      float v74[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v74[i] = (v63[i] * v70[0]) * v73[i];
      unsigned char* const v77 = p11 + v22;
      store_bf16_8((unsigned short*)v77 + col0, v74 + 0, true);
      unsigned char* const v80 = p12 + v22;
      store_bf16_8((unsigned short*)v80 + col0, v63 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v24[i] = v192[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v192[i] = v161[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v27[i] = v193[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v193[i] = v165[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v31[i] = v194[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v194[i] = v168[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v36[i] = v195[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v195[i] = v172[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v41[i] = v196[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v196[i] = v176[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v46[i] = v197[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v197[i] = v180[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v51[i] = v198[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v198[i] = v184[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v56[i] = v199[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v199[i] = v188[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v61[i] = v200[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v200[i] = v191[i];
    }
  }
  after_v12:;
  const long long v82 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v82);
  if (p6 && !wait(comm, peers, v82)) return;
  close_comm(comm);
}
