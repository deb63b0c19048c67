// narrow_pair_bf16, store_bf16_2, exp2_approx, max_f32, min_i64, smem, shared_address, commit_group, copy_async_16, wait_group_0, ldmatrix, ldmatrix_trans, mma_bf16_bf16, pack_bf16
extern "C" __global__ void __launch_bounds__(128, 1) attention_scaled_dot_product_attention(long long p0, long long p1, unsigned char* __restrict__ p2, long long p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 4 * 4;
  const int col0 = lane % 8 * 8;
  const int row1 = lane / 8 % 4 + warp % 4 * 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 4 % 8 + warp % 4 * 32;
  const int row3 = lane / 4 % 8 + warp % 4 * 32;
  const int col3 = lane % 4 * 2;
  const int at4 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 4 * 512;
  const int at6 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp % 4 * 4096;
  const int at7 = ((lane % 8 * 16) ^ (lane / 8 % 2 * 16)) + lane % 8 * 128 + lane / 16 % 2 * 1024;
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128;
  const int v2 = (int)p0;
  const int v3 = (int)(long long)blockIdx.x;
  const long long v5 = (long long)(v3 / v2);
  const long long v12 = ((long long)((v2 - 1) - (v3 % v2))) * 128;
  const int v13 = (int)v12;
  const int v17 = (int)p1;
  const long long v28 = (v5 * p3) * 2;
  unsigned char* const v29 = p2 + v28;
  const long long v35 = min_i64(p1, (v12 + 128));
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 0 + (at4 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)v29 + (((v13 + (row0 + i / 8 % 8 * 16)) * 64) + (col0 + i % 8)), 1 && ((v13 + (row0 + i / 8 % 8 * 16)) < v17));
  const int v108 = (int)0;
  const bool v114 = 0 < v35;
  const long long v119 = ((v5 / 4) * p3) * 2;
  unsigned char* const v120 = p4 + v119;
  const int v122 = (int)0;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v120 + (((v108 + (row1 + i / 8 % 4 * 16)) * 64) + (col1 + i % 8)), v114 && ((v122 + (row1 + i / 8 % 4 * 16)) < v17));
  unsigned char* const v127 = p5 + v119;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v127 + (((v108 + (row1 + i / 8 % 4 * 16)) * 64) + (col1 + i % 8)), v114 && ((v122 + (row1 + i / 8 % 4 * 16)) < v17));
  commit_group();
  float v37[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v37[i] = __int_as_float(0xff800000);
  float v38[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v38[i] = 0.0f;
  float v39[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v39[i] = 0.0f;
  int v131 = 0;
  int v133 = 1;
  for (long long v36 = 0; v36 < v35; v36 += 64) {
    wait_group_0();
    const long long v137 = v36 + 64;
    const bool v138 = v137 < v35;
    const long long v143 = ((v5 / 4) * p3) * 2;
    unsigned char* const v144 = p4 + v143;
    const long long v147 = (v137 * 64) * 2;
    unsigned char* const v148 = v144 + v147;
    const int v149 = (int)v137;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 16384 + (int)v133 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v148 + (((v108 + (row1 + i / 8 % 4 * 16)) * 64) + (col1 + i % 8)), v138 && ((v149 + (row1 + i / 8 % 4 * 16)) < v17));
    unsigned char* const v155 = p5 + v143;
    unsigned char* const v156 = v155 + v147;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 32768 + (int)v133 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v156 + (((v108 + (row1 + i / 8 % 4 * 16)) * 64) + (col1 + i % 8)), v138 && ((v149 + (row1 + i / 8 % 4 * 16)) < v17));
    commit_group();
    const int v42 = (int)v36;
    float v56[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v56[i] = 0.0f;
    {
      const unsigned a = shared + 0;
      const unsigned b = shared + 16384 + (int)v131 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[8][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          ldmatrix(fa[m], a + ((at6 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
        for (int n = 0; n < 8; n += 2)
          ldmatrix(fb[n], b + ((at7 ^ (k % 4 * 32)) + n / 2 % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 8; ++n) mma_bf16_bf16(v56 + (m * 8 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    float v62[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v62[i] = (!((v13 + (row3 + i / 2 % 2 * 8 + i / 32 % 2 * 16)) < (v42 + (col3 + i % 2 + i / 4 % 8 * 8)))) ? v56[i] : __int_as_float(0xff800000);
    float v63[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v63[i] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v63[i / 2 % 2 + i / 32 % 2 * 2] = max_f32(v63[i / 2 % 2 + i / 32 % 2 * 2], v62[i]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v63[i] = max_f32(v63[i], __shfl_xor_sync(0xffffffffu, v63[i], 1));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v63[i] = max_f32(v63[i], __shfl_xor_sync(0xffffffffu, v63[i], 2));
    float v64[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v64[i] = max_f32(v37[i], v63[i]);
    float v69[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v69[i] = ((v64[i] == __int_as_float(0xff800000)) ? 0.0f : v64[i]) * -0.18033688f;
    float v72[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v72[i] = exp2_approx((__fmaf_rn(v62[i], 0.18033688f, v69[i / 2 % 2 + i / 32 % 2 * 2])));
    float v74[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v74[i] = exp2_approx((__fmaf_rn(v37[i], 0.18033688f, v69[i])));
    float v76[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v76[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v76[i / 2 % 2 + i / 32 % 2 * 2] = v76[i / 2 % 2 + i / 32 % 2 * 2] + v72[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v76[i] = v76[i] + __shfl_xor_sync(0xffffffffu, v76[i], 1);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v76[i] = v76[i] + __shfl_xor_sync(0xffffffffu, v76[i], 2);
    float v77[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v77[i] = (v38[i] * v74[i]) + v76[i];
    float v78[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v78[i] = v39[i] * v74[i / 2 % 2 + i / 32 % 2 * 2];
    {
      const unsigned b = shared + 32768 + (int)v131 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[8][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v72 + ((m * 4 + k) * 4 + w) * 2);
#pragma unroll
        for (int n = 0; n < 8; n += 2)
          ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 4 * 32)) + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 8; ++n) mma_bf16_bf16(v78 + (m * 8 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v162 = v131 + 1;
    const int v166 = (v162 < 2) ? v162 : 0;
    const int v167 = v133 + 1;
    const int v169 = (v167 < 2) ? v167 : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v37[i] = v64[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v38[i] = v77[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v39[i] = v78[i];
    v131 = v166;
    v133 = v169;
  }
  int v87[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v87[i] = v13 + (row2 + i % 4 * 8);
  bool v88[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v88[i] = v87[i] < v17;
  float v92[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v92[i] = (v38[i] == 0.0f) ? 1.0f : v38[i];
  float v93[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v93[i] = v39[i] / v92[i / 2 % 2 + i / 32 % 2 * 2];
  int v96[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v96[i] = v87[i] * 64;
  unsigned char* const v98 = p6 + v28;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_bf16_2((unsigned short*)v98 + (v96[i / 2 % 2 + i / 32 % 2 * 2] + (col3 + i % 2 + i / 4 % 8 * 8)), v93 + i, v88[i / 2 % 2 + i / 32 % 2 * 2]);
}
