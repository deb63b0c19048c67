// narrow_bf16, narrow_pair_bf16, load_bf16_2, load_bf16_8, round_bf16, store_bf16_2, store_bf16_8, smem, Record, claim, Peers 3, Comm, epoch_at, flag_at 3, fence, load_flag, store_flag, global_timer, open_comm 3, close_comm, signal 5, give_up 3, await_relaxed, await, wait 5, open_packets, load_packet, is_missing, poll_packet, Missing, find_missing, wait_more, ll_store_bf16_2, unpack_bf16_2
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
    for (long long v29 = 1; v29 < 8; v29 += 1) {
      const long long v32 = ((long long)rank + v29) % 8;
      const long long v40 = p8 + (((((long long)comm.epoch % 2) * 8) + (long long)rank) * 2949120);
      unsigned char* const v41 = peers.base[v32] + v40;
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        ll_store_bf16_2(comm, v41, (v14 + (col0 + i % 2 + i / 2 % 4 * 1024)), v27 + i, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
    }
    const long long v50 = p8 + (((((long long)comm.epoch % 2) * 8) + (long long)rank) * 2949120);
    unsigned char* const v51 = peers.base[(long long)rank] + v50;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      ll_store_bf16_2(comm, v51, (v14 + (col0 + i % 2 + i / 2 % 4 * 1024)), v27 + i, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
  }
  for (long long v53 = (long long)blockIdx.x; v53 < p6; v53 += (long long)gridDim.x) {
    const long long v58 = v53 * 2880;
    const long long v66 = ((long long)comm.epoch % 2) * 8;
    const long long v69 = p8 + (v66 * 2949120);
    unsigned char* const v70 = peers.base[(long long)rank] + v69;
    const long long v74 = p8 + ((v66 + 1) * 2949120);
    unsigned char* const v75 = peers.base[(long long)rank] + v74;
    const long long v78 = p8 + ((v66 + 2) * 2949120);
    unsigned char* const v79 = peers.base[(long long)rank] + v78;
    const long long v83 = p8 + ((v66 + 3) * 2949120);
    unsigned char* const v84 = peers.base[(long long)rank] + v83;
    const long long v88 = p8 + ((v66 + 4) * 2949120);
    unsigned char* const v89 = peers.base[(long long)rank] + v88;
    const long long v93 = p8 + ((v66 + 5) * 2949120);
    unsigned char* const v94 = peers.base[(long long)rank] + v93;
    const long long v98 = p8 + ((v66 + 6) * 2949120);
    unsigned char* const v99 = peers.base[(long long)rank] + v98;
    const long long v103 = p8 + ((v66 + 7) * 2949120);
    unsigned char* const v104 = peers.base[(long long)rank] + v103;
    float v105[8];
    unsigned long long w105[4] = {};
    float v106[8];
    unsigned long long w106[4] = {};
    float v107[8];
    unsigned long long w107[4] = {};
    float v108[8];
    unsigned long long w108[4] = {};
    unsigned long long start105 = 0;
    for (bool more = true; more;) {
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w105[i / 2], comm, v70, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w106[i / 2], comm, v75, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w107[i / 2], comm, v79, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w108[i / 2], comm, v84, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      Missing missing = {};
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w105[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 0, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w106[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 1, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w107[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w108[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 3, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      more = wait_more(comm, peers, missing, start105, lost);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v105 + i, (unsigned)w105[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v106 + i, (unsigned)w106[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v107 + i, (unsigned)w107[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v108 + i, (unsigned)w108[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
    float v112[8];
    unsigned long long w112[4] = {};
    float v113[8];
    unsigned long long w113[4] = {};
    float v114[8];
    unsigned long long w114[4] = {};
    float v115[8];
    unsigned long long w115[4] = {};
    unsigned long long start112 = 0;
    for (bool more = true; more;) {
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w112[i / 2], comm, v89, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w113[i / 2], comm, v94, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w114[i / 2], comm, v99, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w115[i / 2], comm, v104, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      Missing missing = {};
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w112[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 4, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w113[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 5, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w114[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 6, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w115[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 7, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      more = wait_more(comm, peers, missing, start112, lost);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v112 + i, (unsigned)w112[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v113 + i, (unsigned)w113[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v114 + i, (unsigned)w114[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v115 + i, (unsigned)w115[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
    float v119[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v119[i] = ((((((v105[i] + v106[i]) + v107[i]) + v108[i]) + v112[i]) + v113[i]) + v114[i]) + v115[i];
    float v121[8];
    unsigned short* const s121 = (unsigned short*)(smem + 0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      store_bf16_2(s121 + (at0 + i % 2 + i / 2 % 4 * 1024), v119 + i, true);
    __syncthreads();
    load_bf16_8(v121 + 0, s121 + at1, true);
    const long long v123 = v58 * 2;
    unsigned char* const v124 = p9 + v123;
    float v125[8];
    load_bf16_8(v125 + 0, (const unsigned short*)v124 + col1, (col1 < 2880));
    float v127[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v127[i] = round_bf16((v121[i] + v125[i]));
    float v131[1];
    v131[0] = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v131[0] = v131[0] + (((col1 + i % 8) < 2880) ? (v127[i] * v127[i]) : 0.0f);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 1);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 2);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 4);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 8);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 16);
    float* const s131 = (float*)(smem + 8192);
    __syncthreads();
    if ((lane & 31) == 0) {
      s131[at3] = v131[0];
    }
    __syncthreads();
    v131[0] = s131[0];
#pragma unroll
    for (int w = 1; w < 16; ++w) {
      v131[0] = v131[0] + s131[0 + w];
    }
    const float v133 = (float)2880;
    float v136[1];
    v136[0] = rsqrtf(((v131[0] / v133) + 1e-05f));
    float v139[8];
    load_bf16_8(v139 + 0, (const unsigned short*)p10 + col1, (col1 < 2880));
    float v140[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v140[i] = (v127[i] * v136[0]) * v139[i];
    unsigned char* const v143 = p11 + v123;
    store_bf16_8((unsigned short*)v143 + col1, v140 + 0, (col1 < 2880));
    unsigned char* const v146 = p12 + v123;
    store_bf16_8((unsigned short*)v146 + col1, v127 + 0, (col1 < 2880));
  }
  if (__syncthreads_or(lost)) return;
  close_comm(comm);
}
