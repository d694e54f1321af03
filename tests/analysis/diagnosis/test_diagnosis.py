"""Every rule of the diagnosis has a result it speaks about and one it keeps silent about."""

from dataclasses import replace
from typing import get_args

import pytest

from gpuexplore.analysis.diagnosis import DISTURBANCES, RULES
from gpuexplore.analysis.model import DiagnosisKind, Severity
from gpuexplore.analysis.run.summary_rules import CARE
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import (
    Accuracy,
    Bandwidth,
    CacheRoof,
    Flag,
    Options,
    Peak,
    Result,
    Shape,
    Status,
    Telemetry,
    ThreadRoofs,
)
from gpuexplore.hardware import accelerator_named, as_device
from tests.analysis.made import PEAKS, alone, analyzed, case, custom, failed, ok

EMULATED = Flag("emulated", "the made-up processor has no bf16 units")
COLD, WARM = Flag("cold", "flushed"), Flag("warm", "not flushed")
MATVEC = Shape.of(m=100_000, n=100)


def on(result, **fields):
    """Return `result` as of a device that differs in these fields."""
    return replace(result, environment=replace(result.environment, device=replace(result.environment.device, **fields)))


def around(result, **fields):
    """Return `result` with another environment."""
    return replace(result, environment=replace(result.environment, **fields))


def of_gpu(key, median_s=1e-3, **about):
    """Return a result of a GPU of the table, as if it were here."""
    found = replace(as_device(accelerator_named(key)), id="cuda:0", kind="cuda")
    return around(ok(median_s, on="cuda:0", **about), device=found)


def diagnoses(result, *others, **asked):
    """Return the diagnoses of `result` in a run with these others."""
    return analyzed(result, *others, **asked).results[0].diagnoses


def kinds(found):
    return [diagnosis.kind for diagnosis in found]


def of_kind(kind, found):
    return next(diagnosis for diagnosis in found if diagnosis.kind == kind)


def slow_numpy(kernel="Haswell", vectors="X86_V3 X86_V4", **about):
    """Return NumPy at 43 % of the peak in a large product."""
    versions = {"numpy": "2.4", "numpy_blas": f"openblas 0.3.31 {kernel}", "numpy_vectors": vectors}
    return around(ok(1e-3, size=600, implementation="numpy", **about), libraries=versions)


TWO_THIRDS_OF_THE_PEAK = ok(6.5e-4, size=600)
ONE_CORE = ThreadRoofs(
    peaks=(Peak("fp32", "vector", 1e11, "measured_ceiling", "one thread"),),
    bandwidth=Bandwidth(4e10, "measured_ceiling", "one thread"),
    ordinary_stores=Bandwidth(3e10, "measured_ceiling", "one thread"),
    caches=(CacheRoof(1, 1000, Bandwidth(4e11, "measured_ceiling", "one thread")),),
)
CACHE = CacheRoof(2, 10**6, Bandwidth(1.25e11, "measured_ceiling", "triad"))
FAST = Bandwidth(4e12, "measured_ceiling", "a test")
DRIFTED = Flag("drifted", "in 4 of 10 rounds a core ran a loop of multiply-adds at 50 % to 60 % of its usual rate")
CONTENDED, NOISY = Flag("contended", "other work took 40 % of the CPU"), Flag("noisy", "spreads over 20 %")
THROTTLED, LAUNCH_BOUND = Flag("throttled", "it is hot"), Flag("launch_bound", "a call on one element takes 5 µs")
MILLION = Shape.of(n=10**6)


def of_two_cores(median_s, implementation="numpy", **about):
    """Return a result of a CPU whose single cores were measured, too: 40 GB/s from memory, 30 with ordinary stores."""
    known = {"ordinary_stores": Bandwidth(7.5e10, "measured_ceiling", "a test"), "one_thread": ONE_CORE, "cores": 2}
    return on(ok(median_s, implementation=implementation, **about), **known)


def added(median_s, **about):
    """Return a vector addition of a million elements, 12 MB."""
    return of_two_cores(median_s, operation="vector_add", shape=MILLION, **about)


def row_wise(median_s, operation, m=10, n=10, **about):
    """Return a row-wise operation, by default one whose data stay in the first cache."""
    return of_two_cores(median_s, operation=operation, shape=Shape.of(m=m, n=n), **about)


