"""Whether a result of one device says something about another: the only place that decides it."""

from gpuexplore.model import Device


def same_device(one: Device | None, other: Device) -> bool:
    """Return whether a result of `one` says something about `other`: the same row of the table, or the same processor.

    Virtual machines give many processors one name, so the cores have to agree too where both are known.
    """
    if one is None:
        return False
    if one.spec_key is not None and one.spec_key == other.spec_key:
        return True
    cores = {one.cores, other.cores} - {None}
    return (one.kind, one.name) == (other.kind, other.name) and len(cores) < 2


def same_unit(one: Device | None, other: Device) -> bool:
    """Return whether both are one piece of hardware, as far as is known: two of a kind differ by some percent."""
    return one is not None and same_device(one, other) and (one.uuid == other.uuid or not (one.uuid and other.uuid))
