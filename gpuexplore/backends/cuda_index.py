"""Which index a CUDA device has in this process: a worker sees its one device as 0."""

import os


def index_in_this_process(device: str) -> int:
    """Return the CUDA index of `device`, e.g. ``cuda:1``, under CUDA_VISIBLE_DEVICES.

    A worker is started with exactly one visible device, so that nothing it runs can touch another.
    """
    visible = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
    return 0 if len(visible) == 1 else int(device.partition(":")[2])
