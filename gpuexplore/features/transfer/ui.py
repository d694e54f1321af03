"""The page Transfers: its choices, when moving data pays, parts of a first use, rates and the cost of a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.activity import ActivityRun
from gpuexplore.core import UNKNOWN, Device, decode, format_bytes, format_bytes_per_s, format_percent, format_seconds
from gpuexplore.features.transfer.analysis import (
    ASSUMED_SOURCE,
    LATENCY,
    LINKS,
    OWN,
    SHARES,
    Memory,
    Path,
    TimeSpan,
    measured_path,
    path_to,
    predicted_rates,
    readings_of,
)
from gpuexplore.features.transfer.analysis.comparison import (
    BreakEven,
    SizePoint,
    break_even_size,
    compare,
    first_call_cost,
    side_of,
    stack,
    uses_that_pay,
    which_is_faster,
)
from gpuexplore.features.transfer.chart import cpu_against_gpu, first_use, transfer_rates
from gpuexplore.features.transfer.measure.contract import TransferReading, TransferReadings, activity_of, sizes_of
from gpuexplore.hardware import NEWEST_FIRST, TORCH_KINDS, target_named
from gpuexplore.operations import operation_named
from gpuexplore.ui import url_widgets
from gpuexplore.ui.activity import newest_done, show_newest
from gpuexplore.ui.devices import show_warming_up
from gpuexplore.ui.markdown import plain, small
from gpuexplore.ui.session import known_devices, live_supervisor, measured_results
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.what_if.known import calibration_on

KNOWN_FOR = timedelta(days=30)
COMPARISONS: Shared[tuple[SizePoint, ...]] = Shared(100)
Observed = tuple[TransferReadings, ...]  # nothing: times are predicted


@dataclass(frozen=True, slots=True)
class _TransferChoice:
    """Choices of the page: operation, size, devices and the link between them.

    Attributes:
        size: one of the operation's sizes, taken apart in the stacked bars.
        gpu: of the table, or of this machine.
        link: a key of LINKS, or OWN.
        measured_on: the device that the button measures on.
    """

    operation: str
    size: int
    gpu: Device
    link: str
    memory: Memory
    cpu: Device
    measured_on: Device


def choose() -> _TransferChoice:
    """Draw the choices and return them."""
    devices = known_devices()
    columns = st.columns([3, 2, 3, 3], gap="medium")
    with columns[0]:
        operation = url_widgets.operation()
    with columns[1]:
        size = int(url_widgets.select("Size", "size", _sizes(operation), shown=lambda text: f"{int(text):,}"))
    with columns[2]:
        names = {row.key: row.name for row in NEWEST_FIRST}
        here = [device.id for device in devices if device.kind == "cuda"]
        table = sorted((row.key for row in NEWEST_FIRST if row.pcie_bytes_per_s), key=lambda key: key != "t4")
        gpu = url_widgets.select("GPU", "gpu", [*here, *table], shown=lambda key: names.get(key, key))
    with columns[3]:
        link = url_widgets.select("Link", "link", [OWN, *LINKS], shown=_link_title)
    columns = st.columns([3, 5], gap="medium")
    with columns[0]:
        memory: Memory = (
            "pinned" if url_widgets.segments("Host memory", "memory", list(SHARES)) == "pinned" else "pageable"
        )
    cpu = next((device for device in devices if device.kind == "cpu"), devices[0])
    with columns[1]:
        able = [device for device in devices if device.kind not in TORCH_KINDS]
        measured_on = url_widgets.device(sorted(able, key=lambda device: device.kind == "cpu"), "Measure on")
    return _TransferChoice(operation, size, target_named(gpu, devices), link, memory, cpu, measured_on)


def _sizes(operation: str) -> list[str]:
    """Return the sizes, the middle of the default sweep's first."""
    contract = operation_named(operation)
    sizes = sizes_of(contract)
    usual = max(contract.default_sizes)
    first = min(sizes, key=lambda size: abs(size - usual))
    return [str(first), *(str(size) for size in sizes if size != first)]