# rule: results it speaks about, with words of what it says; results it keeps silent about
SPEAKS = {
    "not_measured": [
        (failed(), "was skipped for the reason below"),
        (failed(Status.INCORRECT, "error 0.5"), "computes a wrong answer"),
        (failed(Status.OUT_OF_MEMORY, "needs 3 GiB"), "needs more memory than is free"),
    ],
    "over_peak": [
        (
            ok(4e-4, size=600),
            "reached 108 % of the measured peak: a measured peak is the best that was measured before",
        ),
        (ok(1e-4, size=600), "so the measurement is wrong: most likely not all of the work"),
        (
            of_gpu("t4", 2 * 4096**3 / 8.9e12, size=4096),
            "reached 110 % of the datasheet peak: devices, GeForce cards above all, run faster than",
        ),
        (
            of_gpu("t4", 6e-4, size=2000),
            "wrong: most likely only the launch was timed",
        ),  # the notebook of a T4: 26.7 TFLOP/s of 8.1
    ],
    "over_bandwidth": [
        # the notebook of a GTX 1650: 40 MB in 10.4 us
        (of_gpu("gtx-1650", 10.4e-6, operation="matvec", shape=MATVEC), "only the launch was timed"),
        (
            of_gpu("gtx-1650", 10.4e-6, operation="matvec", shape=MATVEC, flags=[COLD]),
            "far above the derived memory bandwidth, so the measurement is wrong",
        ),
        (ok(1e-7, size=30), "caches delivered part of the bytes"),
        (
            ok(1e-9, operation="copy", shape=Shape.of(n=2000), spec={"cache_bytes": None}),
            "the measured peak is too low",
        ),
    ],
    "fragile": [
        (
            ok(flags=[Flag("fragile", f"wrong on {inputs}: relative error 1")]),
            f"correct on the timed inputs, but wrong on {inputs}",
        )
        for inputs in ("strided views", "the shape m=1,n=257", "inputs 1,000 times as large")
    ],
    "extra_threads": [
        (ok(count=count, flags=[Flag("extra_threads", "1.9 cores busy")]), "uses threads of its own")
        for count in (5, 30, 80)
    ],
    "emulated": [
        (
            ok(dtype="bf16", flags=[EMULATED]),
            "is emulated, and converting limits it: the made-up processor has no bf16 units.",
        ),
        (ok(dtype="bf16", flags=[EMULATED, LAUNCH_BOUND]), "torch in bf16 is emulated: the made-up processor has"),
        (of_gpu("t4", dtype="bf16", flags=[EMULATED]), "no bf16 units; try fp16, which has native units here."),
    ],
    "slow_blas": [
        (slow_numpy(), "OpenBLAS chose its Haswell kernel, though the CPU has AVX-512; start with OPENBLAS_CORETYPE="),
        (slow_numpy(kernel="Prescott", vectors="X86_V3"), "OpenBLAS computes it with its Prescott kernel."),
        (around(slow_numpy(), settings={"OPENBLAS_CORETYPE": "Zen"}), "because OPENBLAS_CORETYPE=Zen is set"),
        (around(slow_numpy(), libraries={}), "the BLAS kernel that NumPy uses is unknown"),
        (
            on(around(ok(1e-3, size=600), libraries={"numpy_vectors": "X86_V4"}), name="AMD EPYC"),
            "uses AVX2 on AMD CPUs",
        ),
        (on(ok(1e-3, size=600), name="AMD EPYC"), "MKL computes it for torch; MKL_VERBOSE=1"),  # it has AVX2 alone
        (on(ok(1e-3, size=600), name="Intel Xeon"), "MKL computes it for torch; MKL_VERBOSE=1"),
        (ok(1e-3, size=900, dtype="bf16"), "oneDNN computes this dtype"),
    ],
    "launch_bound": [
        (ok(flags=[LAUNCH_BOUND]), "is launch-bound"),
        (ok(flags=[LAUNCH_BOUND, WARM]), "is launch-bound"),
        (of_gpu("t4", 1e-5, operation="softmax", shape=Shape.of(m=8, n=8), flags=[LAUNCH_BOUND]), "larger sizes gain"),
    ],
    "compute_bound": [
        (ok(5e-4, size=600), "86.4 % of the measured peak: only a faster device would help"),
        (on(ok(5e-4, size=600), native=("fp32", "bf16")), "86.4 % of the measured peak: a narrower dtype, bf16, would"),
        (TWO_THIRDS_OF_THE_PEAK, "reaches 66.5 % of the measured peak: at the limit it would be 1.50× as fast"),
        (
            row_wise(2.5e-9, "reduce_sum"),
            "numpy in fp32 runs on one thread, is compute-bound and close to the limit, 80.0 % of what one core can "
            "do: several threads can do more",
        ),
        (
            row_wise(2.5e-9, "reduce_sum", implementation="torch"),
            "torch in fp32 runs on one thread, is compute-bound and close to the limit, 80.0 % of what one core can "
            "do: its library uses several threads for larger arrays",
        ),
        (
            on(row_wise(5e-10, "reduce_sum", implementation="numba-cpu"), caches=(replace(CACHE, bandwidth=FAST),)),
            "close to the limit, 80.0 % of half the datasheet peak, which counts multiply-adds",
        ),
    ],
    "memory_bound": [
        (ok(1.2e-7, size=30), "close to the limit, 90.0 % of the memory bandwidth: fusing several steps into one pass"),
        (
            added(2e-4, implementation="torch"),
            "is memory-bound and close to the limit, 80.0 % of the memory bandwidth with ordinary stores: ",
        ),
        (
            added(6e-4),
            "runs on one thread, is memory-bound and reaches 66.7 % of what one core can do: at the limit it would",
        ),
        (added(4.2e-4), "close to the limit, 95.2 % of what one core can do: several threads can do more"),
        (of_two_cores(3e-4, operation="copy", shape=MILLION), "reaches 66.7 % of what one core can do"),
        (
            row_wise(1.5e-6, "softmax", m=100, n=100, implementation="torch"),  # as many written as read: 66.7 GB/s
            "is memory-bound and close to the limit, 80.0 % of the memory bandwidth with ordinary stores",
        ),
    ],
    "cache_bound": [
        (ok(1e-6, size=30, spec={"cache_bytes": 10**6}), "is served by caches: its 10.5 KiB stay"),
        (
            on(ok(1e-7, size=30, spec={"cache_bytes": 10**6}), caches=(CACHE,)),
            "is cache-bound and close to the limit, 86.4 % of the cache's bandwidth: fusing several steps",
        ),
        (
            of_two_cores(3e-9, operation="vector_add", shape=Shape.of(n=80)),
            "runs on one thread, is cache-bound and close to the limit, 80.0 % of what one core can do: several",
        ),
    ],
    "below_limits": [
        (
            ok(7e-4, size=600, flags=[NOISY]),  # it may be compute-bound, or not
            "reaches 47.5 % to 80.2 % of the measured peak, its nearest limit: ",
        ),
        (
            ok(2e-3, size=600, implementation="numba-cpu", flags=[DRIFTED]),
            "numba-cpu in fp32 reaches 16.6 % to 28.1 % of the measured peak, so no hardware limit bounds it: ",
        ),
        (
            ok(1e-3, size=600, implementation="numba-cpu"),
            "reaches 43.2 % of the measured peak, its nearest limit: its own instructions and stalls",
        ),
        (slow_numpy(vectors="X86_V3"), "reaches 43.2 % of the measured peak, its nearest limit: its own instructions"),
        (ok(1.2e-6, size=30), "reaches 9.0 % of the memory bandwidth, so no hardware limit"),
        (
            added(8e-4),
            "runs on one thread and reaches 50.0 % of the memory bandwidth of one core, its nearest limit: its own",
        ),
        (
            row_wise(5e-9, "softmax"),
            "runs on one thread and reaches 40.0 % of the cache bandwidth of one core, its nearest limit: an "
            "exponential, a root or a division takes many instructions.",
        ),
        (row_wise(1e-3, "layer_norm", m=1000, n=1000, implementation="numba-cpu"), "of the memory bandwidth"),
        (
            of_two_cores(2e-3, operation="optimizer_step", shape=Shape.of(n=10**6, arrays=3)),
            "of the memory bandwidth of one core",
        ),
        (ok(1e-2, size=600, dtype="bf16", implementation="numpy"), "it converts bf16 to fp32 and back"),
        (added(1e-2, dtype="bf16"), "it converts bf16 to fp32 and back"),
        (ok(1e-2, size=600, dtype="bf16", flags=[EMULATED]), "it converts bf16 to another format and back"),
        (around(ok(1.2e-6, size=30), threads=2), "starting and joining threads takes a large part of 1.20 µs"),
        (
            ok(1e-3, size=600, implementation="numba-cpu", flags=[Flag("throttled", "power")]),
            "its nearest limit: its clock was throttled",
        ),
        (
            ok(1e-3, size=600, implementation="numba-cpu", flags=[Flag("contended", "2 others")]),
            "its nearest limit: other programs ran at the same time",
        ),
        (
            of_gpu("a100-sxm4-80gb", 7e-3, shape=Shape.of(m=109 * 128, k=4096, n=128)),
            "a last wave of blocks leaves much of the GPU idle",
        ),
    ],
    "one_thread": [
        (
            on(added(8e-4), one_thread=None),
            "numpy in fp32 runs on one thread, and the peaks of one core were not measured",
        ),
        (on(row_wise(5e-9, "softmax"), one_thread=None), "how near it came to its limit is unknown"),
        (of_two_cores(1e-2, size=600, dtype="fp16"), "how near it came to its limit is unknown"),  # of its arithmetic
        (on(row_wise(1e-8, "reduce_sum", implementation="torch"), one_thread=None), "torch in fp32 runs on one thread"),
    ],
    "no_peak": [
        (ok(dtype="fp64"), "No peak is known for torch in fp64 here"),
        (ok(dtype="tf32"), "No peak is known for torch in tf32 here"),
        (on(ok(), peaks=()), "No peak is known for torch in fp32 here"),
    ],
    "wave_tail": [
        # 108 multiprocessors run 109 tiles
        (of_gpu("a100-sxm4-80gb", 2e-3, shape=Shape.of(m=109 * 128, k=4096, n=128)), "may lose time in a last wave"),
        (of_gpu("a100-sxm4-80gb", 1e-2, shape=Shape.of(m=1024, k=65536, n=128)), "may have too few blocks"),
        (
            of_gpu("a100-sxm4-80gb", 1e-2, size=2048, implementation="numba-cuda-register"),
            "loses time in a last wave",
        ),
    ],
    "too_few_threads": [
        (on(around(ok(), threads=1), cores=8), "ran on 1 of 8 cores"),
        (on(around(ok(flags=[CONTENDED]), threads=3), cores=4), "ran on 3 of 4 cores: set 4 threads"),
        (around(added(1e-3, implementation="numba-cpu"), threads=1), "ran on 1 of 2 cores"),
    ],
    "tf32": [
        (of_gpu("a100-sxm4-80gb", 1e-2, size=4096), "tf32 was off, as it always is in fp32 here"),
        (
            of_gpu("a100-sxm4-80gb", 2e-3, size=4096, dtype="tf32"),
            "tf32 was on: inputs keep 11 of the 24 significand bits of fp32, accumulation keeps all",
        ),
        (of_gpu("l4", 1e-2, size=4096), "tf32 was off, as it always is in fp32 here"),
    ],
    "transfer_dominates": [
        (
            of_gpu("gtx-1650", 4e-4, operation="matvec", shape=MATVEC),
            "would take longer than computing: keep them on the GPU",
        ),
        (of_gpu("t4", 1e-4, operation="vector_add", shape=MILLION), "would take longer than computing"),
        (of_gpu("a100-sxm4-80gb", 1e-5, operation="copy", shape=MILLION), "would take longer than computing"),
    ],
    "throttled": [
        (ok(flags=[Flag("throttled", "the clock fell to 60 %")]), "with a throttled clock"),
        (of_gpu("t4", flags=[THROTTLED, COLD]), "let the device cool"),
        (
            ok(5e-4, size=600, flags=[THROTTLED, NOISY]),
            "a throttled clock; let the device cool, or raise its power limit:",
        ),
    ],
    "contended": [
        (ok(flags=[Flag("contended", "2 other processes")]), "a call takes 769 µs to 1.30 ms."),
        (added(4.2e-4, flags=[Flag("contended", "40 %", 0.05)]), "a call takes 400 µs to 441 µs."),
        (of_gpu("t4", flags=[Flag("contended", "1 other process used cuda:0")]), "overlapped with other work"),
    ],
    "drifted": [
        (ok(flags=[DRIFTED]), "a core ran slower than usual"),
        (added(4.2e-4, flags=[DRIFTED]), "a call takes 323 µs to 546 µs."),
        (ok(5e-4, size=600, flags=[DRIFTED, NOISY]), "ran slower than usual: a call takes 345 µs"),
    ],
    "noisy": [
        (ok(flags=[Flag("noisy", "spreads over 20 %")]), "varies from call to call"),
        (added(4.2e-4, flags=[NOISY]), "varies from call to call: a call takes 323 µs"),
        (ok(flags=[NOISY], count=1), "a call takes"),
    ],
}
SILENT = {
    "not_measured": [ok(), ok(flags=[CONTENDED, NOISY]), ok(dtype="fp64")],
    "fragile": [ok(), ok(flags=[NOISY]), failed()],
    "extra_threads": [ok(), ok(flags=[CONTENDED]), failed()],
    "over_peak": [ok(5e-4, size=600), ok(1e-4, size=600, dtype="fp64"), failed()],
    "over_bandwidth": [
        ok(1.2e-7, size=30),
        ok(1e-8, size=30, spec={"cache_bytes": 10**6}),
        ok(spec={"bandwidth": None}),
        failed(),
    ],
    "emulated": [
        ok(dtype="bf16"),
        ok(dtype="bf16", implementation="numpy"),  # widened, on a device that has units for it
        replace(ok(flags=[EMULATED]), environment=None),
    ],
    "slow_blas": [
        slow_numpy(vectors="X86_V3"),  # a kernel that suits the CPU
        slow_numpy(kernel="SkylakeX"),
        slow_numpy(on="cuda:0"),
        on(slow_numpy(), peaks=(replace(PEAKS[0], flop_per_s=7e11),)),  # 62 % of the peak
        replace(slow_numpy(), environment=None),
        ok(1e-3, size=600, implementation="numba-cpu"),  # our own kernel: no library to blame
        ok(1e-3, size=60, implementation="numpy"),  # small
        around(ok(2.5e-5, size=150, implementation="numpy"), libraries=slow_numpy().environment.libraries),  # short
        slow_numpy(dtype="fp16", flags=[EMULATED]),
        slow_numpy(flags=[Flag("contended", "other work took 40 % of the CPU", 0.4)]),
        around(ok(1e-2, size=900, dtype="bf16", implementation="numpy"), libraries={}),  # widened: no BLAS is at fault
        ok(1e-1, operation="conv2d", shape=Shape.of(b=8, c=64, h=56, w=56, o=64, r=3), implementation="numpy"),
    ],
    "launch_bound": [
        ok(5e-4, size=600),
        ok(flags=[NOISY]),
        failed(),
    ],
    "compute_bound": [
        ok(1e-4, size=600),
        ok(1.2e-7, size=30),
        ok(dtype="fp64"),
        failed(),
        ok(5e-4, size=600, flags=[LAUNCH_BOUND]),
        ok(0.3, size=600, dtype="bf16", flags=[EMULATED]),  # 722 times its limit, said earlier versions
        slow_numpy(dtype="fp16"),
        row_wise(5e-9, "softmax"),
        row_wise(1e-8, "layer_norm", implementation="torch"),
        on(row_wise(2.5e-9, "reduce_sum"), one_thread=None),
        row_wise(5e-10, "reduce_sum"),  # four times what one core can do, so it is not alone
    ],
    "memory_bound": [
        ok(5e-4, size=600),
        ok(1e-8, size=30),
        ok(1e-6, size=30, spec={"cache_bytes": 10**6}),
        added(8e-4, dtype="bf16"),
        added(8e-4, dtype="fp16", implementation="torch", flags=[EMULATED]),
        row_wise(1e-3, "softmax", m=1000, n=1000, implementation="torch"),
        on(added(8e-4), one_thread=None),
    ],
    "cache_bound": [
        ok(1.2e-7, size=30),
        ok(5e-4, size=600),
        row_wise(5e-9, "softmax"),
        on(of_two_cores(3e-9, operation="vector_add", shape=Shape.of(n=80)), one_thread=None),
    ],
    "below_limits": [
        TWO_THIRDS_OF_THE_PEAK,
        slow_numpy(),  # whose kernel takes the time
        row_wise(2.5e-9, "reduce_sum"),
        row_wise(5e-9, "softmax", flags=[LAUNCH_BOUND]),
        on(row_wise(5e-9, "softmax"), one_thread=None),
        row_wise(1.5e-6, "softmax", m=100, n=100, implementation="torch"),  # near the limit of memory
        failed(operation="softmax", shape=Shape.of(m=10, n=20)),
        ok(dtype="fp64"),  # whose peak is unknown
        ok(1e-6, size=30, spec={"cache_bytes": 10**6}),  # in a cache whose bandwidth is unknown
        ok(5e-4, size=600, dtype="bf16", implementation="numpy"),  # near the fp32 peak all the same
        of_two_cores(1e-2, size=600, dtype="fp16", flags=[LAUNCH_BOUND]),
    ],
    "one_thread": [
        added(8e-4),
        on(added(8e-4), one_thread=None, cores=1),
        around(on(added(8e-4), one_thread=None), threads=1),
        on(added(8e-4, implementation="torch"), one_thread=None),
        on(added(8e-4, implementation="numba-cpu"), one_thread=None),
    ],
    "no_peak": [ok(), ok(operation="copy", shape=Shape.of(n=100), dtype="fp64"), failed(dtype="fp64")],
    "wave_tail": [
        of_gpu("a100-sxm4-80gb", 1e-2, shape=Shape.of(m=108 * 128, k=4096, n=128)),  # a full wave
        of_gpu("a100-sxm4-80gb", 7e-4, shape=Shape.of(m=109 * 128, k=4096, n=128)),  # near its peak all the same
        of_gpu("a100-sxm4-80gb", 1e-4, operation="copy", shape=Shape.of(n=10**6)),
        on(of_gpu("a100-sxm4-80gb", 1e-3, shape=Shape.of(m=109 * 128, k=4096, n=128)), cores=None),
        on(of_gpu("a100-sxm4-80gb", 1e-2, size=2048, implementation="numba-cuda-register"), compute_capability="6.1"),
        of_gpu(
            "a100-sxm4-80gb", 2e-3, shape=Shape.of(m=109 * 128, k=4096, n=128), flags=[Flag("drifted", "a test", 1.5)]
        ),
        ok(1e-3, shape=Shape.of(m=109 * 128, k=4096, n=128)),
    ],
    "too_few_threads": [
        on(around(ok(), threads=8), cores=8),
        on(ok(), cores=8),
        on(around(ok(on="cuda:0"), threads=1), cores=8),
        ok(),
        around(added(1e-3), threads=1),  # it would use one of two as well
        on(around(ok(flags=[Flag("extra_threads", "2.0 cores busy")]), threads=1), cores=8),
    ],
    "tf32": [
        ok(5e-4, size=600),
        of_gpu("t4", 1e-1, size=4096),
        of_gpu("a100-sxm4-80gb", 1e-2, size=4096, dtype="bf16"),
        of_gpu("a100-sxm4-80gb", 1e-4, operation="copy", shape=Shape.of(n=10**6)),
    ],
    "transfer_dominates": [
        of_gpu("gtx-1650", 1.0, operation="matvec", shape=MATVEC),
        ok(4e-4, operation="matvec", shape=MATVEC),
        on(of_gpu("gtx-1650", 4e-4, operation="matvec", shape=MATVEC), spec_key=None),
        of_gpu("gtx-1650", 4e-4, operation="matvec", shape=MATVEC),  # nobody asks for the GPU beside a CPU
    ],
    "throttled": [ok(), ok(flags=[CONTENDED]), ok(flags=[NOISY])],
    "contended": [ok(), ok(flags=[THROTTLED]), ok(flags=[NOISY])],
    "drifted": [ok(), ok(flags=[THROTTLED]), ok(flags=[NOISY])],
    "noisy": [ok(), ok(flags=[CONTENDED]), ok(flags=[THROTTLED])],
}
EACH_RULE = pytest.mark.parametrize("name", RULES)


