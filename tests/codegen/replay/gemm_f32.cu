// store_f32_2, smem, shared_address, commit_group, copy_async_8, wait_group_6
extern "C" __global__ void __launch_bounds__(32, 1) gemm_mm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int row0 = lane / 8 % 4;
  const int col0 = lane % 8 * 4;
  const int row1 = lane / 4 % 8;
  const int col1 = lane % 4 * 4;
  const int col2 = lane % 4 * 4;
  const int row3 = lane / 4 % 8;
  const int at4 = (lane % 32 * 16) ^ (lane / 8 % 4 * 16);
  const int at5 = (lane % 32 * 16) ^ (lane / 8 % 4 * 16);
  const int at6 = lane / 4 % 8 * 4 + lane / 4 % 8 * 32;
  const int at7 = lane % 4 * 4;
  const int v1 = (int)(long long)blockIdx.x;
  const int v9 = (v1 / 40) * 8;
  const int v10 = v1 % 40;
  const int v12 = min((((int)p0) - v9), 8);
  const int v17 = (v9 + (v10 % v12)) * 16;
  const int v18 = (v10 / v12) * 16;
  const int v75 = (int)v17;
  const int v79 = (int)0;
  const int v87 = (int)v18;
  const bool v91 = 0 < 130;
  const int v96 = (int)0;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + ((at4 ^ (i / 4 % 2 * 64)) + i % 4 * 4 + i / 4 % 4 * 512), (const float*)p2 + (((v75 + (row0 + i / 4 % 4 * 4)) * 130) + (v79 + (col0 + i % 4))), v91 && (((v75 + (row0 + i / 4 % 4 * 4)) < p1) && ((v96 + (col0 + i % 4)) < 130)));
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 16384 + (at5 + i % 4 * 4 + i / 4 % 4 * 512), (const float*)p3 + (((v79 + (row1 + i / 4 % 4 * 8)) * 66) + (v87 + (col1 + i % 4))), v91 && (((v96 + (row1 + i / 4 % 4 * 8)) < 130) && ((v87 + (col1 + i % 4)) < 66)));
  commit_group();
  const bool v109 = 32 < 130;
  unsigned char* const v111 = p2 + 128;
  const int v112 = (int)32;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + (int)1 * 2048 + ((at4 ^ (i / 4 % 2 * 64)) + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v111 + (((v75 + (row0 + i / 4 % 4 * 4)) * 130) + (v79 + (col0 + i % 4))), v109 && (((v75 + (row0 + i / 4 % 4 * 4)) < p1) && ((v112 + (col0 + i % 4)) < 130)));
  unsigned char* const v119 = p3 + 8448;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 16384 + (int)1 * 2048 + (at5 + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v119 + (((v79 + (row1 + i / 4 % 4 * 8)) * 66) + (v87 + (col1 + i % 4))), v109 && (((v112 + (row1 + i / 4 % 4 * 8)) < 130) && ((v87 + (col1 + i % 4)) < 66)));
  commit_group();
  const bool v127 = 64 < 130;
  unsigned char* const v129 = p2 + 256;
  const int v130 = (int)64;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + (int)2 * 2048 + ((at4 ^ (i / 4 % 2 * 64)) + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v129 + (((v75 + (row0 + i / 4 % 4 * 4)) * 130) + (v79 + (col0 + i % 4))), v127 && (((v75 + (row0 + i / 4 % 4 * 4)) < p1) && ((v130 + (col0 + i % 4)) < 130)));
  unsigned char* const v137 = p3 + 16896;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 16384 + (int)2 * 2048 + (at5 + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v137 + (((v79 + (row1 + i / 4 % 4 * 8)) * 66) + (v87 + (col1 + i % 4))), v127 && (((v130 + (row1 + i / 4 % 4 * 8)) < 130) && ((v87 + (col1 + i % 4)) < 66)));
  commit_group();
  const bool v145 = 96 < 130;
  unsigned char* const v147 = p2 + 384;
  const int v148 = (int)96;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + (int)3 * 2048 + ((at4 ^ (i / 4 % 2 * 64)) + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v147 + (((v75 + (row0 + i / 4 % 4 * 4)) * 130) + (v79 + (col0 + i % 4))), v145 && (((v75 + (row0 + i / 4 % 4 * 4)) < p1) && ((v148 + (col0 + i % 4)) < 130)));
  unsigned char* const v155 = p3 + 25344;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 16384 + (int)3 * 2048 + (at5 + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v155 + (((v79 + (row1 + i / 4 % 4 * 8)) * 66) + (v87 + (col1 + i % 4))), v145 && (((v148 + (row1 + i / 4 % 4 * 8)) < 130) && ((v87 + (col1 + i % 4)) < 66)));
  commit_group();
  const bool v161 = 128 < 130;
  unsigned char* const v163 = p2 + 512;
  const int v164 = (int)128;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + (int)4 * 2048 + ((at4 ^ (i / 4 % 2 * 64)) + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v163 + (((v75 + (row0 + i / 4 % 4 * 4)) * 130) + (v79 + (col0 + i % 4))), v161 && (((v75 + (row0 + i / 4 % 4 * 4)) < p1) && ((v164 + (col0 + i % 4)) < 130)));
  unsigned char* const v170 = p3 + 33792;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 16384 + (int)4 * 2048 + (at5 + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v170 + (((v79 + (row1 + i / 4 % 4 * 8)) * 66) + (v87 + (col1 + i % 4))), v161 && (((v164 + (row1 + i / 4 % 4 * 8)) < 130) && ((v87 + (col1 + i % 4)) < 66)));
  commit_group();
  const bool v178 = 160 < 130;
  unsigned char* const v180 = p2 + 640;
  const int v181 = (int)160;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + (int)5 * 2048 + ((at4 ^ (i / 4 % 2 * 64)) + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v180 + (((v75 + (row0 + i / 4 % 4 * 4)) * 130) + (v79 + (col0 + i % 4))), v178 && (((v75 + (row0 + i / 4 % 4 * 4)) < p1) && ((v181 + (col0 + i % 4)) < 130)));
  unsigned char* const v188 = p3 + 42240;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 16384 + (int)5 * 2048 + (at5 + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v188 + (((v79 + (row1 + i / 4 % 4 * 8)) * 66) + (v87 + (col1 + i % 4))), v178 && (((v181 + (row1 + i / 4 % 4 * 8)) < 130) && ((v87 + (col1 + i % 4)) < 66)));
  commit_group();
  const bool v196 = 192 < 130;
  unsigned char* const v198 = p2 + 768;
  const int v199 = (int)192;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 0 + (int)6 * 2048 + ((at4 ^ (i / 4 % 2 * 64)) + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v198 + (((v75 + (row0 + i / 4 % 4 * 4)) * 130) + (v79 + (col0 + i % 4))), v196 && (((v75 + (row0 + i / 4 % 4 * 4)) < p1) && ((v199 + (col0 + i % 4)) < 130)));
  unsigned char* const v206 = p3 + 50688;
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    copy_async_8(shared + 16384 + (int)6 * 2048 + (at5 + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v206 + (((v79 + (row1 + i / 4 % 4 * 8)) * 66) + (v87 + (col1 + i % 4))), v196 && (((v199 + (row1 + i / 4 % 4 * 8)) < 130) && ((v87 + (col1 + i % 4)) < 66)));
  commit_group();
  float v23[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v23[i] = 0.0f;
  int v213 = 0;
  int v215 = 7;
  for (long long v22 = 0; v22 < 130; v22 += 32) {
    wait_group_6();
    const long long v219 = v22 + 224;
    const bool v220 = v219 < 130;
    unsigned char* const v224 = p2 + (v219 * 4);
    const int v225 = (int)v17;
    const int v230 = (int)v219;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      copy_async_8(shared + 0 + (int)v215 * 2048 + ((at4 ^ (i / 4 % 2 * 64)) + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v224 + (((v75 + (row0 + i / 4 % 4 * 4)) * 130) + (v79 + (col0 + i % 4))), v220 && (((v225 + (row0 + i / 4 % 4 * 4)) < p1) && ((v230 + (col0 + i % 4)) < 130)));
    unsigned char* const v239 = p3 + ((v219 * 66) * 4);
    const int v243 = (int)v18;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      copy_async_8(shared + 16384 + (int)v215 * 2048 + (at5 + i % 4 * 4 + i / 4 % 4 * 512), (const float*)v239 + (((v79 + (row1 + i / 4 % 4 * 8)) * 66) + (v87 + (col1 + i % 4))), v220 && (((v230 + (row1 + i / 4 % 4 * 8)) < 130) && ((v243 + (col1 + i % 4)) < 66)));
    commit_group();
    {
      const float* const a = (float*)(smem + 0 + (int)v213 * 2048);
      const float* const b = (float*)(smem + 16384 + (int)v213 * 2048);
#pragma unroll 2
      for (int k = 0; k < 32; ++k) {
        float fa[2], fb[4];
#pragma unroll
        for (int m = 0; m < 2; ++m) fa[m] = a[((at6 ^ (k % 32)) + m % 2 * 256)];
#pragma unroll
        for (int n = 0; n < 4; ++n) fb[n] = b[((at7 ^ (k / 2 % 4 * 4)) + k % 32 * 16 + n % 4)];
#pragma unroll
        for (int i = 0; i < 8; ++i) v23[i] = __fmaf_rn(fa[i / 4], fb[i % 4], v23[i]);
      }
    }
    const int v253 = v213 + 1;
    const int v257 = (v253 < 8) ? v253 : 0;
    const int v258 = v215 + 1;
    const int v260 = (v258 < 8) ? v258 : 0;
    v213 = v257;
    v215 = v260;
  }
  const int v55 = (int)v17;
  int v57[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v57[i] = v55 + (row3 + i % 2 * 8);
  bool v59[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v59[i] = v57[i] < p1;
  const int v60 = (int)v18;
  int v66[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v66[i] = v57[i] * 66;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_f32_2((float*)p4 + (v66[i / 4 % 2] + (v60 + (col2 + i % 4))), v23 + i, (v59[i / 4 % 2] && ((v60 + (col2 + i % 4)) < 66)));
}
