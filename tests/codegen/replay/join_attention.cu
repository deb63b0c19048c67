// narrow_bf16, narrow_pair_bf16, load_bf16_1, load_f32_1, load_f32_2, round_bf16, store_bf16_8, exp2_approx, max_f32
extern "C" __global__ void __launch_bounds__(128, 1) join_attention_join_attention_parts_silu(long long p0, unsigned char* __restrict__ p1, unsigned char* __restrict__ p2, long long p3, unsigned char* __restrict__ p4) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 16 % 2 + warp % 4 * 2;
  const int col1 = lane % 16 * 8;
  const int v3 = (int)((long long)blockIdx.x * 16);
  int v5[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v5[i] = v3 + (row0 + i % 2 * 8);
  const int v7 = (int)p0;
  bool v8[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v8[i] = v5[i] < v7;
  float v19[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_bf16_1(v19 + i, (const unsigned short*)p1 + (v5[i] % 32), v8[i]);
  float v24[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v24[i] = v19[i];
  float v25[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v25[i] = 1.0f;
  float v26[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v26[i] = 0.0f;
  for (long long v23 = 0; v23 < 8; v23 += 8) {
    const long long v30 = v23 * p3;
    int v32[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v32[i] = v5[i] * 130;
    unsigned char* const v36 = p2 + ((v30 + 128) * 4);
    float v37[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v37 + i, (const float*)v36 + v32[i], v8[i]);
    unsigned char* const v41 = p2 + ((v30 + 129) * 4);
    float v42[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v42 + i, (const float*)v41 + v32[i], v8[i]);
    unsigned char* const v45 = p2 + (v30 * 4);
    float v47[16];
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      load_f32_2(v47 + i, (const float*)v45 + (v32[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
    const long long v49 = (v23 + 1) * p3;
    unsigned char* const v52 = p2 + ((v49 + 128) * 4);
    float v53[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v53 + i, (const float*)v52 + v32[i], v8[i]);
    unsigned char* const v56 = p2 + ((v49 + 129) * 4);
    float v57[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v57 + i, (const float*)v56 + v32[i], v8[i]);
    unsigned char* const v59 = p2 + (v49 * 4);
    float v60[16];
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      load_f32_2(v60 + i, (const float*)v59 + (v32[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
    const long long v63 = (v23 + 2) * p3;
    unsigned char* const v66 = p2 + ((v63 + 128) * 4);
    float v67[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v67 + i, (const float*)v66 + v32[i], v8[i]);
    unsigned char* const v70 = p2 + ((v63 + 129) * 4);
    float v71[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v71 + i, (const float*)v70 + v32[i], v8[i]);
    unsigned char* const v73 = p2 + (v63 * 4);
    float v74[16];
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      load_f32_2(v74 + i, (const float*)v73 + (v32[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
    const long long v77 = (v23 + 3) * p3;
    unsigned char* const v80 = p2 + ((v77 + 128) * 4);
    float v81[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v81 + i, (const float*)v80 + v32[i], v8[i]);
    unsigned char* const v84 = p2 + ((v77 + 129) * 4);
    float v85[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v85 + i, (const float*)v84 + v32[i], v8[i]);
    unsigned char* const v87 = p2 + (v77 * 4);
    float v88[16];
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      load_f32_2(v88 + i, (const float*)v87 + (v32[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
    const long long v90 = (v23 + 4) * p3;
    unsigned char* const v93 = p2 + ((v90 + 128) * 4);
    float v94[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v94 + i, (const float*)v93 + v32[i], v8[i]);
    unsigned char* const v97 = p2 + ((v90 + 129) * 4);
    float v98[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v98 + i, (const float*)v97 + v32[i], v8[i]);
    unsigned char* const v100 = p2 + (v90 * 4);
    float v101[16];
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      load_f32_2(v101 + i, (const float*)v100 + (v32[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
    const long long v104 = (v23 + 5) * p3;
    unsigned char* const v107 = p2 + ((v104 + 128) * 4);
    float v108[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v108 + i, (const float*)v107 + v32[i], v8[i]);
    unsigned char* const v111 = p2 + ((v104 + 129) * 4);
    float v112[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v112 + i, (const float*)v111 + v32[i], v8[i]);
    unsigned char* const v114 = p2 + (v104 * 4);
    float v115[16];
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      load_f32_2(v115 + i, (const float*)v114 + (v32[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
    const long long v118 = (v23 + 6) * p3;
    unsigned char* const v121 = p2 + ((v118 + 128) * 4);
    float v122[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v122 + i, (const float*)v121 + v32[i], v8[i]);
    unsigned char* const v125 = p2 + ((v118 + 129) * 4);
    float v126[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v126 + i, (const float*)v125 + v32[i], v8[i]);
    unsigned char* const v128 = p2 + (v118 * 4);
    float v129[16];
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      load_f32_2(v129 + i, (const float*)v128 + (v32[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
    const long long v132 = (v23 + 7) * p3;
    unsigned char* const v135 = p2 + ((v132 + 128) * 4);
    float v136[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v136 + i, (const float*)v135 + v32[i], v8[i]);
    unsigned char* const v139 = p2 + ((v132 + 129) * 4);
    float v140[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      load_f32_1(v140 + i, (const float*)v139 + v32[i], v8[i]);
    unsigned char* const v142 = p2 + (v132 * 4);
    float v143[16];
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      load_f32_2(v143 + i, (const float*)v142 + (v32[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
    float v144[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v144[i] = max_f32(v24[i], v37[i]);
    float v148[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v148[i] = (v144[i] == __int_as_float(0xff800000)) ? 0.0f : v144[i];
    float v152[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v152[i] = exp2_approx(((v24[i] - v148[i]) * 1.44269504f));
    float v155[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v155[i] = exp2_approx(((v37[i] - v148[i]) * 1.44269504f));
    bool v156[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v156[i] = v37[i] == __int_as_float(0xff800000);
    float v162[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v162[i] = max_f32(v144[i], v53[i]);
    float v164[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v164[i] = (v162[i] == __int_as_float(0xff800000)) ? 0.0f : v162[i];
    float v167[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v167[i] = exp2_approx(((v144[i] - v164[i]) * 1.44269504f));
    float v170[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v170[i] = exp2_approx(((v53[i] - v164[i]) * 1.44269504f));
    bool v171[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v171[i] = v53[i] == __int_as_float(0xff800000);
    float v177[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v177[i] = max_f32(v162[i], v67[i]);
    float v179[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v179[i] = (v177[i] == __int_as_float(0xff800000)) ? 0.0f : v177[i];
    float v182[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v182[i] = exp2_approx(((v162[i] - v179[i]) * 1.44269504f));
    float v185[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v185[i] = exp2_approx(((v67[i] - v179[i]) * 1.44269504f));
    bool v186[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v186[i] = v67[i] == __int_as_float(0xff800000);
    float v192[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v192[i] = max_f32(v177[i], v81[i]);
    float v194[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v194[i] = (v192[i] == __int_as_float(0xff800000)) ? 0.0f : v192[i];
    float v197[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v197[i] = exp2_approx(((v177[i] - v194[i]) * 1.44269504f));
    float v200[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v200[i] = exp2_approx(((v81[i] - v194[i]) * 1.44269504f));
    bool v201[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v201[i] = v81[i] == __int_as_float(0xff800000);
    float v207[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v207[i] = max_f32(v192[i], v94[i]);
    float v209[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v209[i] = (v207[i] == __int_as_float(0xff800000)) ? 0.0f : v207[i];
    float v212[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v212[i] = exp2_approx(((v192[i] - v209[i]) * 1.44269504f));
    float v215[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v215[i] = exp2_approx(((v94[i] - v209[i]) * 1.44269504f));
    bool v216[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v216[i] = v94[i] == __int_as_float(0xff800000);
    float v222[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v222[i] = max_f32(v207[i], v108[i]);
    float v224[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v224[i] = (v222[i] == __int_as_float(0xff800000)) ? 0.0f : v222[i];
    float v227[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v227[i] = exp2_approx(((v207[i] - v224[i]) * 1.44269504f));
    float v230[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v230[i] = exp2_approx(((v108[i] - v224[i]) * 1.44269504f));
    bool v231[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v231[i] = v108[i] == __int_as_float(0xff800000);
    float v237[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v237[i] = max_f32(v222[i], v122[i]);
    float v239[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v239[i] = (v237[i] == __int_as_float(0xff800000)) ? 0.0f : v237[i];
    float v242[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v242[i] = exp2_approx(((v222[i] - v239[i]) * 1.44269504f));
    float v245[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v245[i] = exp2_approx(((v122[i] - v239[i]) * 1.44269504f));
    bool v246[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v246[i] = v122[i] == __int_as_float(0xff800000);
    float v252[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v252[i] = max_f32(v237[i], v136[i]);
    float v254[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v254[i] = (v252[i] == __int_as_float(0xff800000)) ? 0.0f : v252[i];
    float v257[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v257[i] = exp2_approx(((v237[i] - v254[i]) * 1.44269504f));
    float v260[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v260[i] = exp2_approx(((v136[i] - v254[i]) * 1.44269504f));
    bool v261[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v261[i] = v136[i] == __int_as_float(0xff800000);
    float v264[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v264[i] = __fmaf_rn(v140[i], v260[i], ((__fmaf_rn(v126[i], v245[i], ((__fmaf_rn(v112[i], v230[i], ((__fmaf_rn(v98[i], v215[i], ((__fmaf_rn(v85[i], v200[i], ((__fmaf_rn(v71[i], v185[i], ((__fmaf_rn(v57[i], v170[i], ((__fmaf_rn(v42[i], v155[i], (v25[i] * v152[i]))) * v167[i]))) * v182[i]))) * v197[i]))) * v212[i]))) * v227[i]))) * v242[i]))) * v257[i]));
    float v266[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v266[i] = __fmaf_rn((v261[i / 8 % 2] ? 0.0f : v143[i]), v260[i / 8 % 2], ((__fmaf_rn((v246[i / 8 % 2] ? 0.0f : v129[i]), v245[i / 8 % 2], ((__fmaf_rn((v231[i / 8 % 2] ? 0.0f : v115[i]), v230[i / 8 % 2], ((__fmaf_rn((v216[i / 8 % 2] ? 0.0f : v101[i]), v215[i / 8 % 2], ((__fmaf_rn((v201[i / 8 % 2] ? 0.0f : v88[i]), v200[i / 8 % 2], ((__fmaf_rn((v186[i / 8 % 2] ? 0.0f : v74[i]), v185[i / 8 % 2], ((__fmaf_rn((v171[i / 8 % 2] ? 0.0f : v60[i]), v170[i / 8 % 2], ((__fmaf_rn((v156[i / 8 % 2] ? 0.0f : v47[i]), v155[i / 8 % 2], (v26[i] * v152[i / 8 % 2]))) * v167[i / 8 % 2]))) * v182[i / 8 % 2]))) * v197[i / 8 % 2]))) * v212[i / 8 % 2]))) * v227[i / 8 % 2]))) * v242[i / 8 % 2]))) * v257[i / 8 % 2]));
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v24[i] = v252[i];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v25[i] = v264[i];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v26[i] = v266[i];
  }
  const long long v272 = 8 * p3;
  int v274[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v274[i] = v5[i] * 130;
  unsigned char* const v278 = p2 + ((v272 + 128) * 4);
  float v279[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v279 + i, (const float*)v278 + v274[i], v8[i]);
  unsigned char* const v283 = p2 + ((v272 + 129) * 4);
  float v284[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v284 + i, (const float*)v283 + v274[i], v8[i]);
  unsigned char* const v287 = p2 + (v272 * 4);
  float v289[16];
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    load_f32_2(v289 + i, (const float*)v287 + (v274[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
  const long long v291 = 9 * p3;
  unsigned char* const v294 = p2 + ((v291 + 128) * 4);
  float v295[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v295 + i, (const float*)v294 + v274[i], v8[i]);
  unsigned char* const v298 = p2 + ((v291 + 129) * 4);
  float v299[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v299 + i, (const float*)v298 + v274[i], v8[i]);
  unsigned char* const v301 = p2 + (v291 * 4);
  float v302[16];
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    load_f32_2(v302 + i, (const float*)v301 + (v274[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
  const long long v305 = 10 * p3;
  unsigned char* const v308 = p2 + ((v305 + 128) * 4);
  float v309[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v309 + i, (const float*)v308 + v274[i], v8[i]);
  unsigned char* const v312 = p2 + ((v305 + 129) * 4);
  float v313[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v313 + i, (const float*)v312 + v274[i], v8[i]);
  unsigned char* const v315 = p2 + (v305 * 4);
  float v316[16];
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    load_f32_2(v316 + i, (const float*)v315 + (v274[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
  const long long v319 = 11 * p3;
  unsigned char* const v322 = p2 + ((v319 + 128) * 4);
  float v323[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v323 + i, (const float*)v322 + v274[i], v8[i]);
  unsigned char* const v326 = p2 + ((v319 + 129) * 4);
  float v327[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    load_f32_1(v327 + i, (const float*)v326 + v274[i], v8[i]);
  unsigned char* const v329 = p2 + (v319 * 4);
  float v330[16];
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    load_f32_2(v330 + i, (const float*)v329 + (v274[i / 8 % 2] + (col1 + i % 8)), (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
  float v331[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v331[i] = max_f32(v24[i], v279[i]);
  float v335[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v335[i] = (v331[i] == __int_as_float(0xff800000)) ? 0.0f : v331[i];
  float v339[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v339[i] = exp2_approx(((v24[i] - v335[i]) * 1.44269504f));
  float v342[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v342[i] = exp2_approx(((v279[i] - v335[i]) * 1.44269504f));
  bool v343[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v343[i] = v279[i] == __int_as_float(0xff800000);
  float v349[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v349[i] = max_f32(v331[i], v295[i]);
  float v351[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v351[i] = (v349[i] == __int_as_float(0xff800000)) ? 0.0f : v349[i];
  float v354[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v354[i] = exp2_approx(((v331[i] - v351[i]) * 1.44269504f));
  float v357[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v357[i] = exp2_approx(((v295[i] - v351[i]) * 1.44269504f));
  bool v358[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v358[i] = v295[i] == __int_as_float(0xff800000);
  float v364[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v364[i] = max_f32(v349[i], v309[i]);
  float v366[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v366[i] = (v364[i] == __int_as_float(0xff800000)) ? 0.0f : v364[i];
  float v369[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v369[i] = exp2_approx(((v349[i] - v366[i]) * 1.44269504f));
  float v372[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v372[i] = exp2_approx(((v309[i] - v366[i]) * 1.44269504f));
  bool v373[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v373[i] = v309[i] == __int_as_float(0xff800000);
  float v379[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v379[i] = max_f32(v364[i], v323[i]);
  float v381[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v381[i] = (v379[i] == __int_as_float(0xff800000)) ? 0.0f : v379[i];
  float v384[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v384[i] = exp2_approx(((v364[i] - v381[i]) * 1.44269504f));
  float v387[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v387[i] = exp2_approx(((v323[i] - v381[i]) * 1.44269504f));
  bool v388[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v388[i] = v323[i] == __int_as_float(0xff800000);
  float v391[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v391[i] = __fmaf_rn(v327[i], v387[i], ((__fmaf_rn(v313[i], v372[i], ((__fmaf_rn(v299[i], v357[i], ((__fmaf_rn(v284[i], v342[i], (v25[i] * v339[i]))) * v354[i]))) * v369[i]))) * v384[i]));
  float v397[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v397[i] = 1.0f / ((v391[i] == 0.0f) ? 1.0f : v391[i]);
  float v399[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v399[i] = round_bf16(((__fmaf_rn((v388[i / 8 % 2] ? 0.0f : v330[i]), v387[i / 8 % 2], ((__fmaf_rn((v373[i / 8 % 2] ? 0.0f : v316[i]), v372[i / 8 % 2], ((__fmaf_rn((v358[i / 8 % 2] ? 0.0f : v302[i]), v357[i / 8 % 2], ((__fmaf_rn((v343[i / 8 % 2] ? 0.0f : v289[i]), v342[i / 8 % 2], (v26[i] * v339[i / 8 % 2]))) * v354[i / 8 % 2]))) * v369[i / 8 % 2]))) * v384[i / 8 % 2]))) * v397[i / 8 % 2]));
  float v403[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    v403[i] = v399[i] / (1.0f + (expf((-v399[i]))));
  int v406[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    v406[i] = v5[i] * 128;
#pragma unroll
  for (int i = 0; i < 16; i += 8)
    store_bf16_8((unsigned short*)p4 + (v406[i / 8 % 2] + (col1 + i % 8)), v403 + i, (v8[i / 8 % 2] && ((col1 + i % 8) < 128)));
}
