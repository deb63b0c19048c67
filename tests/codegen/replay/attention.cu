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
  const int v3 = (int)(long long)blockIdx.x;
  const long long v7 = (long long)(v3 % 8);
  const long long v13 = ((long long)((((int)p0) - 1) - (v3 / 8))) * 128;
  const int v14 = (int)v13;
  const int v18 = (int)p1;
  const long long v29 = (v7 * p3) * 2;
  unsigned char* const v30 = p2 + v29;
  const long long v36 = min_i64(p1, (v13 + 128));
#pragma unroll
  for (int i = 0; i < 64; i += 8)
    copy_async_16(shared + 0 + (at4 + i % 8 * 2 + i / 8 % 8 * 2048), (const unsigned short*)v30 + (((v14 + (row0 + i / 8 % 8 * 16)) * 64) + (col0 + i % 8)), 1 && ((v14 + (row0 + i / 8 % 8 * 16)) < v18));
  const int v111 = (int)0;
  const bool v117 = 0 < v36;
  const long long v122 = ((v7 / 4) * p3) * 2;
  unsigned char* const v123 = p4 + v122;
  const int v125 = (int)0;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v123 + (((v111 + (row1 + i / 8 % 4 * 16)) * 64) + (col1 + i % 8)), v117 && ((v125 + (row1 + i / 8 % 4 * 16)) < v18));
  unsigned char* const v130 = p5 + v122;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    copy_async_16(shared + 32768 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v130 + (((v111 + (row1 + i / 8 % 4 * 16)) * 64) + (col1 + i % 8)), v117 && ((v125 + (row1 + i / 8 % 4 * 16)) < v18));
  commit_group();
  float v38[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v38[i] = __int_as_float(0xff800000);
  float v39[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v39[i] = 0.0f;
  float v40[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v40[i] = 0.0f;
  int v134 = 0;
  int v136 = 1;
  for (long long v37 = 0; v37 < v36; v37 += 64) {
    wait_group_0();
    const long long v140 = v37 + 64;
    const bool v141 = v140 < v36;
    const long long v146 = ((v7 / 4) * p3) * 2;
    unsigned char* const v147 = p4 + v146;
    const long long v150 = (v140 * 64) * 2;
    unsigned char* const v151 = v147 + v150;
    const int v152 = (int)v140;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 16384 + (int)v136 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v151 + (((v111 + (row1 + i / 8 % 4 * 16)) * 64) + (col1 + i % 8)), v141 && ((v152 + (row1 + i / 8 % 4 * 16)) < v18));
    unsigned char* const v158 = p5 + v146;
    unsigned char* const v159 = v158 + v150;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 32768 + (int)v136 * 8192 + (at5 + i % 8 * 2 + i / 8 % 4 * 2048), (const unsigned short*)v159 + (((v111 + (row1 + i / 8 % 4 * 16)) * 64) + (col1 + i % 8)), v141 && ((v152 + (row1 + i / 8 % 4 * 16)) < v18));
    commit_group();
    const int v43 = (int)v37;
    float v57[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v57[i] = 0.0f;
    {
      const unsigned a = shared + 0;
      const unsigned b = shared + 16384 + (int)v134 * 8192;
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
          for (int n = 0; n < 8; ++n) mma_bf16_bf16(v57 + (m * 8 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    float v63[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v63[i] = (!((v14 + (row3 + i / 2 % 2 * 8 + i / 32 % 2 * 16)) < (v43 + (col3 + i % 2 + i / 4 % 8 * 8)))) ? v57[i] : __int_as_float(0xff800000);
    float v64[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v64[i] = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v64[i / 2 % 2 + i / 32 % 2 * 2] = max_f32(v64[i / 2 % 2 + i / 32 % 2 * 2], v63[i]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v64[i] = max_f32(v64[i], __shfl_xor_sync(0xffffffffu, v64[i], 1));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v64[i] = max_f32(v64[i], __shfl_xor_sync(0xffffffffu, v64[i], 2));
    float v65[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v65[i] = max_f32(v38[i], v64[i]);
    float v68[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v68[i] = (v65[i] == __int_as_float(0xff800000)) ? 0.0f : v65[i];
    float v70[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v70[i] = v68[i] * -0.18033688f;
    float v73[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v73[i] = exp2_approx((__fmaf_rn(v63[i], 0.18033688f, v70[i / 2 % 2 + i / 32 % 2 * 2])));
    float v76[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v76[i] = exp2_approx(((v38[i] - v68[i]) * 0.18033688f));
    float v78[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v78[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v78[i / 2 % 2 + i / 32 % 2 * 2] = v78[i / 2 % 2 + i / 32 % 2 * 2] + v73[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v78[i] = v78[i] + __shfl_xor_sync(0xffffffffu, v78[i], 1);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v78[i] = v78[i] + __shfl_xor_sync(0xffffffffu, v78[i], 2);
    float v79[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v79[i] = (v39[i] * v76[i]) + v78[i];
    float v80[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v80[i] = v40[i] * v76[i / 2 % 2 + i / 32 % 2 * 2];
    {
      const unsigned b = shared + 32768 + (int)v134 * 8192;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[2][4], fb[8][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
          for (int w = 0; w < 4; ++w) fa[m][w] = pack_bf16(v73 + ((m * 4 + k) * 4 + w) * 2);
#pragma unroll
        for (int n = 0; n < 8; n += 2)
          ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 4 * 32)) + k % 4 * 2048));
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 8; ++n) mma_bf16_bf16(v80 + (m * 8 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v165 = v134 + 1;
    const int v169 = (v165 < 2) ? v165 : 0;
    const int v170 = v136 + 1;
    const int v172 = (v170 < 2) ? v170 : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v38[i] = v65[i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v39[i] = v79[i];
#pragma unroll
    for (int i = 0; i < 64; ++i)
      v40[i] = v80[i];
    v134 = v169;
    v136 = v172;
  }
  int v89[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v89[i] = v14 + (row2 + i % 4 * 8);
  bool v90[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v90[i] = v89[i] < v18;
  float v95[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v95[i] = 1.0f / ((v39[i] == 0.0f) ? 1.0f : v39[i]);
  float v96[64];
#pragma unroll
  for (int i = 0; i < 64; ++i)
    v96[i] = v40[i] * v95[i / 2 % 2 + i / 32 % 2 * 2];
  int v99[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v99[i] = v89[i] * 64;
  unsigned char* const v101 = p6 + v29;
#pragma unroll
  for (int i = 0; i < 64; i += 2)
    store_bf16_2((unsigned short*)v101 + (v99[i / 2 % 2 + i / 32 % 2 * 2] + (col3 + i % 2 + i / 4 % 8 * 8)), v96 + i, v90[i / 2 % 2 + i / 32 % 2 * 2]);
}
