#pragma once

// What nccl.h needs of CUDA's headers, so that it is read where there are none.
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st* cudaStream_t;
