"""A machine of two GPUs that stands in for torch, Numba and CuPy: it writes down which device each call went to."""

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import numba

from gpuexplore import backends

UUIDS = ("11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002")
CACHE_BYTES = (40 * 2**20, 50 * 2**20)


@dataclass
class FakeCuda:
    """The driver's state of one thread: the current device, and what was asked of which."""

    current: int = 0
    log: list[tuple[str, int]] = field(default_factory=list)

    def note(self, what):
        self.log.append((what, self.current))

    @contextmanager
    def on(self, device):
        before, self.current = self.current, index_of(device)
        try:
            yield
        finally:
            self.current = before

    def select(self, device):
        self.current = index_of(device)

    def event(self, **_):
        return SimpleNamespace(record=lambda: self.note("event"), elapsed_time=lambda end: 1.0)

    def graph(self, graph, stream=None):
        self.note(f"capture on a stream of {stream}")
        return self.on(self.current)

    def array(self, *shape, device=None, **_):
        place = self.current if device is None else index_of(device)
        return Array(self, place)


@dataclass
class Array:
    """Memory of one device; torch's calls go where it is, those of the others to the current device."""

    cuda: FakeCuda
    place: int

    @property
    def device(self):
        return f"cuda:{self.place}"

    def data_ptr(self):
        return id(self)

    def zero_(self):
        self.cuda.log.append(("overwrite", self.place))

    def fill(self, value):
        self.cuda.note("overwrite")

    def sum(self, out):
        self.cuda.note("read")


def index_of(device):
    return int(str(device).rpartition(":")[2])


class Kernel:
    """A kernel of Numba's: launched on the current device, it writes down its name."""

    def __init__(self, cuda, name):
        self.cuda, self.name = cuda, name

    def __getitem__(self, launch):
        return lambda *arrays: self.cuda.note(self.name)


def torch_on(cuda):
    properties = [SimpleNamespace(uuid=uuid, L2_cache_size=size) for uuid, size in zip(UUIDS, CACHE_BYTES, strict=True)]
    return SimpleNamespace(
        __version__="2.13.0",
        version=SimpleNamespace(cuda="13.0"),
        float32="float32",
        int8="int8",
        empty=cuda.array,
        zeros=cuda.array,
        sum=lambda array, dim, out: cuda.log.append(("read", array.place)),
        cuda=SimpleNamespace(
            CUDAGraph=lambda: SimpleNamespace(replay=lambda: None),
            Event=cuda.event,
            Stream=lambda: cuda.current,
            device=cuda.on,
            get_device_properties=lambda device: properties[index_of(device)],
            graph=cuda.graph,
            is_available=lambda: True,
            set_device=cuda.select,
            _sleep=lambda cycles: cuda.note("spin"),
            synchronize=lambda device: cuda.log.append(("wait", index_of(device))),
        ),
    )


class FakeGpu:
    """A device of Numba's or CuPy's: a context, or the current one until another is."""

    def __init__(self, cuda, index):
        self.cuda, self.index = cuda, index
        self.uuid, self.L2_CACHE_SIZE = f"GPU-{UUIDS[index]}", CACHE_BYTES[index]

    def __enter__(self):
        self.before, self.cuda.current = self.cuda.current, self.index

    def __exit__(self, *_):
        self.cuda.current = self.before

    def use(self):
        self.cuda.select(self.index)

    def synchronize(self):
        self.cuda.log.append(("wait", self.index))


def numba_on(cuda):
    return SimpleNamespace(
        device_array=cuda.array,
        event=cuda.event,
        gpus=[FakeGpu(cuda, index) for index in range(len(UUIDS))],
        is_available=lambda: True,
        cudadrv=SimpleNamespace(driver=SimpleNamespace(driver=SimpleNamespace(get_version=lambda: (13, 0)))),
        runtime=SimpleNamespace(get_version=lambda: (13, 5)),
        select_device=cuda.select,
        synchronize=lambda: cuda.note("wait"),
    )


def cupy_on(cuda):
    def properties(index):
        return {"uuid": bytes.fromhex(UUIDS[index].replace("-", "")), "l2CacheSize": CACHE_BYTES[index]}

    return SimpleNamespace(
        empty=cuda.array,
        zeros=cuda.array,
        is_available=lambda: True,
        RawKernel=lambda source, name: lambda *launch: cuda.note(name),
        cuda=SimpleNamespace(
            Device=lambda index: FakeGpu(cuda, index),
            Event=cuda.event,
            get_elapsed_time=lambda start, end: 1.0,
            runtime=SimpleNamespace(getDeviceProperties=properties, runtimeGetVersion=lambda: 13000),
        ),
    )


def install(monkeypatch):
    """Put the stand-ins in the libraries' places; return the driver behind all of them."""
    cuda = FakeCuda()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "torch", torch_on(cuda))
    monkeypatch.setitem(sys.modules, "cupy", cupy_on(cuda))
    monkeypatch.setattr(numba, "cuda", numba_on(cuda), raising=False)
    kernels = SimpleNamespace(**{name: Kernel(cuda, name) for name in ("overwrite", "read", "spin")})
    monkeypatch.setitem(sys.modules, "gpuexplore.backends.cuda_kernels", kernels)
    monkeypatch.setattr(backends, "cuda_kernels", kernels, raising=False)
    return cuda
