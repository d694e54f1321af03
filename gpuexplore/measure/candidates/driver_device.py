"""A device as the library that is measured finds it: the same GPU, with the cache that only CUDA may know."""

from dataclasses import replace

from gpuexplore.backends.contract import Backend
from gpuexplore.devices import GPU_KINDS, is_cut_into_instances
from gpuexplore.errors import Unsupported
from gpuexplore.model import Device

CUDA = "cuda"
GPU_PREFIX = "GPU-"  # of the UUID of a whole GPU; what CUDA says of an instance of one depends on its version


def device_for(backend: Backend, device: Device) -> Device:
    """Return `device` with its last-level cache, where `backend` knows it and nothing else does.

    Raises:
        Unsupported: `backend` finds no GPU, or counts GPUs in another order, and would compute on another one.
    """
    if device.kind not in GPU_KINDS:
        return device
    facts = backend.driver_facts(device.id)
    if facts.problem:
        raise Unsupported(f"{facts.problem}; {device.name} has driver {device.driver or 'of unknown version'}")
    if device.kind == CUDA and facts.uuid and device.uuid and not _is_same_gpu(device.uuid, facts.uuid):
        raise Unsupported(
            f"{device.id} is {device.name} ({device.uuid}), but CUDA would use {GPU_PREFIX}{facts.uuid} in this "
            "process: set CUDA_DEVICE_ORDER=PCI_BUS_ID before anything loads CUDA"
        )
    return device if device.cache_bytes else replace(device, cache_bytes=facts.cache_bytes)


def _is_same_gpu(known: str, uuid: str) -> bool:
    """Return whether CUDA's `uuid` is the `known` one, or cannot be compared: a MIG instance's, or a truncated one."""
    digits, known_digits = _digits(uuid), _digits(known.removeprefix(GPU_PREFIX))
    comparable = known.startswith(GPU_PREFIX) and len(digits) == len(known_digits)
    return digits == known_digits or not comparable or is_cut_into_instances(known)


def _digits(uuid: str) -> str:
    return uuid.replace("-", "").lower()
