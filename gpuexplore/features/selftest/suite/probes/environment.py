"""What this process finds: versions, the driver as each library sees it, and the state of the device."""

from collections.abc import Iterator
from typing import Any

from gpuexplore.backends import BACKENDS, load_backend
from gpuexplore.devices import is_cut_into_instances
from gpuexplore.errors import Unsupported
from gpuexplore.measure.candidates.candidate import device_for
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.model import Device
from gpuexplore.serialization import encode


def probe(device: Device, _time: Timekeeper) -> Iterator[dict[str, Any]]:
    """Yield the environment, then what each library of the device's kind says."""
    able = [name for name in BACKENDS if device.kind in load_backend(name).DEVICE_KINDS]
    yield {
        "environment": encode(describe_environment(device, able, None)),
        "is_cut": device.uuid is not None and is_cut_into_instances(device.uuid),
    }
    for name in able:
        yield _told(name, device)


def _told(name: str, device: Device) -> dict[str, Any]:
    backend = load_backend(name)
    if not backend.is_available():
        return {"library": name, "install": backend.INSTALL}
    try:
        found = device_for(backend, device)
    except Unsupported as error:
        return {"library": name, "problem": str(error)}
    uuid = backend.driver_facts(device.id).uuid
    return {"library": name, "uuid": uuid, "cache_bytes": found.cache_bytes, "versions": dict(backend.versions())}
