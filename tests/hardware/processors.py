"""Two processors that virtual machines give one name and two cores: their caches and formats are the same, too."""

from dataclasses import replace

from gpuexplore.core.model import Bandwidth, Device, Identity, Peak


def ceilings(fp32_flop_per_s):
    """Return peaks as they are after measuring."""
    rates = {"fp64": fp32_flop_per_s / 2, "fp32": fp32_flop_per_s, "bf16": 2 * fp32_flop_per_s}
    return tuple(Peak(dtype, "matrix", rate, "measured_ceiling", "FMA loop") for dtype, rate in rates.items())


_SETS = ("avx", "avx2", "fma", "avx512f", "avx512_bf16")
_CACHES = (32 * 2**10, 2**20, 32 * 2**20)
_ZEN_4 = Identity("AuthenticAMD", 25, 17, 1, _SETS, _CACHES, microarchitecture="Zen 4")
_ZEN_5 = Identity("AuthenticAMD", 26, 2, 1, (*_SETS, "avx_vnni"), _CACHES, microarchitecture="Zen 5")

ZEN_4 = Device(
    "cpu",
    "cpu",
    "AMD EPYC",
    cores=2,
    cache_bytes=32 * 2**20,
    native=("fp64", "fp32", "bf16"),
    peaks=ceilings(236e9),
    bandwidth=Bandwidth(56e9, "measured_ceiling", "STREAM triad"),
    identity=_ZEN_4,
)
ZEN_5 = replace(ZEN_4, peaks=ceilings(525e9), identity=_ZEN_5)
OLD_ZEN_4 = replace(ZEN_4, peaks=ceilings(230e9), identity=None)  # as versions before identities described it


def measured_on(device, result):
    """Return `result` as if `device` had measured it."""
    return replace(result, environment=replace(result.environment, device=device))