def _seen(result):
    """Return what follows from a result, of a GPU beside the same work on a CPU."""
    case = result.case
    if not case.device.startswith("cuda"):
        return alone(result)
    host = ok(1.0, shape=case.shape, dtype=case.dtype, operation=case.operation, implementation=case.implementation)
    return analyzed(result, host).results[0]


@EACH_RULE
def test_rule_speaks_with_evidence_and_keeps_silent(name):
    assert min(len(SPEAKS[name]), len(SILENT[name])) >= 3
    for result, words in SPEAKS[name]:
        found = RULES[name](_seen(result))
        assert found is not None, words
        assert words in found.sentence
        assert (found.kind, found.sentence[-1]) == (name, ".")
        assert ".." not in found.sentence
        assert found.evidence
        assert not found.evidence.endswith(".")
        assert found.severity in get_args(Severity)
    for result in SILENT[name]:
        assert RULES[name](alone(result)) is None


def test_every_kind_has_its_rule_and_no_other():
    assert set(get_args(DiagnosisKind)) == set(RULES) == set(SPEAKS) == set(SILENT)
    assert set(CARE) >= set(DISTURBANCES)
    assert set(CARE) <= set(RULES)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_every_status_says_what_it_means_and_nothing_else_is_said(status):
    (found,) = diagnoses(failed(status, "the reason"))
    assert found.sentence.startswith("torch in fp32 ")
    assert found.evidence == "the reason"


