// narrow_pair_bf16, load_bf16_2, load_bf16_8, load_f32_4, store_bf16_2, store_bf16_8, smem, shared_address, commit_group, wait_group_6, ldmatrix, ldmatrix_trans, mma_bf16_bf16
extern "C" __global__ void __launch_bounds__(64, 1) gemm_to_mul_addmm(long long p0, long long p1, unsigned char* __restrict__ p2, unsigned char* __restrict__ p3, unsigned char* __restrict__ p4, unsigned char* __restrict__ p5, unsigned char* __restrict__ p6) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 2 * 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 2 % 16 + warp % 2 * 16;
  const int col3 = lane % 2 * 8;
  const int col4 = lane % 4 * 2;
  const int row5 = lane / 4 % 8 + warp % 2 * 16;
  const int at6 = ((lane % 32 * 8) ^ (lane / 8 % 4 * 8) ^ (warp % 2 * 32)) + warp % 2 * 256;
  const int at7 = ((lane % 32 * 8) ^ (lane / 8 % 2 * 8)) + warp % 2 * 256;
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp % 2 * 2048;
  const int at9 = ((lane / 4 % 2 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 32;
  const int v1 = (int)(long long)blockIdx.x;
  const int v4 = (int)p0;
  const int v8 = (v1 % v4) * 32;
  const int v10 = (v1 / v4) * 16;
  const int v74 = (int)v8;
  int v76[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v76[i] = v74 + (row0 + i % 4 * 8);
  int v77[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v77[i] = v76[i] * 64;
  const int v78 = (int)0;
  bool v83[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v83[i] = v76[i] < p1;
  float v86[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v86 + i, (const unsigned short*)p2 + (v77[i / 8 % 4] + (v78 + (col1 + i % 8))), (v83[i / 8 % 4] && ((v78 + (col1 + i % 8)) < 64)));
  float v88[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v88 + i, (const unsigned short*)p3 + (v78 + (col1 + i % 8)), (v83[i / 8 % 4] && ((v78 + (col1 + i % 8)) < 64)));
  float v89[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v89[i] = v86[i] * v88[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0) + (at6 + i % 8 + i / 8 % 4 * 512), v89 + i, true);
  int v94[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v94[i] = v78 + (row2 + i % 2 * 32);
  int v96[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v96[i] = v94[i] * 128;
  const int v97 = (int)v10;
  bool v101[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v101[i] = v94[i] < 64;
  float v104[16];
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    load_f32_4(v104 + i, (const float*)p4 + (v96[i / 8 % 2] + (v97 + (col3 + i % 8))), (v101[i / 8 % 2] && ((v97 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    store_bf16_8((unsigned short*)(smem + 32768) + (at7 + i % 8 + i / 8 % 2 * 512), v104 + i, true);
  commit_group();
  const int v111 = (int)64;
  float v116[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v116 + i, (const unsigned short*)p2 + (v77[i / 8 % 4] + (v111 + (col1 + i % 8))), (v83[i / 8 % 4] && ((v111 + (col1 + i % 8)) < 64)));
  float v117[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v117 + i, (const unsigned short*)p3 + (v111 + (col1 + i % 8)), (v83[i / 8 % 4] && ((v111 + (col1 + i % 8)) < 64)));
  float v118[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v118[i] = v116[i] * v117[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)1 * 4096) + (at6 + i % 8 + i / 8 % 4 * 512), v118 + i, true);
  int v121[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v121[i] = v111 + (row2 + i % 2 * 32);
  int v122[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v122[i] = v121[i] * 128;
  bool v124[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v124[i] = v121[i] < 64;
  float v126[16];
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    load_f32_4(v126 + i, (const float*)p4 + (v122[i / 8 % 2] + (v97 + (col3 + i % 8))), (v124[i / 8 % 2] && ((v97 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    store_bf16_8((unsigned short*)(smem + 32768 + (int)1 * 2048) + (at7 + i % 8 + i / 8 % 2 * 512), v126 + i, true);
  commit_group();
  const int v132 = (int)128;
  float v137[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v137 + i, (const unsigned short*)p2 + (v77[i / 8 % 4] + (v132 + (col1 + i % 8))), (v83[i / 8 % 4] && ((v132 + (col1 + i % 8)) < 64)));
  float v138[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v138 + i, (const unsigned short*)p3 + (v132 + (col1 + i % 8)), (v83[i / 8 % 4] && ((v132 + (col1 + i % 8)) < 64)));
  float v139[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v139[i] = v137[i] * v138[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)2 * 4096) + (at6 + i % 8 + i / 8 % 4 * 512), v139 + i, true);
  int v142[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v142[i] = v132 + (row2 + i % 2 * 32);
  int v143[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v143[i] = v142[i] * 128;
  bool v145[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v145[i] = v142[i] < 64;
  float v147[16];
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    load_f32_4(v147 + i, (const float*)p4 + (v143[i / 8 % 2] + (v97 + (col3 + i % 8))), (v145[i / 8 % 2] && ((v97 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    store_bf16_8((unsigned short*)(smem + 32768 + (int)2 * 2048) + (at7 + i % 8 + i / 8 % 2 * 512), v147 + i, true);
  commit_group();
  const int v154 = (int)192;
  float v159[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v159 + i, (const unsigned short*)p2 + (v77[i / 8 % 4] + (v154 + (col1 + i % 8))), (v83[i / 8 % 4] && ((v154 + (col1 + i % 8)) < 64)));
  float v160[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v160 + i, (const unsigned short*)p3 + (v154 + (col1 + i % 8)), (v83[i / 8 % 4] && ((v154 + (col1 + i % 8)) < 64)));
  float v161[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v161[i] = v159[i] * v160[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)3 * 4096) + (at6 + i % 8 + i / 8 % 4 * 512), v161 + i, true);
  int v164[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v164[i] = v154 + (row2 + i % 2 * 32);
  int v165[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v165[i] = v164[i] * 128;
  bool v167[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v167[i] = v164[i] < 64;
  float v169[16];
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    load_f32_4(v169 + i, (const float*)p4 + (v165[i / 8 % 2] + (v97 + (col3 + i % 8))), (v167[i / 8 % 2] && ((v97 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    store_bf16_8((unsigned short*)(smem + 32768 + (int)3 * 2048) + (at7 + i % 8 + i / 8 % 2 * 512), v169 + i, true);
  commit_group();
  const int v176 = (int)256;
  float v181[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v181 + i, (const unsigned short*)p2 + (v77[i / 8 % 4] + (v176 + (col1 + i % 8))), (v83[i / 8 % 4] && ((v176 + (col1 + i % 8)) < 64)));
  float v182[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v182 + i, (const unsigned short*)p3 + (v176 + (col1 + i % 8)), (v83[i / 8 % 4] && ((v176 + (col1 + i % 8)) < 64)));
  float v183[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v183[i] = v181[i] * v182[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)4 * 4096) + (at6 + i % 8 + i / 8 % 4 * 512), v183 + i, true);
  int v186[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v186[i] = v176 + (row2 + i % 2 * 32);
  int v187[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v187[i] = v186[i] * 128;
  bool v189[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v189[i] = v186[i] < 64;
  float v191[16];
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    load_f32_4(v191 + i, (const float*)p4 + (v187[i / 8 % 2] + (v97 + (col3 + i % 8))), (v189[i / 8 % 2] && ((v97 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    store_bf16_8((unsigned short*)(smem + 32768 + (int)4 * 2048) + (at7 + i % 8 + i / 8 % 2 * 512), v191 + i, true);
  commit_group();
  const int v198 = (int)320;
  float v203[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v203 + i, (const unsigned short*)p2 + (v77[i / 8 % 4] + (v198 + (col1 + i % 8))), (v83[i / 8 % 4] && ((v198 + (col1 + i % 8)) < 64)));
  float v204[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v204 + i, (const unsigned short*)p3 + (v198 + (col1 + i % 8)), (v83[i / 8 % 4] && ((v198 + (col1 + i % 8)) < 64)));
  float v205[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v205[i] = v203[i] * v204[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)5 * 4096) + (at6 + i % 8 + i / 8 % 4 * 512), v205 + i, true);
  int v208[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v208[i] = v198 + (row2 + i % 2 * 32);
  int v209[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v209[i] = v208[i] * 128;
  bool v211[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v211[i] = v208[i] < 64;
  float v213[16];
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    load_f32_4(v213 + i, (const float*)p4 + (v209[i / 8 % 2] + (v97 + (col3 + i % 8))), (v211[i / 8 % 2] && ((v97 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    store_bf16_8((unsigned short*)(smem + 32768 + (int)5 * 2048) + (at7 + i % 8 + i / 8 % 2 * 512), v213 + i, true);
  commit_group();
  const int v220 = (int)384;
  float v225[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v225 + i, (const unsigned short*)p2 + (v77[i / 8 % 4] + (v220 + (col1 + i % 8))), (v83[i / 8 % 4] && ((v220 + (col1 + i % 8)) < 64)));
  float v226[32];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    load_bf16_8(v226 + i, (const unsigned short*)p3 + (v220 + (col1 + i % 8)), (v83[i / 8 % 4] && ((v220 + (col1 + i % 8)) < 64)));
  float v227[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    v227[i] = v225[i] * v226[i];
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    store_bf16_8((unsigned short*)(smem + 0 + (int)6 * 4096) + (at6 + i % 8 + i / 8 % 4 * 512), v227 + i, true);
  int v230[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v230[i] = v220 + (row2 + i % 2 * 32);
  int v231[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v231[i] = v230[i] * 128;
  bool v233[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v233[i] = v230[i] < 64;
  float v235[16];
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    load_f32_4(v235 + i, (const float*)p4 + (v231[i / 8 % 2] + (v97 + (col3 + i % 8))), (v233[i / 8 % 2] && ((v97 + (col3 + i % 8)) < 128)));
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    store_bf16_8((unsigned short*)(smem + 32768 + (int)6 * 2048) + (at7 + i % 8 + i / 8 % 2 * 512), v235 + i, true);
  commit_group();
  float v14[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v14[i] = 0.0f;
  int v240 = 0;
  int v242 = 7;
  for (long long v13 = 0; v13 < 64; v13 += 64) {
    wait_group_6();
    const int v249 = (int)v8;
    int v251[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v251[i] = v249 + (row0 + i % 4 * 8);
    int v252[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v252[i] = v251[i] * 64;
    const int v253 = (int)(v13 + 448);
    bool v258[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v258[i] = v251[i] < p1;
    float v261[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v261 + i, (const unsigned short*)p2 + (v252[i / 8 % 4] + (v253 + (col1 + i % 8))), (v258[i / 8 % 4] && ((v253 + (col1 + i % 8)) < 64)));
    float v263[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v263 + i, (const unsigned short*)p3 + (v253 + (col1 + i % 8)), (v258[i / 8 % 4] && ((v253 + (col1 + i % 8)) < 64)));
    float v264[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v264[i] = v261[i] * v263[i];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      store_bf16_8((unsigned short*)(smem + 0 + (int)v242 * 4096) + (at6 + i % 8 + i / 8 % 4 * 512), v264 + i, true);
    int v269[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v269[i] = v253 + (row2 + i % 2 * 32);
    int v271[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v271[i] = v269[i] * 128;
    const int v272 = (int)v10;
    bool v276[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v276[i] = v269[i] < 64;
    float v279[16];
#pragma unroll
    for (int i = 0; i < 16; i += 4)
      load_f32_4(v279 + i, (const float*)p4 + (v271[i / 8 % 2] + (v272 + (col3 + i % 8))), (v276[i / 8 % 2] && ((v272 + (col3 + i % 8)) < 128)));
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      store_bf16_8((unsigned short*)(smem + 32768 + (int)v242 * 2048) + (at7 + i % 8 + i / 8 % 2 * 512), v279 + i, true);
    commit_group();
    {
      const unsigned a = shared + 0 + (int)v240 * 4096;
      const unsigned b = shared + 32768 + (int)v240 * 2048;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned fa[1][4], fb[2][2];
#pragma unroll
        for (int m = 0; m < 1; ++m)
          ldmatrix(fa[m], a + (at8 ^ (k % 4 * 32)));
#pragma unroll
        for (int n = 0; n < 2; n += 2)
          ldmatrix_trans(fb[n], b + (at9 + k % 4 * 512));
#pragma unroll
        for (int m = 0; m < 1; ++m) {
#pragma unroll
          for (int n = 0; n < 2; ++n) mma_bf16_bf16(v14 + (m * 2 + n) * 4, fa[m], fb[n]);
        }
      }
    }
    const int v285 = v240 + 1;
    const int v289 = (v285 < 8) ? v285 : 0;
    const int v290 = v242 + 1;
    const int v292 = (v290 < 8) ? v290 : 0;
    v240 = v289;
    v242 = v292;
  }
  const int v51 = (int)v8;
  int v53[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v53[i] = v51 + (row5 + i % 2 * 8);
  bool v55[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v55[i] = v53[i] < p1;
  const int v56 = (int)v10;
  float v61[8];
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    load_bf16_2(v61 + i, (const unsigned short*)p5 + (v56 + (col4 + i % 2 + i / 4 % 2 * 8)), v55[i / 2 % 2]);
  float v62[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v62[i] = v14[i] + v61[i];
  int v66[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v66[i] = v53[i] * 128;
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    store_bf16_2((unsigned short*)p6 + (v66[i / 2 % 2] + (v56 + (col4 + i % 2 + i / 4 % 2 * 8))), v62 + i, v55[i / 2 % 2]);
}
