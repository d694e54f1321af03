"""Tensors: storage, strides and offsets; views, copies and writes; and the cost of strided reads."""

from pathlib import Path

from gpuexplore.registry import ActivityKind, Feature, Page

FEATURE = Feature(
    "tensors",
    page=Page(
        "tensors",
        "Tensors",
        "Learn",
        "Storage, strides and offset: views, copies and writes, and the cost of strided reads.",
        reads="expression show dtype device activity",
        terms=("Storage", "Stride", "Offset", "View", "Contiguous"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"tensor": "shape, strides, views, copies and writes of an expression, step by step"},
    activities={"strided-read": ActivityKind("gpuexplore.features.tensors.measure", "Strided read", "tensors")},
    lesson_blocks=("tensor",),
)