def test_wrong_answer_shows_both_errors():
    result = replace(failed(Status.INCORRECT, "wrong"), accuracy=Accuracy(0.5, 1e-5))
    assert diagnoses(result)[0].evidence == "wrong; relative error 5.0e-01, tolerance 1.0e-05"
    assert diagnoses(replace(result, accuracy=Accuracy(None, 1e-5)))[0].evidence == "wrong"


def test_result_without_environment_is_no_trouble():
    assert diagnoses(replace(ok(), environment=None))[0].kind == "no_peak"
    assert diagnoses(Result(case(), Status.CRASHED, "signal 11"))[0].severity == "wrong"


def test_what_is_wrong_comes_first_then_what_explains_it_then_what_disturbed_it():
    flags = [Flag("noisy", "20 %"), Flag("contended", "2 other processes")]
    assert kinds(diagnoses(ok(1e-4, size=600, flags=flags))) == ["over_peak", "contended", "noisy"]
    assert kinds(diagnoses(ok(5e-4, size=600, flags=flags))) == ["compute_bound", "contended", "noisy"]
    assert kinds(diagnoses(slow_numpy())) == ["slow_blas"]


def test_a_wrong_time_is_not_explained():
    found = diagnoses(of_gpu("gtx-1650", 10.4e-6, operation="matvec", shape=MATVEC, flags=[Flag("noisy", "20 %")]))
    assert kinds(found) == ["over_bandwidth", "noisy"]


