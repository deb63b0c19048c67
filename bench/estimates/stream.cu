// Streams: a sum of two vectors, and a vector's sum by blocks.
extern "C" __global__ void add_vectors(const float4* a, const float4* b, float4* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 x = a[i];
  const float4 y = b[i];
  c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

extern "C" __global__ void __launch_bounds__(512) sum_vector(const float4* a, float* sums, int n) {
  __shared__ float parts[16];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float4 x = a[i];
    sum += (x.x + x.y) + (x.z + x.w);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < 16 ? parts[threadIdx.x] : 0;
  for (int step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
