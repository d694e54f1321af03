"""A step of a small transformer layer under torch.profiler: how the trace among the data of these tests was made."""

import gzip
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.profiler import ProfilerActivity, profile


def profiled(**options):
    """Return the profile of a step, forward and backward; the first one was not profiled."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    x = torch.randn(8, 32, 64)
    layer(x).square().mean().backward()
    with profile(activities=[ProfilerActivity.CPU], **options) as prof:
        layer(x).square().mean().backward()
    return prof


def exported(prof):
    """Return the object that the profile exports as a Chrome trace."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        return json.loads(path.read_text(encoding="utf-8"))


def self_cpu_us(prof):
    """Return what torch says itself: the self CPU time of each operation by its name."""
    return {event.key: event.self_cpu_time_total for event in prof.key_averages()}


def packed(trace):
    """Return a trace as the bytes of a packed file."""
    return gzip.compress(json.dumps(trace, separators=(",", ":")).encode(), mtime=0)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    taken = profiled(record_shapes=True)
    data = exported(taken) | {"self_cpu_us": self_cpu_us(taken)}
    kept = {name: value for name, value in data.items() if name not in ("host_name", "traceName", "trace_id")}
    Path(sys.argv[1]).write_bytes(packed(kept))
