"""Pins what is installed in this environment in `requirements/lock.txt`, but for CUDA: torch's builds pin their own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "lock.txt"
OF_CUDA = (
    "cuda-bindings",
    "cuda-toolkit",
    "nvidia-cuda-cccl",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-nvjitlink",
    "nvidia-nvvm",
)


def main() -> None:
    """Write the file, its first comments kept."""
    command = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    frozen = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    pins = [line.partition("+")[0] for line in frozen if "==" in line and not line.startswith("#")]
    words = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    kept = [pin for pin in pins if pin.partition("==")[0] not in OF_CUDA]
    LOCK.write_text("\n".join([*words, *kept]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
