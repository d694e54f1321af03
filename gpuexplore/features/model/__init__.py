"""Models: how fast training or serving one is, what memory it needs, and what fits where."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "model",
    page=Page(
        "memory",
        "Memory",
        "Model",
        "Memory for training or serving a model: its peak, when it occurs, and the largest batch that fits.",
        reads="model widths layers mode batch tokens dtype optimizer mixed checkpoints accumulate kv gpu reserve",
        terms=("Peak moment", "Activations", "Checkpoints", "Largest batch"),
        script=Path(__file__).with_name("page.py"),
    ),
    needs=("atlas",),
    commands={
        "model": "tokens per second, step time, MFU and memory of a whole model on any number of GPUs",
        "memory": "memory for training or serving a model: its peak, when it occurs, and the GPUs it fits",
    },
    lesson_blocks=("memory", "model"),
    functions={
        "memory_of": "gpuexplore.features.model.analysis.own_module",
        "predict_model": "gpuexplore.features.model.functions",
    },
)
