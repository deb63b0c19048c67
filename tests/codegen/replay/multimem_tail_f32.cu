// load_f32_1, store_f32_1, Record, claim, Peers 4, Comm, epoch_at, flag_at 4, fence, load_flag, store_flag, global_timer, open_comm 4, close_comm, signal 6, give_up 4, await_relaxed, await, wait 6, reduce_one_f32, store_one_f32, multimem_reduce_part_f32_4, multimem_store_part_f32_4
extern "C" __global__ void __launch_bounds__(512, 1) all_reduce(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, long long p8, unsigned char* multicast, unsigned char* p10) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const long long v16 = (long long)blockIdx.x + (((((long long)rank + 3) - ((long long)blockIdx.x % 3)) % 3) * (long long)gridDim.x);
  const long long v17 = (long long)gridDim.x * 3;
  const bool v52 = v16 < p6;
  unsigned char* const v54 = multicast + p8;
  const int v57 = (int)(v16 * 4096);
  float v63[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    multimem_reduce_part_f32_4(v63 + i, peers, multicast, v54, (v57 + (col0 + i % 8)), (((v57 + (col0 + i % 8)) < p7) && v52), (((v57 + (col0 + (i + 1) % 8)) < p7) && v52), (((v57 + (col0 + (i + 2) % 8)) < p7) && v52), (((v57 + (col0 + (i + 3) % 8)) < p7) && v52));
  const long long v64 = v16 + v17;
  const bool v65 = v64 < p6;
  const int v67 = (int)(v64 * 4096);
  float v71[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    multimem_reduce_part_f32_4(v71 + i, peers, multicast, v54, (v67 + (col0 + i % 8)), (((v67 + (col0 + i % 8)) < p7) && v65), (((v67 + (col0 + (i + 1) % 8)) < p7) && v65), (((v67 + (col0 + (i + 2) % 8)) < p7) && v65), (((v67 + (col0 + (i + 3) % 8)) < p7) && v65));
  const long long v74 = v16 + (v17 * 2);
  const bool v75 = v74 < p6;
  const int v77 = (int)(v74 * 4096);
  float v81[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    multimem_reduce_part_f32_4(v81 + i, peers, multicast, v54, (v77 + (col0 + i % 8)), (((v77 + (col0 + i % 8)) < p7) && v75), (((v77 + (col0 + (i + 1) % 8)) < p7) && v75), (((v77 + (col0 + (i + 2) % 8)) < p7) && v75), (((v77 + (col0 + (i + 3) % 8)) < p7) && v75));
  const long long v84 = v16 + (v17 * 3);
  const bool v85 = v84 < p6;
  const int v87 = (int)(v84 * 4096);
  float v91[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    multimem_reduce_part_f32_4(v91 + i, peers, multicast, v54, (v87 + (col0 + i % 8)), (((v87 + (col0 + i % 8)) < p7) && v85), (((v87 + (col0 + (i + 1) % 8)) < p7) && v85), (((v87 + (col0 + (i + 2) % 8)) < p7) && v85), (((v87 + (col0 + (i + 3) % 8)) < p7) && v85));
  float v32[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v32[i] = v63[i];
  float v107[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v107[i] = v71[i];
  float v108[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v108[i] = v81[i];
  float v109[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v109[i] = v91[i];
  for (long long v19 = v16; v19 < p6;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v19 += v17) {
      if (turn > 0 && !(v19 < p6)) goto after_v19;
      const long long v94 = v19 + (v17 * 4);
      const bool v95 = v94 < p6;
      unsigned char* const v97 = multicast + p8;
      const int v100 = (int)(v94 * 4096);
      float v106[8];
#pragma unroll
      for (int i = 0; i < 8; i += 4)
        multimem_reduce_part_f32_4(v106 + i, peers, multicast, v97, (v100 + (col0 + i % 8)), (((v100 + (col0 + i % 8)) < p7) && v95), (((v100 + (col0 + (i + 1) % 8)) < p7) && v95), (((v100 + (col0 + (i + 2) % 8)) < p7) && v95), (((v100 + (col0 + (i + 3) % 8)) < p7) && v95));
      const int v23 = (int)(v19 * 4096);
      unsigned char* const v30 = multicast + p8;
#pragma unroll
      for (int i = 0; i < 8; i += 4)
        multimem_store_part_f32_4(v32 + i, peers, multicast, v30, (v23 + (col0 + i % 8)), ((v23 + (col0 + i % 8)) < p7), ((v23 + (col0 + (i + 1) % 8)) < p7), ((v23 + (col0 + (i + 2) % 8)) < p7), ((v23 + (col0 + (i + 3) % 8)) < p7));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v32[i] = v107[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v107[i] = v108[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v108[i] = v109[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v109[i] = v106[i];
    }
  }
  after_v19:;
  const long long v34 = (long long)gridDim.x + (long long)blockIdx.x;
  signal(comm, peers, v34);
  if (!wait(comm, peers, v34)) return;
  const bool v110 = (long long)blockIdx.x < p6;
  unsigned char* const v112 = peers.base[(long long)rank] + p8;
  const int v115 = (int)((long long)blockIdx.x * 4096);
  float v121[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v121 + i, (const float*)v112 + (v115 + (col0 + i % 8)), (((v115 + (col0 + i % 8)) < p7) && v110));
  const long long v122 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v123 = v122 < p6;
  const int v125 = (int)(v122 * 4096);
  float v129[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v129 + i, (const float*)v112 + (v125 + (col0 + i % 8)), (((v125 + (col0 + i % 8)) < p7) && v123));
  const long long v132 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v133 = v132 < p6;
  const int v135 = (int)(v132 * 4096);
  float v139[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v139 + i, (const float*)v112 + (v135 + (col0 + i % 8)), (((v135 + (col0 + i % 8)) < p7) && v133));
  const long long v142 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v143 = v142 < p6;
  const int v145 = (int)(v142 * 4096);
  float v149[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v149 + i, (const float*)v112 + (v145 + (col0 + i % 8)), (((v145 + (col0 + i % 8)) < p7) && v143));
  float v49[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v49[i] = v121[i];
  float v165[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v165[i] = v129[i];
  float v166[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v166[i] = v139[i];
  float v167[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v167[i] = v149[i];
  for (long long v37 = (long long)blockIdx.x; v37 < p6;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v37 += (long long)gridDim.x) {
      if (turn > 0 && !(v37 < p6)) goto after_v37;
      const long long v152 = v37 + ((long long)gridDim.x * 4);
      const bool v153 = v152 < p6;
      unsigned char* const v155 = peers.base[(long long)rank] + p8;
      const int v158 = (int)(v152 * 4096);
      float v164[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        load_f32_1(v164 + i, (const float*)v155 + (v158 + (col0 + i % 8)), (((v158 + (col0 + i % 8)) < p7) && v153));
      const int v41 = (int)(v37 * 4096);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        store_f32_1((float*)p10 + (v41 + (col0 + i % 8)), v49 + i, ((v41 + (col0 + i % 8)) < p7));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v49[i] = v165[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v165[i] = v166[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v166[i] = v167[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v167[i] = v164[i];
    }
  }
  after_v37:;
  close_comm(comm);
}
