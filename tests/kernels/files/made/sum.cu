extern "C" __global__ void sum(const float* x, float* out, int n) {
  extern __shared__ float parts[];
  float value = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += x[i];
  for (int apart = 16; apart; apart >>= 1) value += __shfl_down_sync(~0u, value, apart);
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  value = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
  for (int apart = 16; apart; apart >>= 1) value += __shfl_down_sync(~0u, value, apart);
  if (threadIdx.x == 0) atomicAdd(out, value);
}
