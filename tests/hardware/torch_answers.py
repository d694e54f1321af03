"""What torch says of devices that nobody here has, and the devices that come of it."""

from gpuexplore.hardware.torch_devices import Host, torch_devices

EVERY_BUILD = {"__version__": "2.13.0", "hip": "6.4", "xpu": "20250302"}
MI300X = {
    "name": "AMD Instinct MI300X",
    "memory_bytes": 206_141_652_992,
    "multiprocessors": 304,
    "architecture": "gfx942",
    "driver": "HIP 6.4",
    "cache_bytes": 4 * 2**20,
    "uuid": "9a",
}
M3_MAX = {"name": "Apple M3 Max", "memory_bytes": 51 * 2**30, "multiprocessors": 40}
ARC = {
    "name": "Intel(R) Arc(TM) B580 Graphics",
    "memory_bytes": 12_168_933_376,
    "multiprocessors": 20,
    "driver": "1.6.33276",
    "cache_bytes": 18 * 2**20,
    "uuid": "86",
}
ANSWERS = {"rocm": [MI300X], "mps": [M3_MAX], "xpu": [ARC]}


def host_with(root, kind):
    """Return a host below `root` with what speaks for a device of `kind`."""
    if kind == "mps":
        return Host("darwin", "arm64", root)
    if kind == "rocm":
        add(root / "dev/kfd")
    else:
        add(root / "dev/dri/renderD128")
        add(root / "sys/class/drm/renderD128/device/vendor", "0x8086\n")
    return Host("linux", "x86_64", root)


def add(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def found_on(root, kind, said=None):
    """Return the one device of `kind` on a host with it, of which torch says `said`."""
    answer = ANSWERS[kind] if said is None else [said]
    (device,) = torch_devices(host_with(root, kind), build=lambda: EVERY_BUILD, ask=lambda _: answer)
    return device
