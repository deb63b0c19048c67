// narrow_f16, narrow_pair_f16, widen_f16, load_f16_1, store_f16_1, Record, claim, Peers 4, Comm, epoch_at, flag_at 4, fence, load_flag, store_flag, global_timer, open_comm 4, close_comm, signal 6, give_up 4, await_relaxed, await, wait 6, open_packets, load_packet, is_missing, poll_packet, Missing, find_missing, wait_more, ll_store_f16_2, unpack_f16_2
extern "C" __global__ void __launch_bounds__(512, 1) all_reduce(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, unsigned char* p8, long long p9, unsigned char* p10) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 2 + warp % 16 * 64;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  open_packets(comm);
  bool lost = false;
  for (long long v9 = (long long)blockIdx.x; v9 < p6; v9 += (long long)gridDim.x) {
    const int v13 = (int)(v9 * 4096);
    float v20[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_f16_1(v20 + i, (const unsigned short*)p8 + (v13 + (col0 + i % 2 + i / 2 % 4 * 1024)), ((v13 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7));
    for (long long v22 = 1; v22 < 3; v22 += 1) {
      const long long v25 = ((long long)rank + v22) % 3;
      const long long v34 = p9 + (((((long long)comm.epoch % 2) * 3) + (long long)rank) * 1025024);
      unsigned char* const v35 = peers.base[v25] + v34;
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        ll_store_f16_2(comm, v35, (v13 + (col0 + i % 2 + i / 2 % 4 * 1024)), v20 + i, ((v13 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v13 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
    }
    const long long v45 = p9 + (((((long long)comm.epoch % 2) * 3) + (long long)rank) * 1025024);
    unsigned char* const v46 = peers.base[(long long)rank] + v45;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      ll_store_f16_2(comm, v46, (v13 + (col0 + i % 2 + i / 2 % 4 * 1024)), v20 + i, ((v13 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v13 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
  }
  for (long long v48 = (long long)blockIdx.x; v48 < p6; v48 += (long long)gridDim.x) {
    const int v52 = (int)(v48 * 4096);
    const long long v63 = ((long long)comm.epoch % 2) * 3;
    const long long v66 = p9 + (v63 * 1025024);
    unsigned char* const v67 = peers.base[(long long)rank] + v66;
    const long long v71 = p9 + ((v63 + 1) * 1025024);
    unsigned char* const v72 = peers.base[(long long)rank] + v71;
    const long long v75 = p9 + ((v63 + 2) * 1025024);
    unsigned char* const v76 = peers.base[(long long)rank] + v75;
    float v77[8];
    unsigned long long w77[4] = {};
    float v78[8];
    unsigned long long w78[4] = {};
    float v79[8];
    unsigned long long w79[4] = {};
    unsigned long long start77 = 0;
    for (bool more = true; more;) {
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w77[i / 2], comm, v67, (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w78[i / 2], comm, v72, (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w79[i / 2], comm, v76, (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
      Missing missing = {};
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w77[i / 2], (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 0, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w78[i / 2], (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 1, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w79[i / 2], (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 2, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
      more = wait_more(comm, peers, missing, start77, lost);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_f16_2(v77 + i, (unsigned)w77[i / 2], ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7), ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_f16_2(v78 + i, (unsigned)w78[i / 2], ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7), ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_f16_2(v79 + i, (unsigned)w79[i / 2], ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7), ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
    float v81[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v81[i] = (v77[i] + v78[i]) + v79[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_f16_1((unsigned short*)p10 + (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)), v81 + i, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7));
  }
  if (__syncthreads_or(lost)) return;
  close_comm(comm);
}
