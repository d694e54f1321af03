"""A trace of a GPU that was made by hand after Kineto's format; no GPU wrote it, and its times are made up.

Round numbers: 200 µs of a product, 150 µs of an addition, 50 µs of a copy.
"""

import json
from pathlib import Path

from gpuexplore.features.trace.analysis.events import read_trace
from gpuexplore.features.trace.analysis.table import table_of, traced_on

DATA = Path(__file__).with_name("data") / "encoder_layer.json.gz"  # a real trace of a CPU
H100 = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 84_942_979_072,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "numSms": 132,
}
A100 = H100 | {"name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85_174_190_080, "computeMajor": 8, "numSms": 108}
B200 = H100 | {
    "name": "NVIDIA B200",
    "totalGlobalMem": 192_000_000_000,
    "computeMajor": 10,
    "numSms": 148,
}
MI300X = H100 | {
    "name": "AMD Instinct MI300X",
    "totalGlobalMem": 206_141_652_992,
    "computeMinor": 4,
    "numSms": 304,
}


def event(category, name, start_us, time_us, **args):
    thread = {"pid": 1, "tid": 1} if category not in ("kernel", "gpu_memcpy") else {"pid": 0, "tid": 7}
    return {"ph": "X", "cat": category, "name": name, **thread, "ts": start_us, "dur": time_us, "args": args}


def operation(name, start_us, time_us, number, *dims, kind="c10::BFloat16", values=()):
    """Return the event of an operation of torch whose arguments are tensors of `dims`, then `values`."""
    count, rest = len(dims), len(values)
    args = {
        "External id": number,
        "Input Dims": [*map(list, dims), *[[]] * rest],
        "Input type": [*[kind] * count, *["Scalar"] * rest],
        "Concrete Inputs": [*[""] * count, *values],
    }
    return event("cpu_op", name, start_us, time_us, **args)


def called(name, *arguments, start_us=0.0, number=1):
    """Return the event of an operation whose arguments are tensors, (dims, kind), or values as torch writes them."""
    made = operation(name, start_us, 20.0, number)
    made["args"] |= {
        "Input Dims": [list(each[0]) if isinstance(each, tuple) else [] for each in arguments],
        "Input type": [each[1] if isinstance(each, tuple) else "Scalar" if each else "" for each in arguments],
        "Concrete Inputs": ["" if isinstance(each, tuple) else each or "" for each in arguments],
    }
    return made


def launch(start_us, correlation, number=None, name="cudaLaunchKernel"):
    known = {} if number is None else {"External id": number}
    return event("cuda_runtime", name, start_us, 2.0, correlation=correlation, **known)


def kernel(name, start_us, time_us, correlation, number=None, category="kernel", device=0, stream=7):
    known = {} if number is None else {"External id": number}
    return event(category, name, start_us, time_us, device=device, stream=stream, correlation=correlation, **known)


def gpu_trace(**changes):
    """Return a linear layer, an addition and a copy on an H100; the addition's kernel is known by its correlation."""
    events = [
        operation("aten::linear", 0.0, 30.0, 1, (4096, 4096), (4096, 4096)),
        operation("aten::addmm", 5.0, 20.0, 2, (4096,), (4096, 4096), (4096, 4096), values=("1", "1")),
        launch(10.0, 11, 2),
        kernel("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 40.0, 200.0, 11, 2),
        operation("aten::add", 50.0, 10.0, 3, (8192, 8192), (8192, 8192), values=("1",)),
        launch(52.0, 12),
        kernel("void at::native::vectorized_elementwise_kernel<4>", 240.0, 150.0, 12),
        event("cpu_op", "aten::copy_", 70.0, 5.0, **{"External id": 4}),
        kernel("Memcpy HtoD (Pinned -> Device)", 400.0, 50.0, 13, 4, category="gpu_memcpy"),
        event("gpu_user_annotation", "ProfilerStep#1", 40.0, 500.0),
    ]
    return {"schemaVersion": 1, "deviceProperties": [H100], "traceEvents": events} | changes


def as_bytes(trace):
    return json.dumps(trace).encode()


def table_from(trace, **on):
    """Return the table of a trace, or of the bytes of a file."""
    read = read_trace("t", trace if isinstance(trace, bytes) else as_bytes(trace))
    return table_of(read, traced_on(read, **on))
