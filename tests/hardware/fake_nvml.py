"""An NVML of GPUs that tests lay out, answering as pynvml does."""

from dataclasses import dataclass, field
from types import SimpleNamespace


class FakeError(Exception):
    """What pynvml raises when a device has no answer."""

    value = 3  # NVML_ERROR_NOT_SUPPORTED


class FakeLost(FakeError):
    """What it raises when the driver cannot reach the device any more."""

    value = 15  # NVML_ERROR_GPU_IS_LOST


@dataclass
class FakeGpu:
    name: str
    uuid: str
    memory_bytes: int
    cores: int | None = None
    capability: tuple[int, int] = (8, 0)
    sm_mhz: int | None = 1410
    memory_mhz: int | None = 1215
    bus_bits: int | None = 5120
    mig: bool = False
    reasons: int = 0
    pids: tuple[int, ...] = ()
    pci_device: int | None = None
    milliwatts: int | None = None
    lost: bool = False


@dataclass
class FakeNvml:
    gpus: list[FakeGpu] = field(default_factory=list)
    NVMLError = FakeError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2

    def nvmlDeviceGetCount(self):  # noqa: N802 NVML's names
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802
        return known([gpu for gpu in self.gpus if gpu.uuid == uuid])[0]

    def nvmlDeviceGetUUID(self, gpu):  # noqa: N802
        return gpu.uuid

    def nvmlDeviceGetName(self, gpu):  # noqa: N802
        return gpu.name.encode()

    def nvmlDeviceGetMemoryInfo(self, gpu):  # noqa: N802
        if gpu.lost:
            raise FakeLost("GPU is lost")
        return SimpleNamespace(total=gpu.memory_bytes)

    def nvmlDeviceGetCudaComputeCapability(self, gpu):  # noqa: N802
        return gpu.capability

    def nvmlDeviceGetNumGpuCores(self, gpu):  # noqa: N802
        return known(gpu.cores)

    def nvmlDeviceGetMaxClockInfo(self, gpu, clock):  # noqa: N802
        return known({self.NVML_CLOCK_SM: gpu.sm_mhz, self.NVML_CLOCK_MEM: gpu.memory_mhz}[clock])

    def nvmlDeviceGetMemoryBusWidth(self, gpu):  # noqa: N802
        return known(gpu.bus_bits)

    def nvmlDeviceGetPciInfo(self, gpu):  # noqa: N802
        return SimpleNamespace(pciDeviceId=known(gpu.pci_device))

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu):  # noqa: N802
        return known(gpu.milliwatts)

    def nvmlDeviceGetMigMode(self, gpu):  # noqa: N802
        return (int(gpu.mig), int(gpu.mig))

    def nvmlSystemGetDriverVersion(self):  # noqa: N802
        return "580.65.06"

    def nvmlDeviceGetClockInfo(self, gpu, clock):  # noqa: N802
        return gpu.sm_mhz

    def nvmlDeviceGetCurrentClocksEventReasons(self, gpu):  # noqa: N802
        return gpu.reasons

    def nvmlDeviceGetComputeRunningProcesses(self, gpu):  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in gpu.pids]


def known(answer):
    if not answer:
        raise FakeError("not supported")
    return answer