def _link_title(key: str) -> str:
    if key not in LINKS:
        return "the GPU's own"
    return f"{LINKS[key].title}: {format_bytes_per_s(LINKS[key].bytes_per_s)}"


def _observed_in(run: ActivityRun | None) -> tuple[TransferReadings, ...]:
    """Return what an activity has observed so far."""
    return tuple(decode(TransferReadings, dict(payload)) for payload in run.payloads) if run else ()


def _points(asked: _TransferChoice, cpu: Observed, gpu: Observed, path: Path) -> tuple[SizePoint, ...]:
    """Return the times on both at every size, measured or predicted."""
    results = measured_results(asked.cpu)
    sides = side_of(asked.cpu, readings_of(cpu, "work")), side_of(asked.gpu, readings_of(gpu, "work"))

    def computed() -> tuple[SizePoint, ...]:
        return compare(asked.operation, sides, path, calibration_on((results,)))

    return COMPARISONS.get((asked.operation, sides, path, results), computed)


def _observed_on(device: Device, operation: str) -> tuple[TransferReadings, ...]:
    return _observed_in(newest_done(activity_of(operation, device.id), KNOWN_FOR))


def show_transfers(asked: _TransferChoice, picture: DeltaGenerator) -> None:
    """Show what is known of the choices, its answer with its chart in `picture`, and the button that measures."""
    cpu = _observed_on(asked.cpu, asked.operation)
    gpu = () if asked.gpu.is_hypothetical else _observed_on(asked.gpu, asked.operation)
    path = path_to(asked.gpu, asked.link, asked.memory)
    if gpu:
        path = measured_path(gpu[0].link, readings_of(gpu, "moves"), asked.memory)
    points = _points(asked, cpu, gpu, path)
    origin = (
        f"{plain(asked.cpu.short_title)}: {_known_by(cpu, [point.cpu for point in points])}; {plain(asked.gpu.title)}: "
        f"{_known_by(gpu, [point.gpu for point in points])}. Filled points are measured, hollow ones predicted; bands "
        "are 95 % intervals of measurements and 90 % prediction intervals."
    )
    with picture:
        if not asked.cpu.bandwidth and (supervisor := live_supervisor()) and supervisor.state == "warming":
            redrawn(show_warming_up, 1.0)()
        st.markdown(f"#### {plain(_answer(asked, points))}")
        show_chart(
            lambda: cpu_against_gpu(
                points, break_even_size(points), f"Size of {operation_named(asked.operation).title.lower()}, fp32"
            ),
            (asked.operation, points),
            key="chart.transfer.break-even",
        )
    _break_even(asked, points)
    st.markdown(small(f"{origin} {_path_words(path)}"))
    _first_use(asked, points, cpu, gpu)
    _predicted_rates(path, points)
    device = asked.measured_on
    st.subheader("Measured memory copies" if device.kind == "cpu" else "Measured transfers", anchor="measured")
    show_newest(
        activity_of(asked.operation, device.id),
        KNOWN_FOR,
        partial(_draw, device=device),
        missing=f"Nothing measured on {plain(device.id)} yet: transfers, calls and the operation, about 30 s.",
        label="Measure",
    )


def _answer(asked: _TransferChoice, points: Sequence[SizePoint]) -> str:
    """Return from which size on the GPU is faster, transfers included, and which is at the size in question."""
    found = break_even_size(points)
    what = f"{operation_named(asked.operation).title.lower()} in fp32"
    gpu = asked.gpu.title
    if found is None:
        why = ": a time is unknown" if any(point.cpu for point in points) else " until this CPU's peaks are measured"
        taken = f"{format_seconds(move.time_s)} ({move.origin})" if (move := _point(asked, points).move) else UNKNOWN
        return f"Transfers at {asked.size:,} take {taken}; from which size on {gpu} beats this CPU is unknown{why}."
    is_measured = all(span.origin == "measured" for point in points for span in (point.cpu, point.gpu) if span)
    beats = f"{gpu} {'beats' if is_measured else 'is predicted to beat'} this CPU at {what}, transfers included"
    never = f"in the best case from {found.low:,} on" if found.low else "not even in the best case"
    where = f"At no size up to {points[-1].size:,}" if found.value is None else f"From size {found.value:,} on"
    return (
        f"{where}, {beats} ({never if found.value is None else _between(found)}). "
        f"At {asked.size:,}, this CPU's time over the GPU's is "
        f"{which_is_faster(_point(asked, points), gpu).statement}."
    )


