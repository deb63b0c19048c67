// narrow_pair_bf16, load_bf16_8, store_bf16_8, Record, claim, Peers, Comm, epoch_at, flag_at, fence, load_flag, store_flag, global_timer, open_comm, close_comm, signal 9, give_up, await_relaxed, await, wait 9
extern "C" __global__ void __launch_bounds__(128, 1) all_to_all_single(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, unsigned char* p8) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v53 = (long long)blockIdx.x < 16;
  unsigned char* const v56 = peers.base[0] + p7;
  const int v59 = (int)((long long)blockIdx.x * 1024);
  const bool v64 = (long long)rank == 0;
  const int v67 = (int)(v64 ? 0 : 5);
  const int v74 = (int)(v64 ? 5 : 3);
  float v77[8];
  load_bf16_8(v77 + 0, (const unsigned short*)v56 + (((((v59 + col0) / 2048) + v67) * 2048) + ((v59 + col0) % 2048)), ((((v59 + col0) / 2048) < v74) && v53));
  unsigned char* const v79 = peers.base[1] + p7;
  const int v82 = (int)(v64 ? 0 : 3);
  float v88[8];
  load_bf16_8(v88 + 0, (const unsigned short*)v79 + ((((((v59 + col0) / 2048) - v74) + v82) * 2048) + ((v59 + col0) % 2048)), ((!(((v59 + col0) / 2048) < v74)) && v53));
  const long long v89 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v90 = v89 < 16;
  const int v92 = (int)(v89 * 1024);
  float v101[8];
  load_bf16_8(v101 + 0, (const unsigned short*)v56 + (((((v92 + col0) / 2048) + v67) * 2048) + ((v92 + col0) % 2048)), ((((v92 + col0) / 2048) < v74) && v90));
  float v108[8];
  load_bf16_8(v108 + 0, (const unsigned short*)v79 + ((((((v92 + col0) / 2048) - v74) + v82) * 2048) + ((v92 + col0) % 2048)), ((!(((v92 + col0) / 2048) < v74)) && v90));
  const long long v111 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v112 = v111 < 16;
  const int v114 = (int)(v111 * 1024);
  float v123[8];
  load_bf16_8(v123 + 0, (const unsigned short*)v56 + (((((v114 + col0) / 2048) + v67) * 2048) + ((v114 + col0) % 2048)), ((((v114 + col0) / 2048) < v74) && v112));
  float v130[8];
  load_bf16_8(v130 + 0, (const unsigned short*)v79 + ((((((v114 + col0) / 2048) - v74) + v82) * 2048) + ((v114 + col0) % 2048)), ((!(((v114 + col0) / 2048) < v74)) && v112));
  const long long v132 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v133 = v132 < 16;
  const int v135 = (int)(v132 * 1024);
  float v144[8];
  load_bf16_8(v144 + 0, (const unsigned short*)v56 + (((((v135 + col0) / 2048) + v67) * 2048) + ((v135 + col0) % 2048)), ((((v135 + col0) / 2048) < v74) && v133));
  float v151[8];
  load_bf16_8(v151 + 0, (const unsigned short*)v79 + ((((((v135 + col0) / 2048) - v74) + v82) * 2048) + ((v135 + col0) % 2048)), ((!(((v135 + col0) / 2048) < v74)) && v133));
  float v37[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v37[i] = v77[i];
  float v191[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v191[i] = v101[i];
  float v192[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v192[i] = v123[i];
  float v193[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v193[i] = v144[i];
  float v46[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v46[i] = v88[i];
  float v194[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v194[i] = v108[i];
  float v195[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v195[i] = v130[i];
  float v196[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v196[i] = v151[i];
  for (long long v12 = (long long)blockIdx.x; v12 < 16;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < 16)) goto after_v12;
      const long long v154 = v12 + ((long long)gridDim.x * 4);
      const bool v155 = v154 < 16;
      unsigned char* const v158 = peers.base[0] + p7;
      const int v161 = (int)(v154 * 1024);
      const bool v166 = (long long)rank == 0;
      const int v169 = (int)(v166 ? 0 : 5);
      const int v176 = (int)(v166 ? 5 : 3);
      float v179[8];
      load_bf16_8(v179 + 0, (const unsigned short*)v158 + (((((v161 + col0) / 2048) + v169) * 2048) + ((v161 + col0) % 2048)), ((((v161 + col0) / 2048) < v176) && v155));
      unsigned char* const v181 = peers.base[1] + p7;
      const int v184 = (int)(v166 ? 0 : 3);
      float v190[8];
      load_bf16_8(v190 + 0, (const unsigned short*)v181 + ((((((v161 + col0) / 2048) - v176) + v184) * 2048) + ((v161 + col0) % 2048)), ((!(((v161 + col0) / 2048) < v176)) && v155));
      const int v16 = (int)(v12 * 1024);
      const int v31 = (int)(((long long)rank == 0) ? 5 : 3);
      float v47[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v47[i] = (((v16 + (col0 + i % 8)) / 2048) < v31) ? v37[i] : v46[i];
      store_bf16_8((unsigned short*)p8 + (v16 + col0), v47 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v37[i] = v191[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v191[i] = v192[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v192[i] = v193[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v193[i] = v179[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v46[i] = v194[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v194[i] = v195[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v195[i] = v196[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v196[i] = v190[i];
    }
  }
  after_v12:;
  const long long v50 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v50);
  if (p6 && !wait(comm, peers, v50)) return;
  close_comm(comm);
}
