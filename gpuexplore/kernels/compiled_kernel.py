"""What the compiler made of a CUDA kernel; light, so that the web process can show it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """What the compiler made of a kernel for one compute capability.

    Attributes:
        compute_capability: e.g. `9.0`.
        target: what it is compiled for, e.g. `sm_90a`.
        toolkit: version of the CUDA toolkit that compiled it, e.g. `13.0`.
        ptx: NVIDIA's portable assembly, after link-time optimization.
        cubin: the machine code's file, an ELF.
        registers_per_thread: 32-bit registers; a multiprocessor has 65536.
        shared_bytes: shared memory of a block, all of it.
        dynamic_shared_bytes: of it, what the launch asks for.
        local_bytes: stack of a thread, which lies in device memory.
        spill_store_bytes: what a thread moves out of registers for want of room.
        spill_load_bytes: what it moves back.
    """

    compute_capability: str
    target: str
    toolkit: str
    ptx: str
    cubin: bytes
    registers_per_thread: int
    shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int

    @property
    def spill_bytes(self) -> int:
        """Bytes a thread moves out of registers and back for want of room."""
        return self.spill_store_bytes + self.spill_load_bytes
