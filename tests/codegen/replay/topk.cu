// load_f32_4, store_f32_1, store_i64_1, max_f32, min_i64
extern "C" __global__ void __launch_bounds__(128, 1) topk(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 16 % 2 + warp % 4 * 2;
  const int col1 = lane % 16 * 8;
  const int v3 = (int)((long long)blockIdx.x * 8);
  int v5[1];
  v5[0] = v3 + row0;
  bool v7[1];
  v7[0] = v5[0] < p0;
  int v12[1];
  v12[0] = v5[0] * 128;
  float v15[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4)
    load_f32_4(v15 + i, (const float*)p1 + (v12[0] + (col1 + i % 8)), v7[0]);
  bool v17[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v17[i] = !(v15[i] == v15[i]);
  float v22[1];
  v22[0] = __int_as_float(0x7fffffff);
  long long v23[1];
  v23[0] = -1;
  for (long long v21 = 0; v21 < 8; v21 += 1) {
    bool v27[1];
    v27[0] = !(v22[0] == v22[0]);
    bool v46[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v46[i] = (!((!(!((!(v15[i] < v22[0])) && (!(v27[0] && (!v17[i])))))) && (!((!((!(v15[i] == v22[0])) && (!(v17[i] && v27[0])))) && (v23[0] < ((long long)(col1 + i % 8))))))) && v7[0];
    float v49[1];
    v49[0] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v49[0] = max_f32(v49[0], (v46[i] ? v15[i] : __int_as_float(0xff800000)));
    v49[0] = max_f32(v49[0], __shfl_xor_sync(0xffffffffu, v49[0], 1));
    v49[0] = max_f32(v49[0], __shfl_xor_sync(0xffffffffu, v49[0], 2));
    v49[0] = max_f32(v49[0], __shfl_xor_sync(0xffffffffu, v49[0], 4));
    v49[0] = max_f32(v49[0], __shfl_xor_sync(0xffffffffu, v49[0], 8));
    bool v53[1];
    v53[0] = !(v49[0] == v49[0]);
    long long v61[1];
    v61[0] = 9223372036854775807LL;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v61[0] = min_i64(v61[0], ((v46[i] && (!((!(v15[i] == v49[0])) && (!(v17[i] && v53[0]))))) ? ((long long)(col1 + i % 8)) : 9223372036854775807LL));
    v61[0] = min_i64(v61[0], __shfl_xor_sync(0xffffffffu, v61[0], 1));
    v61[0] = min_i64(v61[0], __shfl_xor_sync(0xffffffffu, v61[0], 2));
    v61[0] = min_i64(v61[0], __shfl_xor_sync(0xffffffffu, v61[0], 4));
    v61[0] = min_i64(v61[0], __shfl_xor_sync(0xffffffffu, v61[0], 8));
    float v64[1];
    v64[0] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v64[0] = max_f32(v64[0], ((((long long)(col1 + i % 8)) == v61[0]) ? v15[i] : __int_as_float(0xff800000)));
    v64[0] = max_f32(v64[0], __shfl_xor_sync(0xffffffffu, v64[0], 1));
    v64[0] = max_f32(v64[0], __shfl_xor_sync(0xffffffffu, v64[0], 2));
    v64[0] = max_f32(v64[0], __shfl_xor_sync(0xffffffffu, v64[0], 4));
    v64[0] = max_f32(v64[0], __shfl_xor_sync(0xffffffffu, v64[0], 8));
    int v66[1];
    v66[0] = v5[0] * 8;
    unsigned char* const v69 = p2 + (v21 * 4);
    store_f32_1((float*)v69 + v66[0], v64 + 0, (lane & 15) == 0 && v7[0]);
    unsigned char* const v73 = p3 + (v21 * 8);
    store_i64_1((long long*)v73 + v66[0], v61 + 0, (lane & 15) == 0 && v7[0]);
    v22[0] = v49[0];
    v23[0] = v61[0];
  }
}
