"""Each flag is raised where it should be, with its evidence, and nowhere else."""

from dataclasses import replace

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Bandwidth, CacheRoof, Peak, Shape, Telemetry, ThreadRoofs
from gpuexplore.hardware import CpuLoss
from gpuexplore.measure.flags import MeasuredCase, find_flags
from gpuexplore.operations import OPERATIONS
from tests.measure.fakes import CPU, GPU, case, environment, measurement

SHAPE = Shape.of(m=10, k=10, n=10)  # 2000 FLOPs
STEADY_S = (1.0,) * 10
QUIET = (CpuLoss(0.0),)


def flags(**about):
    """Return the evidence of each flag by its name."""
    return {flag.name: flag.evidence for flag in raised(**about)}


def raised(
    *, device=CPU, samples_s=STEADY_S, dtype="fp32", implementation="torch", overhead_s=None, losses=QUIET, **about
):
    """Return each flag of a measurement."""
    options, core_speeds, has_busy_idle_threads = (
        about.pop("options", {}),
        about.pop("core_speeds", ()),
        about.pop("has_busy_idle_threads", False),
    )
    one = case(implementation, operation="matmul", shape=SHAPE, dtype=dtype, device=device.id, **options)
    measured = MeasuredCase(
        one,
        measurement(*samples_s),
        environment(device, **about),
        OPERATIONS["matmul"],
        DTYPES[dtype],
        overhead_s,
        losses,
        core_speeds=core_speeds,
        has_busy_idle_threads=has_busy_idle_threads,
    )
    return find_flags(measured)


@pytest.mark.parametrize(
    ("about", "sizes"),
    [
        ({"samples_s": (0.8, 0.8, 1.0, 1.2, 1.2)}, {"noisy": 0.4}),
        ({"losses": (CpuLoss(0.25), CpuLoss(0.5))}, {"contended": 0.5}),
        ({"losses": (CpuLoss(0.0, waited_share=0.3),)}, {"contended": 0.3}),
        ({"core_speeds": (0.5,) * 5 + (1.0,) * 5}, {"drifted": 0.5}),
        ({"has_busy_idle_threads": True}, {"contended": None}),
        (
            {"before": Telemetry(probe_flop_per_s=1e9), "after": Telemetry(probe_flop_per_s=2e9)},
            {"drifted": 1.0},
        ),
    ],
)
def test_a_flag_has_the_size_of_what_it_is_evidence_of(about, sizes):
    assert {flag.name: flag.size for flag in raised(**about) if flag.name != "warm"} == pytest.approx(sizes)


def with_peak(flop_per_s, kind="datasheet", device=CPU):
    return replace(device, peaks=(Peak("fp32", "matrix", flop_per_s, kind, "a leaflet"),))


def test_undisturbed_measurement_has_only_its_cache_mode():
    assert set(flags()) == {"warm"}
    assert set(flags(device=GPU, after=Telemetry(foreign_processes=0))) == {"cold"}


def test_cold_says_how_much_was_overwritten():
    assert flags(device=GPU)["cold"] == "2.00 MiB overwritten before each call, and as many other bytes read"
    assert flags(device=replace(GPU, cache_bytes=None))["cold"] == (
        "256 MiB overwritten before each call, and as many other bytes read: assumed to be enough, the size of the "
        "last-level cache is unknown"
    )
    assert "cold" in flags(options={"cache": "cold"})
    assert "warm" in flags(device=GPU, options={"cache": "warm"})


@pytest.mark.parametrize(
    ("samples_s", "share"),
    [((1.0, 1.0, 1.05, 1.05), None), ((0.8, 0.8, 1.0, 1.2, 1.2), "40.0 %"), ((1.0,) * 9 + (99.0,), None)],
)
def test_noisy_is_about_the_middle_half_of_the_samples(samples_s, share):
    evidence = share and f"the middle half of the samples spreads over {share} of the median"

    assert flags(samples_s=samples_s).get("noisy") == evidence


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (100.0, 91.0, None),
        (100.0, 109.0, None),
        (100.0, 50.0, "50.0 %"),
        (50.0, 100.0, "200 %"),
        (None, 100.0, None),
        (100.0, None, None),
    ],
)
def test_drifted_when_the_same_loop_ran_at_another_rate(before, after, text):
    found = flags(before=Telemetry(probe_flop_per_s=before), after=Telemetry(probe_flop_per_s=after))

    assert ("drifted" in found) is (text is not None)
    assert text is None or f"ran at {text} of the rate after the samples" in found["drifted"]


def test_contended_by_threads_of_its_own_that_never_rest():
    found = flags(has_busy_idle_threads=True)

    assert found["contended"] == "threads of this process kept a core busy while idle"


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ([1.0] * 8 + [0.5] * 2, None),  # a fifth hardly moves a median
        ([1.0] * 2 + [0.87], "in 1 of 3 rounds a core ran a loop of multiply-adds at 87.0 % of its usual rate"),
        ([1.0] * 7 + [0.5, 0.6, 0.55], "in 3 of 10 rounds a core ran a loop of multiply-adds at 50.0 % to 60.0 %"),
        ([0.92] * 10, None),
        ([0.7], "in 1 of 1 rounds"),
        ([], None),
    ],
)
def test_drifted_where_cores_were_slow_in_many_rounds(shares, text):
    found = flags(core_speeds=tuple(shares))

    assert ("drifted" in found) is (text is not None)
    assert text is None or found["drifted"].startswith(text)


