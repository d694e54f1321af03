"""Machine code: our own kernels and those of files as a GPU executes them: launch, occupancy, PTX and SASS."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "machine_code",
    page=Page(
        "kernels",
        "Kernels",
        "Kernels",
        "Our own kernels, from the naive loop up: grids, registers, occupancy and PTX, for any GPU.",
        reads="op impl dtype gpu cc sm block shape grid tab run sweep explain interpret small at warp step",
        terms=("Block", "Multiprocessor", "Occupancy", "Wave", "Sector", "Wavefront"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={
        "occupancy": "theoretical occupancy of a CUDA kernel on a GPU, and its limiter",
        "sass": "machine code of a CUDA kernel on a GPU, and the highest rate it allows",
    },
    after="predict",
)
