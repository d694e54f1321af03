"""Atlas: what GPUs were measured to do, by whom, over what is predicted, and which GPU suits a call."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "atlas",
    page=Page(
        "atlas",
        "Atlas",
        "Roofline",
        "Measured GPU performance by source, next to predictions.",
        reads="op dtype gpus show calls shape point",
        terms=("Point", "Published", "Prediction", "MFU"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={"atlas": "measured GPU performance with its sources, and which GPU suits a call"},
    functions=dict.fromkeys(("atlas", "which_gpu"), "gpuexplore.features.atlas.functions"),
    preload="gpuexplore.features.atlas.ui.view",
)
