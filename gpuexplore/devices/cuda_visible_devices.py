"""CUDA_VISIBLE_DEVICES as CUDA reads it: the drivers' management tools ignore it, so we apply it ourselves.

Rules: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
"""

from collections.abc import Sequence


def visible_uuids(uuids: Sequence[str], variable: str | None) -> tuple[str, ...]:
    """Return the UUIDs that CUDA sees, in its order: the first is `cuda:0`.

    Args:
        uuids: of all GPUs, in bus order.
        variable: CUDA_VISIBLE_DEVICES; None when it is not set.

    An index, a UUID, the unique beginning of one, and a MIG instance's UUID are accepted; the first
    entry that names no device ends the list, and a repeated device leaves none, as in CUDA.
    """
    if variable is None:
        return tuple(uuids)
    seen: list[str] = []
    for entry in variable.split(","):
        uuid = _named(uuids, entry.strip())
        if uuid is None:
            break
        seen.append(uuid)
    return tuple(seen) if len(set(seen)) == len(seen) else ()


def _named(uuids: Sequence[str], entry: str) -> str | None:
    if entry.startswith("MIG-"):
        return entry
    if entry.isascii() and entry.isdigit():
        return uuids[int(entry)] if int(entry) < len(uuids) else None
    matching = [uuid for uuid in uuids if entry.startswith("GPU-") and uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None
