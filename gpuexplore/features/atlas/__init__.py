"""Atlas: what GPUs were measured to do, by whom, over what is predicted, and which GPU suits a call."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "atlas",
    page=Page(
        "atlas",
        "Atlas",
        "Understand",
        1,
        "map",
        "What GPUs were measured to do, by source, over what is predicted; which GPU for a call.",
        reads="op dtype gpus show calls shape by price point",
        terms=("Point", "Published", "Prediction", "MFU"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"atlas": "what GPUs were measured to do, by whom, and which GPU suits a call"},
    functions=dict.fromkeys(("atlas", "which_gpu"), "gpuexplore.features.atlas.functions"),
    preload="gpuexplore.features.atlas.ui.view",
    offers={"below": "gpuexplore.features.atlas.ui.view"},
)