def _break_even(asked: _TransferChoice, points: Sequence[SizePoint]) -> None:
    point = _point(asked, points)
    found = break_even_size(points)
    uses = uses_that_pay(point)
    move = point.move
    if found is None or uses is None or move is None:
        return
    columns = st.columns(3, gap="medium")
    columns[0].metric(
        "GPU wins from size", _whole(found, "never"), _between(found), delta_color="off", delta_arrow="off"
    )
    columns[1].metric(
        f"Uses to break even at {asked.size:,}",
        _whole(uses, "none"),
        _between(uses),
        delta_color="off",
        delta_arrow="off",
    )
    columns[2].metric(
        f"Transfer at {asked.size:,}",
        format_seconds(move.time_s),
        f"{format_seconds(move.low_s)} to {format_seconds(move.high_s)}, {move.origin}",
        delta_color="off",
        delta_arrow="off",
    )


def _first_use(asked: _TransferChoice, points: Sequence[SizePoint], cpu: Observed, gpu: Observed) -> None:
    st.subheader("First call, transfer and kernel", anchor="first-use")
    parts = stack(
        _point(asked, points),
        cpu_first=first_call_cost(readings_of(cpu, "work")),
        gpu_first=first_call_cost(readings_of(gpu, "work")),
    )
    shown = tuple(parts.items())
    show_chart(lambda: first_use(parts), shown, key="chart.transfer.first-use")
    rows = [
        {
            "On": where,
            "Part": part,
            "Time": span.time_s,
            "Low": span.low_s,
            "High": span.high_s,
            "Origin": span.origin,
        }
        for (where, part), span in parts.items()
        if span  # the chart names those that are unknown
    ]
    units = {"Time": "s", "Low": "s", "High": "s"}
    show_table(lambda: rows, shown, units, alt="Table of the parts of a first use on the CPU and on the GPU")
    st.caption(
        "First call: one-time work of a process, such as compiling or choosing kernels and starting threads, without "
        "loading the libraries. It cannot be predicted: on a device without a measurement it is unknown, and not part "
        "of the bar."
    )


def _predicted_rates(path: Path, points: Sequence[SizePoint]) -> None:
    """Show the rates over an unmeasured link, and what a launch should cost there."""
    readings = () if path.readings else predicted_rates(path)
    if not readings:
        return
    st.subheader("Predicted transfers", anchor="predicted")
    peaks = {f"{path.title}: {format_bytes_per_s(path.bytes_per_s)}": path.bytes_per_s or 0.0}
    title = "Predicted transfer rate"
    show_chart(lambda: transfer_rates(readings, peaks, title), (readings, repr(peaks)), key="chart.transfer.predicted")
    cost = ""
    if launch := points[0].kernel:
        cost = (
            f" Launch overhead, from a call at size {points[0].size}: {format_seconds(launch.time_s)} "
            f"({format_seconds(launch.low_s)} to {format_seconds(launch.high_s)})."
        )
    st.caption(f"Transfers in one direction, the same for both; bars are 90 % prediction intervals.{cost}")


def _draw(run: ActivityRun, device: Device) -> None:
    observed = _observed_in(run)
    if moves := [reading for reading in readings_of(observed, "moves") if reading.bytes_per_s]:
        _rates(moves, observed[0], device)
    if calls := readings_of(observed, "calls"):
        st.markdown("**Call overhead**, on one element")
        _table(calls, f"Table of the call overhead on {device.id} by library")
    if work := readings_of(observed, "work"):
        st.markdown(f"**{plain(operation_named(observed[0].operation).title)}** without transfers, in fp32")
        _table(work, f"Table of the time of a call on {device.id} at each size")
    readings = [reading for part in observed for reading in part.readings]
    for name in ("noisy", "contended", "contention_unknown", "throttled"):
        found = [reading for reading in readings if any(flag.name == name for flag in reading.flags)]
        if found:
            evidence = next(flag.evidence for flag in found[0].flags if flag.name == name)
            st.caption(f":material/flag: `{name}`: {len(found)} of {len(readings)} times, e.g. {plain(evidence)}.")