def test_evidence_of_the_roofline_has_the_ridge_point_also_that_of_a_cache():
    (found,) = diagnoses(TWO_THIRDS_OF_THE_PEAK)
    assert found.evidence == (
        "0.665 TFLOP/s of 1.00 TFLOP/s (the measured peak), 66.5 %; intensity 100 FLOP/byte, ridge point 10.0 FLOP/byte"
    )

    (found,) = diagnoses(on(ok(1e-7, size=30, spec={"cache_bytes": 10**6}), caches=(CACHE,)))
    assert found.sentence == (
        "torch in fp32 is cache-bound and close to the limit, 86.4 % of the cache's bandwidth: fusing several steps "
        "into one pass would help, as it moves fewer bytes."
    )
    assert found.evidence == (
        "108 GB/s of 125 GB/s; its 10.5 KiB stay in the L2 cache (977 KiB), so memory bandwidth does not bound "
        "it; intensity 5.00 FLOP/byte, ridge point 8.00 FLOP/byte"
    )


def test_custom_bandwidth_decides_which_side_of_the_ridge_a_result_is_on():
    entered = Bandwidth(1e10, "own", "me")
    (found,) = diagnoses(ok(2.4e-4, size=400), custom_peaks=custom(bandwidth=entered))
    assert (found.kind, found.evidence) == (
        "memory_bound",
        "8.00 GB/s of 10.0 GB/s; intensity 66.7 FLOP/byte, ridge point 100 FLOP/byte",
    )


