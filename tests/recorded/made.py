"""A made-up recording of a made-up GPU, as lines of a file, so that each can be spoilt."""

import json
from dataclasses import replace

from gpuexplore.core.model import Accuracy, Device, Experiment, Shape
from gpuexplore.core.serialization import encode
from gpuexplore.recorded import Provenance, header
from tests.analysis.made import PEAKS, device, ok

BEGAN, MEASURED, COMMIT = "2026-01-02T03:04:05+00:00", "2026-01-02T03:05:00+00:00", "0123456789ab"
SIZES = (64, 128)


def gpu(device_id="cuda:0", name="a made-up GPU") -> Device:
    return replace(device(device_id=device_id, peaks=PEAKS), name=name, driver="999.1")


def experiment(operation="matmul", on=("cuda:0",), implementations=("numba-cuda", "torch")) -> Experiment:
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in SIZES)
    if operation != "matmul":
        shapes = tuple(Shape.of(n=size) for size in SIZES)
    return Experiment(operation, shapes, ("fp32", "bf16"), implementations, on)


def provenance(*devices, **changed) -> Provenance:
    standard = {
        "recorded_utc": BEGAN,
        "recorded_by": "a tester",
        "method": "gpuexplore 1 record",
        "commit": COMMIT,
        "command": "gpuexplore record matmul --by 'a tester' --out made.jsonl",
        "devices": devices or (gpu(),),
        "libraries": {"torch": "2.0"},
        "python": "3.12",
        "platform": "linux",
    }
    return Provenance(**standard | changed)


def results(asked, device):
    """Return a result for each case of `asked`, a tenth of a millisecond for the last implementation."""
    found = []
    for case in asked.cases():
        slower = len(asked.implementations) - asked.implementations.index(case.implementation)
        one = ok(slower * 1e-4, operation=case.operation, shape=case.shape)
        environment = replace(one.environment, device=device, started_utc=MEASURED, commit=COMMIT)
        found.append(replace(one, case=case, environment=environment, accuracy=Accuracy(1e-9, 1e-7)))
    return found


def lines(*experiments, told=None):
    """Return the lines of a recording, as objects: the header, then a result each."""
    asked = experiments or (experiment(),)
    told = told or provenance()
    places = {one.id: one for one in told.devices}
    measured = [result for each in asked for result in results(each, places[each.devices[0]])]
    return [header(told, asked), *map(encode, measured)]


def write(path, written=None):
    """Write `written` (a good recording, unless said) as JSON Lines and return the path."""
    path.write_text("".join(json.dumps(line) + "\n" for line in (lines() if written is None else written)))
    return path
