"""Memory: what training or serving a model needs, when it needs most, and what fits where."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "memory",
    page=Page(
        "memory",
        "Memory",
        "Model",
        "Memory for training or serving a model: its peak, when it occurs, and the largest batch that fits.",
        reads="model widths layers mode batch tokens dtype optimizer mixed checkpoints accumulate kv gpu reserve",
        terms=("Peak moment", "Activations", "Checkpoints", "Largest batch"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"memory": "memory for training or serving a model: its peak, when it occurs, and the GPUs it fits"},
    lesson_blocks=("memory",),
    functions={"memory_of": "gpuexplore.features.memory.analysis.own_module"},
)
