// load_f32_1, store_f32_1, Record, claim, Peers 4, Comm, epoch_at, flag_at 4, fence, load_flag, store_flag, global_timer, open_comm 4, close_comm, signal 6, give_up 4, await_relaxed, await, wait 6
extern "C" __global__ void __launch_bounds__(512, 1) all_reduce(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, unsigned char* p10) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v38 = (long long)blockIdx.x < p7;
  unsigned char* const v41 = peers.base[0] + p9;
  const int v44 = (int)((long long)blockIdx.x * 4096);
  float v50[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v50 + i, (const float*)v41 + (v44 + (col0 + i % 8)), (((v44 + (col0 + i % 8)) < p8) && v38));
  unsigned char* const v52 = peers.base[1] + p9;
  float v53[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v53 + i, (const float*)v52 + (v44 + (col0 + i % 8)), (((v44 + (col0 + i % 8)) < p8) && v38));
  unsigned char* const v55 = peers.base[2] + p9;
  float v56[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v56 + i, (const float*)v55 + (v44 + (col0 + i % 8)), (((v44 + (col0 + i % 8)) < p8) && v38));
  float v25[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v25[i] = v50[i];
  float v27[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v27[i] = v53[i];
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = v56[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7; v12 += (long long)gridDim.x) {
    const long long v57 = v12 + (long long)gridDim.x;
    const bool v58 = v57 < p7;
    unsigned char* const v61 = peers.base[0] + p9;
    const int v64 = (int)(v57 * 4096);
    float v70[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_f32_1(v70 + i, (const float*)v61 + (v64 + (col0 + i % 8)), (((v64 + (col0 + i % 8)) < p8) && v58));
    unsigned char* const v72 = peers.base[1] + p9;
    float v73[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_f32_1(v73 + i, (const float*)v72 + (v64 + (col0 + i % 8)), (((v64 + (col0 + i % 8)) < p8) && v58));
    unsigned char* const v75 = peers.base[2] + p9;
    float v76[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_f32_1(v76 + i, (const float*)v75 + (v64 + (col0 + i % 8)), (((v64 + (col0 + i % 8)) < p8) && v58));
    const int v16 = (int)(v12 * 4096);
    float v32[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v32[i] = (v25[i] + v27[i]) + v31[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_f32_1((float*)p10 + (v16 + (col0 + i % 8)), v32 + i, ((v16 + (col0 + i % 8)) < p8));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v25[i] = v70[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v27[i] = v73[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v31[i] = v76[i];
  }
  const long long v35 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v35);
  if (p6 && !wait(comm, peers, v35)) return;
  close_comm(comm);
}
