"""Explore, the start page: the time of an operation against its size on several GPUs and this machine, at once."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "explore",
    needs=("atlas",),
    page=Page(
        "explore",
        "Explore",
        "Explore",
        "Time, rate and roofline of an operation against its size, on GPUs and on this machine.",
        reads="op dtype gpus n view measuring",
        terms=("Operation", "Dtype", "Prediction", "Roofline"),
        script=Path(__file__).with_name("page.py"),
    ),
    preload="gpuexplore.features.explore.ui",
)