def test_slow_library_is_shown_its_rival_of_the_same_rounds():
    slow, fast = slow_numpy(), ok(5e-4, size=600, implementation="numba-cpu")
    other = ok(1e-4, size=600, implementation="torch", cache="cold")  # of another group
    assert "numba-cpu is 2.00× as fast in the same rounds" in diagnoses(slow, fast, other)[0].sentence
    assert "same rounds" not in diagnoses(slow, ok(9e-4, size=600))[0].sentence


def test_emulated_dtype_is_compared_with_the_native_one():
    slow, fast = ok(0.3, dtype="bf16", flags=[EMULATED]), ok(1e-3)
    found = diagnoses(slow, fast)[0]
    assert found.sentence.startswith("torch takes 300× as long in bf16 as in fp32: the made-up processor has no bf16")
    assert found.evidence.startswith("300 ms in bf16, 1.00 ms in fp32")
    assert "is emulated" in diagnoses(slow, ok(0.29))[0].sentence  # hardly slower


def test_advice_is_a_dtype_that_is_computed_in_its_own_units_and_was_not_measured_to_be_as_slow():
    def native(result):
        return on(result, native=("bf16", "fp32"))

    slow = native(ok(0.3, dtype="fp16", flags=[EMULATED]))
    assert "try bf16, which" in diagnoses(slow)[0].sentence
    assert "try fp32, which" in diagnoses(slow, native(ok(0.29, dtype="bf16")))[0].sentence
    assert "try bf16, which" in diagnoses(slow, native(ok(0.1, dtype="bf16")))[0].sentence
    assert "try" not in diagnoses(slow, native(ok(0.29, dtype="bf16")), native(ok(0.28)))[0].sentence
    widened = native(ok(0.3, dtype="fp16", implementation="numpy", flags=[EMULATED]))
    assert "try fp32, which" in diagnoses(widened)[0].sentence