def _rates(moves: Sequence[TransferReading], observed: TransferReadings, device: Device) -> None:
    peaks = _peaks(observed, device)
    title = "Transfer rate" if observed.on_gpu else "Memory traffic of copies"
    show_chart(lambda: transfer_rates(moves, peaks, title), (tuple(moves), repr(peaks)), key="chart.transfer.rates")
    st.caption(
        "Between host and GPU, timed on the host until the data have arrived."
        if observed.on_gpu
        else "Memory copies on this CPU, not transfers over a link. Each byte is read and written. Copies that "
        "fit the caches are faster than memory."
    )
    largest = max(reading.byte_count for reading in moves)
    st.markdown(f"**At {format_bytes(largest)}**")
    _table(
        [reading for reading in observed.readings if reading.byte_count == largest],
        f"Table of transfers of {format_bytes(largest)} by each method",
        peak=next(iter(peaks.values()), None),
    )


def _peaks(observed: TransferReadings, device: Device) -> dict[str, float]:
    """Return what the rates are compared with, by its label; nothing where it is unknown."""
    if observed.on_gpu:
        link = observed.link
        rate = link.bytes_per_s if link else None
        return {f"{link.title}: {format_bytes_per_s(rate)}": rate} if link and rate else {}
    memory = observed.environment.device.bandwidth or device.bandwidth
    if memory is None:
        return {}
    return {f"memory bandwidth: {format_bytes_per_s(memory.bytes_per_s)}": memory.bytes_per_s}


def _table(readings: Sequence[TransferReading], alt: str, peak: float | None = None) -> None:
    rows = [
        {
            "What": reading.name,
            "Median": reading.median_s,
            "Low": reading.ci95_s and reading.ci95_s[0],
            "High": reading.ci95_s and reading.ci95_s[1],
            "First call": reading.first_call_s,
            "Rate": reading.bytes_per_s,
            "Of the peak": peak and reading.bytes_per_s and reading.bytes_per_s / peak,
            "Samples": reading.n or None,
            "Why not": reading.reason,
        }
        for reading in readings
    ]
    units = dict.fromkeys(("Median", "Low", "High", "First call"), "s") | {"Rate": "B/s", "Of the peak": "%"}
    show_table(lambda: rows, (tuple(readings), peak), units, alt=alt)


def _point(asked: _TransferChoice, points: Sequence[SizePoint]) -> SizePoint:
    return next(point for point in points if point.size == asked.size)


def _whole(found: BreakEven, never: str) -> str:
    return never if found.value is None else f"{found.value:,}"


def _between(found: BreakEven) -> str:
    """Return the interval: what never pays in the worst case is open."""
    if found.low is None:
        return "not even in the best case"
    return f"{found.low:,} to {'never' if found.high is None else f'{found.high:,}'}"


def _known_by(observed: Sequence[TransferReadings], spans: Sequence[TimeSpan | None]) -> str:
    """Return how the times of one side are known: its peaks may not have been measured yet."""
    if readings_of(observed, "work"):
        return "measured"
    return "predicted" if any(spans) else "unknown, as its peaks are not measured yet"


def _path_words(path: Path) -> str:
    peak = f"{plain(path.title)}, {format_bytes_per_s(path.bytes_per_s)} theoretical"
    if path.readings:
        return f"Transfers over {peak}: measured from {path.memory} memory."
    share = SHARES[path.memory]
    return (
        f"Transfers over {peak} ([source]({path.source})): predicted from {path.memory} memory, with an assumed "
        f"{format_percent(share.value)} of the peak ({format_percent(share.low)} to {format_percent(share.high)}) and "
        f"{format_seconds(LATENCY.time_s)} each ([why memory matters]({ASSUMED_SOURCE}))."
    )
