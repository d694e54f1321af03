"""Several processes that train together, started by torch's launcher from inside the worker; and what each one does.

The launcher, `torch.distributed.run`, runs this module with a folder: it gives each process its rank and meets on a
free port of 127.0.0.1. What rank 0 reports comes line by line through a file. Processes hear of a cancellation by
another file, and are killed when they do not obey, or are silent for too long.

Rank 0 also trains alone, on the whole batch, while the others wait: one process and several alternate, from the same
batches, so that the speedup is paired and the losses can be compared step by step.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic, perf_counter_ns, sleep
from typing import Any

import psutil
import torch
import torch.distributed as dist

from gpuexplore.core import Cancelled, Device, GpuExploreError, decode, encode, format_seconds
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.features.training.measure.contract import (
    REPORT_EVERY_S,
    Processes,
    Recorder,
    Timing,
    largest_difference,
)
from gpuexplore.features.training.measure.interleaved import MOST_SECONDS, count_zeros, gradient_error, is_counted
from gpuexplore.features.training.measure.learner import LearnedStep, Learner, Network, RankShare, batches_of
from gpuexplore.features.training.measure.setup import Setup, read_setup
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.operations.torch_steps import allow_tf32

MOST_SILENT_S = 90.0  # the start of every process loads torch
GRACE_S = 2.0  # after a cancellation, less than the worker has itself


def train_in_processes(
    arguments: Mapping[str, str],
    device: Device,
    count: int,
    *,
    report: Callable[[Mapping[str, Any]], None],
    cancelled: Callable[[], bool],
) -> None:
    """Train in `count` processes and pass on what they report; nothing that was started is left.

    Raises:
        Cancelled: the user asked to stop.
        GpuExploreError: a process failed, or they were silent for too long.
    """
    with tempfile.TemporaryDirectory(prefix="gpuexplore-train-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        (directory / "job.json").write_text(json.dumps({"arguments": dict(arguments), "device": encode(device)}))
        (directory / "reports").touch()
        command = [sys.executable, "-P", "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={count}"]
        # port 0: the launcher takes a free one and passes it on
        command += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1", "--max-restarts=0"]
        command += ["-m", __name__, str(directory)]
        with (directory / "output").open("wb") as output:
            own = {
                name: text
                for name, text in os.environ.items()
                if device.kind == "cpu" or name != "CUDA_VISIBLE_DEVICES"
            }
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=own
                | {
                    "OMP_NUM_THREADS": "1",
                    "MKL_NUM_THREADS": "1",
                    "GLOO_SOCKET_IFNAME": "lo",
                    "PYTHONPATH": os.pathsep.join(sys.path),
                    "TORCH_CPP_LOG_LEVEL": "ERROR",
                },
            )
        try:
            _follow(process, directory, report, cancelled)
        finally:
            _end(process)


def _follow(
    process: "subprocess.Popen[bytes]",
    directory: Path,
    report: Callable[[Mapping[str, Any]], None],
    cancelled: Callable[[], bool],
) -> None:
    began = heard = monotonic()
    offset = 0
    finished = False
    while True:
        code = process.poll()  # first, so that all that was written before is read
        offset, lines = _new_lines(directory / "reports", offset)
        for line in lines:
            payload = json.loads(line)
            finished = finished or payload["final"]
            report(payload)
            heard = monotonic()
        if finished:
            with suppress(subprocess.TimeoutExpired):  # the CPU time of one that ends by itself is known
                process.wait(GRACE_S)
        if code is not None or finished:
            break
        if cancelled():
            (directory / "stop").touch()
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            raise Cancelled("cancelled during the training with several processes")
        if monotonic() - heard > MOST_SILENT_S or monotonic() - began > MOST_SECONDS + 2 * MOST_SILENT_S:
            raise GpuExploreError(f"the processes reported nothing for too long{_last_words(directory)}")
        sleep(0.05)
    if not finished:
        raise GpuExploreError(f"the processes ended with exit code {code}{_last_words(directory)}")


def _new_lines(path: Path, offset: int) -> tuple[int, list[str]]:
    """Return the whole lines after `offset`, and where they end."""
    with path.open("rb") as file:
        file.seek(offset)
        whole, newline, _ = file.read().rpartition(b"\n")
    return offset + len(whole) + len(newline), whole.decode().splitlines()


def _last_words(directory: Path) -> str:
    """Return the error that a process printed, for the reason of the failure."""
    lines = (directory / "output").read_text(errors="replace").splitlines()
    errors = [line.partition("]:")[2] or line for line in lines if "Error" in line and "ChildFailed" not in line]
    return f": {errors[-1].strip()[:400]}" if errors else ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the launcher with all it started; those are found before it dies, for then they have other parents."""
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).children(recursive=True)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        for child in started:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(started, timeout=GRACE_S)
    process.wait()


