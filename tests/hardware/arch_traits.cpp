// Prints what NVIDIA's libcu++ knows of each compute capability it is given as major and minor.
#include ARCH_TRAITS_H

#include <cstdio>

int main() {
  int major, minor;
  while (std::scanf("%d %d", &major, &minor) == 2) {
    const auto traits = cuda::arch_traits_for(cuda::compute_capability{10 * major + minor});
    std::printf("%d %d %d %d %d %d %d %zu %zu %zu %zu\n", traits.warp_size, traits.max_threads_per_block,
                traits.max_warps_per_multiprocessor, traits.max_blocks_per_multiprocessor,
                traits.max_registers_per_multiprocessor, traits.max_registers_per_block,
                traits.max_registers_per_thread, traits.max_shared_memory_per_multiprocessor,
                traits.max_shared_memory_per_block, traits.max_shared_memory_per_block_optin,
                traits.reserved_shared_memory_per_block);
  }
}
