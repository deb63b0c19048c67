// narrow_bf16, narrow_pair_bf16, load_bf16_8, round_bf16, store_bf16_8, smem, Record, claim, Peers, Comm, epoch_at, flag_at, fence, load_flag, store_flag, global_timer, open_comm, close_comm, signal, give_up, await_relaxed, await, wait
extern "C" __global__ void __launch_bounds__(256, 1) all_reduce_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  float v44[8];
  load_bf16_8(v44 + 0, (const unsigned short*)p10 + col0, true);
  const bool v58 = (long long)blockIdx.x < p7;
  unsigned char* const v61 = peers.base[0] + p8;
  const long long v65 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v66 = v61 + v65;
  float v67[8];
  load_bf16_8(v67 + 0, (const unsigned short*)v66 + col0, v58);
  unsigned char* const v69 = peers.base[1] + p8;
  unsigned char* const v70 = v69 + v65;
  float v71[8];
  load_bf16_8(v71 + 0, (const unsigned short*)v70 + col0, v58);
  unsigned char* const v73 = p9 + v65;
  float v74[8];
  load_bf16_8(v74 + 0, (const unsigned short*)v73 + col0, v58);
  const long long v75 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v76 = v75 < p7;
  const long long v78 = (v75 * 2048) * 2;
  unsigned char* const v79 = v61 + v78;
  float v80[8];
  load_bf16_8(v80 + 0, (const unsigned short*)v79 + col0, v76);
  unsigned char* const v81 = v69 + v78;
  float v82[8];
  load_bf16_8(v82 + 0, (const unsigned short*)v81 + col0, v76);
  unsigned char* const v83 = p9 + v78;
  float v84[8];
  load_bf16_8(v84 + 0, (const unsigned short*)v83 + col0, v76);
  const long long v86 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v87 = v86 < p7;
  const long long v89 = (v86 * 2048) * 2;
  unsigned char* const v90 = v61 + v89;
  float v91[8];
  load_bf16_8(v91 + 0, (const unsigned short*)v90 + col0, v87);
  unsigned char* const v92 = v69 + v89;
  float v93[8];
  load_bf16_8(v93 + 0, (const unsigned short*)v92 + col0, v87);
  unsigned char* const v94 = p9 + v89;
  float v95[8];
  load_bf16_8(v95 + 0, (const unsigned short*)v94 + col0, v87);
  const long long v98 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v99 = v98 < p7;
  const long long v101 = (v98 * 2048) * 2;
  unsigned char* const v102 = v61 + v101;
  float v103[8];
  load_bf16_8(v103 + 0, (const unsigned short*)v102 + col0, v99);
  unsigned char* const v104 = v69 + v101;
  float v105[8];
  load_bf16_8(v105 + 0, (const unsigned short*)v104 + col0, v99);
  unsigned char* const v106 = p9 + v101;
  float v107[8];
  load_bf16_8(v107 + 0, (const unsigned short*)v106 + col0, v99);
  float v24[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v24[i] = v67[i];
  float v129[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v129[i] = v80[i];
  float v130[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v130[i] = v91[i];
  float v131[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v131[i] = v103[i];
  float v27[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v27[i] = v71[i];
  float v132[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v132[i] = v82[i];
  float v133[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v133[i] = v93[i];
  float v134[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v134[i] = v105[i];
  float v32[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v32[i] = v74[i];
  float v135[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v135[i] = v84[i];
  float v136[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v136[i] = v95[i];
  float v137[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v137[i] = v107[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v110 = v12 + ((long long)gridDim.x * 4);
      const bool v111 = v110 < p7;
      unsigned char* const v114 = peers.base[0] + p8;
      const long long v118 = (v110 * 2048) * 2;
      unsigned char* const v119 = v114 + v118;
      float v121[8];
      load_bf16_8(v121 + 0, (const unsigned short*)v119 + col0, v111);
      unsigned char* const v123 = peers.base[1] + p8;
      unsigned char* const v124 = v123 + v118;
      float v125[8];
      load_bf16_8(v125 + 0, (const unsigned short*)v124 + col0, v111);
      unsigned char* const v127 = p9 + v118;
      float v128[8];
      load_bf16_8(v128 + 0, (const unsigned short*)v127 + col0, v111);
      const long long v22 = (v12 * 2048) * 2;
      float v34[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v34[i] = round_bf16(((round_bf16((v24[i] + v27[i]))) + v32[i]));
      float v36[1];
      v36[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v36[0] = v36[0] + (v34[i] * v34[i]);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 1);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 2);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 4);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 8);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 16);
      float* const s36 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s36[at2] = v36[0];
      }
      __syncthreads();
      v36[0] = s36[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v36[0] = v36[0] + s36[0 + w];
      }
      const float v38 = (float)2048;
      float v41[1];
      v41[0] = rsqrtf(((v36[0] / v38) + 1e-05f));
      float v45[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v45[i] = (v34[i] * v41[0]) * v44[i];
      unsigned char* const v48 = p11 + v22;
      store_bf16_8((unsigned short*)v48 + col0, v45 + 0, true);
      unsigned char* const v51 = p12 + v22;
      store_bf16_8((unsigned short*)v51 + col0, v34 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v24[i] = v129[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v129[i] = v130[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v130[i] = v131[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v131[i] = v121[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v27[i] = v132[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v132[i] = v133[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v133[i] = v134[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v134[i] = v125[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v32[i] = v135[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v135[i] = v136[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v136[i] = v137[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v137[i] = v128[i];
    }
  }
  after_v12:;
  const long long v53 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v53);
  if (p6 && !wait(comm, peers, v53)) return;
  close_comm(comm);
}
