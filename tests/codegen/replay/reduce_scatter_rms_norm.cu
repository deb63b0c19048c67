// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_8, smem, Record, claim, Peers 2, Comm, epoch_at, flag_at 2, fence, load_flag, store_flag, global_timer, open_comm 2, close_comm, signal 2, give_up 2, await_relaxed, await, wait 2
extern "C" __global__ void __launch_bounds__(256, 1) reduce_scatter_tensor_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, unsigned char* p9, unsigned char* p10) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  float v52[8];
  load_bf16_8(v52 + 0, (const unsigned short*)p9 + col0, true);
  const bool v65 = (long long)blockIdx.x < p7;
  unsigned char* const v68 = peers.base[0] + p8;
  const long long v69 = (long long)rank * p7;
  const long long v74 = (((long long)blockIdx.x + v69) * 2048) * 2;
  unsigned char* const v75 = v68 + v74;
  float v76[8];
  load_bf16_8(v76 + 0, (const unsigned short*)v75 + col0, v65);
  unsigned char* const v78 = peers.base[1] + p8;
  unsigned char* const v79 = v78 + v74;
  float v80[8];
  load_bf16_8(v80 + 0, (const unsigned short*)v79 + col0, v65);
  unsigned char* const v81 = peers.base[2] + p8;
  unsigned char* const v82 = v81 + v74;
  float v83[8];
  load_bf16_8(v83 + 0, (const unsigned short*)v82 + col0, v65);
  unsigned char* const v85 = peers.base[3] + p8;
  unsigned char* const v86 = v85 + v74;
  float v87[8];
  load_bf16_8(v87 + 0, (const unsigned short*)v86 + col0, v65);
  const long long v88 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v89 = v88 < p7;
  const long long v92 = ((v88 + v69) * 2048) * 2;
  unsigned char* const v93 = v68 + v92;
  float v94[8];
  load_bf16_8(v94 + 0, (const unsigned short*)v93 + col0, v89);
  unsigned char* const v95 = v78 + v92;
  float v96[8];
  load_bf16_8(v96 + 0, (const unsigned short*)v95 + col0, v89);
  unsigned char* const v97 = v81 + v92;
  float v98[8];
  load_bf16_8(v98 + 0, (const unsigned short*)v97 + col0, v89);
  unsigned char* const v99 = v85 + v92;
  float v100[8];
  load_bf16_8(v100 + 0, (const unsigned short*)v99 + col0, v89);
  const long long v102 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v103 = v102 < p7;
  const long long v106 = ((v102 + v69) * 2048) * 2;
  unsigned char* const v107 = v68 + v106;
  float v108[8];
  load_bf16_8(v108 + 0, (const unsigned short*)v107 + col0, v103);
  unsigned char* const v109 = v78 + v106;
  float v110[8];
  load_bf16_8(v110 + 0, (const unsigned short*)v109 + col0, v103);
  unsigned char* const v111 = v81 + v106;
  float v112[8];
  load_bf16_8(v112 + 0, (const unsigned short*)v111 + col0, v103);
  unsigned char* const v113 = v85 + v106;
  float v114[8];
  load_bf16_8(v114 + 0, (const unsigned short*)v113 + col0, v103);
  const long long v116 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v117 = v116 < p7;
  const long long v120 = ((v116 + v69) * 2048) * 2;
  unsigned char* const v121 = v68 + v120;
  float v122[8];
  load_bf16_8(v122 + 0, (const unsigned short*)v121 + col0, v117);
  unsigned char* const v123 = v78 + v120;
  float v124[8];
  load_bf16_8(v124 + 0, (const unsigned short*)v123 + col0, v117);
  unsigned char* const v125 = v81 + v120;
  float v126[8];
  load_bf16_8(v126 + 0, (const unsigned short*)v125 + col0, v117);
  unsigned char* const v127 = v85 + v120;
  float v128[8];
  load_bf16_8(v128 + 0, (const unsigned short*)v127 + col0, v117);
  float v26[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v26[i] = v76[i];
  float v156[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v156[i] = v94[i];
  float v157[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v157[i] = v108[i];
  float v158[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v158[i] = v122[i];
  float v29[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v29[i] = v80[i];
  float v159[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v159[i] = v96[i];
  float v160[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v160[i] = v110[i];
  float v161[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v161[i] = v124[i];
  float v33[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v33[i] = v83[i];
  float v162[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v162[i] = v98[i];
  float v163[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v163[i] = v112[i];
  float v164[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v164[i] = v126[i];
  float v38[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v38[i] = v87[i];
  float v165[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v165[i] = v100[i];
  float v166[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v166[i] = v114[i];
  float v167[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v167[i] = v128[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v131 = v12 + ((long long)gridDim.x * 4);
      const bool v132 = v131 < p7;
      unsigned char* const v135 = peers.base[0] + p8;
      const long long v141 = ((v131 + ((long long)rank * p7)) * 2048) * 2;
      unsigned char* const v142 = v135 + v141;
      float v144[8];
      load_bf16_8(v144 + 0, (const unsigned short*)v142 + col0, v132);
      unsigned char* const v146 = peers.base[1] + p8;
      unsigned char* const v147 = v146 + v141;
      float v148[8];
      load_bf16_8(v148 + 0, (const unsigned short*)v147 + col0, v132);
      unsigned char* const v149 = peers.base[2] + p8;
      unsigned char* const v150 = v149 + v141;
      float v151[8];
      load_bf16_8(v151 + 0, (const unsigned short*)v150 + col0, v132);
      unsigned char* const v153 = peers.base[3] + p8;
      unsigned char* const v154 = v153 + v141;
      float v155[8];
      load_bf16_8(v155 + 0, (const unsigned short*)v154 + col0, v132);
      float v42[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v42[i] = round_bf16(((((v26[i] + v29[i]) + v33[i]) + v38[i]) / 4.0f));
      float v44[1];
      v44[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v44[0] = v44[0] + (v42[i] * v42[i]);
      v44[0] = v44[0] + __shfl_xor_sync(0xffffffffu, v44[0], 1);
      v44[0] = v44[0] + __shfl_xor_sync(0xffffffffu, v44[0], 2);
      v44[0] = v44[0] + __shfl_xor_sync(0xffffffffu, v44[0], 4);
      v44[0] = v44[0] + __shfl_xor_sync(0xffffffffu, v44[0], 8);
      v44[0] = v44[0] + __shfl_xor_sync(0xffffffffu, v44[0], 16);
      float* const s44 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s44[at2] = v44[0];
      }
      __syncthreads();
      v44[0] = s44[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v44[0] = v44[0] + s44[0 + w];
      }
      const float v46 = (float)2048;
      float v49[1];
      v49[0] = rsqrtf(((v44[0] / v46) + 1e-05f));
      float v53[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v53[i] = (v42[i] * v49[0]) * v52[i];
      unsigned char* const v58 = p10 + ((v12 * 2048) * 2);
      store_bf16_8((unsigned short*)v58 + col0, v53 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v26[i] = v156[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v156[i] = v157[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v157[i] = v158[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v158[i] = v144[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v29[i] = v159[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v159[i] = v160[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v160[i] = v161[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v161[i] = v148[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v33[i] = v162[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v162[i] = v163[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v163[i] = v164[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v164[i] = v151[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v38[i] = v165[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v165[i] = v166[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v166[i] = v167[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v167[i] = v155[i];
    }
  }
  after_v12:;
  const long long v60 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v60);
  if (p6 && !wait(comm, peers, v60)) return;
  close_comm(comm);
}
