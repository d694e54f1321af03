/* Answers from NVIDIA's own calculator. Each line of numbers in: limits of the device, then of the kernel; each line
   out: status, blocks, and the blocks allowed by warps, block slots, registers and shared memory (INT_MAX: any). */
#include CUDA_OCCUPANCY_H

#include <stdio.h>

int main(void) {
  cudaOccDeviceProp device = {0};
  int threads;
  size_t shared;
  cudaOccFuncAttributes kernel = {0};
  kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.numBlockBarriers = 1;
  cudaOccDeviceState state = {CACHE_PREFER_SHARED, SHAREDMEM_CARVEOUT_MAX_SHARED};
  device.numSms = 1;
  while (scanf("%d %d %d %d %d %d %d %zu %zu %zu %zu %d %d %zu", &device.computeMajor, &device.computeMinor,
               &device.warpSize, &device.maxThreadsPerBlock, &device.maxThreadsPerMultiprocessor,
               &device.regsPerMultiprocessor, &device.regsPerBlock, &device.sharedMemPerMultiprocessor,
               &device.sharedMemPerBlock, &device.sharedMemPerBlockOptin, &device.reservedSharedMemPerBlock,
               &threads, &kernel.numRegs, &shared) == 14) {
    cudaOccResult answer = {0};
    kernel.maxThreadsPerBlock = device.maxThreadsPerBlock;
    kernel.maxDynamicSharedSizeBytes = shared;
    int status = cudaOccMaxActiveBlocksPerMultiprocessor(&answer, &device, &kernel, &state, threads, shared);
    printf("%d %d %d %d %d %d\n", status, answer.activeBlocksPerMultiprocessor, answer.blockLimitWarps,
           answer.blockLimitBlocks, answer.blockLimitRegs, answer.blockLimitSharedMem);
  }
  return 0;
}