def test_another_peak_that_is_passed_is_explained_and_no_proof_of_a_wrong_time():
    entered = Peak("fp32", "matrix", 1e11, "own", "me")
    found = diagnoses(ok(5e-4, size=600), custom_peaks=custom(entered))[0]
    assert (found.kind, found.severity) == ("over_peak", "doubt")
    assert "the number you entered is below what this device does" in found.sentence

    entered = Peak("fp32", "matrix", 1e10, "own", "me")
    found = diagnoses(ok(5e-4, size=600), peak_kind="own", custom_peaks=custom(entered))[0]
    assert (found.kind, found.severity) == ("over_peak", "doubt")

    faster = of_gpu("a100-sxm4-80gb", 2 * 4096**3 / 300e12, size=4096, dtype="bf16")  # 271.2 published, 312 datasheet
    found = of_kind("over_peak", diagnoses(faster, peak_kind="published"))
    assert found.severity == "doubt"
    assert "111 % of the best published result: the published result is lower" in found.sentence
    assert "over_peak" not in kinds(diagnoses(faster))


def test_measured_clock_cache_or_ceiling_can_explain_a_rate_above_the_rated_peak():
    seen = of_gpu("t4", 2 * 4096**3 / 12e12, size=4096)
    assert diagnoses(seen)[0].severity == "wrong"
    boosted = around(seen, after=Telemetry(clock_hz=2 * seen.environment.device.clock_hz))
    assert diagnoses(boosted)[0].severity == "doubt"

    about = {"operation": "copy", "shape": Shape.of(n=100_000), "flags": [COLD]}  # 400 kB in, 400 kB out
    assert (
        diagnoses(of_gpu("gtx-1650", 3.5e-6, **about))[0].severity == "doubt"
    )  # 114 GB/s of 128 must come from memory
    assert diagnoses(of_gpu("gtx-1650", 1e-6, **about))[0].severity == "wrong"

    seen = ok(1e-9, operation="copy", shape=Shape.of(n=100_000), flags=[COLD])
    assert [(diagnosis.kind, diagnosis.severity) for diagnosis in diagnoses(seen)] == [("over_bandwidth", "doubt")]


def test_tile_of_a_library_is_said_to_be_assumed_and_registers_of_another_block_are_unknown():
    library, own = (result for result, _ in SPEAKS["wave_tail"][::2])
    for result, assumed in ((library, True), (own, False)):
        assert ("assumed" in of_kind("wave_tail", diagnoses(result)).evidence) == assumed
    evidence = of_kind("wave_tail", diagnoses(library)).evidence
    assert evidence.startswith("1 full wave of 108 blocks and a last one of 1, so 50.5 % of the slots have work")

    result = SPEAKS["wave_tail"][2][0]
    other = replace(result, case=replace(result.case, options=Options(block=(8, 8))))
    assert "wave_tail" not in kinds(diagnoses(other))


def test_every_tf32_neighbour_is_told_by_the_table():
    assert [dtype.name for dtype in DTYPES.values() if dtype.matrix_only] == ["tf32"]
