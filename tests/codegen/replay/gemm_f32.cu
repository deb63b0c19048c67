// store_f32_2, smem, shared_address, commit_group, copy_async_8, wait_group_6
extern "C" __global__ void __launch_bounds__(32, 1) gemm_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 4 % 8;
  const int col0 = lane % 4 * 4;
  const int row1 = lane / 4 % 8;
  const int at2 = (lane % 32 * 16) ^ (lane / 8 % 4 * 16);
  const int at3 = lane / 4 % 8 * 16 + lane / 8 % 4 * 4;
  const int at4 = lane % 4 * 4;
  const int v1 = (int)(long long)blockIdx.x;
  const int v9 = (v1 / 40) * 8;
  const int v10 = v1 % 40;
  const int v12 = min((((int)p0) - v9), 8);
  const int v17 = (v9 + (v10 % v12)) * 16;
  const int v18 = (v10 / v12) * 16;
  const int v72 = (int)v17;
  const int v76 = (int)0;
  const int v83 = (int)v18;
  const bool v86 = 0 < 130;
  const int v91 = (int)0;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 0 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)p2 + (((v72 + (row0 + i / 4 % 2 * 8)) * 130) + (v76 + (col0 + i % 4))), v86 && (((v72 + (row0 + i / 4 % 2 * 8)) < p1) && ((v91 + (col0 + i % 4)) < 130)));
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 8192 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)p3 + (((v76 + (row0 + i / 4 % 2 * 8)) * 66) + (v83 + (col0 + i % 4))), v86 && (((v91 + (row0 + i / 4 % 2 * 8)) < 130) && ((v83 + (col0 + i % 4)) < 66)));
  commit_group();
  const bool v104 = 16 < 130;
  unsigned char* const v106 = p2 + 64;
  const int v107 = (int)16;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 0 + (int)1 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v106 + (((v72 + (row0 + i / 4 % 2 * 8)) * 130) + (v76 + (col0 + i % 4))), v104 && (((v72 + (row0 + i / 4 % 2 * 8)) < p1) && ((v107 + (col0 + i % 4)) < 130)));
  unsigned char* const v114 = p3 + 4224;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 8192 + (int)1 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v114 + (((v76 + (row0 + i / 4 % 2 * 8)) * 66) + (v83 + (col0 + i % 4))), v104 && (((v107 + (row0 + i / 4 % 2 * 8)) < 130) && ((v83 + (col0 + i % 4)) < 66)));
  commit_group();
  const bool v122 = 32 < 130;
  unsigned char* const v124 = p2 + 128;
  const int v125 = (int)32;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 0 + (int)2 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v124 + (((v72 + (row0 + i / 4 % 2 * 8)) * 130) + (v76 + (col0 + i % 4))), v122 && (((v72 + (row0 + i / 4 % 2 * 8)) < p1) && ((v125 + (col0 + i % 4)) < 130)));
  unsigned char* const v132 = p3 + 8448;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 8192 + (int)2 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v132 + (((v76 + (row0 + i / 4 % 2 * 8)) * 66) + (v83 + (col0 + i % 4))), v122 && (((v125 + (row0 + i / 4 % 2 * 8)) < 130) && ((v83 + (col0 + i % 4)) < 66)));
  commit_group();
  const bool v140 = 48 < 130;
  unsigned char* const v142 = p2 + 192;
  const int v143 = (int)48;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 0 + (int)3 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v142 + (((v72 + (row0 + i / 4 % 2 * 8)) * 130) + (v76 + (col0 + i % 4))), v140 && (((v72 + (row0 + i / 4 % 2 * 8)) < p1) && ((v143 + (col0 + i % 4)) < 130)));
  unsigned char* const v150 = p3 + 12672;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 8192 + (int)3 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v150 + (((v76 + (row0 + i / 4 % 2 * 8)) * 66) + (v83 + (col0 + i % 4))), v140 && (((v143 + (row0 + i / 4 % 2 * 8)) < 130) && ((v83 + (col0 + i % 4)) < 66)));
  commit_group();
  const bool v156 = 64 < 130;
  unsigned char* const v158 = p2 + 256;
  const int v159 = (int)64;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 0 + (int)4 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v158 + (((v72 + (row0 + i / 4 % 2 * 8)) * 130) + (v76 + (col0 + i % 4))), v156 && (((v72 + (row0 + i / 4 % 2 * 8)) < p1) && ((v159 + (col0 + i % 4)) < 130)));
  unsigned char* const v165 = p3 + 16896;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 8192 + (int)4 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v165 + (((v76 + (row0 + i / 4 % 2 * 8)) * 66) + (v83 + (col0 + i % 4))), v156 && (((v159 + (row0 + i / 4 % 2 * 8)) < 130) && ((v83 + (col0 + i % 4)) < 66)));
  commit_group();
  const bool v173 = 80 < 130;
  unsigned char* const v175 = p2 + 320;
  const int v176 = (int)80;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 0 + (int)5 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v175 + (((v72 + (row0 + i / 4 % 2 * 8)) * 130) + (v76 + (col0 + i % 4))), v173 && (((v72 + (row0 + i / 4 % 2 * 8)) < p1) && ((v176 + (col0 + i % 4)) < 130)));
  unsigned char* const v183 = p3 + 21120;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 8192 + (int)5 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v183 + (((v76 + (row0 + i / 4 % 2 * 8)) * 66) + (v83 + (col0 + i % 4))), v173 && (((v176 + (row0 + i / 4 % 2 * 8)) < 130) && ((v83 + (col0 + i % 4)) < 66)));
  commit_group();
  const bool v191 = 96 < 130;
  unsigned char* const v193 = p2 + 384;
  const int v194 = (int)96;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 0 + (int)6 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v193 + (((v72 + (row0 + i / 4 % 2 * 8)) * 130) + (v76 + (col0 + i % 4))), v191 && (((v72 + (row0 + i / 4 % 2 * 8)) < p1) && ((v194 + (col0 + i % 4)) < 130)));
  unsigned char* const v201 = p3 + 25344;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    copy_async_8(shared + 8192 + (int)6 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v201 + (((v76 + (row0 + i / 4 % 2 * 8)) * 66) + (v83 + (col0 + i % 4))), v191 && (((v194 + (row0 + i / 4 % 2 * 8)) < 130) && ((v83 + (col0 + i % 4)) < 66)));
  commit_group();
  float v22[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v22[i] = 0.0f;
  int v208 = 0;
  int v210 = 7;
  for (long long v21 = 0; v21 < 130; v21 += 16) {
    wait_group_6();
    const long long v214 = v21 + 112;
    const bool v215 = v214 < 130;
    unsigned char* const v219 = p2 + (v214 * 4);
    const int v220 = (int)v17;
    const int v225 = (int)v214;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      copy_async_8(shared + 0 + (int)v210 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v219 + (((v72 + (row0 + i / 4 % 2 * 8)) * 130) + (v76 + (col0 + i % 4))), v215 && (((v220 + (row0 + i / 4 % 2 * 8)) < p1) && ((v225 + (col0 + i % 4)) < 130)));
    unsigned char* const v234 = p3 + ((v214 * 66) * 4);
    const int v237 = (int)v18;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      copy_async_8(shared + 8192 + (int)v210 * 1024 + (at2 + i % 4 * 4 + i / 4 % 2 * 512), (const float*)v234 + (((v76 + (row0 + i / 4 % 2 * 8)) * 66) + (v83 + (col0 + i % 4))), v215 && (((v225 + (row0 + i / 4 % 2 * 8)) < 130) && ((v237 + (col0 + i % 4)) < 66)));
    commit_group();
    {
      const float* const a = (float*)(smem + 0 + (int)v208 * 1024);
      const float* const b = (float*)(smem + 8192 + (int)v208 * 1024);
#pragma unroll 2
      for (int k = 0; k < 16; ++k) {
        float fa[2], fb[4];
#pragma unroll
        for (int m = 0; m < 2; ++m) fa[m] = a[((at3 ^ (k % 16)) + m % 2 * 128)];
#pragma unroll
        for (int n = 0; n < 4; ++n) fb[n] = b[((at4 ^ (k / 2 % 4 * 4)) + k % 16 * 16 + n % 4)];
#pragma unroll
        for (int i = 0; i < 8; ++i) v22[i] = __fmaf_rn(fa[i / 4], fb[i % 4], v22[i]);
      }
    }
    const int v246 = v208 + 1;
    const int v250 = (v246 < 8) ? v246 : 0;
    const int v251 = v210 + 1;
    const int v253 = (v251 < 8) ? v251 : 0;
    v208 = v250;
    v210 = v253;
  }
  const int v52 = (int)v17;
  int v54[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v54[i] = v52 + (row1 + i % 2 * 8);
  bool v56[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v56[i] = v54[i] < p1;
  const int v57 = (int)v18;
  int v63[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v63[i] = v54[i] * 66;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_f32_2((float*)p4 + (v63[i / 4 % 2] + (v57 + (col0 + i % 4))), v22 + i, (v56[i / 4 % 2] && ((v57 + (col0 + i % 4)) < 66)));
}
