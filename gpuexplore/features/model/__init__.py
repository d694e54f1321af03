"""Models: how fast training or serving one is, what memory it needs, and what fits where."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "model",
    page=Page(
        "model",
        "Model",
        "Model",
        "Speed of training or serving a model on any GPUs, its memory, and the largest batch that fits.",
        reads="view model widths layers task gpu gpus tp pipeline dtype weights batch tokens answer shard checkpoint "
        "mode optimizer mixed checkpoints accumulate kv reserve",
        terms=("MFU", "Peak moment", "Activations", "Checkpoints", "Largest batch"),
        also="memory",
        script=Path(__file__).with_name("page.py"),
    ),
    needs=("atlas", "trace"),
    commands={
        "model": "tokens per second, step time, MFU and memory of a whole model on any number of GPUs",
        "memory": "memory for training or serving a model: its peak, when it occurs, and the GPUs it fits",
    },
    activities={"model": ActivityKind("gpuexplore.features.model.measure", "Model steps", "model")},
    lesson_blocks=("memory", "model"),
    functions={
        "memory_of": "gpuexplore.features.model.analysis.own_module",
        "predict_model": "gpuexplore.features.model.analysis.own_module",
    },
)