@pytest.mark.parametrize(
    ("probe", "kind", "cores", "drifted"),
    [
        (80.0, "measured_ceiling", 1, True),
        (95.0, "measured_ceiling", 1, False),
        (80.0, "datasheet", 1, False),  # which no loop of ours reached
        (40.0, "measured_ceiling", 2, True),
        (80.0, "measured_ceiling", 2, False),  # the peak of one thread is half
    ],
)
def test_drifted_where_a_core_was_slower_all_the_time_than_when_its_peaks_were_measured(probe, kind, cores, drifted):
    device = replace(CPU, cores=cores, peaks=(Peak("fp32", "vector", 100.0, kind, "FMA loop"),))
    device = replace(device, one_thread=ThreadRoofs((replace(device.peaks[0], flop_per_s=50.0),), None))
    found = flags(device=device, before=Telemetry(probe_flop_per_s=probe), after=Telemetry(probe_flop_per_s=probe))

    assert ("drifted" in found) is drifted
    assert not drifted or "at 80.0 % of its measured peak on one thread" in found["drifted"]


@pytest.mark.parametrize(("clock_hz", "throttled"), [(None, False), (1e9, False), (0.76e9, False), (0.5e9, True)])
def test_throttled_when_the_clock_fell(clock_hz, throttled):
    found = flags(device=GPU, after=Telemetry(clock_hz=clock_hz))

    assert ("throttled" in found) == throttled
    assert not throttled or found["throttled"] == "the clock fell to 50.0 % of the boost clock"


def test_throttled_when_the_driver_says_so():
    found = flags(device=GPU, after=Telemetry(throttle_reasons=("software power cap", "power brake")))

    assert found["throttled"] == "the driver reports: software power cap, power brake"


@pytest.mark.parametrize("device", [replace(CPU, clock_hz=4e9), replace(GPU, clock_hz=None)], ids=["CPU", "unknown"])
def test_clock_of_a_cpu_or_without_a_known_boost_is_no_sign_of_throttling(device):
    assert "throttled" not in flags(device=device, after=Telemetry(clock_hz=1e8))


def test_emulated_where_the_device_has_no_units():
    assert (
        flags(dtype="bf16")["emulated"] == "a made-up CPU has no bf16 units: the arithmetic is done in another format"
    )
    assert "emulated" not in flags(dtype="fp32")


@pytest.mark.parametrize(("peak", "over"), [(2001.0, False), (2000.0, False), (1999.0, True)])
def test_over_peak_is_any_rate_above_it(peak, over):
    assert ("over_peak" in flags(device=with_peak(peak))) == over


def test_unknown_peak_cannot_be_passed():
    assert "over_peak" not in flags(device=replace(CPU, peaks=()))


@pytest.mark.parametrize(
    ("peak", "kind", "likelier"),
    [
        (1900.0, "datasheet", "the device runs above its rated clock"),
        (100.0, "datasheet", "the measurement is wrong"),
        (1900.0, "measured_ceiling", "the peak is too low"),
        (100.0, "measured_ceiling", "the measurement is wrong"),
    ],
)
def test_over_peak_says_which_is_likelier_wrong(peak, kind, likelier):
    evidence = flags(device=with_peak(peak, kind))["over_peak"]

    assert evidence.startswith("2.00 kFLOP/s is above the peak of ")
    assert "(a leaflet)" in evidence
    assert evidence.endswith(f"most likely {likelier}")


@pytest.mark.parametrize(("ceiling", "above"), [(2000.0, False), (1601.0, False), (1599.0, True)])  # of 2000 FLOP/s
def test_no_arithmetic_is_faster_than_the_measured_ceiling_by_a_quarter(ceiling, above):
    found = flags(device=with_peak(ceiling, "measured_ceiling"))

    assert ("over_physical_peak" in found) is above
    assert "over_physical_peak" not in flags(device=with_peak(ceiling, "datasheet"))


@pytest.mark.parametrize(("bytes_per_s", "above"), [(961.0, False), (959.0, True)])  # 3 x 100 elements of 4 B in 1 s
def test_no_bytes_come_faster_than_from_the_fastest_cache(bytes_per_s, above):
    caches = tuple(
        CacheRoof(level, 2**15, Bandwidth(rate, "measured_ceiling", "")) for level, rate in ((1, bytes_per_s), (2, 1.0))
    )
    found = flags(device=replace(CPU, caches=caches))

    assert ("over_physical_peak" in found) is above
    if above:
        assert found["over_physical_peak"].startswith("1.20 kB/s, but the fastest cache delivers 959 B/s")


@pytest.mark.parametrize(("overhead_s", "cost"), [(None, None), (0.1, None), (0.34, "340 ms"), (1.0, "1.00 s")])
def test_launch_bound_is_near_the_time_of_an_empty_call(overhead_s, cost):
    evidence = cost and f"a call on one element already takes {cost}"

    assert flags(overhead_s=overhead_s).get("launch_bound") == evidence
