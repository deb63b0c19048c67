// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_8, smem, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 3, give_up 3, await_relaxed, await, wait 3, multimem_reduce_bf16_8, multimem_store_bf16_8
extern "C" __global__ void __launch_bounds__(256, 1) all_reduce_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, unsigned char* multicast, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const long long v16 = (long long)blockIdx.x + (((((long long)rank + 8) - ((long long)blockIdx.x % 8)) % 8) * (long long)gridDim.x);
  const long long v17 = (long long)gridDim.x * 8;
  unsigned char* const v73 = multicast + p7;
  unsigned char* const v78 = v73 + ((v16 * 2048) * 2);
  float v80[8];
  multimem_reduce_bf16_8(v80 + 0, v78, col0, (v16 < p6));
  const long long v81 = v16 + v17;
  unsigned char* const v85 = v73 + ((v81 * 2048) * 2);
  float v86[8];
  multimem_reduce_bf16_8(v86 + 0, v85, col0, (v81 < p6));
  const long long v88 = v16 + (v17 * 2);
  unsigned char* const v92 = v73 + ((v88 * 2048) * 2);
  float v93[8];
  multimem_reduce_bf16_8(v93 + 0, v92, col0, (v88 < p6));
  const long long v96 = v16 + (v17 * 3);
  unsigned char* const v100 = v73 + ((v96 * 2048) * 2);
  float v101[8];
  multimem_reduce_bf16_8(v101 + 0, v100, col0, (v96 < p6));
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = v80[i];
  float v115[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v115[i] = v86[i];
  float v116[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v116[i] = v93[i];
  float v117[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v117[i] = v101[i];
  for (long long v19 = v16; v19 < p6;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v19 += v17) {
      if (turn > 0 && !(v19 < p6)) goto after_v19;
      const long long v104 = v19 + (v17 * 4);
      unsigned char* const v107 = multicast + p7;
      unsigned char* const v112 = v107 + ((v104 * 2048) * 2);
      float v114[8];
      multimem_reduce_bf16_8(v114 + 0, v112, col0, (v104 < p6));
      unsigned char* const v24 = multicast + p7;
      unsigned char* const v30 = v24 + ((v19 * 2048) * 2);
      multimem_store_bf16_8(v31 + 0, v30, col0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v31[i] = v115[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v115[i] = v116[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v116[i] = v117[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v117[i] = v114[i];
    }
  }
  after_v19:;
  const long long v33 = (long long)gridDim.x + (long long)blockIdx.x;
  signal(comm, peers, v33);
  if (!wait(comm, peers, v33)) return;
  float v62[8];
  load_bf16_8(v62 + 0, (const unsigned short*)p10 + col0, true);
  const bool v120 = (long long)blockIdx.x < p6;
  unsigned char* const v122 = peers.base[(long long)rank] + p7;
  const long long v126 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v127 = v122 + v126;
  float v128[8];
  load_bf16_8(v128 + 0, (const unsigned short*)v127 + col0, v120);
  unsigned char* const v130 = p9 + v126;
  float v131[8];
  load_bf16_8(v131 + 0, (const unsigned short*)v130 + col0, v120);
  const long long v132 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v133 = v132 < p6;
  const long long v135 = (v132 * 2048) * 2;
  unsigned char* const v136 = v122 + v135;
  float v137[8];
  load_bf16_8(v137 + 0, (const unsigned short*)v136 + col0, v133);
  unsigned char* const v138 = p9 + v135;
  float v139[8];
  load_bf16_8(v139 + 0, (const unsigned short*)v138 + col0, v133);
  const long long v141 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v142 = v141 < p6;
  const long long v144 = (v141 * 2048) * 2;
  unsigned char* const v145 = v122 + v144;
  float v146[8];
  load_bf16_8(v146 + 0, (const unsigned short*)v145 + col0, v142);
  unsigned char* const v147 = p9 + v144;
  float v148[8];
  load_bf16_8(v148 + 0, (const unsigned short*)v147 + col0, v142);
  const long long v151 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v152 = v151 < p6;
  const long long v154 = (v151 * 2048) * 2;
  unsigned char* const v155 = v122 + v154;
  float v156[8];
  load_bf16_8(v156 + 0, (const unsigned short*)v155 + col0, v152);
  unsigned char* const v157 = p9 + v154;
  float v158[8];
  load_bf16_8(v158 + 0, (const unsigned short*)v157 + col0, v152);
  float v47[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v47[i] = v128[i];
  float v175[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v175[i] = v137[i];
  float v176[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v176[i] = v146[i];
  float v177[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v177[i] = v156[i];
  float v50[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v50[i] = v131[i];
  float v178[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v178[i] = v139[i];
  float v179[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v179[i] = v148[i];
  float v180[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v180[i] = v158[i];
  for (long long v36 = (long long)blockIdx.x; v36 < p6;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v36 += (long long)gridDim.x) {
      if (turn > 0 && !(v36 < p6)) goto after_v36;
      const long long v161 = v36 + ((long long)gridDim.x * 4);
      const bool v162 = v161 < p6;
      unsigned char* const v164 = peers.base[(long long)rank] + p7;
      const long long v168 = (v161 * 2048) * 2;
      unsigned char* const v169 = v164 + v168;
      float v171[8];
      load_bf16_8(v171 + 0, (const unsigned short*)v169 + col0, v162);
      unsigned char* const v173 = p9 + v168;
      float v174[8];
      load_bf16_8(v174 + 0, (const unsigned short*)v173 + col0, v162);
      const long long v45 = (v36 * 2048) * 2;
      float v52[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v52[i] = round_bf16((v47[i] + v50[i]));
      float v54[1];
      v54[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v54[0] = v54[0] + (v52[i] * v52[i]);
      v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 1);
      v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 2);
      v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 4);
      v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 8);
      v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 16);
      float* const s54 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s54[at2] = v54[0];
      }
      __syncthreads();
      v54[0] = s54[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v54[0] = v54[0] + s54[0 + w];
      }
      const float v56 = (float)2048;
      float v59[1];
      v59[0] = rsqrtf(((v54[0] / v56) + 1e-05f));
      float v63[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v63[i] = (v52[i] * v59[0]) * v62[i];
      unsigned char* const v66 = p11 + v45;
      store_bf16_8((unsigned short*)v66 + col0, v63 + 0, true);
      unsigned char* const v69 = p12 + v45;
      store_bf16_8((unsigned short*)v69 + col0, v52 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v47[i] = v175[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v175[i] = v176[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v176[i] = v177[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v177[i] = v171[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v50[i] = v178[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v178[i] = v179[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v179[i] = v180[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v180[i] = v174[i];
    }
  }
  after_v36:;
  close_comm(comm);
}
