"""The number formats of whoever asks for none."""

from collections.abc import Iterable

from gpuexplore.model import Device

USUAL_DTYPES = ("fp32", "bf16", "fp16")
CONTRAST = "bf16"  # where no device computes in it: emulated, it costs conversions; fp16 in a loop costs seconds a call


def first_dtypes(devices: Iterable[Device], chosen_ids: str = "") -> str:
    """Return the dtypes of whoever asks for none: what `devices` compute natively, and bf16, even if emulated.

    Args:
        devices: of this machine.
        chosen_ids: of them, separated by commas; empty: all.
    """
    ids = chosen_ids.split(",") if chosen_ids else []
    native = [set(device.native) for device in devices if device.id in ids or not ids]
    chosen = [name for name in USUAL_DTYPES if name in ("fp32", CONTRAST) or all(name in formats for formats in native)]
    return ",".join(chosen if len(chosen) == len(USUAL_DTYPES) else ["fp64", *chosen])
