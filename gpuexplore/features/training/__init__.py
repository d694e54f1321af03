"""Training: a small model in several precisions and processes, its losses, phases and MFU."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "training",
    page=Page(
        "training",
        "Training",
        "Benchmark",
        "Train small models in fp32, bf16 and fp16, or in several processes: losses and phases.",
        reads="model widths batch steps data modes optimizer rate processes seed device activity",
        terms=("Phase", "MFU", "Mixed precision"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"train": "train a small model in several interleaved precisions: losses, phases, processes"},
    activities={"train": ActivityKind("gpuexplore.features.training.measure", "Training", "training")},
    lesson_blocks=("train",),
)
