"""Whether a result of one device says something about another: the only place that decides it."""

from gpuexplore.model import Device


def same_device(device: Device | None, other: Device) -> bool:
    """Return whether a result of `one` says something about `other`: the same row of the table, or the same processor.

    Virtual machines give many processors one name, so the cores have to agree too where both are known.
    """
    if device is None:
        return False
    if device.spec_key is not None and device.spec_key == other.spec_key:
        return True
    cores = {device.cores, other.cores} - {None}
    return (device.kind, device.name) == (other.kind, other.name) and len(cores) < 2


def same_unit(device: Device | None, other: Device) -> bool:
    """Return whether both are one piece of hardware, as far as is known: two of a kind differ by some percent."""
    return (
        device is not None
        and same_device(device, other)
        and (device.uuid == other.uuid or not (device.uuid and other.uuid))
    )
