// narrow_pair_bf16, load_bf16_8, store_bf16_8, Record, claim, Peers 2, Comm, epoch_at, flag_at 2, fence, load_flag, store_flag, global_timer, open_comm 2, close_comm, signal 7, give_up 2, await_relaxed, await, wait 7
extern "C" __global__ void __launch_bounds__(512, 1) shard_dim_alltoall(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, long long p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v76 = (long long)blockIdx.x < p7;
  unsigned char* const v79 = peers.base[0] + p9;
  const int v82 = (int)((long long)blockIdx.x * 4096);
  const int v91 = (int)((long long)rank * 512);
  const int v97 = (int)p11;
  float v101[8];
  load_bf16_8(v101 + 0, (const unsigned short*)v79 + ((((v82 + col0) / 512) * 2048) + (((v82 + col0) % 512) + v91)), ((((v82 + col0) < p8) && ((v82 + col0) < v97)) && v76));
  unsigned char* const v103 = peers.base[1] + p9;
  unsigned char* const v107 = v103 + (p10 * 2);
  const int v110 = 2 * v97;
  float v114[8];
  load_bf16_8(v114 + 0, (const unsigned short*)v107 + ((((v82 + col0) / 512) * 2048) + (((v82 + col0) % 512) + v91)), (((((v82 + col0) < p8) && (!((v82 + col0) < v97))) && ((v82 + col0) < v110)) && v76));
  unsigned char* const v115 = peers.base[2] + p9;
  unsigned char* const v118 = v115 + ((2 * p10) * 2);
  const int v122 = 3 * v97;
  float v126[8];
  load_bf16_8(v126 + 0, (const unsigned short*)v118 + ((((v82 + col0) / 512) * 2048) + (((v82 + col0) % 512) + v91)), (((((v82 + col0) < p8) && (!((v82 + col0) < v110))) && ((v82 + col0) < v122)) && v76));
  unsigned char* const v127 = peers.base[3] + p9;
  unsigned char* const v130 = v127 + ((3 * p10) * 2);
  float v134[8];
  load_bf16_8(v134 + 0, (const unsigned short*)v130 + ((((v82 + col0) / 512) * 2048) + (((v82 + col0) % 512) + v91)), ((((v82 + col0) < p8) && (!((v82 + col0) < v122))) && v76));
  const long long v135 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v136 = v135 < p7;
  const int v138 = (int)(v135 * 4096);
  float v149[8];
  load_bf16_8(v149 + 0, (const unsigned short*)v79 + ((((v138 + col0) / 512) * 2048) + (((v138 + col0) % 512) + v91)), ((((v138 + col0) < p8) && ((v138 + col0) < v97)) && v136));
  float v155[8];
  load_bf16_8(v155 + 0, (const unsigned short*)v107 + ((((v138 + col0) / 512) * 2048) + (((v138 + col0) % 512) + v91)), (((((v138 + col0) < p8) && (!((v138 + col0) < v97))) && ((v138 + col0) < v110)) && v136));
  float v161[8];
  load_bf16_8(v161 + 0, (const unsigned short*)v118 + ((((v138 + col0) / 512) * 2048) + (((v138 + col0) % 512) + v91)), (((((v138 + col0) < p8) && (!((v138 + col0) < v110))) && ((v138 + col0) < v122)) && v136));
  float v165[8];
  load_bf16_8(v165 + 0, (const unsigned short*)v130 + ((((v138 + col0) / 512) * 2048) + (((v138 + col0) % 512) + v91)), ((((v138 + col0) < p8) && (!((v138 + col0) < v122))) && v136));
  float v41[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v41[i] = v101[i];
  float v227[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v227[i] = v149[i];
  float v50[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v50[i] = v114[i];
  float v228[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v228[i] = v155[i];
  float v60[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v60[i] = v126[i];
  float v229[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v229[i] = v161[i];
  float v67[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v67[i] = v134[i];
  float v230[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v230[i] = v165[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v168 = v12 + ((long long)gridDim.x * 2);
      const bool v169 = v168 < p7;
      unsigned char* const v172 = peers.base[0] + p9;
      const int v175 = (int)(v168 * 4096);
      const int v184 = (int)((long long)rank * 512);
      const int v190 = (int)p11;
      float v194[8];
      load_bf16_8(v194 + 0, (const unsigned short*)v172 + ((((v175 + col0) / 512) * 2048) + (((v175 + col0) % 512) + v184)), ((((v175 + col0) < p8) && ((v175 + col0) < v190)) && v169));
      unsigned char* const v196 = peers.base[1] + p9;
      unsigned char* const v199 = v196 + (p10 * 2);
      const int v202 = 2 * v190;
      float v206[8];
      load_bf16_8(v206 + 0, (const unsigned short*)v199 + ((((v175 + col0) / 512) * 2048) + (((v175 + col0) % 512) + v184)), (((((v175 + col0) < p8) && (!((v175 + col0) < v190))) && ((v175 + col0) < v202)) && v169));
      unsigned char* const v207 = peers.base[2] + p9;
      unsigned char* const v210 = v207 + ((2 * p10) * 2);
      const int v214 = 3 * v190;
      float v218[8];
      load_bf16_8(v218 + 0, (const unsigned short*)v210 + ((((v175 + col0) / 512) * 2048) + (((v175 + col0) % 512) + v184)), (((((v175 + col0) < p8) && (!((v175 + col0) < v202))) && ((v175 + col0) < v214)) && v169));
      unsigned char* const v219 = peers.base[3] + p9;
      unsigned char* const v222 = v219 + ((3 * p10) * 2);
      float v226[8];
      load_bf16_8(v226 + 0, (const unsigned short*)v222 + ((((v175 + col0) / 512) * 2048) + (((v175 + col0) % 512) + v184)), ((((v175 + col0) < p8) && (!((v175 + col0) < v214))) && v169));
      const int v16 = (int)(v12 * 4096);
      const int v33 = (int)p11;
      const int v43 = 2 * v33;
      const int v52 = 3 * v33;
      float v70[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v70[i] = ((v16 + (col0 + i % 8)) < v33) ? v41[i] : (((v16 + (col0 + i % 8)) < v43) ? v50[i] : (((v16 + (col0 + i % 8)) < v52) ? v60[i] : v67[i]));
      store_bf16_8((unsigned short*)p12 + (v16 + col0), v70 + 0, ((v16 + col0) < p8));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v41[i] = v227[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v227[i] = v194[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v50[i] = v228[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v228[i] = v206[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v60[i] = v229[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v229[i] = v218[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v67[i] = v230[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v230[i] = v226[i];
    }
  }
  after_v12:;
  const long long v73 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v73);
  if (p6 && !wait(comm, peers, v73)) return;
  close_comm(comm);
}
