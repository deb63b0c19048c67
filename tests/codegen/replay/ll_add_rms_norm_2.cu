// narrow_bf16, narrow_pair_bf16, load_bf16_2, load_bf16_8, round_bf16, store_bf16_2, store_bf16_8, smem, Record, claim, Peers, Comm, epoch_at, flag_at, fence, load_flag, store_flag, global_timer, open_comm, close_comm, signal 4, give_up, await_relaxed, await, wait 4, open_packets, load_packet, is_missing, poll_packet, Missing, find_missing, wait_more, ll_store_bf16_2, unpack_bf16_2
extern "C" __global__ void __launch_bounds__(512, 1) all_reduce_silu_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, unsigned char* p7, long long p8, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 2 + warp % 16 * 64;
  const int at0 = lane % 32 * 2 + warp % 16 * 64;
  const int col1 = lane % 32 * 8 + warp % 16 * 256;
  const int at1 = lane % 32 * 8 + warp % 16 * 256;
  const int at3 = warp % 16;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  open_packets(comm);
  bool lost = false;
  for (long long v9 = (long long)blockIdx.x; v9 < p6; v9 += (long long)gridDim.x) {
    const long long v14 = v9 * 2880;
    unsigned char* const v20 = p7 + (v14 * 2);
    float v21[8];
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      load_bf16_2(v21 + i, (const unsigned short*)v20 + (col0 + i % 2 + i / 2 % 4 * 1024), ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880));
    float v27[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v27[i] = round_bf16((v21[i] / (1.0f + (expf((-v21[i]))))));
    for (long long v28 = 1; v28 < 2; v28 += 1) {
      const long long v31 = ((long long)rank + v28) % 2;
      const long long v39 = p8 + (((((long long)comm.epoch % 2) * 2) + (long long)rank) * 2949120);
      unsigned char* const v40 = peers.base[v31] + v39;
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        ll_store_bf16_2(comm, v40, (v14 + (col0 + i % 2 + i / 2 % 4 * 1024)), v27 + i, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
    }
    const long long v49 = p8 + (((((long long)comm.epoch % 2) * 2) + (long long)rank) * 2949120);
    unsigned char* const v50 = peers.base[(long long)rank] + v49;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      ll_store_bf16_2(comm, v50, (v14 + (col0 + i % 2 + i / 2 % 4 * 1024)), v27 + i, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
  }
  for (long long v52 = (long long)blockIdx.x; v52 < p6; v52 += (long long)gridDim.x) {
    const long long v57 = v52 * 2880;
    const long long v64 = ((long long)comm.epoch % 2) * 2;
    const long long v67 = p8 + (v64 * 2949120);
    unsigned char* const v68 = peers.base[(long long)rank] + v67;
    const long long v72 = p8 + ((v64 + 1) * 2949120);
    unsigned char* const v73 = peers.base[(long long)rank] + v72;
    float v74[8];
    unsigned long long w74[4] = {};
    float v75[8];
    unsigned long long w75[4] = {};
    unsigned long long start74 = 0;
    for (bool more = true; more;) {
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w74[i / 2], comm, v68, (v57 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w75[i / 2], comm, v73, (v57 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      Missing missing = {};
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w74[i / 2], (v57 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 0, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w75[i / 2], (v57 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 1, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      more = wait_more(comm, peers, missing, start74, lost);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v74 + i, (unsigned)w74[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v75 + i, (unsigned)w75[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
    float v76[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v76[i] = v74[i] + v75[i];
    float v78[8];
    unsigned short* const s78 = (unsigned short*)(smem + 0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      store_bf16_2(s78 + (at0 + i % 2 + i / 2 % 4 * 1024), v76 + i, true);
    __syncthreads();
    load_bf16_8(v78 + 0, s78 + at1, true);
    const long long v80 = v57 * 2;
    unsigned char* const v81 = p9 + v80;
    float v82[8];
    load_bf16_8(v82 + 0, (const unsigned short*)v81 + col1, (col1 < 2880));
    float v84[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v84[i] = round_bf16((v78[i] + v82[i]));
    float v88[1];
    v88[0] = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v88[0] = v88[0] + (((col1 + i % 8) < 2880) ? (v84[i] * v84[i]) : 0.0f);
    v88[0] = v88[0] + __shfl_xor_sync(0xffffffffu, v88[0], 1);
    v88[0] = v88[0] + __shfl_xor_sync(0xffffffffu, v88[0], 2);
    v88[0] = v88[0] + __shfl_xor_sync(0xffffffffu, v88[0], 4);
    v88[0] = v88[0] + __shfl_xor_sync(0xffffffffu, v88[0], 8);
    v88[0] = v88[0] + __shfl_xor_sync(0xffffffffu, v88[0], 16);
    float* const s88 = (float*)(smem + 8192);
    __syncthreads();
    if ((lane & 31) == 0) {
      s88[at3] = v88[0];
    }
    __syncthreads();
    v88[0] = s88[0];
#pragma unroll
    for (int w = 1; w < 16; ++w) {
      v88[0] = v88[0] + s88[0 + w];
    }
    const float v90 = (float)2880;
    float v93[1];
    v93[0] = rsqrtf(((v88[0] / v90) + 1e-05f));
    float v96[8];
    load_bf16_8(v96 + 0, (const unsigned short*)p10 + col1, (col1 < 2880));
    float v97[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v97[i] = (v84[i] * v93[0]) * v96[i];
    unsigned char* const v100 = p11 + v80;
    store_bf16_8((unsigned short*)v100 + col1, v97 + 0, (col1 < 2880));
    unsigned char* const v103 = p12 + v80;
    store_bf16_8((unsigned short*)v103 + col1, v84 + 0, (col1 < 2880));
  }
  if (__syncthreads_or(lost)) return;
  close_comm(comm);
}
