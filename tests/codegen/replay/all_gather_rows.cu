// narrow_pair_bf16, load_bf16_8, store_bf16_8, Record, claim, Peers 2, Comm, epoch_at, flag_at 2, fence, load_flag, store_flag, global_timer, open_comm 2, close_comm, signal 7, give_up 2, await_relaxed, await, wait 7
extern "C" __global__ void __launch_bounds__(512, 1) all_gather_into_tensor_silu(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, long long p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v81 = (long long)blockIdx.x < p7;
  const int v85 = (int)((long long)blockIdx.x * 4096);
  const int v87 = (int)p10;
  const int v90 = min((v85 / v87), 3);
  unsigned char* const v91 = peers.base[v90] + p9;
  unsigned char* const v97 = v91 + ((((long long)v90) * p11) * 2);
  const int v103 = v90 + 1;
  const int v104 = v103 * v87;
  float v108[8];
  load_bf16_8(v108 + 0, (const unsigned short*)v97 + (v85 + col0), ((((v85 + col0) < p8) && ((v85 + col0) < v104)) && v81));
  const int v109 = min(v103, 3);
  unsigned char* const v110 = peers.base[v109] + p9;
  unsigned char* const v114 = v110 + ((((long long)v109) * p11) * 2);
  const int v118 = (v109 + 1) * v87;
  float v122[8];
  load_bf16_8(v122 + 0, (const unsigned short*)v114 + (v85 + col0), (((((v85 + col0) < p8) && (!((v85 + col0) < v104))) && ((v85 + col0) < v118)) && v81));
  const int v124 = min((v90 + 2), 3);
  unsigned char* const v125 = peers.base[v124] + p9;
  unsigned char* const v129 = v125 + ((((long long)v124) * p11) * 2);
  float v133[8];
  load_bf16_8(v133 + 0, (const unsigned short*)v129 + (v85 + col0), ((((v85 + col0) < p8) && (!((v85 + col0) < v118))) && v81));
  const long long v134 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v135 = v134 < p7;
  const int v137 = (int)(v134 * 4096);
  const int v139 = min((v137 / v87), 3);
  unsigned char* const v140 = peers.base[v139] + p9;
  unsigned char* const v144 = v140 + ((((long long)v139) * p11) * 2);
  const int v147 = v139 + 1;
  const int v148 = v147 * v87;
  float v152[8];
  load_bf16_8(v152 + 0, (const unsigned short*)v144 + (v137 + col0), ((((v137 + col0) < p8) && ((v137 + col0) < v148)) && v135));
  const int v153 = min(v147, 3);
  unsigned char* const v154 = peers.base[v153] + p9;
  unsigned char* const v158 = v154 + ((((long long)v153) * p11) * 2);
  const int v162 = (v153 + 1) * v87;
  float v166[8];
  load_bf16_8(v166 + 0, (const unsigned short*)v158 + (v137 + col0), (((((v137 + col0) < p8) && (!((v137 + col0) < v148))) && ((v137 + col0) < v162)) && v135));
  const int v168 = min((v139 + 2), 3);
  unsigned char* const v169 = peers.base[v168] + p9;
  unsigned char* const v173 = v169 + ((((long long)v168) * p11) * 2);
  float v177[8];
  load_bf16_8(v177 + 0, (const unsigned short*)v173 + (v137 + col0), ((((v137 + col0) < p8) && (!((v137 + col0) < v162))) && v135));
  float v44[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v44[i] = v108[i];
  float v233[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v233[i] = v152[i];
  float v57[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v57[i] = v122[i];
  float v234[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v234[i] = v166[i];
  float v67[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v67[i] = v133[i];
  float v235[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v235[i] = v177[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v180 = v12 + ((long long)gridDim.x * 2);
      const bool v181 = v180 < p7;
      const int v185 = (int)(v180 * 4096);
      const int v187 = (int)p10;
      const int v190 = min((v185 / v187), 3);
      unsigned char* const v191 = peers.base[v190] + p9;
      unsigned char* const v196 = v191 + ((((long long)v190) * p11) * 2);
      const int v202 = v190 + 1;
      const int v203 = v202 * v187;
      float v207[8];
      load_bf16_8(v207 + 0, (const unsigned short*)v196 + (v185 + col0), ((((v185 + col0) < p8) && ((v185 + col0) < v203)) && v181));
      const int v208 = min(v202, 3);
      unsigned char* const v209 = peers.base[v208] + p9;
      unsigned char* const v213 = v209 + ((((long long)v208) * p11) * 2);
      const int v217 = (v208 + 1) * v187;
      float v221[8];
      load_bf16_8(v221 + 0, (const unsigned short*)v213 + (v185 + col0), (((((v185 + col0) < p8) && (!((v185 + col0) < v203))) && ((v185 + col0) < v217)) && v181));
      const int v223 = min((v190 + 2), 3);
      unsigned char* const v224 = peers.base[v223] + p9;
      unsigned char* const v228 = v224 + ((((long long)v223) * p11) * 2);
      float v232[8];
      load_bf16_8(v232 + 0, (const unsigned short*)v228 + (v185 + col0), ((((v185 + col0) < p8) && (!((v185 + col0) < v217))) && v181));
      const int v16 = (int)(v12 * 4096);
      const int v29 = (int)p10;
      const int v34 = (min((v16 / v29), 3)) + 1;
      const int v35 = v34 * v29;
      const int v48 = ((min(v34, 3)) + 1) * v29;
      float v69[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v69[i] = ((v16 + (col0 + i % 8)) < v35) ? v44[i] : (((v16 + (col0 + i % 8)) < v48) ? v57[i] : v67[i]);
      float v74[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v74[i] = v69[i] / (1.0f + (expf((-v69[i]))));
      store_bf16_8((unsigned short*)p12 + (v16 + col0), v74 + 0, ((v16 + col0) < p8));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v44[i] = v233[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v233[i] = v207[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v57[i] = v234[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v234[i] = v221[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v67[i] = v235[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v235[i] = v232[i];
    }
  }
  after_v12:;
  const long long v78 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v78);
  if (p6 && !wait(comm, peers, v78)) return;
  close_comm(comm);
}
