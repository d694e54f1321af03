"""Tensors: storage, strides and offsets, what views, copies and writes do, and what strided reads cost."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "tensors",
    page=Page(
        "tensors",
        "Tensors",
        "Learn",
        5,
        "grid_on",
        "Storage, strides, offset: what views, copies and writes do, what strided reads cost.",
        reads="expression show dtype device activity",
        terms=("Storage", "Stride", "Offset", "View", "Contiguous"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"tensor": "shape, strides, views, copies and writes of an expression, step by step"},
    activities={"strided-read": ActivityKind("gpuexplore.features.tensors.measure", "Strided read", "tensors")},
    lesson_blocks=("tensor",),
)