def main(directory: Path) -> None:
    """Take part in the training whose job is in `directory`."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: the launcher's end is this one's
    job = json.loads((directory / "job.json").read_text())
    device = decode(Device, job["device"])
    setup = read_setup(job["arguments"], int(os.environ["WORLD_SIZE"]))
    torch.set_num_threads(1)
    allow_tf32(dtype_named("fp32"))
    dist.init_process_group("nccl" if device.kind == "cuda" else "gloo")
    try:
        _RankTeam(setup, device, directory).train()
    finally:
        dist.destroy_process_group()


class _RankTeam:
    """The processes that learn together, seen from one of them.

    Args:
        directory: where rank 0 writes its reports, and where the word to stop appears.
    """

    def __init__(self, setup: Setup, device: Device, directory: Path) -> None:
        self.rank = dist.get_rank()
        self.count = dist.get_world_size()
        self._setup = setup
        self._device = device
        self._directory = directory
        self._torch_device = self._own_device()
        self._batch_of = batches_of(setup)
        self._alone = {name: self._learner(name) for name in setup.modes} if self.rank == 0 else {}
        self._together = {f"{name} × {self.count}": self._member(name) for name in setup.modes}
        self._recorder = Recorder(setup, [*setup.modes, *self._together, *self._data_parallel_names()], device, 1)
        if self.rank == 0:
            self._alone |= {name: self._data_parallel() for name in self._data_parallel_names()}

    def train(self) -> None:
        """Train step by step, then report it all."""
        if self.rank == 0:
            self._report(self._recorder.payload(doing="checking the gradients against float64"))
        for name, learner in self._alone.items():
            self._recorder.courses[name].error = gradient_error(learner, self._setup, self._batch_of)
        stopped = self._train_interleaved()
        gradients = torch.ones(self._setup.model.parameters, device=self._torch_device)
        times_s = []
        warm_up_count = 3
        for _ in range(warm_up_count + 20):
            dist.barrier()
            began = perf_counter_ns()
            dist.all_reduce(gradients)
            if self._device.kind == "cuda":
                torch.cuda.synchronize()
            times_s.append((perf_counter_ns() - began) / 1e9)
            gradients.fill_(1.0)
        all_reduce_s = times_s[warm_up_count:]
        if self.rank == 0:
            environment = describe_environment(self._device, ("torch",), threads=1)
            processes = self._summary(all_reduce_s)
            self._report(self._recorder.last_payload(environment, stopped=stopped, processes=processes))
        dist.barrier()

    def _own_device(self) -> str:
        if self._device.kind == "cpu":
            return "cpu"
        if torch.cuda.device_count() < self.count:
            raise GpuExploreError(
                f"{self.count} processes need as many GPUs: this machine has {torch.cuda.device_count()}"
            )
        torch.cuda.set_device(self.rank)
        return f"cuda:{self.rank}"

    def _learner(self, mode: str, part: RankShare | None = None) -> Learner:
        return Learner(self._setup, mode, self._torch_device, clock=perf_counter_ns, part=part)

    def _member(self, mode: str) -> Learner:
        def distributed(network: Network) -> torch.nn.Module:
            return torch.nn.parallel.DistributedDataParallel(
                network, device_ids=[self.rank] if self._device.kind == "cuda" else None, gradient_as_bucket_view=True
            )

        return self._learner(mode, RankShare(self.rank, self.count, distributed))

    def _data_parallel_names(self) -> list[str]:
        return [f"{self._setup.modes[0]} DataParallel"] if self._device.kind == "cuda" else []

    def _data_parallel(self) -> Learner:
        part = RankShare(wrap=lambda network: torch.nn.DataParallel(network, device_ids=list(range(self.count))))
        return self._learner(self._setup.modes[0], part)

    def _train_interleaved(self) -> str | None:
        random = Random(self._setup.seed)
        began = reported = monotonic()
        for step in range(self._setup.steps):
            batch = self._batch_of(step)
            for name in random.sample(list(self._recorder.courses), len(self._recorder.courses)):
                self._recorder.courses[name].add(self._step_of(name, *batch))
            if self.rank == 0 and is_counted(step, self._setup.steps):
                count_zeros({**self._alone, **self._together}, self._recorder.courses, step)
            if self.rank == 0 and monotonic() - reported >= REPORT_EVERY_S:
                self._report(self._recorder.payload())
                reported = monotonic()
            verdict = self._verdict(monotonic() - began)
            if verdict:
                return f"it had taken {format_seconds(MOST_SECONDS)}" if verdict == 1 else "it was cancelled"
        return None

    def _step_of(self, name: str, samples: torch.Tensor, labels: torch.Tensor) -> LearnedStep:
        """Let a learner step; who has nothing to do waits, and learns what the loss was."""
        dist.barrier()
        if name in self._together:
            step = self._together[name].step(samples, labels)
            loss = torch.tensor(step.loss / self.count, dtype=torch.float64, device=self._torch_device)
            dist.all_reduce(loss)
            return LearnedStep(loss.item(), step.time_s, step.phases_s, step.scale, step.skipped)
        if self.rank == 0:
            return self._alone[name].step(samples, labels)
        return LearnedStep(0.0, 0.0, {})

    def _verdict(self, took_s: float) -> int:
        """Return what rank 0 decides for all: 0 to go on, 1 that the time is up, 2 that it was cancelled."""
        word = 2 if (self._directory / "stop").exists() else int(took_s > MOST_SECONDS)
        decision = torch.tensor(word, device=self._torch_device)
        dist.broadcast(decision, 0)
        return int(decision.item())

    def _summary(self, all_reduce_s: list[float]) -> Processes:
        mode = self._setup.modes[0]
        courses = self._recorder.courses
        settled = self._recorder.settled
        alone = courses[mode]
        together = courses[f"{mode} × {self.count}"]
        speedup = Timing.ratio(alone.times_s[settled], together.times_s[settled])
        step_s = Timing.of(together.times_s[settled])
        reduced_s = Timing.of(all_reduce_s)
        parallel = [courses[name].times_s[settled] for name in self._data_parallel_names()]
        return Processes(
            count=self.count,
            backend=dist.get_backend(),
            mode=mode,
            speedup=speedup,
            efficiency=speedup.median / self.count if speedup else None,
            all_reduce_s=reduced_s,
            communicating=min(1.0, reduced_s.median / step_s.median) if step_s and reduced_s else None,
            reduced_bytes=4 * self._setup.model.parameters,
            largest_loss_difference=largest_difference(alone.losses, together.losses),
            data_parallel=Timing.of(parallel[0]) if parallel else None,
        )

    def _report(self, payload: Mapping[str, Any]) -> None:
        with (self._directory / "reports").open("a", encoding="utf-8") as reports:
            reports.write(json.dumps(payload) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
