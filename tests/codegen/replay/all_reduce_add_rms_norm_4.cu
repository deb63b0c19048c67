// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_8, smem, Record, claim, Peers 2, Comm, epoch_at, flag_at 2, fence, load_flag, store_flag, global_timer, open_comm 2, close_comm, signal 2, give_up 2, await_relaxed, await, wait 2
extern "C" __global__ void __launch_bounds__(256, 1) all_reduce_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  float v53[8];
  load_bf16_8(v53 + 0, (const unsigned short*)p10 + col0, true);
  const bool v67 = (long long)blockIdx.x < p7;
  unsigned char* const v70 = peers.base[0] + p8;
  const long long v74 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v75 = v70 + v74;
  float v76[8];
  load_bf16_8(v76 + 0, (const unsigned short*)v75 + col0, v67);
  unsigned char* const v78 = peers.base[1] + p8;
  unsigned char* const v79 = v78 + v74;
  float v80[8];
  load_bf16_8(v80 + 0, (const unsigned short*)v79 + col0, v67);
  unsigned char* const v81 = peers.base[2] + p8;
  unsigned char* const v82 = v81 + v74;
  float v83[8];
  load_bf16_8(v83 + 0, (const unsigned short*)v82 + col0, v67);
  unsigned char* const v85 = peers.base[3] + p8;
  unsigned char* const v86 = v85 + v74;
  float v87[8];
  load_bf16_8(v87 + 0, (const unsigned short*)v86 + col0, v67);
  unsigned char* const v89 = p9 + v74;
  float v90[8];
  load_bf16_8(v90 + 0, (const unsigned short*)v89 + col0, v67);
  const long long v91 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v92 = v91 < p7;
  const long long v94 = (v91 * 2048) * 2;
  unsigned char* const v95 = v70 + v94;
  float v96[8];
  load_bf16_8(v96 + 0, (const unsigned short*)v95 + col0, v92);
  unsigned char* const v97 = v78 + v94;
  float v98[8];
  load_bf16_8(v98 + 0, (const unsigned short*)v97 + col0, v92);
  unsigned char* const v99 = v81 + v94;
  float v100[8];
  load_bf16_8(v100 + 0, (const unsigned short*)v99 + col0, v92);
  unsigned char* const v101 = v85 + v94;
  float v102[8];
  load_bf16_8(v102 + 0, (const unsigned short*)v101 + col0, v92);
  unsigned char* const v103 = p9 + v94;
  float v104[8];
  load_bf16_8(v104 + 0, (const unsigned short*)v103 + col0, v92);
  const long long v106 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v107 = v106 < p7;
  const long long v109 = (v106 * 2048) * 2;
  unsigned char* const v110 = v70 + v109;
  float v111[8];
  load_bf16_8(v111 + 0, (const unsigned short*)v110 + col0, v107);
  unsigned char* const v112 = v78 + v109;
  float v113[8];
  load_bf16_8(v113 + 0, (const unsigned short*)v112 + col0, v107);
  unsigned char* const v114 = v81 + v109;
  float v115[8];
  load_bf16_8(v115 + 0, (const unsigned short*)v114 + col0, v107);
  unsigned char* const v116 = v85 + v109;
  float v117[8];
  load_bf16_8(v117 + 0, (const unsigned short*)v116 + col0, v107);
  unsigned char* const v118 = p9 + v109;
  float v119[8];
  load_bf16_8(v119 + 0, (const unsigned short*)v118 + col0, v107);
  const long long v121 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v122 = v121 < p7;
  const long long v124 = (v121 * 2048) * 2;
  unsigned char* const v125 = v70 + v124;
  float v126[8];
  load_bf16_8(v126 + 0, (const unsigned short*)v125 + col0, v122);
  unsigned char* const v127 = v78 + v124;
  float v128[8];
  load_bf16_8(v128 + 0, (const unsigned short*)v127 + col0, v122);
  unsigned char* const v129 = v81 + v124;
  float v130[8];
  load_bf16_8(v130 + 0, (const unsigned short*)v129 + col0, v122);
  unsigned char* const v131 = v85 + v124;
  float v132[8];
  load_bf16_8(v132 + 0, (const unsigned short*)v131 + col0, v122);
  unsigned char* const v133 = p9 + v124;
  float v134[8];
  load_bf16_8(v134 + 0, (const unsigned short*)v133 + col0, v122);
  float v24[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v24[i] = v76[i];
  float v163[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v163[i] = v96[i];
  float v164[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v164[i] = v111[i];
  float v165[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v165[i] = v126[i];
  float v27[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v27[i] = v80[i];
  float v166[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v166[i] = v98[i];
  float v167[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v167[i] = v113[i];
  float v168[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v168[i] = v128[i];
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = v83[i];
  float v169[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v169[i] = v100[i];
  float v170[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v170[i] = v115[i];
  float v171[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v171[i] = v130[i];
  float v36[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v36[i] = v87[i];
  float v172[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v172[i] = v102[i];
  float v173[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v173[i] = v117[i];
  float v174[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v174[i] = v132[i];
  float v41[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v41[i] = v90[i];
  float v175[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v175[i] = v104[i];
  float v176[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v176[i] = v119[i];
  float v177[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v177[i] = v134[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v137 = v12 + ((long long)gridDim.x * 4);
      const bool v138 = v137 < p7;
      unsigned char* const v141 = peers.base[0] + p8;
      const long long v145 = (v137 * 2048) * 2;
      unsigned char* const v146 = v141 + v145;
      float v148[8];
      load_bf16_8(v148 + 0, (const unsigned short*)v146 + col0, v138);
      unsigned char* const v150 = peers.base[1] + p8;
      unsigned char* const v151 = v150 + v145;
      float v152[8];
      load_bf16_8(v152 + 0, (const unsigned short*)v151 + col0, v138);
      unsigned char* const v153 = peers.base[2] + p8;
      unsigned char* const v154 = v153 + v145;
      float v155[8];
      load_bf16_8(v155 + 0, (const unsigned short*)v154 + col0, v138);
      unsigned char* const v157 = peers.base[3] + p8;
      unsigned char* const v158 = v157 + v145;
      float v159[8];
      load_bf16_8(v159 + 0, (const unsigned short*)v158 + col0, v138);
      unsigned char* const v161 = p9 + v145;
      float v162[8];
      load_bf16_8(v162 + 0, (const unsigned short*)v161 + col0, v138);
      const long long v22 = (v12 * 2048) * 2;
      float v43[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v43[i] = round_bf16(((round_bf16((((v24[i] + v27[i]) + v31[i]) + v36[i]))) + v41[i]));
      float v45[1];
      v45[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v45[0] = v45[0] + (v43[i] * v43[i]);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 1);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 2);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 4);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 8);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 16);
      float* const s45 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s45[at2] = v45[0];
      }
      __syncthreads();
      v45[0] = s45[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v45[0] = v45[0] + s45[0 + w];
      }
      const float v47 = (float)2048;
      float v50[1];
      v50[0] = rsqrtf(((v45[0] / v47) + 1e-05f));
      float v54[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v54[i] = (v43[i] * v50[0]) * v53[i];
      unsigned char* const v57 = p11 + v22;
      store_bf16_8((unsigned short*)v57 + col0, v54 + 0, true);
      unsigned char* const v60 = p12 + v22;
      store_bf16_8((unsigned short*)v60 + col0, v43 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v24[i] = v163[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v163[i] = v164[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v164[i] = v165[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v165[i] = v148[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v27[i] = v166[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v166[i] = v167[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v167[i] = v168[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v168[i] = v152[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v31[i] = v169[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v169[i] = v170[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v170[i] = v171[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v171[i] = v155[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v36[i] = v172[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v172[i] = v173[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v173[i] = v174[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v174[i] = v159[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v41[i] = v175[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v175[i] = v176[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v176[i] = v177[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v177[i] = v162[i];
    }
  }
  after_v12:;
  const long long v62 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v62);
  if (p6 && !wait(comm, peers, v62)) return;
  close_comm(comm);
}
