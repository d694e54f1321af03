"""What the compiler made of a CUDA kernel; light, so that the web process can show it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """What the compiler made of a kernel for one compute capability.

    Attributes:
        compute_capability: e.g. `8.0`.
        ptx: NVIDIA's portable assembly.
        registers_per_thread: 32-bit registers; a multiprocessor has 65536.
        shared_bytes: static shared memory of a block.
        local_bytes: stack of a thread, which lies in device memory.
        spill_store_bytes: what a thread moves out of registers for want of room.
        spill_load_bytes: what it moves back.
        cubin_bytes: size of the machine code's file.
    """

    compute_capability: str
    ptx: str
    registers_per_thread: int
    shared_bytes: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    cubin_bytes: int

    @property
    def spill_bytes(self) -> int:
        """Bytes a thread moves out of registers and back for want of room."""
        return self.spill_store_bytes + self.spill_load_bytes
