"""Simulated devices: for trying a queue or a cluster on a machine without GPUs; nothing is measured on them.

They exist only by a setting. Id, name and a flag on each result say what they are, so that no number passes for a
measured one.
"""

import os
from collections.abc import Mapping

from gpuexplore.errors import InvalidInput
from gpuexplore.model import Device

VARIABLE = "GPUEXPLORE_SIMULATED_DEVICES"
MOST = 64


def simulated_devices(environment: Mapping[str, str] = os.environ) -> tuple[Device, ...]:
    """Return as many simulated devices as the setting asks for, normally none.

    Raises:
        InvalidInput: the setting is no number from 0 to 64.
    """
    asked = environment.get(VARIABLE) or "0"
    if not (asked.isdecimal() and int(asked) <= MOST):
        raise InvalidInput.of(VARIABLE, asked, f"whole numbers from 0 to {MOST}")
    return tuple(
        Device(f"simulated:{index}", "simulated", f"Simulated device {index}: nothing is measured")
        for index in range(int(asked))
    )
