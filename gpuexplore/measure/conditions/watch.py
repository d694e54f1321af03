"""Observation of the device from before a group is prepared until each of its cases has settled.

Two windows are judged. The samples alone may take less time than the resolution of CPU accounts, and a disturbance that
began among them is a small part of the whole.
"""

from dataclasses import dataclass, field, replace
from math import inf
from time import perf_counter

from gpuexplore.backends import Call, EventTimer, Timer
from gpuexplore.core.model import Device, Environment, Telemetry
from gpuexplore.hardware import CpuLoss, CpuTimes, cpu_loss, read_cpu_times
from gpuexplore.hardware import read as read_telemetry
from gpuexplore.hardware.cpu_ceiling.probe import clock_probe, core_rates, prepare_clock_probe
from gpuexplore.measure.conditions.isolation import CoreSpeeds

SPEEDS = CoreSpeeds(core_rates)  # of this process


@dataclass(slots=True)
class Watch:
    """Readings of the CPU's accounts and of its speed.

    Attributes:
        device: where the group is measured.
        wait: returns when pool threads of this process sleep.
        opened: the accounts before the group was prepared.
        sampled: the accounts before the samples.
        probe_flop_per_s: of the clock probe before the samples; None is unknown, and on GPUs, whose driver has clocks.
        busy: telemetry of the GPU while it was busy with samples; its clock is the last one.
        has_busy_idle_threads: whether threads of this process kept a core busy after the samples, without work.
    """

    device: Device
    wait: Call
    opened: CpuTimes | None = field(default_factory=read_cpu_times)
    sampled: CpuTimes | None = None
    probe_flop_per_s: float | None = None
    busy: list[Telemetry] = field(default_factory=list)
    has_busy_idle_threads: bool = False
    _looked_s: float = field(default=-inf, init=False)

    def __post_init__(self) -> None:
        if self.device.kind == "cpu":
            prepare_clock_probe()

    def begin_samples(self) -> None:
        """Read the clock probe and the accounts as the samples begin."""
        self.probe_flop_per_s = self._probe()
        self.sampled = read_cpu_times()

    def look_at_busy(self, timer: Timer) -> None:
        """Read the state of a GPU whenever a round of `timer` is enqueued: an idle one reports other clocks."""
        if isinstance(timer, EventTimer):
            timer.meanwhile = self._look

    def losses(self) -> tuple[CpuLoss, ...]:
        """Return the CPU use of others until now, since the samples began and in all."""
        now = read_cpu_times()
        return cpu_loss(self.sampled, now, with_children=False), cpu_loss(self.opened, now)

    def state(self) -> Telemetry:
        """Return the state of the device: of a CPU now, of a GPU as it was last busy, throttled if it ever was."""
        found = self.busy[-1] if self.busy else read_telemetry(self.device)
        reasons = dict.fromkeys(reason for seen in (*self.busy, found) for reason in seen.throttle_reasons)
        return replace(found, throttle_reasons=tuple(reasons), probe_flop_per_s=self._probe())

    def described(self, environment: Environment, device: Device, after: Telemetry) -> Environment:
        """Return the environment of a result: `device` with its peaks, and its state before and after the samples."""
        before = replace(environment.before, probe_flop_per_s=self.probe_flop_per_s)
        return replace(environment, device=device, before=before, after=after)

    def _look(self) -> None:
        now_s = perf_counter()
        if now_s - self._looked_s >= 20e-3:  # a query of the driver takes up to a millisecond
            self._looked_s = now_s
            self.busy.append(read_telemetry(self.device))

    def _probe(self) -> float | None:
        if self.device.kind != "cpu":
            return None
        self.has_busy_idle_threads = self.wait() is False
        return clock_probe()
